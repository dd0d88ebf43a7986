#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/fault/bitflip_fields.h names every member of the records that peers share: one that is added to a record and not
to its table would never be flipped."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS = {
    "src/arena/port.h": ("dock_port", "dock_hazard", "dock_segrec", "dock_qrec", "dock_segpieces", "dock_grprec"),
    "src/arena/groups.h": ("dock_group_member",),
    "src/ring/cqring.h": ("dock_cqrec",),
    "src/ring/rqring.h": ("dock_rqrec",),
}
PADDING = {("dock_hazard", "rest")}


def members(text, struct):
    body = re.search(rf"^struct {struct} {{\n(.*?)^}};", text, re.M | re.S).group(1)
    body = re.sub(r"_Alignas\(\s*\d+\s*\)", "", re.sub(r"//.*", "", body))
    for line in body.split(";"):
        first, *others = line.split(",")
        for name in [first.split()[-1] if first.split() else "", *others]:
            name = re.sub(r"\[.*", "", name).strip(" *\n")
            if name:
                yield name


def main():
    table = re.sub(r"\s+", " ", (ROOT / "tests/fault/bitflip_fields.h").read_text())
    missing = seen = 0
    for header, structs in RECORDS.items():
        text = (ROOT / header).read_text()
        for struct in structs:
            for member in members(text, struct):
                seen += 1
                named = f", {struct}, {member})" in table or f'"{struct}.{member}"' in table
                if not named and (struct, member) not in PADDING:
                    print(f"FAILED {header}: {struct}.{member} is not in the tables of tests/fault/bitflip_fields.h")
                    missing += 1
    print(f"{seen} members, {missing} missing")
    return missing != 0 or seen < 80


sys.exit(main())
