#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600 long-timeout: 1800
# alone: its programs spin on both processors
# Debian's unmodified verbs programs on our library, two processes each: ibv_devices, ibv_devinfo, ibv_rc_pingpong,
# and perftest's write, read, send and atomic tools, each with every option that the tool's own --help offers among
# all sizes, 16 queues, post lists, inline, events, selective signaling and both directions, one by one and together.
# perftest compares no byte: each of its cells is paired with a run of verify_prog, which does the same requests with
# the same options and compares every byte at the target and beside it.
#
# One line per cell: ok or FAILED, the program and its options; at the end the count. A failed cell shows both sides'
# output and the command to run again by hand. MATRIX_ONLY=REGEX runs the cells whose line matches.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(cd "${DRYDOCK_BUILD:-build/dev}" && pwd) || exit 1
drydock=$build/bin/drydock
verify=$build/tests/conform/verify_prog
work=$(mktemp -d) || exit 1
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
device=${DRYDOCK_NAME:-drydock0}
gid=1 # the first IPv4-mapped entry
only=${MATRIX_ONLY:-.}
limit=120
port=$((20000 + $$ % 10000))
passed=0 failed=0 absent=

# As the library of the table of programs counts.
checks=0 failures=0
. tests/conform/programs_lib.sh
row() {
    checks=$((passed + failed)) failures=$failed
    program "$@"
}

command -v ib_write_bw ibv_rc_pingpong >/dev/null || { echo "skipped: not installed: perftest or ibverbs-utils"; exit 77; }

# ---- one cell

now() {
    echo "${EPOCHREALTIME/./}" # microseconds
}

last=$(now)

cell() { # LINE STATUS [FILES...]: counts, and shows what both sides said when it failed
    local took=$((($(now) - last) / 1000))
    last=$(now)
    if [ "$2" = 0 ]; then
        printf 'ok      %-50s %6d ms\n' "$1" $took
        passed=$((passed + 1))
        return
    fi
    echo "FAILED  $1"
    failed=$((failed + 1))
    shift 2
    for file in "$@"; do
        echo "    --- $(basename "$file")"
        sed 's/^/    /' "$file" | tail -25
    done
}

wanted() { # LINE: is it to run? Its time begins here
    last=$(now)
    [[ $1 =~ $only ]]
}

wait_listen() { # PORT PID: until the server listens (it tells nobody), or has ended
    local hex
    hex=$(printf ':%04X' "$1")
    for _ in $(seq 200); do
        grep -qE "^ *[0-9]+: [0-9A-F]+$hex [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null && return
        kill -0 "$2" 2>/dev/null || return
        sleep 0.02
    done
}

pair() { # PROGRAM OPTIONS...: server, then client; status 0 when both ended with 0. Output: $work/server, $work/client
    local server_pid server client
    port=$((port + 1))
    timeout -k 5 $limit "$drydock" run -- "$@" -p $port >"$work/server" 2>&1 &
    server_pid=$!
    wait_listen $port $server_pid
    timeout -k 5 $limit "$drydock" run -- "$@" -p $port 127.0.0.1 >"$work/client" 2>&1
    client=$?
    [ $client = 0 ] || kill $server_pid 2>/dev/null
    wait $server_pid
    server=$?
    printf 'exit status %d\n' $server >>"$work/server"
    printf 'exit status %d\n' $client >>"$work/client"
    [ $server = 0 ] && [ $client = 0 ]
}

complaint='[Cc]ouldn.t|[Ff]ailed|[Ee]rror|[Uu]nable|Completion with|mlx|invalid'

# perftest's table on the client: ROWS rows of numbers, none of them zero where a figure belongs.
table_ok() { # ROWS
    local rows
    grep -qE "$complaint" "$work/client" "$work/server" && return 1
    rows=$(grep -cE '^ [0-9]+ +[0-9]+ +[0-9.]*[1-9][0-9.]* ' "$work/client")
    [ "$rows" -ge "$1" ]
}

perf() { # TOOL ROWS OPTIONS...
    local tool=$1 rows=$2 line status=1
    shift 2
    line="$tool $*"
    wanted "$line" || return 0
    pair "$tool" -d "$device" -x $gid -F "$@" && table_ok "$rows" && status=0
    cell "$line" $status "$work/server" "$work/client"
}

check() { # the data beside it: OP OPTIONS...
    local line="verify $*" status=1
    wanted "$line" || return 0
    timeout -k 5 $limit "$drydock" run -- "$verify" "$@" >"$work/verify" 2>&1 && grep -q 'all right' "$work/verify" &&
        status=0
    cell "$line" $status "$work/verify"
}

# ---- programs without a partner

alone() { # LINE PATTERN PROGRAM...
    local line=$1 pattern=$2 status=1
    shift 2
    wanted "$line" || return 0
    timeout -k 5 $limit "$drydock" run -- "$@" >"$work/alone" 2>&1 && grep -qE "$pattern" "$work/alone" && status=0
    cell "$line" $status "$work/alone"
}

alone "ibv_devices" "^ *$device" ibv_devices
row ibv_devices ibverbs-utils "ibv_devices" "shows drydock0"
alone "ibv_devinfo -v" 'GID\[ *0\]:' ibv_devinfo -v
alone "ibv_devinfo -v: port" 'state:.*PORT_ACTIVE \(4\)' ibv_devinfo -v
alone "ibv_devinfo -d" "hca_id:.*$device" ibv_devinfo -d "$device"
alone "ibv_devinfo -l" "$device" ibv_devinfo -l

row ibv_devinfo ibverbs-utils "ibv_devinfo -v; also -d, -l" "port active"

# ---- ping-pong, contents checked (-c) where the tool can: polling and events

pingpong() { # TOOL OPTIONS...
    local line="$*" status=1 tool=$1
    shift
    wanted "$line" || return 0
    pair "$tool" -d "$device" -g $gid -n 100 "$@" && ! grep -qE "$complaint" "$work/client" "$work/server" &&
        grep -q 'iters in' "$work/client" && grep -q 'iters in' "$work/server" && status=0
    cell "$line" $status "$work/server" "$work/client"
}

for size in 1 64 4096 65536 1048576; do
    pingpong ibv_rc_pingpong -c -s $size
    pingpong ibv_rc_pingpong -c -e -s $size
done
for mode in "" -e; do
    # shellcheck disable=SC2086 # one option or none
    {
        pingpong ibv_uc_pingpong -c $mode
        pingpong ibv_ud_pingpong -c -s 1024 $mode
        pingpong ibv_srq_pingpong -c -q 16 $mode
    }
done

row "ibv_{rc,uc,ud,srq}_pingpong" ibverbs-utils "ibv_rc_pingpong -d drydock0 -g 1 -c [127.0.0.1]; also -e, -s" "data right"

# ---- perftest

# The options that matter here, by what --help says the tool takes.
offers() { # HELP LETTER
    grep -qE "^ +-$2, " <<<"$1"
}

tool_cells() { # TOOL OP
    local tool=$1 op=$2 help count rows=1
    command -v "$tool" >/dev/null || { absent+=" $tool"; return; }
    help=$("$drydock" run -- "$tool" --help 2>&1)
    count="-n 200"
    # shellcheck disable=SC2086 # options are words
    {
        perf "$tool" 1 $count
        check "$op"
        if offers "$help" a; then
            perf "$tool" 23 -a -n 8
            check "$op" -a -n 1
        fi
        if offers "$help" q; then
            perf "$tool" 1 -q 16 $count
            check "$op" -q 16
        fi
        if offers "$help" l; then
            perf "$tool" 1 -l 8 $count
            check "$op" -l 8
        fi
        if offers "$help" I; then
            perf "$tool" 1 -I 64 -s 64 $count
            check "$op" -I 64 -s 64
        fi
        if offers "$help" e; then
            perf "$tool" 1 -e $count
            check "$op" -e
        fi
        if offers "$help" Q; then
            perf "$tool" 1 -Q 4 $count
            check "$op" -l 16 -Q 4
        fi
        if offers "$help" b; then
            perf "$tool" 1 -b $count
            check "$op" -b
        fi
        if offers "$help" q && offers "$help" l; then
            perf "$tool" 1 -q 16 -l 8 $count
            check "$op" -q 16 -l 8
        fi
        if offers "$help" b && offers "$help" e; then
            perf "$tool" 1 -b -e $count
            check "$op" -b -e
        fi
        if offers "$help" a && offers "$help" b; then
            perf "$tool" 23 -a -b -n 5
            check "$op" -a -b -n 1
        fi
    }
}

tool_cells ib_write_bw write
tool_cells ib_write_lat write
tool_cells ib_read_bw read
tool_cells ib_read_lat read
tool_cells ib_send_bw send
tool_cells ib_send_lat send
tool_cells ib_atomic_bw fadd
tool_cells ib_atomic_lat fadd
for kind in FETCH_AND_ADD CMP_AND_SWAP; do
    perf ib_atomic_bw 1 -A $kind -n 200
    perf ib_atomic_lat 1 -A $kind -n 200
done
# Events that nothing stands behind (C32).
DRYDOCK_EVENTS=noisy perf ib_send_lat 1 -e -n 100
row "perftest, RC" perftest "ib_{write,read,send,atomic}_{bw,lat} -d drydock0 -x 1 -F [127.0.0.1]; also -a, -q, -l, -I, -e, -Q, -b, -A" \
    "runs; the same requests checked byte by byte beside it"
# The other services, and posting through the ibv_wr_* builders, which perftest uses on a part it knows.
perf ib_write_bw 1 -c UC -n 200
perf ib_send_bw 1 -c UC -n 200
perf ib_send_bw 1 -c UD -s 1024 -n 200
perf ib_send_lat 1 -c UD -s 64 -n 200
row "perftest, UC and UD" perftest "ib_{write,send}_bw -c UC; ib_send_{bw,lat} -c UD" "runs"
builders() {
    wanted "$* (builders)" || return 0
    local status=1
    DRYDOCK_PROFILE=mlx5 pair "$@" -d "$device" -x $gid -F -n 200 && table_ok 1 &&
        grep -q 'ibv_wr\* API *: ON' "$work/client" && status=0
    cell "$* (builders)" $status "$work/server" "$work/client"
}
builders ib_write_bw -q 4 -l 4
builders ib_read_bw
builders ib_send_bw -b
builders ib_send_lat -I 64
builders ib_atomic_bw
row "perftest, ibv_wr_* builders" perftest "DRYDOCK_PROFILE=mlx5: ib_{write,read,send,atomic}_bw" "runs"
check cas -q 16 -l 8
check write_imm -q 16 -l 8 -s 1000
check send_imm -b -e -l 4 -s 1000

echo "$passed cells passed, $failed failed"
[ $failed = 0 ] && [ -n "$absent" ] && { echo "skipped: not installed:$absent"; exit 77; }
[ $failed = 0 ] && [ $passed -gt 0 ]
