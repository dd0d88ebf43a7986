#!/bin/bash
# SPDX-License-Identifier: MIT
# Selective signaling, through the example that shows it: an unsignaled WRITE is carried out and makes no completion; a
# later completion covers the earlier WRITEs; a full queue refuses with ENOMEM, names the first request that was not
# posted, and loses none of those that were.
. "$(dirname "$0")/run_lib.sh"

program=$build/examples/verbs/selective_signaling
[ -x "$program" ] || skip "$program is not built"
[ -e "$build/lib/libibverbs.so.1" ] || skip "$build/lib/libibverbs.so.1 is not built"

got=$(timeout 50 "$drydock" run "$program" 2>"$work/stderr")
expect "the example ends well" 0 $?
expect "one line on standard error: the banner" 1 "$(wc -l <"$work/stderr")"

expect "eight WRITEs, two signaled: two completions" \
    "   completion 1 belongs to WRITE 4 and covers WRITEs 1 to 4
   completion 2 belongs to WRITE 8 and covers WRITEs 5 to 8" "$(grep 'belongs to' <<<"$got")"
expect_words "the missing completions never come" "further completions: 0" "$got"
expect_words "all eight landed" "2 completions, 8 of 8 WRITEs landed" "$got"

for every in 1 2 4 8 16; do
    expect "interval $every: completions of 65536 WRITEs" $((65536 / every)) \
        "$(awk -v n=$every '$1 == n && /WRITEs later/ { print $2 }' <<<"$got")"
    expect "interval $every: a rate" 1 "$(awk -v n=$every '$1 == n && /WRITEs later/ && $3 > 0' <<<"$got" | wc -l)"
done

expect_words "nothing signaled: ENOMEM, bad_wr" \
    "Cannot allocate memory, bad_wr is WRITE 65: the 64 before it are posted" "$got"
expect_words "nothing signaled: no completion, nothing lost" \
    "completions: 0, but 64 of 64 posted WRITEs landed" "$got"
expect_words "nothing signaled: the queue stays full" "comes too late: Cannot allocate memory" "$got"

[ $failures = 0 ] || cat "$work/stderr"
end_of_test
