#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# alone: its PEs spin on both processors
# The cases of order and completion under schedules that are delayed and reversed by a seed as far as is legal: first as
# far as a queue's order allows, then as far as OpenSHMEM allows, where only a fence makes order. What is forbidden is never
# seen. Then each promise that the cases rest on is taken away, and a case must miss it.
. "$(dirname "$0")/lib.sh"
seed=${DRYDOCK_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
late=$programs/late_prog
[ -x "$late" ] || { echo "skipped: $late is not built"; exit 77; }

# schedule NAME=VALUE...: what is in the environment, for repeating it by hand
schedule()
{
    job "$n" env "$@" "$late"
}

# run PES ORDER SKIPPED
run()
{
    n=$1
    LITMUS_SKIP=$3 schedule DRYDOCK_SEED=$((seed + n)) LATE_ORDER=$2 LITMUS_ROUNDS=${DRYDOCK_LONG:+5}3
    expect "$n PEs, $2: ends well" 0 $status
    expect "$n PEs, $2: nothing forbidden" "" "$(grep FAILED <<<"$out")"
}

run 2 ordered L20
run 3 fenced L20,D03 # D03 is a promise of the queue and not of OpenSHMEM

# seen TEXT CASE NAME=VALUE...: under one of some seeds the case has the outcome. Most come in the first run,
# some in one of six.
seen()
{
    local text=$1 case=$2 i
    shift 2
    checks=$((checks + 1))
    for ((i = 0; i < 100; i++)); do
        schedule DRYDOCK_SEED=$((seed + i)) LITMUS_ROUNDS=40 LITMUS_ONLY="$case" "$@"
        grep -q "$text" <<<"$out$err" && { echo "missed in run $i: $case, $*"; return; }
    done
    failures=$((failures + 1))
    printf 'FAILED %s, %s: nobody misses it in 100 runs\n  expected: %s\n  got: %s\n  again: %s\n' "$case" "$*" "$text" \
        "$out" "$again"
}

if [ "${DRYDOCK_SLOW:-1}" != 1 ]; then
    echo "under a sanitizer each case runs, and no promise is taken away"
    end_of_test
fi
# A job whose results come too late may wait for ever, or break its own heap: that is not what is looked for.
limit=10
n=2
seen "W03.* r=0:" W03 LATE_ORDER=fenced # without the fence the schedule shows it
seen "FAILED L03 put_nbi" "L03 put_nbi" LATE_ORDER=unfenced
seen "FAILED L11 put_signal ADD" "L11 put_signal ADD" LATE_ORDER=unfenced
seen "FAILED L03 put_nbi" "L03 put_nbi" LATE_WITHOUT=write-atomic
seen "FAILED L12 put_nbi, fence" "L12 put_nbi, fence" LATE_WITHOUT=write-write
seen "FAILED L07" L07 LATE_WITHOUT=finish-source,finish-placed
# The value comes into the frame of a call that is over, which may be the return address of another by then.
seen "FAILED D03\|was killed by signal 11" D03 LATE_WITHOUT=finish-result
seen "FAILED L09 put, quiet" "L09 put, quiet" LATE_WITHOUT=finish-placed,write-read
n=3
seen "FAILED L05 put, quiet" "L05 put, quiet" LATE_WITHOUT=finish-placed

echo "seed $seed"
end_of_test
