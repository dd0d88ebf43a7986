#!/bin/bash
# SPDX-License-Identifier: MIT
# Small WRITEs of Drydock beside puts of UCX (ucx_perftest, Debian's package ucx-utils) in one run, in turn: bench/peers.sh
# DRYDOCK_BUILD names the build (default build/release, made if it is not there), PEERS_RUNS the runs of which the median is
# taken (default 5). A peer that is not there, or does not end within 30 seconds, has no figure.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${DRYDOCK_BUILD:-$root/build/release}
runs=${PEERS_RUNS:-5}
port=$((20000 + $$ % 10000))

if [ -z "${DRYDOCK_BUILD:-}" ]; then
    (cd "$root" && cmake --preset release && cmake --build build/release --target bench-write -j "$(nproc)") >&2 || exit 1
fi
if ! command -v ucx_perftest >/dev/null; then
    apt-get install -y -q ucx-utils >&2 || echo "peers: no ucx_perftest: rows of UCX stay empty" >&2
fi
work=$(mktemp -d /tmp/drydock-peers-XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir -m 700 "$work/run"
export DRYDOCK_DIR=$work/run

# ucx TRANSPORTS: nanoseconds of one 8-byte put, or nothing.
ucx()
{
    port=$((port + 1))
    UCX_TLS=$1 timeout 30 ucx_perftest -p $port >/dev/null 2>&1 &
    local server=$!
    sleep 1
    UCX_TLS=$1 timeout 30 ucx_perftest localhost -p $port -t ucp_put_bw -s 8 -n "$2" -f 2>/dev/null |
        awk 'NF == 8 && $1 > 0 { printf "%.1f\n", $4 * 1000 }'
    kill $server 2>/dev/null
    wait $server 2>/dev/null
}

# field ROW: nanoseconds of a row of bench_write.
field()
{
    sed -n "s/^| 8-byte WRITE, $1, two processes | \([0-9.]*\) ns .*/\1/p" "$work/write" | head -n 1
}

median()
{
    sort -n "$work/$1" | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

for ((i = 0; i < runs; i++)); do
    BENCH_REPEATS=31 timeout 60 "$build/bin/bench_write" >"$work/write"
    field "lists of 16" >>"$work/list"
    field "one by one" >>"$work/single"
    ucx posix,self 1000000 >>"$work/posix"
    ucx sysv,self 1000000 >>"$work/sysv"
    ucx cma,tcp,self 20000 >>"$work/cma"
done

# row WHAT MINE PEER GOAL: the goal is how many times the peer's cost.
row()
{
    local mine peer
    mine=$(median "$2") peer=$(median "$3")
    if [ -z "$mine" ] || [ -z "$peer" ]; then
        echo "| $1 | ${mine:--} ns | ${peer:--} ns | - | $4 | not measured |"
        return
    fi
    awk -v w="$1" -v m="$mine" -v p="$peer" -v g="$4" 'BEGIN {
        printf "| %s | %s ns | %s ns | %.2f | %s | %s |\n", w, m, p, p / m, g, (p / m >= g ? "yes" : "no") }'
}

echo "Load $(cut -d' ' -f1-3 /proc/loadavg) at the end; medians of $runs runs; two processes, Drydock's memory in the arena."
echo
echo "| 8-byte WRITE | Drydock | UCX put | times faster | goal | met |"
echo "|---|---|---|---|---|---|"
row "lists of 16, against posix" list posix 4
row "lists of 16, against sysv" list sysv 4
row "single, against posix" single posix 2.5
row "single, against sysv" single sysv 2.5
row "lists of 16, against cma" list cma 50
row "single, against cma" single cma 50
