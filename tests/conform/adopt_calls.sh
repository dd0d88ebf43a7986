#!/bin/sh
# SPDX-License-Identifier: MIT
# timeout: 300
# What a program does to memory while it is registered (tests/conform/adopt_calls_prog.c), with glibc's allocator
# and with jemalloc, which clears by madvise, here with one arena for all threads and no caches of theirs; with
# the edges of regions adopted and without.
set -u
build=${DRYDOCK_BUILD:-build/dev}
prog=$build/tests/conform/adopt_calls_prog
export DRYDOCK_DIR
DRYDOCK_DIR=$(mktemp -d)
trap 'rm -rf "$DRYDOCK_DIR"' EXIT
rounds=150
[ -n "${DRYDOCK_LONG:-}" ] && rounds=100000
[ -x "$prog" ] || { echo "no $prog: build it first"; exit 77; }

run() { # NAME MODE [PRELOAD]
    out=$(DRYDOCK_ADOPT=$2 LD_PRELOAD=${3:-} MALLOC_CONF=tcache:false,narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0 \
        "$build/bin/drydock" run "$prog" $rounds 2>&1)
    status=$?
    if [ $status = 77 ]; then
        echo "$out"
        exit 77
    fi
    if [ $status != 0 ]; then
        echo "$out"
        echo "$1, DRYDOCK_ADOPT=$2: exit status $status, expected 0"
        exit 1
    fi
    echo "$1, DRYDOCK_ADOPT=$2: $out"
}

run glibc inner
run glibc on
for jemalloc in /usr/lib/*-linux-gnu/libjemalloc.so.2; do
    [ -e "$jemalloc" ] || { echo "jemalloc is not there: not tried"; continue; }
    grep -q fsanitize "$build/build.ninja" && continue # two allocators that replace malloc
    run jemalloc inner "$jemalloc"
done
