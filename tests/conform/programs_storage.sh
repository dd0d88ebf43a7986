#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 300
# ports: own
# Debian's storage over RDMA on our device: a Ceph cluster whose daemons and clients talk by RDMA alone, and a SCSI disk
# by iSER. What was written is read back and compared. RDMACM_ONLY=REGEX runs the lines that match.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/conform/run_lib.sh
. tests/conform/rdmacm_lib.sh
. tests/conform/programs_lib.sh

unpacked=$PWD/build/daemons # by scripts/setup
PATH=$unpacked/usr/sbin:$unpacked/usr/bin:$PATH

daemons=
end_daemons() {
    # shellcheck disable=SC2086 # numbers
    [ -z "$daemons" ] || { kill -9 $daemons; wait $daemons; } 2>/dev/null
    daemons=
}
trap 'end_daemons; rm -rf "$work"' EXIT

there() { # NAME...: all of them
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || { absent "$name"; return 1; }
    done
}

run() { # COMMAND... with a limit of its own
    timeout -k 5 "$limit" "$drydock" run -- "$@"
}

daemon() { # SIDE COMMAND...: goes on until end_daemons
    "$drydock" run -- "${@:2}" >"$work/$1" 2>&1 &
    daemons="$daemons $!"
}

until_says() { # REGEX COMMAND...: asks until the answer is there
    local said
    for _ in $(seq 100); do
        said=$("${@:2}" 2>/dev/null)
        [[ $said =~ $1 ]] && return
        sleep 0.2
    done
    echo "no '$1' in: $said" >>"$work/client"
    return 1
}

free_port() {
    local port
    for _ in $(seq 100); do
        port=$((30000 + RANDOM % 2000)) # of no other test here
        listening $port || break
    done
    echo $port
}

head -c 3000000 /dev/urandom >"$work/written"

# ---- Ceph: a monitor, one object store in memory, and clients. Its TCP connections carry nothing but the addresses of
# queue pairs. That the bytes went through ours is seen in what our device says of its queues when they end.

ceph_conf() { # PORT
    cat >"$work/ceph.conf" <<END
[global]
fsid = 1d7a4b1c-0000-4000-8000-000000000001
mon_host = v2:$local_ip:$1
mon_initial_members = a
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_type = async+rdma
ms_cluster_type = async+rdma
ms_public_type = async+rdma
ms_async_rdma_device_name = drydock0
ms_async_rdma_gid_idx = 1
ms_async_rdma_receive_buffers = 8192
ms_async_rdma_buffer_size = 16384
ms_async_rdma_send_buffers = 256
ms_bind_msgr1 = false
run_dir = $work
log_file = $work/\$name.log
admin_socket = $work/\$name.\$pid.asok
mon_data = $work/mon
osd_data = $work/osd
osd_erasure_code_plugins =
osd_class_dir = $(compgen -G "$unpacked/usr/lib/*/rados-classes" || compgen -G "/usr/lib/*/rados-classes")
osd_objectstore = memstore
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_crush_chooseleaf_type = 0
mon_data_avail_crit = 0
mon_data_avail_warn = 0
[mon.a]
host = localhost
END
}

ceph_up() {
    local id=5f0c9a52-0000-4000-8000-000000000002 port
    port=$(free_port)
    ceph_conf "$port"
    export CEPH_CONF=$work/ceph.conf CEPH_ARGS=
    mkdir "$work/osd"
    echo memstore >"$work/osd/type"
    monmaptool --create --addv a "v2:$local_ip:$port" --fsid 1d7a4b1c-0000-4000-8000-000000000001 "$work/monmap" &&
        run ceph-mon --mkfs -i a --monmap "$work/monmap" || return
    daemon server ceph-mon -i a -f
    until_says 'quorum a' run ceph -s || return
    run ceph osd new $id && run ceph-osd --mkfs -i 0 --osd-uuid $id || return
    daemon store ceph-osd -i 0 -f
    run ceph osd crush add osd.0 1.0 host=localhost root=default && run ceph osd pool create drydock 4 &&
        until_says '1 up' run ceph -s
}

ceph_objects() {
    local status=1
    ceph_up >"$work/client" 2>&1 &&
        DRYDOCK_LOG=info run rados -p drydock put object "$work/written" >"$work/put" 2>&1 &&
        run rados -p drydock get object "$work/read" >>"$work/client" 2>&1 && cmp "$work/written" "$work/read" &&
        [ "$(bytes_out put)" -ge 3000000 ] &&
        run rados -p drydock bench 2 write -b 65536 --no-cleanup >>"$work/client" 2>&1 &&
        run rados -p drydock bench 2 seq >>"$work/client" 2>&1 && says client '^Total reads made: +[1-9]' && status=0
    end_daemons
    return $status
}

ceph_line="ceph-mon, ceph-osd, rados put, get, bench"
if [[ $ceph_line =~ $only ]] && there ceph-mon ceph-osd rados monmaptool; then
    ceph_objects
    cell "$ceph_line" $?
fi
program Ceph ceph-common "ms_type = async+rdma: ceph-mon; ceph-osd; rados put, get, bench" "data right"

# ---- iSER: tgtd offers a file as a disk; libiscsi's tools, and QEMU's with libiscsi below them, use it. libiscsi asks for
# at most 128 things at once and 256 KiB in one, without looking: tests that want more are not run.

disk_up() { # PORT
    local target="tgtadm --lld iser --mode target" name
    export TGT_IPC_SOCKET=$work/tgt
    head -c 16777216 /dev/urandom >"$work/disk"
    cp "$work/disk" "$work/disk.before"
    daemon server tgtd -f --iser "port=$1,pool_sz_mb=64"
    until_says ready tgtadm --lld iser --mode sys --op show || return
    $target --op new --tid 1 -T iqn.2026-11.drydock:disk &&
        tgtadm --lld iser --mode logicalunit --op new --tid 1 --lun 1 -b "$work/disk" &&
        $target --op bind --tid 1 -I ALL || return
    for name in iqn.2008-11.org.linux-kvm iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-{inq,test}; do
        $target --op bind --tid 1 -Q $name || return
    done
}

disk_used() { # URL
    local test
    run iscsi-inq "$1" | tee -a "$work/client" | grep -q 'Product:VIRTUAL-DISK' || return
    run qemu-img dd -O raw bs=65536 "if=$1" "of=$work/copy" && cmp "$work/copy" "$work/disk.before" || return
    run qemu-io -f raw -c 'write -P 0x5a 1048576 131072' -c 'read -P 0x5a 1048576 131072' "$1" || return
    head -c 131072 /dev/zero | tr '\0' Z | cmp - <(tail -c +1048577 "$work/disk" | head -c 131072) || return
    for test in Read16 Write16 WriteVerify16 Verify16 CompareAndWrite; do
        run iscsi-test-cu -n -d -t SCSI.$test "$1" | tee "$work/cu" >>"$work/client"
        grep -qE '^ +asserts +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9]* +0 ' "$work/cu" || return
    done
}

iser() {
    local port status
    port=$(free_port)
    : >"$work/client"
    disk_up "$port" >>"$work/client" 2>&1 &&
        disk_used "iser://$local_ip:$port/iqn.2026-11.drydock:disk/1" >>"$work/client" 2>&1
    status=$?
    end_daemons
    return $status
}

iser_line="tgtd --iser; iscsi-test-cu, qemu-img, qemu-io iser://"
if [[ $iser_line =~ $only ]] && there tgtd iscsi-test-cu qemu-img; then
    iser
    cell "$iser_line" $?
fi
program "tgt, libiscsi" libiscsi-bin "tgtd --iser; iscsi-inq, iscsi-test-cu, qemu-img dd, qemu-io with iser://ADDRESS:PORT/TARGET/1" "data right"

end_of_test
