#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 240
# The device under valgrind: every opcode on every path, no invalid access, nothing leaked.
. "$(dirname "$0")/valgrind_lib.sh"
exec "${valgrind[@]}" "$build/tests/unit/device/move_test"
