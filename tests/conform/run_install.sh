#!/bin/bash
# SPDX-License-Identifier: MIT
# An installation stands by itself: unmodified programs run from it, wherever it was moved to, and its headers
# and libraries build programs.
# timeout: 60
. "$(dirname "$0")/run_lib.sh"

grep -q 'DOCK_SANITIZE:STRING=.\+' "$build/CMakeCache.txt" &&
    skip "programs that are not instrumented cannot load these libraries"
cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || { tail -5 "$work/log"; exit 1; }
mv "$work/first" "$work/moved"
bin=$work/moved/bin
lib=$work/moved/lib/drydock

expect "the libraries stand in a directory of their own" "drydock" "$(ls "$work/moved/lib")"
expect "no library needs the build directory" 0 "$(readelf -d "$lib"/*.so.* | grep -c "$build")"
expect "drydock info finds them" 1 "$("$bin/drydock" info | grep -c "$lib")"
if command -v ibv_devices >/dev/null; then
    expect_words "Debian's ibv_devices lists the device" drydock0 "$("$bin/drydock" run -- ibv_devices 2>&1)"
fi
cat >"$work/hello.c" <<'C'
#include <shmem.h>
#include <stdio.h>

int main(void)
{
    shmem_init();
    printf("PE %d of %d\n", shmem_my_pe(), shmem_n_pes());
    shmem_finalize();
    return 0;
}
C
"$bin/oshcc" -o "$work/hello" "$work/hello.c" >"$work/log" 2>&1
expect "oshcc builds from the installed header" 0 $?
expect "with the installed library" 1 "$(ldd "$work/hello" | grep -c "$lib/libshmem")"
expect "oshrun runs it" "PE 0 of 2 PE 1 of 2" "$("$bin/oshrun" -n 2 "$work/hello" 2>/dev/null | sort | xargs)"
expect "the manual pages are there" 2 "$(find "$work/moved" -name 'drydock*.1' | wc -l)"
end_of_test
