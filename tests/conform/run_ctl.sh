#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 60
# drydock ctl under rdma-core's ibv_asyncwatch and ibv_devinfo: the port goes down and up, an address comes and goes.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/conform/run_lib.sh
command -v ibv_asyncwatch >/dev/null && command -v ibv_devinfo >/dev/null || skip "not installed: ibverbs-utils"
. tests/conform/programs_lib.sh

said() { # WORDS: what the watcher said within 20 s
    for _ in $(seq 200); do
        grep -q -- "$1" "$work/watch" && break
        sleep 0.1
    done
    expect_words "ibv_asyncwatch" "$1" "$(cat "$work/watch")"
}

stdbuf -oL "$drydock" run -- ibv_asyncwatch >"$work/watch" 2>&1 &
watcher=$!
trap 'kill $watcher 2>/dev/null; rm -rf "$work"' EXIT
said "async event FD"
"$drydock" ctl port down
expect "ctl port down" 0 $?
said IBV_EVENT_PORT_ERR
expect_words "ibv_devinfo, port down" PORT_DOWN "$("$drydock" run -- ibv_devinfo 2>/dev/null)"
"$drydock" ctl port up
said IBV_EVENT_PORT_ACTIVE
expect_words "ibv_devinfo, port up" PORT_ACTIVE "$("$drydock" run -- ibv_devinfo 2>/dev/null)"
"$drydock" ctl gid add 192.0.2.99
said IBV_EVENT_GID_CHANGE
expect_words "ibv_devinfo, one address more" 192.0.2.99 "$("$drydock" run -- ibv_devinfo -v 2>/dev/null)"
"$drydock" ctl gid del 192.0.2.99
expect "ctl gid del" 0 $?
for wrong in "port" "port sideways" "gid add" "gid add nobody" "gid del 192.0.2.98"; do
    # shellcheck disable=SC2086 # words
    "$drydock" ctl $wrong 2>/dev/null && expect "ctl $wrong" "a refusal" "success"
done
program ibv_asyncwatch ibverbs-utils "ibv_asyncwatch; meanwhile drydock ctl port down, port up, gid add ADDRESS" \
    "shows the events"
end_of_test
