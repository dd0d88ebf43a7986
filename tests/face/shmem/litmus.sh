#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Order, signals, locks, progress, edges: what is forbidden is never seen. Two to six PEs, in the heap and in static
# data; the heap by stores, mixed with requests to static data, and all by requests.
. "$(dirname "$0")/lib.sh"

# run WAY PES
run()
{
    DRYDOCK_SHMEM=$1 job $2 "$programs/litmus_prog"
    expect "$2 PEs, $1: ends well" 0 $status
    expect "$2 PEs, $1: nothing forbidden" "" "$(grep FAILED <<<"$out")"
}

for n in 2 3 4 6; do
    run stores $n
done
run queue 2
run queue 4
end_of_test
