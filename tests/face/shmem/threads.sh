#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 120
# also: threads
# Threads of a PE with contexts of their own and with shared ones, by stores and by requests. Under ThreadSanitizer, which
# looks into each PE, the cases of order and completion as well (else litmus.sh has them).
. "$(dirname "$0")/lib.sh"

# run PES WAY PROGRAM
run()
{
    DRYDOCK_SHMEM=$2 job "$1" "$programs/$3"
    expect "$3, $1 PEs, $2: ends well" 0 $status
    expect "$3, $1 PEs, $2: nothing wrong" "" "$(grep -E 'FAILED|ThreadSanitizer' <<<"$out$err")"
}

for way in stores queue; do
    run 2 $way threads_prog
done
if grep -q '^DOCK_SANITIZE:.*=thread$' "$build/CMakeCache.txt"; then
    for way in stores queue; do
        run 4 $way litmus_prog
    done
    LITMUS_ROUNDS=2 LITMUS_SKIP=L20 run 2 queue litmus_prog
fi
end_of_test
