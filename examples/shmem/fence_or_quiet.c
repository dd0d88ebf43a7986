// SPDX-License-Identifier: MIT
// Fence or quiet? Fence orders, quiet completes.
//
//     oshcc fence_or_quiet.c -o fence_or_quiet && oshrun -np 3 fence_or_quiet
//
// PE 0 writes x on PE 1. Then either PE 1 is told (the same receiver: order is enough), or PE 2 is told,
// which reads x from PE 1 (a third party: only completion is enough).
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>

enum { ROUNDS = 200 };

static long x, flag, seen[3];

// Everybody starts from zeros.
static void start(void)
{
    x = flag = 0;
    shmem_barrier_all();
}

// 1. Fence: x and the flag go to the same PE, the flag behind x.
static void tell_the_target(void)
{
    if (shmem_my_pe() == 0) {
        shmem_long_p(&x, 1, 1);
        shmem_fence(); // what this PE sends to PE 1 later does not pass what it sent before
        shmem_long_atomic_set(&flag, 1, 1);
    } else if (shmem_my_pe() == 1) {
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        seen[x]++; // must be 1
    }
}

// 2. Quiet: x goes to PE 1 and the flag to PE 2. A fence says nothing about two targets.
static void tell_a_third(void)
{
    if (shmem_my_pe() == 0) {
        shmem_long_p(&x, 1, 1);
        shmem_quiet(); // x is at PE 1 when this returns, for everybody who looks
        shmem_long_atomic_set(&flag, 1, 2);
    } else if (shmem_my_pe() == 2) {
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        seen[shmem_long_g(&x, 1)]++; // must be 1; with a fence above, 0 would be allowed
    }
}

// 3. Quiet is also what ends the use of a source that was given away without blocking.
static void reuse_the_source(void)
{
    static long source;

    if (shmem_my_pe() == 0) {
        source = 1;
        shmem_long_put_nbi(&x, &source, 1, 1);
        shmem_quiet(); // without it the next line would be an error of this program: x could be 2
        source = 2;
    }
    shmem_barrier_all();
    if (shmem_my_pe() == 1)
        seen[x]++; // must be 1
}

static void run(const char *what, void (*round)(void), int observer)
{
    for (unsigned i = 0; i < 3; i++)
        seen[i] = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        start();
        round();
        shmem_barrier_all();
    }
    if (shmem_my_pe() == observer)
        printf("%-46s %d rounds: x was 0 %ld times, 1 %ld times, 2 %ld times\n", what, ROUNDS, seen[0],
               seen[1], seen[2]);
    fflush(stdout); // before others print
    shmem_barrier_all();
}

int main(void)
{
    shmem_init();
    if (shmem_n_pes() < 3) {
        fprintf(stderr, "fence_or_quiet: three PEs are needed: oshrun -np 3 fence_or_quiet\n");
        shmem_global_exit(2);
    }
    run("fence, and the target looks:", tell_the_target, 1);
    run("quiet, and a third PE looks:", tell_a_third, 2);
    run("put_nbi, quiet, and the source is used again:", reuse_the_source, 1);
    shmem_finalize();
    return 0;
}
