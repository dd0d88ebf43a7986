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

# What a completion costs is paid for one request in 64, and for the one of quiet; a get would be signaled each.
DRYDOCK_SHMEM=queue DRYDOCK_LOG=info job 2 "$programs/first_prog"
expect "by requests: ends well" 0 $status
expect "a thousand puts and a quiet: 16 completions" "1001 WRs posted, 1001 executed, 8000 bytes out, 16 completions" \
    "$(sed -n 's/.*ends: \(1001 WRs posted, .* completions\),.*/\1/p' <<<"$err")"

# Those that are stores are counted, too: in PE 0 a thousand more than in PE 1, which may be in its next barrier already,
# a put further on. By requests none.
counted()
{
    DRYDOCK_SHMEM=$1 AT_THE_END="'$build/bin/drydock' show" job 2 "$programs/first_prog"
    expect "$1: ends well" 0 $status
    counts=$(sed -n 's/^ *OpenSHMEM without a queue: \([0-9]*\) puts, .*/\1/p' <<<"$out" | sort -n | tr '\n' ' ')
}

counted stores
read -r less more rest <<<"$counts"
case $((${more:-0} - ${less:-0}))$rest in
999 | 1000) ;;
*) expect "by stores: PE 0 has 1000 puts more" 1000 "$counts" ;;
esac
counted queue
expect "by requests: none" "" "$counts"
end_of_test
