// SPDX-License-Identifier: MIT
// Every PE writes its number to its neighbour: into the heap and into a static object. PE 0 then puts a
// thousand times through a context of its own, whose queue the device sums up at its end, and runs the
// command in AT_THE_END, which sees the job as it stands.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

static long there = -1;

static void put_a_thousand_times(long *dest, const long *source)
{
    shmem_ctx_t ctx;

    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx))
        shmem_global_exit(3);
    for (int i = 0; i < 1000; i++)
        shmem_ctx_long_put_nbi(ctx, dest, source, 1, 1);
    shmem_ctx_quiet(ctx);
    shmem_ctx_destroy(ctx);
}

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n;
    long *heap = shmem_malloc(sizeof *heap), mine = me;

    *heap = -1;
    shmem_barrier_all();
    shmem_long_put(heap, &mine, 1, (me + 1) % n);
    shmem_long_p(&there, mine, (me + 1) % n);
    shmem_barrier_all();
    printf("PE %d of %d: heap %ld, static %ld\n", me, n, *heap, there);
    int wrong = *heap != left || there != left || shmem_long_g(heap, left) != (left + n - 1) % n;
    shmem_barrier_all();
    if (me == 0 && n > 1)
        put_a_thousand_times(heap, &mine);
    if (me == 0 && getenv("AT_THE_END"))
        wrong |= system(getenv("AT_THE_END")) != 0;
    shmem_free(heap);
    shmem_finalize();
    return wrong;
}
