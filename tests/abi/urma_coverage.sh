#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every public URMA function has a failing case (a row of the bad-input table; void functions and those that cannot fail
# have a row that must not crash) and a passing one: it is called outside that table, or has a row that is accepted, or
# one that says that the device has none of it (REFUSED), and then docs/urma-errors.md names it. And a fuzz harness
# calls it. No exceptions. Each pitfall of URMA's programs, p1 to p17, has a test or a row with its name. libtpsa's have their rows in tests/face/urma/tpsa_test.c.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
table=tests/face/urma/bad_input_rows.h

python3 - >"$work/public" <<'PYTHON'
import csv
with open("tests/abi/data/urma_abi_functions.csv", newline="") as file:
    for row in csv.DictReader(file):
        if row["set"] == "public" and row["header"] in ("urma_api.h", "urma_types.h", "urma_perf.h"):
            print(row["name"])
PYTHON
sort -o "$work/public" "$work/public"

# The table's rows, one a line.
tr '\n' ' ' <$table | sed 's/ROW(/\nROW(/g' >"$work/rows"
grep -E '^ROW\(urma' "$work/rows" | grep -v ', GOOD,' | sed -E 's/ROW\((\w+).*/\1/' | sort -u >"$work/failing"
{
    grep -E '^ROW\(' "$work/rows" | grep -E ', (GOOD|NOTHING|REFUSED),' | sed -E 's/ROW\((\w+).*/\1/'
    find tests/face/urma examples/urma -name '*.c' -exec grep -ohE '\burma_[a-z0-9_]+\b' {} +
} | sort -u >"$work/passing"
fail=0
missing=$(comm -23 "$work/public" "$work/failing")
[ -z "$missing" ] || { echo "no failing case in $table for:" $missing; fail=1; }
missing=$(comm -23 "$work/public" "$work/passing")
[ -z "$missing" ] || { echo "no passing case in tests/face/urma for:" $missing; fail=1; }
find tests/fuzz -name '*.[ch]' -exec grep -ohE '\burma_[a-z0-9_]+\(' {} + | tr -d '(' | sort -u >"$work/fuzzed"
missing=$(comm -23 "$work/public" "$work/fuzzed")
[ -z "$missing" ] || { echo "not called in tests/fuzz:" $missing; fail=1; }
python3 - >"$work/uvs" <<'PYTHON'
import csv
with open("tests/abi/data/urma_abi_functions.csv", newline="") as file:
    print(*sorted(row["name"] for row in csv.DictReader(file) if row["set"] == "uvs"), sep="\n")
PYTHON
grep -ohE '\buvs_[a-z0-9_]+,' tests/face/urma/tpsa_test.c | tr -d , | sort -u >"$work/uvs-called"
grep -ohE '\buvs_[a-z0-9_]+\)' tests/face/urma/tpsa_test.c | tr -d ')' | sort -u >>"$work/uvs-called"
missing=$(comm -23 "$work/uvs" <(sort -u "$work/uvs-called"))
[ -z "$missing" ] || { echo "not called in tests/face/urma/tpsa_test.c:" $missing; fail=1; }
grep -q 'CALL(urma_write_affinity\|dlsym(ubagg, "urma_write_affinity")' tests/face/urma/tpsa_test.c ||
    { echo "not called in tests/face/urma/tpsa_test.c: urma_write_affinity"; fail=1; }
for name in $(grep -E ', REFUSED,' "$work/rows" | sed -E 's/ROW\((\w+).*/\1/' | sort -u); do
    grep -q "\`$name\`" docs/urma-errors.md || { echo "refused, and not in docs/urma-errors.md: $name"; fail=1; }
done
for n in $(seq 17); do
    grep -rqE "(\bp${n}_[a-z]|\"p$n: )" tests/face/urma tests/unit/urma || { echo "no test is named by pitfall p$n"; fail=1; }
done
unknown=$(comm -13 "$work/public" "$work/failing")
[ -z "$unknown" ] || { echo "rows for what is no public function:" $unknown; fail=1; }
[ $fail = 0 ] && echo "$(wc -l <"$work/public") functions, $(grep -c '^ROW(' "$work/rows") rows"
exit $fail
