#!/bin/bash
# SPDX-License-Identifier: MIT
# OpenSHMEM of Drydock beside Open MPI's (Debian's packages openmpi-bin and libopenmpi-dev, installed if they are not there)
# in one run, in turn, from one source (bench/peers/oshmem_rows.c): bench/peers_shmem.sh
# Ping-pong, which the distance of the two processors decides, changes turns by the millisecond (bench/peers/oshmem_turns.c).
# DRYDOCK_BUILD names the build (default build/release, made if it is not there), PEERS_RUNS the runs of which the median is
# taken (default 5). PEERS_OSHCC and PEERS_OSHRUN, a compiler and a launcher, add another implementation of the reader's.
# A peer that is not there, or does not end within 60 seconds, has no figure.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${DRYDOCK_BUILD:-$root/build/release}
runs=${PEERS_RUNS:-5}
rows="put_quiet put put_nbi get put_big fetch_add ping_pong barrier"

if [ -z "${DRYDOCK_BUILD:-}" ]; then
    (cd "$root" && cmake --preset release && cmake --build build/release --target face_shmem oshrun -j "$(nproc)") >&2 ||
        exit 1
fi
if ! command -v oshcc >/dev/null; then
    apt-get install -y -q openmpi-bin libopenmpi-dev >&2 || echo "peers: no oshcc: rows of Open MPI stay empty" >&2
fi
work=$(mktemp -d /tmp/drydock-peers-XXXXXX)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >"$work/bound" <<'END'
#!/bin/bash
pes=$1 rank=${DRYDOCK_JOB_RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}}
shift
[ $pes != 2 ] || [ "$(nproc --all)" -lt 2 ] || exec taskset -c $rank "$@"
exec "$@"
END
chmod +x "$work/bound"

# compile NAME COMPILER
compile()
{
    $2 -O2 -o "$work/$1" "$root/bench/peers/oshmem_rows.c" >&2 &&
        $2 -std=gnu11 -O2 -o "$work/$1.turns" "$root/bench/peers/oshmem_turns.c" >&2 || echo "peers: $1: does not build" >&2
}

# launch NAME PES PROGRAM ARGS: lines of rows. Two PEs are bound to a processor each, as Open MPI does by itself. Its 4.1.4
# ends in a crash behind its last line: the lines count.
launch()
{
    local name=$1 pes=$2 launcher
    shift 2
    case $name in
    drydock*) launcher="$build/bin/oshrun" ;;
    openmpi) launcher="oshrun --oversubscribe" ;;
    other) launcher=$PEERS_OSHRUN ;;
    esac
    [ $name != drydock_queue ] || local -x DRYDOCK_SHMEM=queue
    timeout -k 2 60 $launcher -np $pes "$work/bound" $pes "$@" 2>/dev/null </dev/null
}

# take NAME: one run with 2 PEs and one with 8; each line goes into a file of its row.
take()
{
    local pes row value
    for pes in 2 8; do
        launch $1 $pes "$work/$1" |
            while read -r row value; do
                [ $pes = 2 ] || row=barrier8
                echo "$value" >>"$work/$1.$row"
            done
    done
}

# All at once, in turn by themselves.
turns()
{
    local name row value job=0
    : >"$work/turn"
    for name in $names; do
        launch $name 2 "$work/$name.turns" "$work/turn" $job $(wc -w <<<"$names") |
            while read -r row value; do
                echo "$value" >>"$work/$name.$row"
            done &
        job=$((job + 1))
    done
    wait
}

compile drydock "$build/bin/oshcc"
compile drydock_queue "$build/bin/oshcc"
command -v oshcc >/dev/null && compile openmpi "$(command -v oshcc)"
[ -z "${PEERS_OSHCC:-}" ] || compile other "$PEERS_OSHCC"
names=
for name in drydock drydock_queue openmpi other; do
    [ ! -x "$work/$name.turns" ] || names+="$name "
done
for ((i = 0; i < runs; i++)); do
    for name in $names; do
        take $name
    done
    turns
done

median()
{
    sort -n "$work/$1" 2>/dev/null | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

declare -A what=(
    [put_quiet]="8-byte put and quiet" [put]="8-byte put, blocking, one after another" [put_nbi]="8-byte put_nbi, quiet at the end"
    [get]="8-byte get" [put_big]="1 MiB put and quiet" [fetch_add]="fetch_add" [ping_pong]="ping-pong, half a round"
    [barrier]="barrier of 2 PEs" [barrier8]="barrier of 8 PEs")
echo "Load $(cut -d' ' -f1-3 /proc/loadavg) at the end, $(nproc) CPUs; medians of $runs runs. Ratios are the peer's time to ours with stores."
echo "A bare cache line took $(median drydock.ping_pong_bare) ns, half a round, beside ours."
echo
echo "| OpenSHMEM | Drydock | Drydock, all by requests | Open MPI | ratio | other | ratio |"
echo "|---|---|---|---|---|---|---|"
for row in $rows barrier8; do
    ours=$(median "drydock.$row") queue=$(median "drydock_queue.$row") mpi=$(median "openmpi.$row") other=$(median "other.$row")
    awk -v w="${what[$row]}" -v o="$ours" -v q="$queue" -v m="$mpi" -v x="$other" 'BEGIN {
        printf "| %s | %s ns | %s ns | %s | %s | %s | %s |\n", w, o, q, (m ? m " ns" : "-"), (m ? sprintf("%.2f", m / o) : "-"),
            (x ? x " ns" : "-"), (x ? sprintf("%.1f", x / o) : "-") }'
done
