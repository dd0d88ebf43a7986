#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 900
# Each ordering pair of the device as a small model (spin), under all the delays and reorderings that C11 allows: the
# model holds as written, and each of its switches, which takes one ordering or one check away, makes it fail.
#     tests/models/models.sh [MODEL...]
set -u
here=$(cd "$(dirname "$0")" && pwd)
cc=$(command -v tcc || echo gcc) # the search is short: what counts is how long its program takes to compile
for tool in spin "$cc"; do
    command -v $tool >/dev/null || { echo "skipped: not installed: $tool"; exit 77; }
done
[ "${DRYDOCK_EMULATED:-0}" = 0 ] || { echo "skipped: a model does not depend on the machine"; exit 77; }
work=$(mktemp -d /tmp/drydock-models-XXXXXX)
trap 'rm -rf "$work"' EXIT
at_once=$((($(nproc) + 1) / 2)) # another test has the rest
failures=0
checks=0

# explore MODEL [SWITCH]: "holds", "fails", or what went wrong. Stack and table are small: clearing larger ones took
# longer than the search. One that is too small says so, and the table only gets slow.
explore()
{
    local dir=$work/$1-${2:-whole}
    mkdir "$dir" && cd "$dir" || return
    spin ${2:+-D$2} -a "$here/$1.pml" >log 2>&1 || { echo "spin: $(head -n 1 log)"; return; }
    "$cc" -w -DSAFETY -DVECTORSZ=4096 -o pan pan.c >log 2>&1 || { echo "$cc: $(head -n 1 log)"; return; }
    ./pan -m20000 -w18 -n >log 2>&1
    if grep -q 'search depth too small\|out of memory\|error: ' log; then
        grep -m 1 'search depth too small\|out of memory\|error: ' log
    elif grep -q 'errors: 0$' log; then
        echo holds
    elif grep -q '^pan:1: invalid end state\|^pan:1: assertion violated' log; then
        echo fails
    else
        tail -n 1 log
    fi
}

# begin MODEL [SWITCH]: explore it beside the others, as many as may be at once.
begin()
{
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do
        wait -n
    done
    explore "$@" >"$work/$1-${2:-whole}.result" &
}

expect()
{
    local got
    got=$(cat "$work/$2-${3:-whole}.result")
    checks=$((checks + 1))
    [ "$got" = "$1" ] && return
    failures=$((failures + 1))
    printf 'FAILED %s\n  expected: %s\n  got:      %s\n  again: tests/models/models.sh %s\n' "$2${3:+ with $3}" "$1" "$got" "$2"
}

switches_of()
{
    sed -n 's/^ \* switches: //p' "$here/$1.pml"
}

[ $# -gt 0 ] || set -- $(cd "$here" && grep -l '^ \* switches: ' ./*.pml | sed 's|^\./||; s|\.pml$||')
for model in "$@"; do
    begin "$model"
    for switch in $(switches_of "$model"); do
        begin "$model" "$switch"
    done
done
wait
for model in "$@"; do
    before=$failures
    expect holds "$model"
    for switch in $(switches_of "$model"); do
        expect fails "$model" "$switch"
    done
    [ $failures = "$before" ] && echo "$model: holds; without one of: $(echo $(switches_of "$model")): fails"
done
echo "$checks explorations, $failures not as expected"
[ $failures = 0 ]
