// SPDX-License-Identifier: MIT
// Every PE writes its number to its neighbour: into the heap and into a static object.
#include <shmem.h>
#include <stdio.h>

static long there = -1;

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
    shmem_free(heap);
    shmem_finalize();
    return wrong;
}
