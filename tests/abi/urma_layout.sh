#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 120
# The URMA headers say what data/urma_abi_*.csv say, to a C and to a C++ compiler, under both names that programs use
# for them; and every header stands alone.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ "${DRYDOCK_EMULATED:-0}" = 0 ] || { echo "skipped: the compiler here is for another machine"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail=0

# layout LANGUAGE SUFFIX COMPILER FLAG...
layout()
{
    local language=$1 source=$work/layout.$2
    shift 2
    python3 tests/abi/lib/urma_checks.py "$language" >"$source" &&
        "$@" -Iinclude -o "$work/layout" "$source" && "$work/layout" && return
    echo "FAILED: the layout as $1 sees it"
    fail=1
}

# alone COMPILER FLAG...
alone()
{
    (cd include && find ub -name '*.h') | sort | sed 's/.*/#include <&>/' | while read -r line; do
        echo "$line" | "$@" -Wall -Wextra -Werror -fsyntax-only -Iinclude - || echo "$line"
    done >"$work/alone"
    [ -s "$work/alone" ] || return
    echo "FAILED: not for themselves under $*:"
    cat "$work/alone"
    fail=1
}

layout c c "${CC:-cc}" -std=gnu99 -Wall -Wextra -Werror
alone "${CC:-cc}" -x c -std=gnu99
if command -v "${CXX:-c++}" >/dev/null; then
    layout c++ cc "${CXX:-c++}" -Wall -Wextra -Werror -Wno-overflow -Wno-invalid-offsetof
    alone "${CXX:-c++}" -x c++
else
    echo "no C++ compiler: the C++ half is not looked at"
fi
printf 'extern "C" {\n#include "urma_api.h"\n}\nint main() { return URMA_SUCCESS; }\n' >"$work/short.cc"
"${CXX:-c++}" -Iinclude/ub/umdk/urma -fsyntax-only "$work/short.cc" || { echo 'FAILED: "urma_api.h"'; fail=1; }
exit $fail
