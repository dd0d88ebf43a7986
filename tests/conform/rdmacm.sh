#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# Debian's unmodified rdma_cm programs between two processes: each ends with 0, says that it worked, and where it
# compares or prints data, the data is right. RDMACM_ONLY=REGEX runs the lines that match.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/conform/run_lib.sh
. tests/conform/rdmacm_lib.sh
. tests/conform/programs_lib.sh

command -v rping ucmatose >/dev/null || skip "not installed: rdmacm-utils"

# ---- rping: READs, WRITEs and SENDs both ways, each ping compared (-V) and shown (-v)

rping() { # ADDRESS PORT OPTIONS...
    local address=$1 port=$2 line="rping $*" status=1
    shift 2
    wanted "$line" || return 0
    pair "$port" '[tT]' "rping -s -a $address -p $port -v -V -C 10 $*" "rping -c -a $address -p $port -v -V -C 10 $*" &&
        says client '^ping data: rdma-ping-[0-9]+: ' 10 && says server '^server ping data: rdma-ping-9: JKLMNOP' &&
        says client '^ping data: rdma-ping-9: JKLMNOP' && status=0
    cell "$line" $status
}

rping 127.0.0.1 7174
rping "$local_ip" 7175 -S 4096
rping 127.0.0.1 7176 -q
rping ::1 7177
DRYDOCK_EVENTS=noisy rping 127.0.0.1 7180

# The persistent server takes one client after the other.
persistent() {
    local line="rping -s -P: three clients, one after the other" status=0 server
    wanted "$line" || return 0
    timeout -k 5 "$limit" "$drydock" run -- rping -s -P -a 127.0.0.1 -p 7178 -v -V >"$work/server" 2>&1 &
    server=$!
    wait_listener 7178 t $server
    for _ in 1 2 3; do
        timeout -k 5 "$limit" "$drydock" run -- rping -c -a 127.0.0.1 -p 7178 -v -V -C 5 >"$work/client" 2>&1 &&
            says client '^ping data: rdma-ping-4: EFGH' || status=1
    done
    kill -0 $server 2>/dev/null || status=1
    kill $server 2>/dev/null
    wait $server 2>/dev/null
    cell "$line" $status
}
persistent
program rping rdmacm-utils "rping -s (-c) -a ADDRESS -v -V; also -q, -S, ::1, -s -P" "data right"

# ---- ucmatose: several connections at once, transfers both ways, disconnects

ucmatose() { # LINE-OPTIONS PORT SERVER-ADDRESS-OPTIONS CLIENT-ADDRESS
    local line="ucmatose $1 $3" status=1
    wanted "$line" || return 0
    pair "$2" '[tT]' "ucmatose $1 -p $2 $3" "ucmatose $1 -p $2 -s $4" && says client 'return status 0' &&
        says server 'return status 0' && says client 'data transfers complete' && says server 'disconnected' && status=0
    cell "$line" $status
}

ucmatose "-c 4 -C 100 -S 1024" 7471 "-b 127.0.0.1" 127.0.0.1
ucmatose "-m -c 4 -C 10 -S 65536" 7472 "-b 127.0.0.1" 127.0.0.1
ucmatose "-c 30 -C 2 -S 64" 7473 "" "$local_ip"
ucmatose "-f ip6 -c 2" 7474 "-b ::1" ::1

program ucmatose rdmacm-utils "ucmatose -c 4 -C 100 -S 1024 -b (-s) ADDRESS; also -m, -f ip6" "runs"

# ---- the synchronous calls, and many connections

simple() { # LINE PORT LETTER SERVER CLIENT WORDS-OF-CLIENT [keep]
    local status=1
    wanted "$1" || return 0
    pair "$2" "$3" "$4" "$5" "${7:-}" && says client "$6" && status=0
    cell "$1" $status
}

simple rdma_server 7475 t "rdma_server -s 127.0.0.1 -p 7475" "rdma_client -s 127.0.0.1 -p 7475" 'rdma_client: end 0'
program "rdma_server, rdma_client" rdmacm-utils "rdma_server (rdma_client) -s ADDRESS" "runs"

# Its client sends inline without having asked for it: an adapter that gives more than was asked for takes that.
export DRYDOCK_PROFILE=rxe
simple "rdma_xserver -c r" 7471 '[tT]' "rdma_xserver -c r" "rdma_xclient -s 127.0.0.1 -c r" 'rdma_xclient: end 0'
simple "rdma_xserver -c x" 7477 '[iIbB]' "rdma_xserver -p 7477 -c x" "rdma_xclient -s 127.0.0.1 -p 7477 -c x" \
    'rdma_xclient: end 0'
unset DRYDOCK_PROFILE
program "rdma_xserver, rdma_xclient" rdmacm-utils \
    "DRYDOCK_PROFILE=rxe: rdma_xserver (rdma_xclient -s ADDRESS) -c r; also -c x" "runs"

simple cmtime 7476 t "cmtime -b 127.0.0.1 -p 7476" "cmtime -s 127.0.0.1 -p 7476 -c 100" '^destroy' keep

program cmtime rdmacm-utils "cmtime -b ADDRESS; cmtime -s ADDRESS -c 100" "runs"

# ---- a file through an rsocket

copies() {
    local status=1
    wanted rcopy || return 0
    head -c 3000001 /dev/urandom >"$work/file"
    pair 7427 '[tT]' rcopy "rcopy $work/file 127.0.0.1:$work/copy" keep && cmp "$work/file" "$work/copy" && status=0
    cell rcopy $status
}
copies
program rcopy rdmacm-utils "rcopy; rcopy FILE ADDRESS:FILE" "data right"

# ---- datagrams: look-ups, and groups

datagrams() { # OPTIONS...; udaddy's port is always the same
    local line="udaddy $*" status=1
    wanted "$line" || return 0
    pair 7174 '[uU]' "udaddy -b 127.0.0.1 $*" "udaddy -s 127.0.0.1 $*" &&
        says client 'return status 0' && says server 'return status 0' && says client 'data transfers complete' && status=0
    cell "$line" $status
}
datagrams -c 1 -C 10 -S 512
datagrams -c 3 -C 20 -S 1024
program udaddy rdmacm-utils "udaddy -b (-s) ADDRESS -c 3 -C 20 -S 1024" "runs"

# The receiver says when it has joined, with its receives posted; what is sent before that is not for it. It ends when it
# has ten messages. The sender destroys its queue pair right after posting them.
group() {
    local line="mckey" status=1 receiver
    wanted "$line" || return 0
    timeout -k 5 "$limit" stdbuf -oL "$drydock" run -- mckey -b "$local_ip" -m 239.1.1.1 -C 10 >"$work/server" 2>&1 &
    receiver=$!
    for _ in $(seq 500); do
        grep -q 'joined dgid' "$work/server" && break
        sleep 0.02
    done
    timeout -k 5 "$limit" "$drydock" run -- mckey -b "$local_ip" -m 239.1.1.1 -s -C 10 >"$work/client" 2>&1
    for _ in $(seq 500); do
        kill -0 $receiver 2>/dev/null || break
        sleep 0.02
    done
    kill $receiver 2>/dev/null
    wait $receiver && says client 'return status 0' && says server 'return status 0' &&
        says server 'joined dgid: ::ffff:239.1.1.1' && status=0
    cell "$line" $status
}
group
program mckey rdmacm-utils "mckey -b ADDRESS -m 239.1.1.1 [-s]" "runs"

# ---- rsockets: streams in the three ways of waiting, writes into mapped memory, every byte verified

stream() { # TOOL PORT OPTIONS...
    local tool=$1 port=$2 line="$1 ${*:3} -T v" status=1
    shift 2
    wanted "$line" || return 0
    pair "$port" '[tT]' "$tool -b 127.0.0.1 -p $port $* -T v" "$tool -s 127.0.0.1 -p $port $* -T v" &&
        says client '^custom ' && says server '^custom ' && ! says client 'verify' && ! says server 'verify' && status=0
    cell "$line" $status
}
stream rstream 7490 -S 1000000 -I 3 -C 2 -T b
stream rstream 7491 -S 1024 -I 5 -C 10 -T a
stream rstream 7492 -S 5000 -I 5 -C 10
stream rstream 7493 -S 65536 -I 5 -C 10 -T r -T b
program rstream rdmacm-utils "rstream -b (-s) ADDRESS -T v; also -T a, b, r" "data right"
stream riostream 7494 -S 65536 -I 5 -C 5 -T b

program riostream rdmacm-utils "riostream -b (-s) ADDRESS -T v" "data right"

# ---- rsockets: datagrams. The server never ends; the client sends again what was lost, and tells each test it ended.

datagram_stream() { # PORT OPTIONS...
    local port=$1 line="udpong ${*:2}" status=1
    shift
    wanted "$line" || return 0
    pair "$port" '[dD]' "udpong -b 127.0.0.1 -p $port $*" "udpong -s 127.0.0.1 -p $port $*" keep &&
        says client '^custom .* [0-9.]+s +[0-9.]+ +[0-9.]+$' && status=0
    cell "$line" $status
}
datagram_stream 7495 -C 100 -S 2000 -T e
datagram_stream 7496 -C 100 -S 64 -T a -T b
program udpong rdmacm-utils "udpong -b (-s) ADDRESS -C 100 -S 2000 -T e; also -T a, b" "runs"

# ---- a program of plain sockets, over rsockets by rdma-core's preload library

iperf() { # OPTIONS...; what is under way when its time is up it does not count
    local line="iperf3 $*" status=1 rspreload
    rspreload=$(compgen -G "/usr/lib/*/rsocket/librspreload.so.1" | head -n 1)
    wanted "$line" || return 0
    LD_PRELOAD="$rspreload ${LD_PRELOAD:-}" DRYDOCK_LOG=info pair 7497 t "iperf3 -s -1 -p 7497" "iperf3 -c $local_ip -p 7497 -n 32M $*" &&
        says client 'sec +3[0-9.]+ MBytes .* receiver$' && says client '^iperf Done' &&
        [ "$(bytes_out client server)" -ge 32000000 ] && status=0 # rsockets may have left it to the kernel
    cell "$line" $status
}
iperf
iperf -R
program iperf3 iperf3 "LD_PRELOAD=librspreload.so.1 iperf3 -s; iperf3 -c ADDRESS; also -R" "runs"

# ---- uDAPL, an interface above both, and its own test programs

udapl() { # TOOL WORDS OPTIONS...
    local line="$1 ${*:3}" status=1
    wanted "$line" || return 0
    echo "drydock u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"$local_ip 0\" \"\"" >"$work/dat.conf"
    DAT_OVERRIDE=$work/dat.conf pair 45248 t "$1 -P drydock ${*:3}" "$1 -P drydock -h $local_ip ${*:3}" &&
        says client "$2" && says server "$2" && status=0
    cell "$line" $status
}
udapl dtest 'DAPL Test Complete. PASSED' -D -b 65536
udapl dtest 'DAPL Test Complete. PASSED' -D -b 4096 -p
udapl dtestsrq 'DAPL RC SRQ Test Complete.'
program uDAPL dapl2-utils "dtest -P NAME -D [-h ADDRESS], dtestsrq, with libdaplofa in dat.conf" "data right"

# ---- perftest, which finds its peer by rdma_cm with -R

perf() { # TOOL OPTIONS...
    local line="$* -R" status=1
    wanted "$line" || return 0
    port=$((port + 1))
    pair $port t "$* -R -F -p $port" "$* -R -F -p $port $local_ip" && says client '^ [0-9]+ +[0-9]+ +[0-9.]*[1-9]' &&
        status=0
    cell "$line" $status
}

port=18500
perf ib_write_bw -q 4 -n 100
perf ib_write_lat -n 100
perf ib_read_bw -n 100
perf ib_read_lat -n 100
perf ib_send_bw -b -n 100
perf ib_send_lat -n 100
perf ib_send_bw -c UD -s 1024 -n 100
perf ib_atomic_bw -n 100
perf ib_atomic_lat -n 100
program "perftest by rdma_cm" perftest "ib_{write,read,send,atomic}_{bw,lat} -R [ADDRESS]" "runs"

end_of_test
