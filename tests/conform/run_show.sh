#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 90 `drydock show` on two live processes of Debian's ib_write_bw: both are listed, their queues
# point at each other, the counters fit; when they have ended nothing is listed.
. "$(dirname "$0")/run_lib.sh"

command -v ib_write_bw >/dev/null || skip "not installed: ib_write_bw"
[ -e "$build/lib/libibverbs.so.1" ] || skip "$build/lib/libibverbs.so.1 is not built"

# until_true SECONDS COMMAND...
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

port=$((20000 + RANDOM % 10000))
program=(ib_write_bw -d drydock0 -F -D 4 -q 2 -p $port)
timeout 60 "$drydock" run -- "${program[@]}" >"$work/server" 2>&1 &
server=$!
until_true 20 listening $port
timeout 60 "$drydock" run -- "${program[@]}" 127.0.0.1 >"$work/client" 2>&1 &
client=$!

moving() { "$drydock" show --json >"$work/json" && grep -q '"executed": [1-9]' "$work/json"; }
until_true 20 moving
expect "some queue has executed requests while both run" 0 $?
table=$("$drydock" show)
"$drydock" show --json >"$work/json"
expect "the table has one line for each process" 2 "$(grep -c '^process [0-9]*  ib_write_bw ' <<<"$table")"
expect "the table has one line for each queue" 4 "$(grep -cE '^ +[0-9]+ pair +RC +(RTR|RTS) ' <<<"$table")"

adopted=$(grep -cE '"adopted_ever": [1-9]' "$work/json")
told=$(grep -cE '^  adopted [0-9]+ bytes, [0-9]+ in huge pages, [1-9][0-9]* ever, in [0-9]+ stops of ' <<<"$table")
[ "$adopted" = 0 ] || expect "the table tells what is adopted" yes "$([ "$told" -ge 1 ] && echo yes)"

python3 - "$work/json" >"$work/verdict" 2>&1 <<'END'
import json, sys

devices = json.load(open(sys.argv[1]))
queues = {q["queue"]: dict(q, device=d["device"]) for d in devices for q in d["queues"]}
wrong = []
if len(devices) != 2 or len(queues) != 4:
    wrong.append(f"{len(devices)} devices, {len(queues)} queues")
for q in queues.values():
    peer = queues.get(q["peer_queue"])
    if not peer or peer["device"] != q["peer_device"] or peer["peer_queue"] != q["queue"]:
        wrong.append(f"queue {q['queue']}: its peer {q['peer_queue']} does not point back")
    if q["executed"] and q["bytes_out"] < 65536 * (q["executed"] - q["depth"]):
        wrong.append(f"queue {q['queue']}: {q['executed']} requests of 64 KiB, {q['bytes_out']} bytes out")
    if q["damaged"] or q["depth"] != 128:
        wrong.append(f"queue {q['queue']}: {q}")
for d in devices:
    for moment, counter in (("post", "posted"), ("publish", "rings"), ("execute", "executed"), ("complete", "completions")):
        told, counted = d["moments"][moment], sum(q[counter] for q in d["queues"])
        if told != counted:
            wrong.append(f"device {d['device']}: moment {moment} {told}, its queues {counted}")
    at = d["moments"]
    if not at["publish"] <= at["ring"] or not at["execute"] <= at["fetch"] or bool(at["place"]) != bool(at["execute"]):
        wrong.append(f"device {d['device']}: {at}")
    if not {"poll", "free"} <= at.keys(): # what they must be: verbs_counted_test.py, where nothing moves
        wrong.append(f"device {d['device']}: {at}")
    if d["moments"]["register"] < 1 or d["moments"]["state"] < 4:
        wrong.append(f"device {d['device']}: {d['moments']}")
    if d["adopted_bytes"] > d["adopted_ever"] or not {"kind", "pinned", "threads"} <= d["not_adopted"].keys():
        wrong.append(f"device {d['device']}: adoption {d}")
# Registered memory is mapped, or it is reached through the kernel (a build whose sanitizer forbids to move it).
if not any(d["adopted_bytes"] >= 2 * 65536 or d["fallback_calls"] for d in devices):
    wrong.append(f"neither adopted nor a fallback: {devices}")
if not any(q["completions"] for q in queues.values()):
    wrong.append("no completion is counted")
print("; ".join(wrong) or "right")
END
expect "the JSON tells the same, and the counters fit" right "$(cat "$work/verdict")"

wait $client
expect "the client ends well" 0 $?
wait $server
expect "the server ends well" 0 $?
expect "nothing is live afterwards" "no live device in this runtime directory" "$("$drydock" show)"
[ $failures = 0 ] || tail -n 5 "$work/server" "$work/client"

end_of_test
