#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# What goes wrong is said in words, ends the job with a status that tells, and leaves no process and no file.
. "$(dirname "$0")/lib.sh"

# fault CASE STATUS WORDS...: two PEs.
fault()
{
    local name=$1 wanted=$2
    shift 2
    rm -f "$work/dir"
    job 2 sh -c 'echo "$DRYDOCK_DIR" >"$0"; exec "$@"' "$work/dir" "$programs/fault_prog" "$name"
    again="build/dev/bin/oshrun -np 2 build/dev/tests/face/shmem/fault_prog $name"
    expect "$name: status" "$wanted" $status
    expect "$name: the job's directory is gone" "" "$(ls -d "$(cat "$work/dir")" 2>/dev/null)"
    for words in "$@"; do
        expect_words "$name" "$words" "$err"
    done
}

fault to_the_dead 137 "PE 1 of 2 was killed by signal 9 (Killed): the job ends" "PE 1 is gone"
for way in stores queue; do
    DRYDOCK_SHMEM=$way fault to_the_dead_heap 137 "PE 1 is gone"
done
fault atomic_to_the_dead 137 "PE 1 is gone"
DRYDOCK_SHMEM=magic fault no_finalize 1 "DRYDOCK_SHMEM=magic: stores or queue is needed"
fault wait_for_the_dead 137 "PE 1 is gone, and this PE waits for what it does not do any more"
for way in stores queue; do
    for call in lock_of_the_dead ask_for_the_deads_lock; do
        DRYDOCK_SHMEM=$way fault $call 137 "PE 1 is gone"
    done
done
fault barrier_with_the_dead 3 "PE 1 of 2 ended with status 3 without shmem_finalize: the job ends"
fault outside 1 "not symmetric memory. The heap is 0x" "static data 0x" "8 bytes, for PE 1"
fault past_the_end 1 "not symmetric memory"
for call in get iput_over iput_under iget_over iput_wrap iget_wrap add signal_word signal_data; do
    fault bad_$call 1 "for PE 1: not symmetric memory"
done
for call in fetch_odd add_odd; do
    fault bad_$call 1 "a request to PE 1 failed with status 0x301"
done
fault bad_team_pe 1 "PE 1: the context's team has 1 PEs, 0 to 0"
for call in get iput_wrap signal_word; do
    DRYDOCK_SHMEM=queue fault bad_$call 1 "for PE 1: not symmetric memory"
done
DRYDOCK_SHMEM=queue fault bad_add_odd 1 "a request to PE 1 failed with status 0x301"
fault no_such_pe 1 "PE 2: there are 2 PEs, 0 to 1"
fault negative_pe 1 "PE -1: there are 2 PEs, 0 to 1"
fault exhausted 0 "the symmetric heap of" "has no 1099511627776 bytes left (SHMEM_SYMMETRIC_SIZE)"
SHMEM_SYMMETRIC_SIZE=1m fault the_whole_heap 0
fault freed_pages 0
fault moved_pages 0
fault not_an_object 1 "is not the beginning of an object of the symmetric heap"
fault global_exit 7
fault no_finalize 0
fault failed_after_finalize 5
fault after_finalize 1 "OpenSHMEM was called after shmem_finalize"
fault put_after_finalize 1 "OpenSHMEM was called after shmem_finalize"
fault before_init 1 "OpenSHMEM was called before shmem_init"
fault my_pe_before_init 1 "OpenSHMEM was called before shmem_init"
fault never_starts 1 "PE 1 ended before all had called shmem_init"

fault context_after_finalize 1 "OpenSHMEM was called after shmem_finalize"
fault context_quiet_after_finalize 1 "OpenSHMEM was called after shmem_finalize"

for left in leaves_a_child leaves_a_session; do
    fault $left 0
    expect "$left: what a PE left is gone" "" "$(pgrep -f "$programs/fault_prog $left")"
done

job 2 /no/such/program
expect "a program that is not there" 127 $status
job 0 true
expect "no PEs" 2 $status

again="build/dev/bin/oshrun -np 2 build/dev/tests/face/shmem/first_prog <&- >&- 2>&-"
timeout -k 2 50 "$build/bin/oshrun" -np 2 "$programs/first_prog" <&- >&- 2>&-
expect "closed standard descriptors: status" 0 $?

again="bash -c 'sleep 78 & exec build/dev/bin/oshrun -np 1 true'"
before=$(bash -c 'sleep 78 >/dev/null 2>&1 & echo $!; exec "$0" -np 1 true' "$build/bin/oshrun" 2>"$work/err")
expect "who was there before the job stays" sleep "$(cat "/proc/$before/comm" 2>/dev/null)"
kill "$before" 2>/dev/null

SHMEM_SYMMETRIC_SIZE=1.5m SHMEM_INFO=1 job 1 "$programs/first_prog"
expect_words "a size with a unit" "(now 1572864)" "$err"
SHMEM_SYMMETRIC_SIZE=lots job 1 "$programs/fault_prog" exhausted
expect_words "a size that is none" "SHMEM_SYMMETRIC_SIZE=lots: a number of bytes is needed" "$err"
SHMEM_INFO=1 SHMEM_VERSION=1 job 2 "$programs/first_prog"
expect_words "SHMEM_VERSION" "OpenSHMEM 1.5 of Drydock" "$err"
expect "SHMEM_INFO is said once" 1 "$(grep -c ^SHMEM_SYMMETRIC_SIZE <<<"$err")"

# oshrun is ended itself: by a signal it can hear, and by one it cannot.
for signal in TERM KILL; do
    "$build/bin/oshrun" -np 2 sleep 77 2>/dev/null &
    launcher=$!
    for _ in $(seq 100); do
        [ "$(pgrep -P $launcher -x sleep | wc -l)" = 2 ] && break
        sleep 0.05
    done
    children=$(pgrep -P $launcher -x sleep | tr '\n' ' ')
    directory=$(tr '\0' '\n' <"/proc/${children%% *}/environ" | sed -n 's/^DRYDOCK_DIR=//p')
    kill -$signal $launcher
    wait $launcher 2>/dev/null
    sleep 0.3
    left=
    for pid in $children; do
        grep -q '^State:.*zombie' "/proc/$pid/status" 2>/dev/null && continue # nobody has asked for its end yet
        [ -e "/proc/$pid" ] && left="$left $pid"
    done
    expect "SIG$signal to oshrun: no PE stays" "" "$left"
    for _ in $(seq 100); do # who is killed leaves it to another process
        [ -e "$directory" ] || break
        sleep 0.05
    done
    expect "SIG$signal to oshrun: no file stays" "" "$(ls -d "$directory" 2>/dev/null)"
done

end_of_test
