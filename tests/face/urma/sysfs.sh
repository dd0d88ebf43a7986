#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs of URMA find the device below /sys/class/ubcore, and each file says what the library says.
. "$(dirname "$0")/../../conform/run_lib.sh"

[ -e /sys/class/ubcore ] && skip "this machine has UB devices of its own in /sys/class/ubcore"
export DRYDOCK_DIR=$work/dir
mkdir -m 700 "$DRYDOCK_DIR"
run() { "$drydock" run -- "$@" 2>"$work/stderr"; }
device=/sys/class/ubcore/drydock0

run "$build/tests/face/urma/sysfs_prog" >"$work/said"
expect "the program says what it was told" 0 $?
while read -r path value; do
    expect "$path" "$value" "$(run cat "$device/$path")"
done <"$work/said"
expect "no file that the program does not know of" "$(cut -d' ' -f1 "$work/said" | grep -v / | sort | xargs)" \
    "$(run ls $device | grep -vxE 'device|driver_name|eids|port0' | sort | xargs)"
expect "realpath leads into a directory of that name" drydock0 "$(basename "$(run realpath $device)")"
expect "a limit that is set is shown" 77 "$(DRYDOCK_MAX_CQ=77 run cat $device/max_jfc)"
expect "and set back" "$(sed -n 's/^max_jfc //p' "$work/said")" "$(run cat $device/max_jfc)"
end_of_test
