#!/bin/bash
# SPDX-License-Identifier: MIT
# What the URMA examples print is what they promise: each of them is run as a person would, and every line is looked at.
. "$(dirname "$0")/run_lib.sh"

[ -e "$build/lib/liburma.so.0" ] || skip "$build/lib/liburma.so.0 is not built"
[ -x "$build/examples/urma/write_read" ] || skip "the examples are not built"

run_example()
{
    timeout 60 "$drydock" run "$build/examples/urma/$1" 2>"$work/stderr"
    status=$?
    [ $status = 0 ] || cat "$work/stderr"
    return $status
}

got=$(run_example write_read)
expect "write_read ends well" 0 $?
expect "write_read: what both processes saw" \
    'child:  my memory:  "written by the parent"
parent: READ done:  "written by the parent"
parent: WRITE done: "written by the parent"' "$(sort <<<"$got")"

# The guide prints that, and names programs that are there, in both languages.
for guide in "$(dirname "$0")"/../../docs/guide{,/zh-CN}; do
    expect "$guide/2-write-read.md prints what the program prints" "$(sort <<<"$got")" \
        "$(sed -nE 's/^    ((parent|child): .*)/\1/p' $guide/2-write-read.md | sort)"
    programs=$(sed -nE 's/^    run (examples[^ ]*).*/\1/p' $guide/[123]-*.md)
    expect "$guide: the programs of parts 1 to 3" "write_read completion who_may_write" \
        "$(for p in $programs; do [ -x "$build/$p" ] && basename "$p"; done | xargs)"
done

got=$(run_example completion)
expect "completion ends well" 0 $?
expect "completion: the six situations" \
    '1. eight WRITEs posted; completions by user_ctx: 0 1 2 3 4 5 6 7
   landed: 8 of 8
2. a list of six, the fourth is wrong: bad_wr is request 3
   completed: 0
   completed: 1
   completed: 2
   landed: 3 of 6
   posted again from bad_wr on: landed 6 of 6
3. eight WRITEs, every fourth completes: CR 3 covers 0 to 3, CR 7 covers 4 to 7
   further CRs: 0, landed: 8 of 8
4. 128 WRITEs through a queue of 16: the queue was full more than once, landed: 128 of 128
5. READ: after its completion the buffer holds 4711
6. by event: 1 JFC fired, its completion is 6' "$got"

got=$(run_example who_may_write)
expect "who_may_write ends well" 0 $?
expect "who_may_write: the four kinds" \
    '1. filled while the device consumed: 2000 posted, 2000 completed
2. unfinished at once in one queue: 64, its depth is 64
3. 4 threads on one locked jetty: 8000 WRITEs completed, 4 of 4 words landed
4. 4 threads on lock_free jettys of their own: 8000 WRITEs completed, 4 of 4 words landed' "$got"

end_of_test
