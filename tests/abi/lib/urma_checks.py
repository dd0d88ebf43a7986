#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a C (or, with `c++`, C++) program that compares the URMA headers with the lists in tests/abi/data: every size,
offset, bit-field, number, typedef and prototype. The program prints each difference and ends with 1 if there is one.

usage: urma_checks.py [c|c++]
"""
import csv
import os
import re
import sys

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
HEADERS = ["urma_api.h", "urma_perf.h", "urma_ubagg.h", "udma/udma_u_ctl.h", "uvs_api.h", "urma_provider.h"]
ELSEWHERE = {"urma_cmd.h"}  # the kernel's commands, which no program and no part of ours uses
C_ONLY = {"urma_types_str.h"}
# Structures with these hold what libc lays out differently on each architecture.
LIBC = re.compile(r"\bpthread_(mutex|cond)_t\b")

PRELUDE = r"""
#include <stddef.h>
#include <stdio.h>
#include <string.h>
static int bad, checks;
static void number(const char *what, long long got, long long want)
{
    checks++;
    if (got != want) {
        bad++;
        printf("%s: expected %lld, got %lld\n", what, want, got);
    }
}
static void bits(const char *what, const unsigned char *bytes, size_t size, long first, long width)
{
    long at = -1, count = 0;
    for (size_t i = 0; i < size * 8; i++) {
        if (bytes[i / 8] >> (i % 8) & 1) {
            at = at < 0 ? (long)i : at;
            count++;
        }
    }
    checks++;
    if (at != first || count != width) {
        bad++;
        printf("%s: expected bits %ld+%ld, got %ld+%ld\n", what, first, width, at, count);
    }
}
"""


def rows(name):
    with open(os.path.join(DATA, f"urma_abi_{name}.csv"), newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["header"] not in ELSEWHERE]


def struct_checks():
    table = rows("structs")
    spelled = {r["struct"]: r["c_type"].split("; ")[0] or f"{r['kind']} {r['struct']}" for r in table if not r["field"]}
    libc = {r["struct"] for r in table if LIBC.search(r["c_type"])}
    for r in table:
        name, field, kind = r["struct"], r["field"], spelled[r["struct"]]
        # How libc builds its mutex is libc's affair.
        if "__" in field:
            continue
        line = []
        if not field:
            line.append(f'number("sizeof {name}", (long long)sizeof({kind}), {r["struct_size"]});')
        elif r["bit_width"]:
            line.append(f"{{ static {kind} v; memset((void *)&v, 0, sizeof v); v.{field} = ~(__typeof__(+v.{field}))0; "
                        f'bits("{name}.{field}", (const unsigned char *)&v, sizeof v, {r["abs_bit"]}, {r["bit_width"]}); }}')
        else:
            line.append(f'number("offset of {name}.{field}", (long long)offsetof({kind}, {field}), {r["offset"]});')
            if r["size"] not in ("", "0", "-1", "-2"):
                line.append(f'number("size of {name}.{field}", (long long)sizeof((({kind} *)0)->{field}), {r["size"]});')
        yield ("#ifdef __x86_64__\n%s\n#endif" if name in libc else "%s") % " ".join(line)


def number_checks(language):
    for r in rows("enums") + rows("macros"):
        if r["value"] and not (language == "c++" and r["header"] in C_ONLY):
            yield f'number("{r["name"]}", (long long){r["name"]}, {r["value"]}LL);'


def prototype_checks(language):
    for r in rows("functions"):
        # The provider's set is for drivers, which our library does not load.
        if r["set"] == "provider" or (language == "c++" and r["header"] in C_ONLY):
            continue
        arguments = ", ".join(part.strip() for part in r["params"].split(";"))
        yield f'SAME(__typeof__({r["name"]}), {r["return"]}({arguments}));'


def typedef_checks():
    for r in rows("typedefs"):
        name, meaning = r["typedef"], r["underlying"]
        if meaning.endswith(f" {name}"):
            continue  # an unnamed type: there is nothing to compare the name with
        if "(*)" in meaning:
            meaning = meaning.replace("(*)", f"(*expected_{name})", 1)
        else:
            meaning = f"{meaning} expected_{name}"
        yield f"typedef {meaning};\nSAME({name}, expected_{name});"


def main():
    language = sys.argv[1] if len(sys.argv) > 1 else "c"
    out = [PRELUDE]
    out += [f"#include <ub/umdk/urma/{header}>" for header in HEADERS]
    if language == "c":
        out.append("#include <ub/umdk/urma/urma_types_str.h>")
        out.append("#define SAME(a, ...) _Static_assert(__builtin_types_compatible_p(a, __VA_ARGS__), #a)")
    else:
        out.append("#include <type_traits>")
        out.append("#define SAME(a, ...) static_assert(std::is_same<a, __VA_ARGS__>::value, #a)")
    out += typedef_checks()
    out += prototype_checks(language)
    out.append("int main(void)\n{")
    out += struct_checks()
    out += number_checks(language)
    out.append('    printf("%d checks, %d wrong\\n", checks, bad);\n    return bad != 0;\n}')
    print("\n".join(out))


main()
