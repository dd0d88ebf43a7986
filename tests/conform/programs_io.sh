#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# libfabric's tools over its verbs provider, fio's rdma engine and qperf on our device. RDMACM_ONLY=REGEX runs the lines
# that match.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/conform/run_lib.sh
. tests/conform/rdmacm_lib.sh
. tests/conform/programs_lib.sh

# ---- libfabric: its verbs provider looks for addresses that are not loopback. -c compares what comes with what was sent

only_loopback() { # LINE
    [ "$local_ip" = 127.0.0.1 ] || return
    echo "skipped $1: this machine has no address but loopback, and the verbs provider passes over that"
}

provider() { # PROVIDER DOMAIN
    local line="fi_info -p $1" status=1
    wanted "$line" || return 0
    ! only_loopback "$line" || return 0
    : >"$work/server"
    "$drydock" run -- fi_info -p "$1" >"$work/client" 2>&1 && says client "domain: $2" && status=0
    cell "$line" $status
}

pingpong() { # PROVIDER KIND OPTIONS...
    local line="fi_pingpong -p $1 -e $2 -c ${*:3}" status=1 sent='^[0-9]+[kmg]? +[0-9]+k? +=[0-9]+'
    wanted "$line" || return 0
    ! only_loopback "$line" || return 0
    # ofi_rxm closes a connection when the peer says goodbye, without having read what came before, when the two came
    # between its looks; then one side waits for ever. What was exchanged and compared stands by then: both rows.
    local ended=0 limit=$limit
    [[ $1 != *ofi_rxm ]] || limit=40
    pair 18730 tcp "$line -B 18730" "$line -P 18730 $local_ip" || ended=1
    [[ $1 != *ofi_rxm ]] || ! says client 'exit status (0|124)' || ! says server 'exit status (0|124|143)' || ended=0
    [ $ended = 0 ] && says client "$sent" && says server "$sent" && ! says client '[Ee]rror' && ! says server '[Ee]rror' &&
        status=0
    cell "$line" $status
}

provider verbs drydock0
provider "verbs;ofi_rxm" drydock0
provider "verbs;ofi_rxd" drydock0-dgram
program fi_info libfabric-bin "fi_info -p verbs (or verbs;ofi_rxm, verbs;ofi_rxd)" "shows drydock0"
pingpong verbs msg -I 5 -S 4096
pingpong "verbs;ofi_rxm" rdm -I 5 -S 64
pingpong "verbs;ofi_rxm" rdm -I 5 -S 65536
pingpong "verbs;ofi_rxd" rdm -I 5 -S 4096
program fi_pingpong libfabric-bin "fi_pingpong -p 'verbs;ofi_rxm' -e rdm -c [ADDRESS]; also verbs -e msg, verbs;ofi_rxd" "data right"

# ---- fio. It asks for no retries of a receiver that is not ready, so no more messages are sent than it has receives.

complains() { # of more than a soft limit, which it raises itself
    grep -E '^fio: ' "$work/client" | grep -qv RLIMIT_MEMLOCK
}

job() { # VERB OPTIONS-OF-SERVER OPTIONS-OF-CLIENT
    local line="fio --verb=$1 $3" status=1
    local common="--ioengine=rdma --port=18700 --bs=64k --size=2m --verify_state_save=0"
    wanted "$line" || return 0
    pair 18700 t "fio --name=server $common --rw=read $2" \
        "fio --name=client $common --rw=write --hostname=$local_ip --verb=$1 --iodepth=8 --iodepth_batch_complete=1 $3" &&
        says client 'err= 0' && says server 'err= 0' && ! complains && ! says server '^[a-z0-9]+: verify failed' && status=0
    cell "$line" $status
}

job write --iodepth=16 ""
job read --iodepth=16 ""
job send "--iodepth=64 --verify=crc32c" "--verify=crc32c --do_verify=0"
program fio fio "fio --ioengine=rdma --port=P --bs=64k --rw=read; client: --hostname=ADDRESS --verb=write (read, send) --rw=write" \
    "runs; what is sent is right by verify=crc32c at the receiver"

# ---- qperf. Its UC and UD tests find their peer without rdma_cm, by an address without GRH, which leads nowhere on RoCE.

measures() { # TESTS...
    local line="qperf $*" status=1
    wanted "$line" || return 0
    pair 18720 tcp "qperf -lp 18720" "qperf -lp 18720 -cm 1 -t 1 $local_ip $*" keep &&
        says client '^ +(bw|latency|msg_rate) +=' $# && ! says client 'failed|error' && status=0
    cell "$line" $status
}

measures rc_bw rc_bi_bw rc_lat rc_rdma_write_bw rc_rdma_write_lat rc_rdma_write_poll_lat rc_rdma_read_bw rc_rdma_read_lat \
    rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add
program qperf qperf "qperf -cm 1 ADDRESS rc_bw rc_lat ... ver_rc_fetch_add" \
    "all rc_ tests run, atomics verified; uc_ and ud_ tests know no GRH, so not on RoCE"

end_of_test
