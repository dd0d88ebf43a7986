#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# OpenSHMEM under valgrind: two PEs, each watched, run the litmus programs by stores and by requests.
. "$(dirname "$0")/valgrind_lib.sh"
[ -x "$build/bin/oshrun" ] || { echo "skipped: $build/bin/oshrun is not built"; exit 77; }
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
for way in stores queue; do
    DRYDOCK_SHMEM=$way LITMUS_ROUNDS=2 timeout -k 5 290 "$build/bin/oshrun" -np 2 \
        "${valgrind[@]}" "$build/tests/face/shmem/litmus_prog" >"$out" 2>&1
    status=$?
    if [ $status != 0 ] || grep -q FAILED "$out"; then
        echo "FAILED by $way: exit status $status, expected 0 (9: valgrind found something)"
        sed 's/^/    /' "$out" | tail -60
        exit 1
    fi
    echo "by $way: nothing found at either PE"
done
