#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libibverbs.so.1 exports exactly the rows of data/libibverbs_symbols.csv: each name, node, default mark, kind and
# the size of the one data object; beside them our own two and not one more. The nodes form the chain that Debian's have.
set -u
cd "$(dirname "$0")/../.." || exit 1
library=${DRYDOCK_BUILD:-build/dev}/lib/libibverbs.so.1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Ours beside them: include/drydock/verbs.h.
{ tail -n +2 tests/abi/data/libibverbs_symbols.csv | tr -d '\r'
  printf '%s,DRYDOCK_1,yes,function,\n' drydock_create_direct_qp drydock_direct_queue
} | sort >"$work/expected"

# Columns of readelf: number value size type bind visibility section name@version or name@@version.
readelf --dyn-syms --wide "$library" | awk '
    $7 == "UND" || $7 == "ABS" || $8 !~ /@/ { next }
    { split($8, part, /@+/)
      kind = ($4 == "OBJECT") ? "object" : "function"
      print part[1] "," part[2] "," ($8 ~ /@@/ ? "yes" : "no") "," kind "," (kind == "object" ? $3 : "") }
' | sort >"$work/got"

fail=0
missing=$(comm -23 "$work/expected" "$work/got")
extra=$(comm -13 "$work/expected" "$work/got")
[ -z "$missing" ] || { printf 'missing from %s:\n%s\n' "$library" "$missing"; fail=1; }
[ -z "$extra" ] || { printf 'exported by %s, not in the list:\n%s\n' "$library" "$extra"; fail=1; }

# "Parent 1: NODE" lines follow their node; an inherited node that is not the one before breaks dlvsym users.
parents=$(readelf --version-info --wide "$library" | awk '
    /Name: IBVERBS_/ { for (i = 1; i <= NF; i++) if ($i == "Name:") node = $(i + 1) }
    /Parent 1: IBVERBS_/ { print node "<" $NF }' | tr '\n' ' ')
expected_parents="IBVERBS_1.1<IBVERBS_1.0 IBVERBS_1.5<IBVERBS_1.1"
for minor in 6 7 8 9 10 11 12 13 14; do
    expected_parents+=" IBVERBS_1.$minor<IBVERBS_1.$((minor - 1))"
done
if [ "$parents" != "$expected_parents " ]; then
    printf 'parents of the version nodes\n  expected %s\n  got      %s\n' "$expected_parents" "$parents"
    fail=1
fi

soname=$(readelf --dynamic "$library" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')
[ "$soname" = libibverbs.so.1 ] || { echo "SONAME: expected libibverbs.so.1, got $soname"; fail=1; }
[ -e "${library%.1}" ] || { echo "no link ${library%.1}: programs that dlopen libibverbs.so take the system's"; fail=1; }

[ $fail = 0 ] && echo "$(wc -l <"$work/expected") symbols in 13 nodes and our own, as listed"
exit $fail
