#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 300
# ports: own
# QEMU moves a running virtual machine to another QEMU by RDMA: its memory is read by the device under a program that
# goes on writing to it. What arrived is compared with what was sent. RDMACM_ONLY=REGEX runs the lines that match.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/conform/run_lib.sh
. tests/conform/rdmacm_lib.sh
. tests/conform/programs_lib.sh

qemu=qemu-system-x86_64
command -v $qemu >/dev/null || skip "not installed: $qemu"

# The machine is emulated, has 64 MiB, and waits to be started; 8 MiB of it, from the 16th on, hold bytes that nothing overwrites.
machine=("$qemu" -M pc -m 64 -accel tcg -display none -nodefaults -S)
head -c 8388608 /dev/urandom >"$work/bytes"

migrate() { # WHAT PORT [CAPABILITY]
    local server client
    timeout -k 5 "$limit" "$drydock" run -- "${machine[@]}" -qmp "unix:$work/to,server=on,wait=off" \
        -incoming "rdma:$local_ip:$2" >"$work/server" 2>&1 &
    server=$!
    timeout -k 5 "$limit" "$drydock" run -- "${machine[@]}" -qmp "unix:$work/from,server=on,wait=off" \
        -device "loader,file=$work/bytes,addr=0x1000000,force-raw=on" >"$work/client" 2>&1 &
    client=$!
    timeout -k 5 "$limit" python3 tests/conform/migrate_vm.py "$work/from" "$work/to" "rdma:$local_ip:$2" "$work" ${3:-} \
        >>"$work/client" 2>&1
    local status=$?
    [ $status = 0 ] || kill $server $client 2>/dev/null
    wait $server || status=1
    wait $client || status=1
    [ $status = 0 ] && cmp "$work/from.mem" "$work/to.mem" >>"$work/client" 2>&1 &&
        tail -c +16777217 "$work/to.mem" | head -c 8388608 | cmp - "$work/bytes" >>"$work/client" 2>&1
}

line() { # WHAT PORT [CAPABILITY]
    local what="qemu-system-x86_64, $1"
    [[ $what =~ $only ]] || return 0
    migrate "$@"
    cell "$what" $?
}

line "pages registered as they go" 18810
line "all pinned" 18811 rdma-pin-all
program QEMU qemu-system-x86 "qemu-system-x86_64 -incoming rdma:ADDRESS:PORT; migrate rdma:ADDRESS:PORT; also rdma-pin-all" \
    "data right"

end_of_test
