#!/bin/bash
# SPDX-License-Identifier: MIT
# The examples of direct drive print what they teach: one queue per producer works; two producers on one head lose a
# WQE and are both named; two queues promise nothing about one address until a signal makes the order.
. "$(dirname "$0")/run_lib.sh"

examples=$build/examples/direct
[ -x "$examples/one_queue_per_aiv" ] || skip "$examples is not built"

run()
{
    timeout 60 "$drydock" run "$examples/$1" 2>"$work/stderr"
}

got=$(run one_queue_per_aiv)
expect "one queue per producer: ends well" 0 $?
expect "four producers, each with a quiet queue" 4 "$(grep -c '256 WQEs, 16 completions, quiet says 0' <<<"$got")"
expect_words "every slice is where it belongs" "the checksum is right" "$got"

got=$(run shared_head_is_lost)
expect "a shared head: ends as the example expects" 0 $?
expect "both read head 8, filled slot 8, rang 9" 2 "$(grep -c 'read head 8, filled slot 8, rang 9' <<<"$got")"
expect_words "not both WQEs landed" "at most one landed" "$got"
expect "the device names both producers and the place" 1 \
    "$(grep -cE 'producers (1 and 2|2 and 1) both wrote WQE 8 and the head moved once' "$work/stderr")"

got=$(run same_target)
expect "one address, two queues: ends well" 0 $?
expect_words "one of the two values, never a mixture" "never a mixture: yes" "$got"
expect_words "with a signal the order is made" "the second's value in 200 of 200 rounds" "$got"

[ $failures = 0 ] || cat "$work/stderr"
end_of_test
