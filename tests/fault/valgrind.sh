#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 240
# The device under valgrind: every opcode on every path, no invalid access, nothing leaked.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(cd "${DRYDOCK_BUILD:-build/dev}" && pwd) || exit 1
command -v valgrind >/dev/null || { echo "skipped: not installed: valgrind"; exit 77; }
grep -q 'fsanitize=' "$build/build.ninja" 2>/dev/null && { echo "a sanitizer build does not run under valgrind"; exit 77; }
exec valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,possible \
    "$build/tests/unit/device/move_test"
