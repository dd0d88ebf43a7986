#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every exported function of the public nodes has a row in the bad-input table, and the table names no function that
# does not exist. Functions of the private node are refused as a whole (private.c); the 1.0 twins too (compat10.c).
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

awk -F, 'NR > 1 && $2 !~ /PRIVATE/ && $3 == "yes" { print $1 }' tests/abi/data/libibverbs_symbols.csv |
    tr -d '\r' | sort -u >"$work/exported"
grep -oE '^(ROW|TOTAL)\([A-Za-z0-9_]+' tests/face/bad_input_rows.h | sed 's/.*(//' | sort -u >"$work/rows"
# What the header reaches through the operation tables is no symbol, but has rows too.
grep -oE '\bibv_[a-z0-9_]+' /usr/include/infiniband/verbs.h | sort -u >"$work/header"

fail=0
missing=$(comm -23 "$work/exported" "$work/rows")
unknown=$(comm -13 "$work/exported" "$work/rows" | comm -23 - "$work/header")
[ -z "$missing" ] || { printf 'no row in tests/face/bad_input_rows.h for:\n%s\n' "$missing"; fail=1; }
[ -z "$unknown" ] || { printf 'rows for what is no function:\n%s\n' "$unknown"; fail=1; }
[ $fail = 0 ] && echo "$(wc -l <"$work/exported") functions, $(grep -cE '^ROW\(' tests/face/bad_input_rows.h) rows"
exit $fail
