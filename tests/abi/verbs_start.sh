#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 120
# Every verbs program of Debian that is installed here starts on our library with all symbols bound at once: the
# loader names no missing symbol, node or version. A program that is not installed is said to be, and skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
lib=$(cd "${DRYDOCK_BUILD:-build/dev}/lib" && pwd) || exit 1

# The dynamic loader with --list would bind nothing: the program itself has to reach main.
programs="ibv_devices ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ibv_xsrq_pingpong
    ibv_asyncwatch ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_atomic_bw ib_atomic_lat
    raw_ethernet_bw rping ucmatose udaddy rstream rdma_server rdma_client mckey cmtime riostream udpong"
started=0 failed=0 absent=""
for program in $programs; do
    path=$(command -v "$program") || { absent+=" $program"; continue; }
    said=$(LD_BIND_NOW=1 LD_LIBRARY_PATH=$lib timeout 5 "$path" --no-such-option </dev/null 2>&1)
    status=$?
    if [ $status = 127 ] || grep -qE 'undefined symbol|no version information|version .* not found|symbol lookup' \
        <<<"$said"; then
        printf '%s does not start (status %d):\n%s\n' "$program" $status "$said"
        failed=$((failed + 1))
    elif [ "$program" = ibv_devices ] && ! grep -q drydock0 <<<"$(LD_LIBRARY_PATH=$lib "$path" 2>&1)"; then
        echo "ibv_devices runs, but shows no drydock0: it is on another library"
        failed=$((failed + 1))
    else
        started=$((started + 1))
    fi
done
echo "$started programs start, $failed do not; not installed:${absent:- none}"
[ $started = 0 ] && exit 77
exit $((failed != 0))
