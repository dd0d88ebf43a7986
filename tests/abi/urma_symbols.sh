#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The libraries export, without versions, what data/urma_abi_functions.csv lists for them and what UMDK's own programs
# take beside it, and nothing else; they have the names that programs link with and dlopen.
set -u
cd "$(dirname "$0")/../.." || exit 1
lib=${DRYDOCK_BUILD:-build/dev}/lib
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail=0

wrong()
{
    echo "FAILED: $*"
    fail=1
}

# listed HEADER...: the functions of these headers
listed()
{
    python3 - "$@" <<'PYTHON'
import csv, sys
with open("tests/abi/data/urma_abi_functions.csv", newline="") as file:
    for row in csv.DictReader(file):
        if row["header"] in sys.argv[1:] and row["set"] in ("public", "uvs"):
            print(row["name"])
PYTHON
}

# exports LIBRARY: compared with $work/expected
exports()
{
    sort "$work/expected" >"$work/sorted"
    readelf --dyn-syms --wide "$lib/$1" | awk '$1 ~ /^[0-9]+:$/ && $7 != "UND" && $7 != "ABS" && $8 { print $8 }' | sort >"$work/got"
    missing=$(comm -23 "$work/sorted" "$work/got")
    extra=$(comm -13 "$work/sorted" "$work/got")
    [ -z "$missing" ] || wrong "$1 has not:" $missing
    [ -z "$extra" ] || wrong "$1 exports what is in no list:" $extra
    [ "$(readelf --dynamic "$lib/$1" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')" = "$1" ] || wrong "SONAME of $1"
    [ -e "$lib/${1%.0}" ] || wrong "no ${1%.0}, which programs dlopen"
    echo "$1: $(wc -l <"$work/got") symbols"
}

{ listed urma_api.h urma_types.h urma_perf.h; echo urma_log; echo urma_log_drop; } >"$work/expected"
exports liburma.so.0
readelf --dynamic "$lib/liburma.so.0" | grep -q 'NEEDED.*liburma_common.so.0' || wrong "liburma does not bring liburma_common"

printf '%s\n' get_cpu_mhz ub_hugemalloc ub_hugefree ub_str_to_{bool,int,u8,u16,u32,u64} ub_find_{first,next}_bit >"$work/expected"
exports liburma_common.so.0

listed uvs_api.h >"$work/expected"
exports libtpsa.so.0

listed urma_ubagg.h >"$work/expected"
exports liburma_ubagg.so.0
exit $fail
