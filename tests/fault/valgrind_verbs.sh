#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Debian's own ibv_rc_pingpong on our library, both ends under valgrind: no invalid access, nothing lost.
. "$(dirname "$0")/valgrind_lib.sh"
command -v ibv_rc_pingpong >/dev/null || { echo "skipped: not installed: ibverbs-utils"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT

listens() { # PORT
    local hex
    hex=$(printf ':%04X' "$1")
    grep -qE "^ *[0-9]+: [0-9A-F]+$hex [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

end_of_pair() { # the program's further options
    LD_LIBRARY_PATH=$build/lib timeout -k 5 100 "${valgrind[@]}" ibv_rc_pingpong -c -n 50 -g 0 -p "$port" "$@" 2>&1
}

port=$((20000 + $$ % 10000))
while listens "$port"; do port=$((port + 1)); done
end_of_pair >"$work/server" &
server=$!
for _ in $(seq 600); do # valgrind takes its time to begin
    listens "$port" && break
    kill -0 $server 2>/dev/null || break
    sleep 0.1
done
end_of_pair 127.0.0.1 >"$work/client"
client=$?
wait $server
server=$?
if [ $server != 0 ] || [ $client != 0 ] ||
    [ "$(cat "$work/server" "$work/client" | grep -c '50 iters')" != 2 ]; then
    echo "FAILED: expected 0 and 0 of server and client (9: valgrind found something), got $server and $client"
    for file in server client; do
        echo "    --- $file"
        sed 's/^/    /' "$work/$file" | tail -40
    done
    exit 1
fi
echo "50 round trips, nothing found at either end"
