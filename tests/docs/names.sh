#!/bin/bash
# SPDX-License-Identifier: MIT
# What the documents name exists: files that README.md and docs/*.md name or link to, tests (and functions in them) that
# docs/semantics.md names, and every environment variable that a source reads stands in README.md.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ "${DRYDOCK_EMULATED:-0}" = 0 ] || { echo "skipped: documents do not depend on the machine"; exit 77; }
failures=0
checks=0

wrong()
{
    failures=$((failures + 1))
    echo "FAILED $*"
}

# `path` and `path: function` in back quotes.
for document in README.md docs/*.md; do
    while IFS= read -r name; do
        path=${name%%: *}
        function=${name#"$path"}
        function=${function#: }
        checks=$((checks + 1))
        if [ ! -e "$path" ]; then
            wrong "$document names $path, which does not exist"
        elif [ -n "$function" ] && ! grep -qw -- "$function" "$path"; then
            wrong "$document names $function, which is not in $path"
        fi
    done < <(grep -oE '`(src|tests|examples|bench|docs|scripts|cmake)/[^` ]*(: [a-z_0-9]+)?`' "$document" | tr -d '`' | sort -u)
    while IFS= read -r link; do
        checks=$((checks + 1))
        [ -e "$(dirname "$document")/$link" ] || wrong "$document links to $link, which does not exist"
    done < <(grep -oE '\]\([^)#:]+\)' "$document" | sed 's/^](//; s/)$//' | sort -u)
done

# A row without a test must say so.
while IFS= read -r row; do
    checks=$((checks + 1))
    case $(awk -F'|' '{ print $(NF - 1) }' <<<"$row") in
    *'`'* | *'not shown by a test'*) ;;
    *) wrong "docs/semantics.md: no test in: $row" ;;
    esac
done < <(grep -E '^\| [A-Z][0-9]+ \|' docs/semantics.md)

# The cases that are a device's or an adapter's matter: each has a row, and a case that a row names without a test in
# the same row is found above.
for case in 06 08 15 17 20 22 23 25 26 28 29 32 34 39 41 43 47 49 50 51 52 54; do
    checks=$((checks + 1))
    [ "$(grep -c "^| C$case | .*tests/" docs/semantics.md)" = 1 ] || wrong "docs/semantics.md: not one row for case C$case"
done

for variable in $(grep -rhoE '"DRYDOCK_[A-Z_]*[A-Z]"' src --include='*.c' | tr -d '"' | sort -u); do
    checks=$((checks + 1))
    grep -q "\`$variable\`" README.md || wrong "README.md does not explain $variable, which a source reads"
done

echo "$checks checks, $failures failed"
[ $failures = 0 ] || echo "again: scripts/run-one tests/docs/names.sh"
[ $failures = 0 ]
