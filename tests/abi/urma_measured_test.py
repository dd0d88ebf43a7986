#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every bad call that UMDK's library was measured at (data/urma_badinput.csv) has its place in data/urma_badinput_rows.csv:
    row      a row of bad_input_rows.h or accepted_rows.h of that function, which expects what was measured
    made     undone by the rows of the function that is named, which expect its success
    test     a test of tests/face/urma that is named
    differs  another answer: what and why, and the row or test that looks at it in the text
    cannot   the case cannot be here, and why"""
import csv
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/abi/data"
TESTS = ROOT / "tests/face/urma"
NUMBER = {"-EINVAL": "-22", "EINVAL": "22"}
ROW = re.compile(r'ROW\((\w+), "([^"]*)",\s*(\w+),\s*([^,]+?),')


def rows():
    text = "".join((TESTS / name).read_text() for name in ("bad_input_rows.h", "accepted_rows.h"))
    return {(function, what): (kind, expected) for function, what, kind, expected in ROW.findall(text)}


def expects(row, returned, errno):
    """Does a row of this kind expect what was measured?"""
    kind, expected = row
    if kind == "POINTER":
        return returned == "NULL" and errno == expected
    if kind in ("STATUS", "REFUSED"):
        return returned == expected or (returned == "NULL" and errno == expected)
    if kind == "COUNT":
        return returned == NUMBER.get(expected, expected)
    if kind == "NOTHING":
        return returned == "void"
    return not returned.startswith(("NULL", "URMA_E", "URMA_FAIL", "-", "hang", "crash"))  # GOOD


def wrong(place, measured, known, tests):
    """Why the place of a measured case is none; None: it is one."""
    function, case, by, what = place
    name = function.split("(")[0].split(" ")[0]
    if by == "row":
        row = known.get((name, what))
        if not row:
            return f'no row "{what}" of {name}'
        return None if expects(row, *measured) else f'row "{what}" expects {row[0]} {row[1]}, measured: {measured}'
    if by == "made":
        good = any(of == what and row[0] == "GOOD" for (of, _), row in known.items())
        return None if good and measured[0] == "URMA_SUCCESS" else f"{what} has no row that is accepted"
    if by == "test":
        return None if what in tests else f"no test {what}"
    if by in ("differs", "cannot"):
        for row in re.findall(r'row(?: of (\w+),)? "([^"]+)"', what):
            if (row[0] or name, row[1]) not in known:
                return f'no row "{row[1]}" of {row[0] or name}'
        looked_at = by == "cannot" or 'row' in what or any(test in what for test in tests)
        return None if len(what) > 15 and looked_at else "no reason, or nothing looks at it"
    return f"unknown: {by}"


def main():
    known = rows()
    tests = set(re.findall(r"cmocka_unit_test\((\w+)\)", "".join(p.read_text() for p in TESTS.glob("*_test.c"))))
    with open(DATA / "urma_badinput.csv", newline="") as file:
        measured = {(r["function"], r["case"]): (r["returned"], r["errno"]) for r in csv.DictReader(file)}
    with open(DATA / "urma_badinput_rows.csv", newline="") as file:
        places = [tuple(row) for row in csv.reader(file)][1:]
    failures = [f"{case}: no place" for case in measured if case not in {p[:2] for p in places}]
    failures += [f"{p[:2]}: was not measured" for p in places if p[:2] not in measured]
    for place in places:
        why = place[:2] in measured and wrong(place, measured[place[:2]], known, tests)
        if why:
            failures.append(f"{place[0]}, {place[1]}: {why}")
    for failure in failures:
        print("FAILED", failure)
    count = {by: sum(p[2] == by for p in places) for by in ("row", "made", "test", "differs", "cannot")}
    print(len(measured), "measured cases:", ", ".join(f"{n} {by}" for by, n in count.items()))
    sys.exit(bool(failures))


main()
