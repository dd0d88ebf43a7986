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

# Each group of overloads by its types, without and with a context.
cat >"$work/overloads.cc" <<'END'
#include <shmem.h>
#include <cstdio>
static int me, n, bad;
static void must(bool good, const char *what)
{
    if (!good)
        std::printf("FAILED %s\n", what), bad++;
}
template <class T> static void moves(shmem_ctx_t c)
{
    T *p = static_cast<T *>(shmem_calloc(8, sizeof(T))), here[4] = {1, 2, 3, 4}, got[4] = {};
    int next = (me + 1) % n;
    shmem_put(p, here, 2, next);
    shmem_put_nbi(c, p + 2, here + 2, 2, next);
    shmem_ctx_quiet(c);
    shmem_barrier_all();
    must(p[0] == T(1) && p[1] == T(2) && p[2] == T(3) && p[3] == T(4), "put");
    shmem_barrier_all();
    shmem_p(c, p, T(7), next);
    shmem_iput(p + 4, here, 1, 2, 2, next);
    shmem_barrier_all();
    must(shmem_g(p, me) == T(7) && p[4] == T(1) && p[5] == T(3), "p, g, iput");
    shmem_get(c, got, p, 2, next);
    must(got[0] == T(7) && got[1] == T(2), "get");
    must(shmem_broadcast(SHMEM_TEAM_WORLD, p + 6, p, 1, 0) == 0 && p[6] == T(7), "broadcast");
    must(shmem_max_reduce(SHMEM_TEAM_WORLD, p + 7, p + 1, 1) == 0 && p[7] == T(2), "max_reduce");
    must(shmem_sum_reduce(SHMEM_TEAM_WORLD, p + 7, p + 1, 1) == 0 && p[7] == T(2 * n), "sum_reduce");
    shmem_free(p);
}
template <class T> static void words(shmem_ctx_t c)
{
    T *p = static_cast<T *>(shmem_calloc(2, sizeof(T)));
    shmem_atomic_add(p, T(2), me);
    must(shmem_atomic_fetch_inc(c, p, me) == T(2) && shmem_atomic_swap(p, T(9), me) == T(3), "add, inc, swap");
    must(shmem_atomic_compare_swap(c, p, T(9), T(5), me) == T(9) && shmem_atomic_fetch(p, me) == T(5), "cswap");
    shmem_wait_until(p, SHMEM_CMP_EQ, T(5));
    must(shmem_test(p, SHMEM_CMP_EQ, T(5)) && shmem_test_any(p, 2, nullptr, SHMEM_CMP_EQ, T(0)) == 1, "test");
    shmem_free(p);
}
template <class T> static void old_add()
{
    T *p = static_cast<T *>(shmem_calloc(1, sizeof(T)));
    shmem_add(p, T(2), me), shmem_inc(p, me);
    must(shmem_fadd(p, T(2), me) == T(3) && shmem_finc(p, me) == T(5) && shmem_cswap(p, T(6), T(7), me) == T(6), "old add");
    shmem_free(p);
}
template <class T> static void old_swap()
{
    T *p = static_cast<T *>(shmem_calloc(1, sizeof(T)));
    shmem_set(p, T(4), me);
    must(shmem_swap(p, T(0), me) == T(4) && shmem_fetch(p, me) == T(0), "old set, swap, fetch");
    shmem_free(p);
}
template <class T> static void bits(shmem_ctx_t c)
{
    T *p = static_cast<T *>(shmem_calloc(2, sizeof(T)));
    shmem_atomic_or(p, T(6), me);
    must(shmem_atomic_fetch_and(c, p, T(3), me) == T(6) && shmem_atomic_fetch_xor(p, T(1), me) == T(2), "bits");
    must(shmem_or_reduce(SHMEM_TEAM_WORLD, p + 1, p, 1) == 0 && p[1] == T(3), "or_reduce");
    shmem_free(p);
}
int main()
{
    shmem_ctx_t c;
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    shmem_ctx_create(0, &c);
    moves<char>(c), moves<signed char>(c), moves<unsigned char>(c), moves<short>(c), moves<unsigned short>(c);
    moves<int>(c), moves<unsigned>(c), moves<long>(c), moves<unsigned long>(c), moves<long long>(c);
    moves<unsigned long long>(c), moves<float>(c), moves<double>(c), moves<long double>(c), moves<size_t>(c);
    words<int>(c), words<unsigned>(c), words<long>(c), words<unsigned long>(c), words<long long>(c);
    words<unsigned long long>(c), words<int32_t>(c), words<ptrdiff_t>(c);
    bits<int>(c), bits<unsigned>(c), bits<long>(c), bits<unsigned long>(c), bits<unsigned long long>(c);
    old_add<int>(), old_add<long>(), old_add<long long>(), old_swap<int>(), old_swap<long>(), old_swap<long long>();
    old_swap<float>(), old_swap<double>();
    must(shmem_sync(SHMEM_TEAM_WORLD) == 0, "sync");
    shmem_finalize();
    return bad;
}
END
# clang++ finds more in ISO C++ than g++ does.
if command -v clang++ >/dev/null; then
    err=$(OSHCC_CC=clang++ "$build/bin/oshc++" -Wall -Wextra -Wpedantic -Werror -o "$work/other" "$work/overloads.cc" 2>&1)
    expect "C++ overloads are clean for clang++" "0 " "$? $err"
fi
err=$("$build/bin/oshc++" -Wall -Wextra -Wpedantic -Werror -o "$work/overloads" "$work/overloads.cc" 2>&1)
expect "C++ overloads build" "0 " "$? $err"
job 2 "$work/overloads"
expect "C++ overloads do what their types' functions do" "0 " "$status $out"
end_of_test
