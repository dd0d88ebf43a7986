#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 300
# Debian's programs beside the matrix: the ping-pongs that check their data, perftest over UC and UD and through a shared
# receive queue, XRC. VERBS_ONLY=REGEX runs the lines that match.
set -u
. "$(dirname "$0")/run_lib.sh"
export DRYDOCK_DIR=$work/rt
mkdir -m 700 "$DRYDOCK_DIR"
port=$((21000 + $$ % 10000))
only=${VERBS_ONLY:-.}
. "$(dirname "$0")/programs_lib.sh"

# Until the server listens on $1 or has ended: /proc tells, the program does not.
wait_listen() { # PORT PID
    local hex
    hex=$(printf ':%04X' "$1")
    for _ in $(seq 500); do
        grep -q "$hex 0.* 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null && return
        kill -0 "$2" 2>/dev/null || return
        sleep 0.02
    done
}

both() { # WORDS THAT THE CLIENT MUST SAY, PROGRAM AND OPTIONS
    local say=$1 line=$2 server server_status client_status
    [[ $line =~ $only ]] || return 0
    command -v "${line%% *}" >/dev/null || { absent "${line%% *}"; return 0; }
    port=$((port + 1))
    # shellcheck disable=SC2086 # the line is words
    timeout -k 5 60 "$drydock" run -- $line -p $port >"$work/server" 2>&1 &
    server=$!
    wait_listen $port $server
    # shellcheck disable=SC2086
    timeout -k 5 60 "$drydock" run -- $line -p $port 127.0.0.1 >"$work/client" 2>&1
    client_status=$?
    [ $client_status = 0 ] || kill $server 2>/dev/null
    wait $server
    server_status=$?
    expect "$line: server" 0 $server_status
    expect "$line: client" 0 $client_status
    expect_words "$line" "$say" "$(cat "$work/client")"
    [ $server_status = 0 ] && [ $client_status = 0 ] || tail -5 "$work/server" "$work/client"
    echo "ran     $line"
}

for kind in rc uc ud srq; do
    both "100 iters in" "ibv_${kind}_pingpong -d drydock0 -g 1 -c -n 100"
    [ $kind = srq ] || both "100 iters in" "ibv_${kind}_pingpong -d drydock0 -g 1 -c -e -n 100"
done
checks_before=$checks # the row of these is the matrix's
both success "ibv_xsrq_pingpong -d drydock0 -g 1 -n 100"
program ibv_xsrq_pingpong ibverbs-utils "ibv_xsrq_pingpong -d drydock0 -g 1 [127.0.0.1]" "runs"
perf="-d drydock0 -x 1 -F -n 200 --output=bandwidth"
both "." "ib_send_bw -c UD $perf"
both "." "ib_send_bw -c UC $perf"
both "." "ib_write_bw -c UC $perf"
both "." "ib_send_bw --use-srq -q 2 $perf"
for tool in send write read; do
    both "." "ib_${tool}_bw -c XRC $perf"
done
program "perftest, XRC and SRQ" perftest "ib_{send,write,read}_bw -c XRC; ib_send_bw --use-srq" "runs"

end_of_test
