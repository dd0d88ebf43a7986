#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 180
# Real traffic through verbs while the free-running indices of every ring cross 2^16 and 2^32: perftest, and the
# verifier that compares every byte. DRYDOCK_START_INDEX sets where the rings of new queues begin: where the send rings
# end shows that they began there and crossed the boundary. Then the bytes that the device counted for a queue, against
# what perftest says it moved.
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

# BLOCKS: the client's first queue that has posted began at $DRYDOCK_START_INDEX, so many blocks a WR before where it
# ended, and crossed 2^16 or 2^32.
crossed() {
    local at posted
    read -r at posted < <(sed -nE 's/.*\(send index ([0-9]+)\) ends: ([1-9][0-9]*) WRs posted.*/\1 \2/p' "$work/client")
    [ -n "$at" ] && [ $(((at - DRYDOCK_START_INDEX) & 0xffffffff)) = $((posted * $1)) ] &&
        [ $((at >> 16)) != $((DRYDOCK_START_INDEX >> 16)) ]
}

export DRYDOCK_LOG=info
for boundary in 65536 4294967296; do
    export DRYDOCK_START_INDEX=$((boundary - 36))
    for tool in ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw; do
        blocks=1
        [ $tool = ib_atomic_bw ] && blocks=2
        pair $tool -n 2000 && crossed $blocks
        report $? "$tool, indices from $DRYDOCK_START_INDEX"
    done
    DRYDOCK_START_INDEX=$((boundary - 10)) # it posts less
    for op in write read send; do
        timeout 60 "$build/bin/drydock" run -- "$build/tests/conform/verify_prog" $op -q 4 -l 8 >"$work/client" 2>&1 &&
            crossed 1
        report $? "verify $op -q 4 -l 8, indices from $DRYDOCK_START_INDEX"
    done
done
unset DRYDOCK_START_INDEX

# perftest counts iterations; the client's queue must have carried exactly their bytes.
pair ib_write_bw -n 1000 -s 65536
grep -qE 'ends: [0-9]+ WRs posted, 1000 executed, 65536000 bytes out' "$work/client"
report $? "ib_write_bw -n 1000 -s 65536: 65536000 bytes counted"
pair ib_send_bw -n 1000 -s 4096
grep -qE 'ends: [0-9]+ WRs posted, 1000 executed, 4096000 bytes out' "$work/client" &&
    grep -qE '4096000 bytes in$' "$work/server"
report $? "ib_send_bw -n 1000 -s 4096: 4096000 bytes counted on both sides"

echo "$passed right, $failed wrong"
[ $failed = 0 ]
