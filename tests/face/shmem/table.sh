#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# The table of queues that a program drives itself: every way, straight and through each relay, carries every kind of
# request in order; a closed way fails and the relay carries on; `drydock show` has the relay's count.
. "$(dirname "$0")/lib.sh"

for n in 1 2 3; do
    job $n "$programs/table_prog"
    expect "$n PEs: ends well" 0 $status
    expect "$n PEs: nothing wrong" "" "$(grep FAILED <<<"$out")"
done

job 3 "$programs/table_prog" relay_dies
expect "a relay that dies: the job ends" 137 $status
expect "its producer hears of it first" "the relay's death was noticed after" "$(grep -o '^the relay.* after' <<<"$out")"
expect "by its errors" "" "$(grep FAILED <<<"$out")"

job 3 "$build/examples/direct/relay"
expect "the example ends well" 0 $status
expect_words "the closed way" "the straight way is closed: what is posted there fails" "$out"
expect_words "the relay's count" "relayed: 201 WQEs, 201 completions" "$out"
expect_words "the order" "all signals came, with their payload: yes" "$out"

# Seen from outside while it waits: three queues for each of two producers and two destinations, 100 times (a WRITE, a
# READ, an atomic), an atomic and eight WRITEs each.
mkfifo "$work/go"
exec 3<>"$work/go"
"$build/bin/oshrun" -np 3 "$programs/table_prog" waits <"$work/go" >"$work/waits" 2>"$work/err" &
launcher=$!
for _ in $(seq 400); do
    grep -q waits "$work/waits" && break
    sleep 0.05
done
pe=$(pgrep -P $launcher -x table_prog | head -1)
directory=$(tr '\0' '\n' <"/proc/$pe/environ" | sed -n 's/^DRYDOCK_DIR=//p')
shown=$(DRYDOCK_DIR=$directory "$build/bin/drydock" show)
expect "relays are shown, in all three devices" 36 "$(grep -c ' relay  *RC ' <<<"$shown")"
expect "each with what it carried" 36 "$(grep ' relay  *RC ' <<<"$shown" | awk '$8 == 309' | wc -l)"
echo >&3
wait $launcher
expect "ends well" 0 $?

end_of_test
