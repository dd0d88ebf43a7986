#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Order, signals, locks, progress, edges: what is forbidden is never seen. Two to six PEs, in the heap and in static
# data.
. "$(dirname "$0")/lib.sh"

for n in 2 3 4 6; do
    job $n "$programs/litmus_prog"
    expect "$n PEs: ends well" 0 $status
    expect "$n PEs: nothing forbidden" "" "$(grep FAILED <<<"$out")"
done
end_of_test
