#!/bin/bash
# SPDX-License-Identifier: MIT
# The table of the goals: Drydock beside UCX, perftest, bare cache lines and memcpy, all in one run and in turn.
#     bench/peers.sh [SECTION...]      sections: put latency bandwidth signal register queues (all when none is named)
# DRYDOCK_BUILD names the build (default build/release, made if it is not there), PEERS_RUNS the runs of which medians are
# taken (default 5). Peers are Debian's packages ucx-utils and perftest, installed when they are missing; one that is not
# there, or does not end within 60 seconds, leaves its row without a figure and is named at the end.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${DRYDOCK_BUILD:-$root/build/release}
runs=${PEERS_RUNS:-5}
port=$((20000 + $$ % 10000))
[ $# -gt 0 ] || set -- put latency bandwidth signal register queues

if [ -z "${DRYDOCK_BUILD:-}" ]; then
    (cd "$root" && cmake --preset release && cmake --build build/release -j "$(nproc)") >&2 || exit 1
fi
for tool in ucx_perftest:ucx-utils ib_write_lat:perftest; do
    command -v "${tool%:*}" >/dev/null || apt-get install -y -q "${tool#*:}" >&2
done
work=$(mktemp -d /tmp/drydock-peers-XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir -m 700 "$work/run"
export DRYDOCK_DIR=$work/run
export BENCH_REPEATS=${BENCH_REPEATS:-31}
missing=

miss()
{
    case $missing in *"$1"*) ;; *) missing="$missing${missing:+; }$1" ;; esac
}

# note NAME FIGURE: one figure of one run.
note()
{
    [ -z "$2" ] || echo "$2" >>"$work/$1"
}

median()
{
    [ -f "$work/$1" ] && sort -n "$work/$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# field FILE ROW [COLUMN]: the figure of a benchmark's row (2: measured, 3: its limit).
field()
{
    awk -F'|' -v row="$2" -v column="${3:-2}" '{ name = $2; gsub(/^ | $/, "", name) }
        name == row { split($(column + 1), word, " "); print word[1]; exit }' "$work/$1"
}

# both SERVER-COMMAND... with the client's last words in $more: two processes of one program, the client's output in
# $work/client.
both()
{
    timeout 60 "$@" >/dev/null 2>&1 &
    local server=$!
    sleep 1
    # shellcheck disable=SC2086
    timeout 60 "$@" $more >"$work/client" 2>/dev/null
    kill $server 2>/dev/null
    wait $server 2>/dev/null
}

# ucx TRANSPORTS COUNT: nanoseconds of one 8-byte put, or nothing.
ucx()
{
    command -v ucx_perftest >/dev/null || { miss "no ucx_perftest here: rows of UCX have no figure"; return; }
    port=$((port + 1))
    more="-t ucp_put_bw -s 8 -n $2 -f localhost"
    export UCX_TLS=$1
    both ucx_perftest -p $port
    unset UCX_TLS
    awk 'NF == 8 && $1 > 0 { printf "%.1f\n", $4 * 1000 }' "$work/client"
}

# perftest TOOL SIZE COUNT COLUMN: of a run over Drydock, plain memory of perftest's own, which is adopted.
perftest()
{
    command -v "$1" >/dev/null || { miss "no $1 here: rows of perftest have no figure"; return; }
    port=$((port + 1))
    more=127.0.0.1
    export DRYDOCK_ADOPT=inner
    both "$build/bin/drydock" run "$1" -d drydock0 -F -x 1 -s "$2" -n "$3" -p $port
    unset DRYDOCK_ADOPT
    awk -v size="$2" -v column="$4" '$1 == size && NF >= column { print $column }' "$work/client"
}

# times WHAT MINE PEER PEER-IS GOAL: how many times faster than the peer, by notes of nanoseconds.
times()
{
    local mine peer
    mine=$(median "$2") peer=$(median "$3")
    awk -v w="$1" -v m="$mine" -v p="$peer" -v is="$4" -v g="$5" 'BEGIN {
        if (m == "" || p == "") { printf "| %s | %s | %s | - | %s times | not measured |\n", w, m, is, g; exit }
        met = (p / m >= g) ? "yes" : "no"
        printf "| %s | %s ns | %s ns: %s | %.2f times faster | %s times | %s |\n", w, m, p, is, p / m, g, met }'
}

# above WHAT MINE LIMIT LIMIT-IS GOAL: nanoseconds beyond the limit. No goal: the row explains another.
above()
{
    local mine limit
    mine=$(median "$2") limit=$(median "$3")
    awk -v w="$1" -v m="$mine" -v l="$limit" -v is="$4" -v g="$5" 'BEGIN {
        if (m == "" || l == "") { printf "| %s | %s | %s | - | %s | not measured |\n", w, m, is, g; exit }
        printf "| %s | %.0f ns | %.0f ns: %s | %+.0f ns | %s | %s |\n", w, m, l, is, m - l,
            g == "" ? "" : "at most +" g " ns", g == "" ? "" : m - l <= g ? "yes" : "no" }'
}

# share WHAT MINE LIMIT LIMIT-IS GOAL: GB/s, as a part of the limit. No goal: the row explains another.
share()
{
    local mine limit
    mine=$(median "$2") limit=$(median "$3")
    awk -v w="$1" -v m="$mine" -v l="$limit" -v is="$4" -v g="$5" 'BEGIN {
        goal = g == "" ? "" : "at least " g
        if (m == "" || l == "") { printf "| %s | %s | %s | - | %s | not measured |\n", w, m, is, goal; exit }
        met = g == "" ? "" : m / l >= g ? "yes" : "no"
        printf "| %s | %.1f GB/s | %.1f GB/s: %s | %.2f | %s | %s |\n", w, m, l, is, m / l, goal, met }'
}

# own FILE: rows of a benchmark of ours that compares with its limit itself.
own()
{
    awk -F'|' '{
        goal = $6; met = ""; n = split(goal, word, " ")
        if (n >= 3 && word[1] == "at") {
            split($3, mine, " "); value = n == 3 ? $5 : mine[1]
            met = (word[2] == "most" ? value + 0 <= word[3] + 0 : value + 0 >= word[3] + 0) ? "yes" : "no" }
        printf "|%s|%s|%s|%s|%s| %s |\n", $2, $3, $4, $5, goal, met }' "$work/$1"
}

put()
{
    for ((i = 0; i < runs; i++)); do
        timeout 60 "$build/bin/bench_write" >"$work/write"
        note list "$(field write "8-byte WRITE, lists of 16, two processes")"
        note single "$(field write "8-byte WRITE, one by one, two processes")"
        note posix "$(ucx posix,self 1000000)"
        note sysv "$(ucx sysv,self 1000000)"
        BENCH_MALLOC=1 DRYDOCK_ADOPT=inner timeout 60 "$build/bin/bench_write" >"$work/plain"
        note plain-list "$(field plain "8-byte WRITE, lists of 16, two processes")"
        note plain-single "$(field plain "8-byte WRITE, one by one, two processes")"
        note cma "$(ucx cma,tcp,self 20000)"
    done
    times "8-byte WRITE, lists of 16" list posix "UCX put, posix" 4
    times "8-byte WRITE, lists of 16" list sysv "UCX put, sysv" 4
    times "8-byte WRITE, single" single posix "UCX put, posix" 2.5
    times "8-byte WRITE, single" single sysv "UCX put, sysv" 2.5
    times "8-byte WRITE, lists of 16, memory of malloc" plain-list cma "UCX put, cma" 50
    times "8-byte WRITE, single, memory of malloc" plain-single cma "UCX put, cma" 50
}

# half_round TOOL NAME OP: t_typical (column 5, in microseconds) of a latency test, noted as NAME in nanoseconds, with the
# bare lines and the device's own ping-pong by OP of the same moments. A virtual machine's processors come near each other
# and go away: a figure counts where bare lines took about as long before it and behind it.
half_round()
{
    local row="8-byte WRITE ping-pong, half a round" tries=0 kept=0 figure before after
    while [ $kept -lt "$runs" ] && [ $tries -lt $((4 * runs)) ]; do
        tries=$((tries + 1))
        timeout 120 "$build/bin/bench_pingpong" >"$work/before"
        figure=$(perftest "$1" 8 20000 5)
        timeout 120 "$build/bin/bench_pingpong" >"$work/after"
        before=$(field before "$row" 3) after=$(field after "$row" 3)
        awk -v f="$figure" -v b="$before" -v a="$after" 'BEGIN { exit !(f && b && a && b / a < 1.15 && a / b < 1.15) }' ||
            continue
        kept=$((kept + 1))
        note "$2" "$(awk -v f="$figure" 'BEGIN { print f * 1000 }')"
        note "$2-lines" "$(awk -v b="$before" -v a="$after" 'BEGIN { print (b + a) / 2 }')"
        note "$2-device" "$(field before "8-byte $3 ping-pong, half a round")"
    done
    [ $kept -eq "$runs" ] || miss "$kept of $runs runs of $1: the processors did not stay where they were"
}

latency()
{
    half_round ib_write_lat write_lat WRITE
    half_round ib_send_lat send_lat SEND
    above "ib_write_lat 8 bytes, half a round" write_lat write_lat-lines "bare cache lines" 45
    above "the device's own WRITE in the same moments" write_lat-device write_lat-lines "bare cache lines" ""
    above "perftest's and verbs' share of it" write_lat write_lat-device "the device's own ping-pong" ""
    above "ib_send_lat 8 bytes, half a round" send_lat send_lat-lines "bare cache lines" 80
    above "the device's own SEND in the same moments" send_lat-device send_lat-lines "bare cache lines" ""
    above "perftest's and verbs' share of it" send_lat send_lat-device "the device's own ping-pong" ""
}

# MB of perftest are 2^20 bytes; its average is column 4. The limit is memcpy in memory as perftest has it: of malloc
# and adopted, twice the size at a page's beginning, from the first half to the other side's second.
bandwidth()
{
    local size name tool
    for ((i = 0; i < runs; i++)); do
        for size in 65536 1048576; do
            name=$([ $size = 65536 ] && echo "64 KiB" || echo "1 MiB")
            BENCH_MALLOC=1 DRYDOCK_ADOPT=inner timeout 60 "$build/bin/bench_bandwidth" $size >"$work/bandwidth"
            note memcpy-$size "$(field bandwidth "WRITE of $name" 3)"
            note device-$size "$(field bandwidth "WRITE of $name")"
            note each-$size "$(field bandwidth "WRITE of $name, a completion each")"
            for tool in write read send; do
                note ${tool}_bw-$size "$(perftest ib_${tool}_bw $size $((size == 65536 ? 20000 : 2000)) 4 |
                    awk '{ print $1 * 1.048576e-3 }')"
            done
        done
    done
    for size in 65536 1048576; do
        name=$([ $size = 65536 ] && echo "64 KiB" || echo "1 MiB")
        share "ib_write_bw $name" write_bw-$size memcpy-$size memcpy 0.95
        share "the same by the device alone" device-$size memcpy-$size memcpy 0.95
        share "the same with a completion each, as perftest has" each-$size memcpy-$size memcpy ""
        share "perftest's and verbs' share of it" write_bw-$size each-$size "the device, a completion each" ""
        share "ib_read_bw $name" read_bw-$size memcpy-$size memcpy ""
        share "ib_send_bw $name" send_bw-$size memcpy-$size memcpy ""
    done
}

signal()
{
    timeout 120 "$build/bin/bench_signal" >"$work/signal"
    own signal
}

register()
{
    timeout 300 "$build/bin/bench_register" >"$work/register"
    own register
}

queues()
{
    timeout 300 "$build/bin/bench_queues" >"$work/queues"
    own queues
}

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "Machine: ${cpu:-$(uname -m)}, $(nproc) CPUs, Linux $(uname -r), load $(cut -d' ' -f1 /proc/loadavg) at the start." \
    "Commit: $(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || echo unknown). Medians of $runs runs; two processes."
echo
echo "| what | Drydock | peer or limit | compared | goal | met |"
echo "|---|---|---|---|---|---|"
for section in "$@"; do
    case $section in
        put | latency | bandwidth | signal | register | queues) $section ;;
        *) echo "peers: no section $section" >&2; exit 2 ;;
    esac
done
echo
echo "Load $(cut -d' ' -f1-3 /proc/loadavg) at the end.${missing:+ Missing: $missing.}"
