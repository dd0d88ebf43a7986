#!/bin/bash
# SPDX-License-Identifier: MIT
# Debian's ibv_devices, unmodified, lists our device and no other.
. "$(dirname "$0")/run_lib.sh"

command -v ibv_devices >/dev/null || skip "not installed: ibv_devices"
[ -e "$build/lib/libibverbs.so.1" ] || skip "$build/lib/libibverbs.so.1 is not built"

got=$("$drydock" run -- ibv_devices 2>"$work/stderr")
expect "exit code" 0 $?
expect "standard error is the banner" "drydock: drydock0 (RoCE, software) for ibv_devices" "$(cat "$work/stderr")"
expect "one device below the two lines of heading" 3 "$(echo "$got" | wc -l)"
expect "its name" drydock0 "$(echo "$got" | awk 'NR == 3 { print $1 }')"
guid=$("$drydock" run -- cat /sys/class/infiniband/drydock0/node_guid 2>/dev/null | tr -d :)
expect "its GUID is that of the private tree" "$guid" "$(echo "$got" | awk 'NR == 3 { print $2 }')"
got=$(DRYDOCK_NAME=mlx5_7 "$drydock" run -- ibv_devices 2>/dev/null)
expect "DRYDOCK_NAME renames it" mlx5_7 "$(echo "$got" | awk 'NR == 3 { print $1 }')"

end_of_test
