#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# alone: its programs spin on both processors
# UCX on our device: its tools over rc_verbs and ud_verbs, its io_demo, which connects by rdma_cm and checks every byte,
# and OpenMPI over it, with values that are known beforehand. RDMACM_ONLY=REGEX runs the lines that match.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/conform/run_lib.sh
. tests/conform/rdmacm_lib.sh
. tests/conform/programs_lib.sh

command -v ucx_perftest >/dev/null || skip "not installed: ucx-utils"
export UCX_NET_DEVICES=drydock0:1 UCX_WARN_UNUSED_ENV_VARS=n

devices() {
    wanted "ucx_info -d" || return 0
    "$drydock" run -- ucx_info -d >"$work/client" 2>&1
    : >"$work/server"
    says client 'Transport: rc_verbs' && says client 'Transport: ud_verbs' && says client 'Device: drydock0:1' 2
    cell "ucx_info -d" $?
}
devices
program ucx_info ucx-utils "ucx_info -d" "shows rc_verbs and ud_verbs"

# ---- ucx_perftest: all operations in one run. It ends with one line for each, and says ERROR where something failed.

operations() { # LINE TRANSPORTS COUNT OPTIONS...
    local line="$1" tls=$2 count=$3 status=1
    shift 3
    wanted "$line" || return 0
    UCX_TLS=$tls pair 18600 tcp "ucx_perftest -p 18600 -b $work/batch -n 10 -w 1 $*" \
        "ucx_perftest -p 18600 -b $work/batch -n 10 -w 1 -f $* 127.0.0.1" &&
        says client '^ *[a-z_]+ +10 +[0-9.]+ +[0-9.]*[1-9]' "$count" && ! says client ERROR && ! says server ERROR && status=0
    cell "$line" $status
}

cat >"$work/batch" <<'END'
tag_lat -t tag_lat -s 8
tag_bw -t tag_bw -s 65536
tag_sync_lat -t tag_sync_lat -s 1024
put_lat -t ucp_put_lat -s 8
put_bw -t ucp_put_bw -s 65536
get -t ucp_get -s 4096
add -t ucp_add -s 8
fadd -t ucp_fadd -s 8
swap -t ucp_swap -s 8
cswap -t ucp_cswap -s 4
stream_bw -t stream_bw -s 65536
stream_lat -t stream_lat -s 8
am_lat -t ucp_am_lat -s 8
am_bw -t ucp_am_bw -s 100000
END
operations "ucx_perftest (ucp, rc_verbs)" rc_v,self 14
operations "ucx_perftest (ucp, ud_verbs)" ud_v,self 14

cat >"$work/batch" <<'END'
am_lat -t am_lat -s 8 -D short
am_bw -t am_bw -s 4000 -D zcopy
put_lat -t put_lat -s 8 -D short
put_bw -t put_bw -s 65536 -D zcopy
get -t get -s 65536 -D zcopy
add -t add_mr -s 8
fadd -t fadd -s 8
cswap -t cswap -s 8
END
operations "ucx_perftest (uct, rc_verbs)" all 8 -d drydock0:1 -x rc_verbs
cat >"$work/batch" <<'END'
am_lat -t am_lat -s 8 -D short
am_bw -t am_bw -s 4000 -D zcopy
END
operations "ucx_perftest (uct, ud_verbs)" all 2 -d drydock0:1 -x ud_verbs
program ucx_perftest ucx-utils "UCX_TLS=rc_v,self (or ud_v,self) ucx_perftest -b FILE [127.0.0.1]" \
    "runs: put, get, am, atomics, stream, tag"

# ---- io_demo: the listener is rdma_cm's; -q compares what is read and written

demo() { # OPTIONS...
    local line="io_demo $*" status=1
    wanted "$line" || return 0
    UCX_TLS=rc_v,self UCX_SOCKADDR_TLS_PRIORITY=rdmacm pair 18610 t "io_demo -p 18610 -q -d 8:65536 $*" \
        "io_demo -p 18610 -q -d 8:65536 -i 50 -o read,write $* $local_ip" keep &&
        says client "Client exit with status 'OK'" && ! says server '[Cc]orruption|assert' && status=0
    cell "$line" $status
}
demo
demo -A
program io_demo ucx-utils "UCX_TLS=rc_v,self UCX_SOCKADDR_TLS_PRIORITY=rdmacm io_demo -q -d 8:65536 -o read,write [ADDRESS]" \
    "data right"

# ---- OpenMPI

mpi() { # TRANSPORTS
    local line="mpirun mpi_checked ($1)" status
    wanted "$line" || return 0
    command -v mpicc >/dev/null || { absent mpicc; return 0; }
    : >"$work/server"
    mpicc -O1 -Wall -Wextra -Werror -o "$work/mpi_checked" tests/conform/mpi_checked.c >"$work/client" 2>&1 &&
        UCX_TLS=$1 timeout -k 5 "$limit" "$drydock" run -- mpirun --allow-run-as-root --oversubscribe -np 2 \
            --mca pml ucx --mca osc ucx --mca pml_ucx_devices any --mca btl ^openib --mca mpi_yield_when_idle 1 \
            "$work/mpi_checked" >"$work/client" 2>&1 && says client '^rank [01] of 2: right$' 2
    status=$?
    cell "$line" $status
}
mpi rc_v,self
mpi ud_v,self
program OpenMPI openmpi-bin "UCX_TLS=rc_v,self (or ud_v,self) mpirun -np 2 --mca pml ucx --mca osc ucx --mca pml_ucx_devices any --mca btl ^openib" \
    "messages, allreduce and RMA window: data right"

end_of_test
