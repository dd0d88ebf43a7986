#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 180
# Real traffic through verbs while the free-running indices of every ring cross 2^16 and 2^32: perftest, and the
# verifier that compares every byte. DRYDOCK_START_INDEX sets where the rings of new queues begin. Then the bytes
# that the device counted for a queue, against what perftest says it moved.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(cd "${DRYDOCK_BUILD:-build/dev}" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
command -v ib_write_bw >/dev/null || { echo "skipped: not installed: ib_write_bw"; exit 77; }
port=$((20000 + $$ % 10000)) failed=0 passed=0

report() { # STATUS LINE
    if [ "$1" = 0 ]; then
        echo "ok      $2"
        passed=$((passed + 1))
    else
        echo "FAILED  $2"
        failed=$((failed + 1))
        sed 's/^/    /' "$work"/*
    fi
}

pair() { # TOOL OPTIONS...: 0 when both sides ended well
    local server
    port=$((port + 1))
    timeout 60 "$build/bin/drydock" run -- "$@" -d drydock0 -x 1 -F -p $port >"$work/server" 2>&1 &
    server=$!
    for _ in $(seq 50); do
        timeout 60 "$build/bin/drydock" run -- "$@" -d drydock0 -x 1 -F -p $port 127.0.0.1 >"$work/client" 2>&1 && break
        grep -q "ouldn't connect" "$work/client" || break
        sleep 0.1
    done
    wait $server && grep -qE '^ [0-9]+ +[0-9]+ +[0-9.]*[1-9]' "$work/client"
}

for start in 65500 4294967200; do
    export DRYDOCK_START_INDEX=$start
    for tool in ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw; do
        pair $tool -n 2000
        report $? "$tool, indices from $start"
    done
    for op in write read send; do
        timeout 60 "$build/bin/drydock" run -- "$build/tests/conform/verify_prog" $op -q 4 -l 8 >"$work/client" 2>&1
        report $? "verify $op -q 4 -l 8, indices from $start"
    done
done
unset DRYDOCK_START_INDEX

# perftest counts iterations; the client's queue must have carried exactly their bytes.
export DRYDOCK_LOG=info
pair ib_write_bw -n 1000 -s 65536
grep -qE 'ends: [0-9]+ WRs posted, 1000 executed, 65536000 bytes out' "$work/client"
report $? "ib_write_bw -n 1000 -s 65536: 65536000 bytes counted"
pair ib_send_bw -n 1000 -s 4096
grep -qE 'ends: [0-9]+ WRs posted, 1000 executed, 4096000 bytes out' "$work/client" &&
    grep -qE '4096000 bytes in$' "$work/server"
report $? "ib_send_bw -n 1000 -s 4096: 4096000 bytes counted on both sides"

echo "$passed right, $failed wrong"
[ $failed = 0 ]
