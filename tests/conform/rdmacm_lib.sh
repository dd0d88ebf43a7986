# SPDX-License-Identifier: MIT
# Two processes that find each other by rdma_cm under `drydock run`. Source it after run_lib.sh. A runtime directory of
# the test's own, so that its ports are nobody else's.

export DRYDOCK_DIR=$work/cm
mkdir -m 700 "$DRYDOCK_DIR"
limit=${RDMACM_LIMIT:-120}
only=${RDMACM_ONLY:-.}
command -v ip >/dev/null || absent ip
local_ip=$(ip -4 -o addr show scope global 2>/dev/null | awk '{ split($4, a, "/"); print a[1]; exit }')
local_ip=${local_ip:-127.0.0.1}

# A listener of port $1 (space letter $2) is there when its socket is; letter `tcp`: a socket of the kernel's.
wait_listener() { # PORT LETTER PID
    local name
    name=$(printf '%s%04x' "$2" "$1")
    for _ in $(seq 500); do
        if [ "$2" = tcp ]; then
            listening "$1" && return
        elif compgen -G "$DRYDOCK_DIR/$name*" >/dev/null; then
            return
        fi
        kill -0 "$3" 2>/dev/null || return
        sleep 0.02
    done
}

# pair PORT LETTER "SERVER COMMAND" "CLIENT COMMAND" [keep]: runs both; with `keep` the server is one that never ends and
# is ended here. Both outputs end with their exit status.
pair() {
    local server_pid server client
    # What a listener that was ended by a signal left behind is no sign of the next one.
    # shellcheck disable=SC2086 # the letter may be a pattern
    [ "$2" = tcp ] || rm -f "$DRYDOCK_DIR"/$2"$(printf '%04x' "$1")"*
    # shellcheck disable=SC2086 # commands are words
    timeout -k 5 "$limit" "$drydock" run -- $3 >"$work/server" 2>&1 &
    server_pid=$!
    wait_listener "$1" "$2" $server_pid
    # shellcheck disable=SC2086
    timeout -k 5 "$limit" "$drydock" run -- $4 >"$work/client" 2>&1
    client=$?
    [ "${5:-}" = keep ] || [ $client != 0 ] && kill $server_pid 2>/dev/null
    wait $server_pid
    server=$?
    [ "${5:-}" = keep ] && [ $client = 0 ] && server=0
    printf 'exit status %d\n' $server >>"$work/server"
    printf 'exit status %d\n' $client >>"$work/client"
    [ $server = 0 ] && [ $client = 0 ]
}

# cell LINE STATUS: counts it and shows what both said when it failed.
cell() {
    checks=$((checks + 1))
    if [ "$2" = 0 ]; then
        echo "ok      $1"
        return
    fi
    failures=$((failures + 1))
    echo "FAILED  $1"
    for side in server client; do
        echo "    --- $side"
        sed 's/^/    /' "$work/$side" | tail -15
    done
}

wanted() { # LINE, and the program is there
    [[ $1 =~ $only ]] || return 1
    command -v "${1%% *}" >/dev/null || { absent "${1%% *}"; return 1; }
}

says() { # SIDE REGEX [COUNT]: at least so many lines
    [ "$(grep -cE -- "$2" "$work/$1")" -ge "${3:-1}" ]
}

bytes_out() { # SIDE...: of all queues that ended, as DRYDOCK_LOG=info has them said
    local side
    for side in "$@"; do cat "$work/$side"; done |
        awk '/ queue .* ends: / { for (i = 2; i <= NF; i++) if ($i == "out," && $(i - 1) == "bytes") n += $(i - 2) }
            END { print n + 0 }'
}
