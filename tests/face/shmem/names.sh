#!/bin/bash
# SPDX-License-Identifier: MIT
# Every name of OpenSHMEM 1.0 to 1.6 that the list beside this test has is declared, links, and has its p twin; the C11
# generics choose by type; a program of another implementation's time finds its header and its library.
. "$(dirname "$0")/lib.sh"
again="scripts/run-one tests/face/shmem/names.sh"
list=$root/tests/face/shmem/data/oshmem_names.txt
lib=$build/lib
out=
err=

# Libraries that were built with a sanitizer are not for a program without.
! ldd "$build/bin/oshrun" | grep -qE 'lib[at]san' || { echo "skipped: built with a sanitizer"; exit 77; }

# A table of all functions: declared, or it does not compile; exported, or it does not link.
for prefix in "" p; do
    {
        echo '#include <pshmem.h>'
        echo 'void *const table[] = {'
        sed "s/.*/    (void *)$prefix&,/" "$list"
        echo '};'
        echo 'int main(void) { return table[0] == 0; }'
    } >"$work/all.c"
    err=$("$build/bin/oshcc" -std=gnu11 -w -o "$work/all" "$work/all.c" 2>&1)
    expect "all $(wc -l <"$list") names ${prefix:+with p}" "0 " "$? $(head -3 <<<"$err")"
done

cat >"$work/old.c" <<'END'
#include <mpp/shmem.h>
#include <stdio.h>
static long sync[_SHMEM_BARRIER_SYNC_SIZE];
int main(void)
{
    start_pes(0);
    long *p = shmalloc(sizeof *p);
    *p = 0;
    shmem_barrier(0, 0, _num_pes(), sync);
    shmem_long_inc(p, 0);
    shmem_barrier_all();
    if (_my_pe() == 0)
        printf("%ld %d\n", *p, _SHMEM_SYNC_VALUE == sync[0]);
    shfree(p);
    return 0;
}
END
err=$("$build/bin/oshcc" -std=c99 -o "$work/old" "$work/old.c" -loshmem 2>&1)
expect "a program of 1.0 builds as C99, with -loshmem" "0 " "$? $err"
job 3 "$work/old"
expect "a program of 1.0 runs" "0 3 1" "$status $out"

# A tool puts itself before shmem_long_put and calls on through pshmem_long_put.
cat >"$work/tool.c" <<'END'
#include <pshmem.h>
#include <stdio.h>
static long x;
static int calls;
void shmem_long_put(long *dest, const long *source, size_t nelems, int pe)
{
    calls++;
    pshmem_long_put(dest, source, nelems, pe);
}
int main(void)
{
    long one = 1;
    shmem_init();
    shmem_put(&x, &one, 1, shmem_my_pe());
    shmem_quiet();
    printf("%d %ld\n", calls, x);
    shmem_finalize();
    return 0;
}
END
err=$("$build/bin/oshcc" -o "$work/tool" "$work/tool.c" 2>&1)
expect "a tool builds" "0 " "$? $err"
job 1 "$work/tool"
expect "a tool is called, and the put is done" "0 1 1" "$status $out"

cat >"$work/plus.cc" <<'END'
#include <shmem.h>
int main()
{
    shmem_init();
    long *p = static_cast<long *>(shmem_calloc(1, sizeof(long)));
    shmem_long_atomic_add(p, 2, shmem_my_pe());
    int bad = shmem_long_atomic_fetch(p, shmem_my_pe()) != 2;
    shmem_finalize();
    return bad;
}
END
err=$("$build/bin/oshc++" -o "$work/plus" "$work/plus.cc" 2>&1)
expect "a C++ program builds" "0 " "$? $err"
job 2 "$work/plus"
expect "a C++ program runs" 0 $status
end_of_test
