#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 400
# URMA under valgrind: each operation, the life of each object, and two processes, of which both are watched.
. "$(dirname "$0")/valgrind_lib.sh"
for program in data_test life_test two_processes_test; do
    "${valgrind[@]}" "$build/tests/face/urma/$program" || exit 1
done
