#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every function has a row in the bad-input table: what the public nodes export, what our own node does, and every inline
# of the header, which reaches ours through a table. The table names no function that does not exist. Functions of the private node are refused as a whole (private.c); the 1.0 twins too (compat10.c).
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

awk -F, 'NR > 1 && $2 !~ /PRIVATE/ && $3 == "yes" { print $1 }' tests/abi/data/libibverbs_symbols.csv |
    tr -d '\r' >"$work/all"
awk '/^DRYDOCK_/ { ours = 1 } /^}/ { ours = 0 } ours && /;/ { print }' src/face/verbs/libibverbs.map |
    grep -oE '\bdrydock_[a-z0-9_]+' >"$work/ours"
# Inlines that reach nothing: they compute, or choose among what is exported.
inner='__ibv_[a-z_]*|___ibv_[a-z_]*|ibv_inc_rkey|ibv_is_qpt_supported|ibv_flow_label_to_udp_sport|ibv_cq_ex_to_cq'
inner="$inner|ibv_static_providers|ibv_query_gid_ex|ibv_query_gid_table"
awk '/static inline/ { wanted = 1 }
     wanted && match($0, /[a-z_0-9]*ibv_[a-z_0-9]+\(/) { print substr($0, RSTART, RLENGTH - 1); wanted = 0 }' \
    /usr/include/infiniband/verbs.h | grep -vxE "$inner" >"$work/inlines"
[ "$(wc -l <"$work/ours")" -ge 2 ] && [ "$(wc -l <"$work/inlines")" -ge 70 ] ||
    { echo "map or header not understood: $(wc -l <"$work/ours") of ours, $(wc -l <"$work/inlines") inlines"; exit 1; }
cat "$work/all" "$work/ours" "$work/inlines" | sort -u >"$work/exported"
grep -oE '^(ROW|TOTAL)\([A-Za-z0-9_]+' tests/face/bad_input_rows.h | sed 's/.*(//' | sort -u >"$work/rows"
# What the header reaches through the operation tables is no symbol, but has rows too.
cat include/drydock/verbs.h /usr/include/infiniband/verbs.h | grep -oE '\b(ibv|drydock)_[a-z0-9_]+' | sort -u >"$work/header"

fail=0
missing=$(comm -23 "$work/exported" "$work/rows")
unknown=$(comm -13 "$work/exported" "$work/rows" | comm -23 - "$work/header")
[ -z "$missing" ] || { printf 'no row in tests/face/bad_input_rows.h for:\n%s\n' "$missing"; fail=1; }
[ -z "$unknown" ] || { printf 'rows for what is no function:\n%s\n' "$unknown"; fail=1; }
[ $fail = 0 ] && echo "$(wc -l <"$work/exported") functions, $(grep -cE '^ROW\(' tests/face/bad_input_rows.h) rows"
exit $fail
