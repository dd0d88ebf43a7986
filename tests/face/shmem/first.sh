#!/bin/bash
# SPDX-License-Identifier: MIT
# A job of several PEs: each writes into its neighbour's heap and static data, and oshrun leaves nothing behind.
. "$(dirname "$0")/lib.sh"

for n in 1 2 4; do
    job $n "$programs/first_prog"
    expect "$n PEs end well" 0 $status
    wanted=$(for ((i = 0; i < n; i++)); do
        echo "PE $i of $n: heap $(((i + n - 1) % n)), static $(((i + n - 1) % n))"
    done)
    expect "$n PEs hear of their neighbours" "$wanted" "$(sort <<<"$out")"
done
end_of_test
