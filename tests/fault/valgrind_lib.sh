# SPDX-License-Identifier: MIT
# Sourced by the scripts beside it: "${valgrind[@]}" PROGRAM ends with 9 where it touched what it may not, or lost
# memory. What a program itself keeps until it ends can be reached, and is no error.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=$(cd "${DRYDOCK_BUILD:-build/dev}" && pwd) || exit 1
command -v valgrind >/dev/null || { echo "skipped: not installed: valgrind"; exit 77; }
grep -q 'fsanitize=' "$build/build.ninja" 2>/dev/null && { echo "a sanitizer build does not run under valgrind"; exit 77; }
[ "${DRYDOCK_EMULATED:-0}" = 0 ] || { echo "skipped: valgrind is of another processor"; exit 77; }
# It runs one thread at a time: one that polls must not be given the turn again and again, with the device's thread waiting.
valgrind=(valgrind -q --fair-sched=try --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,possible)
