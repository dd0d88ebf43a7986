#!/bin/bash
# SPDX-License-Identifier: MIT
# The path shim: unmodified programs find the device in /sys and /dev, each through the calls that it happens
# to use.
. "$(dirname "$0")/run_lib.sh"

layout "$work/all"
run() { "$work/all/bin/drydock" run -- "$@" 2>"$work/stderr"; }
device=/sys/class/infiniband/drydock0

[ -e /sys/class/infiniband ] && skip "this machine has RDMA devices of its own in /sys/class/infiniband"

expect "ls lists the device (opendir)" drydock0 "$(run ls /sys/class/infiniband)"
expect "ls -d finds it (statx)" "$device" "$(run ls -d $device)"
expect "ls -l does not complain" 0 "$(run ls -l $device >/dev/null && grep -vc '^drydock: ' "$work/stderr")"
expect "cat reads the port's state (open)" "4: ACTIVE" "$(run cat $device/ports/1/state)"
expect "grep reads it (openat)" "$device/ports/1/state:4: ACTIVE" "$(run grep -H ACTIVE $device/ports/1/state)"
expect "stat calls the node a character device" "character special file" "$(run stat -c %F /dev/infiniband/uverbs0)"
expect "find walks the tree" "$device/ports/1/lid" "$(run find /sys/class/infiniband -name lid)"
expect "sh changes into it (chdir)" "RoCE v2" "$(run sh -c "cd $device/ports/1/gid_attrs && cat types/0")"
expect "sh expands patterns (opendir, lstat)" "$device" "$(run sh -c 'echo /sys/class/infiniband/*')"
expect "bash tests the node (stat, faccessat)" yes \
    "$(run bash -c '[ -c /dev/infiniband/uverbs0 ] && [ -r /dev/infiniband/uverbs0 ] && [ -w /dev/infiniband/uverbs0 ] &&
    echo yes')"
expect "the verbs class names the same device" drydock0 "$(run cat /sys/class/infiniband_verbs/uverbs0/ibdev)"
expect "other paths are what they were" "$(stat -c %i /etc/passwd)" "$(run stat -c %i /etc/passwd)"
expect "a device that is not there is not there" 1 "$(run cat /sys/class/infiniband/mlx5_0/node_type; echo $?)"
expect "its error is ENOENT" 1 "$(grep -c 'No such file' "$work/stderr")"

DRYDOCK_NAME=mlx5_0 run ls /sys/class/infiniband >"$work/renamed"
expect "DRYDOCK_NAME renames it" mlx5_0 "$(cat "$work/renamed")"
expect "and the other name is still drydock0's own" drydock0 "$(run ls /sys/class/infiniband)"

if command -v python3 >/dev/null; then
    expect "python finds it (stat64, realpath, glob, scandir)" \
        "True True ['/sys/class/infiniband/drydock0'] ['drydock0'] ['1']" \
        "$(run python3 -c 'import os, glob, stat
print(os.path.exists("/sys/class/infiniband"), stat.S_ISCHR(os.stat("/dev/infiniband/uverbs0").st_mode),
      glob.glob("/sys/class/infiniband/*"), os.listdir("/sys/class/infiniband"),
      [e.name for e in os.scandir("/sys/class/infiniband/drydock0/ports")])')"
fi
if command -v perl >/dev/null; then
    expect "perl finds it (stat, readlink)" "1" \
        "$(run perl -e 'print -c "/dev/infiniband/uverbs0" && -d "/sys/class/infiniband/drydock0/device" ? 1 : 0')"
fi

got=$(env -u DRYDOCK_SHIM LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$work/all/lib/libdrydock_preload.so" \
    ls /sys/class/infiniband 2>&1)
expect_words "without drydock run the shim is silent" "No such file" "$got"

end_of_test
