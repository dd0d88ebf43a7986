#!/bin/bash
# SPDX-License-Identifier: MIT
# The examples print what the guide says.
. "$(dirname "$0")/lib.sh"

job 2 "$build/examples/shmem/put_signal"
expect "put_signal ends well" 0 $status
expect "put_signal: no stale word either way" \
    "put, fence, flag:      100 messages of 512 words, 0 stale words
put with signal:       100 messages of 512 words, 0 stale words" "$out"

job 3 "$build/examples/shmem/fence_or_quiet"
expect "fence_or_quiet ends well" 0 $status
expect "fence_or_quiet: x is always 1" \
    "fence, and the target looks:                   200 rounds: x was 0 0 times, 1 200 times, 2 0 times
quiet, and a third PE looks:                   200 rounds: x was 0 0 times, 1 200 times, 2 0 times
put_nbi, quiet, and the source is used again:  200 rounds: x was 0 0 times, 1 200 times, 2 0 times" "$out"

job 1 "$build/examples/shmem/put_signal"
expect "one PE is not enough: the status of shmem_global_exit" 2 $status
end_of_test
