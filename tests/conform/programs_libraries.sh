#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 300
# Libraries over verbs that come without a program: Debian's librpma and Gloo, each under a program of ours that knows
# every value beforehand. RDMACM_ONLY=REGEX runs the lines that match.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/conform/run_lib.sh
. tests/conform/rdmacm_lib.sh
. tests/conform/programs_lib.sh

header() { # LIBRARY HEADER
    [ -e "/usr/include/$2" ] || { absent "$1"; return 1; }
}

built() { # COMMAND...: what it says is told when it fails
    "$@" >"$work/client" 2>&1
}

# ---- librpma

rpma() {
    local line="rpma_checked" status=1
    [[ $line =~ $only ]] && header librpma-dev librpma.h || return 0
    : >"$work/server"
    built gcc -O1 -Wall -Wextra -Werror -o "$work/rpma_checked" tests/conform/rpma_checked.c -lrpma -libverbs &&
        pair 7411 t "$work/rpma_checked $local_ip 7411" "$work/rpma_checked $local_ip 7411 client" &&
        says server '^right$' && says client '^right$' && status=0
    cell "$line" $status
}
rpma
program librpma librpma0 "rpma_write, rpma_atomic_write, rpma_flush, rpma_read, rpma_send_with_imm" "data right"

# ---- Gloo

gloo() { # RANKS
    local line="gloo_checked $1" status=1 rank pids=() pid
    [[ $line =~ $only ]] && header libgloo-dev gloo/config.h || return 0
    mkdir "$work/store$1"
    : >"$work/server"
    : >"$work/client"
    if [ -x "$work/gloo_checked" ] ||
        built g++ -std=c++14 -O1 -o "$work/gloo_checked" tests/conform/gloo_checked.cc -lgloo -libverbs; then
        status=0
        for rank in $(seq 0 $(($1 - 1))); do
            timeout -k 5 "$limit" "$drydock" run -- "$work/gloo_checked" "$rank" "$1" "$work/store$1" \
                >>"$work/client" 2>&1 &
            pids+=($!)
        done
        for pid in "${pids[@]}"; do wait "$pid" || status=1; done
        says client '^rank [0-9] of [0-9]: right$' "$1" || status=1
    fi
    cell "$line" $status
}
gloo 2
gloo 4
program Gloo libgloo0 "gloo::transport::ibverbs: allreduce (ring, halving and doubling), broadcast, barrier; 2 and 4 ranks" \
    "data right"

end_of_test
