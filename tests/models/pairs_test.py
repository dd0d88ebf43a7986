#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every "pairs with" of the sources belongs to a model: the head of one names its file and function (or struct).
    tests/models/pairs_test.py [--list]     --list: all of them, with their models"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAIRS = re.compile(r"//.*\bpairs? with\b(?! \.\.\.)", re.I)
NAME = re.compile(r"^(?!#|//|typedef)(?:.*\b(?:struct|enum) (\w+) \{|[\w* ()]*?\b(\w+)\((?!\()|.*?(\w+)(?:\[\d*\])? *[;=])")


def name_of(line):
    line = re.sub(r"__attribute__\(\(.*?\)\)|_Atomic\(.*?\)", "", line)
    match = NAME.match(line) if line[:1].isalpha() or line.startswith("_") else None
    return match and next(group for group in match.groups() if group)


def sites():
    """(file:name, line number, line) of each labelled pair."""
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        lines = path.read_text().splitlines()
        file = str(path.relative_to(ROOT / "src"))
        name = None
        for number, line in enumerate(lines, 1):
            name = name_of(line) or name
            if PAIRS.search(line):
                ahead = line.startswith("//")  # it speaks of what comes next
                of = next(filter(None, map(name_of, lines[number:])), None) if ahead else name
                yield f"{file}:{of}", number, line.strip()


def listed():
    """Of each model, what its head names."""
    for model in sorted((ROOT / "tests/models").glob("*.pml")):
        head = model.read_text().split("*/")[0]
        if " pairs: " in head:
            text = re.sub(r"\n \* +", " ", head.split(" pairs: ")[1])
            for file, names in re.findall(r"(\S+\.[ch]): ([^;.]+)", text):
                for name in names.replace(",", " ").split():
                    yield f"{file}:{name}", model.name


def main():
    models = {}
    for site, model in listed():
        models.setdefault(site, []).append(model)
    found = list(sites())
    failures = 0
    for site, number, line in found:
        if "--list" in sys.argv:
            print(site, *models.get(site, ["-"]))
        if site not in models:
            failures += 1
            file, name = site.split(":")
            print(f"FAILED a pair that no model names\n  expected: `{file}: {name}` in the head of one of tests/models/*.pml"
                  f"\n  got:      src/{file}:{number}: {line}")
    for site in sorted(set(models) - {site for site, _, _ in found}):
        failures += 1
        print(f"FAILED a model names a pair that is not there\n  expected: `pairs with` in src/{site}"
              f"\n  got:      it is in the head of {', '.join(models[site])}")
    print(f"{len(found)} labelled pairs, {len({m for v in models.values() for m in v})} models, {failures} failures")
    return failures > 0 or not found


sys.exit(main())
