// SPDX-License-Identifier: MIT
// Put with signal: how does the receiver know that the data is there?
//
//     oshcc put_signal.c -o put_signal && oshrun -np 2 put_signal
//
// PE 0 sends ROUNDS messages to PE 1, in two ways. Both are right. They differ in what they ask of the
// sender.
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>

enum { WORDS = 512, ROUNDS = 100 };

// Symmetric objects: static data has the same name on every PE and can be written from everywhere.
static uint64_t data[WORDS], ready, back;

static void fill(uint64_t *message, uint64_t round)
{
    for (unsigned i = 0; i < WORDS; i++)
        message[i] = round * WORDS + i;
}

// How many words of the message are not this round's.
static unsigned stale(uint64_t round)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < WORDS; i++)
        wrong += data[i] != round * WORDS + i;
    return wrong;
}

// The receiver does the same both times: wait for the flag, look at the data, say that it may be overwritten.
static unsigned receive_all(void)
{
    unsigned wrong = 0;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        // Waiting through the library is what makes the data visible; `while (ready != round);` is not.
        shmem_signal_wait_until(&ready, SHMEM_CMP_EQ, round);
        wrong += stale(round);
        shmem_uint64_atomic_set(&back, round, 0);
    }
    return wrong;
}

static void wait_for_the_receiver(uint64_t round)
{
    shmem_uint64_wait_until(&back, SHMEM_CMP_EQ, round);
}

// Two puts are not ordered: without the fence the flag may arrive first.
static void send_data_then_flag(void)
{
    static uint64_t message[WORDS];

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        fill(message, round);
        shmem_uint64_put(data, message, WORDS, 1);
        shmem_fence();
        shmem_uint64_atomic_set(&ready, round, 1);
        wait_for_the_receiver(round);
    }
}

// One call: the signal changes after this message's data, and it waits for nothing else. A fence would hold
// the flag back behind everything that this PE ever sent there, a signal only behind its own data.
static void send_with_signal(void)
{
    static uint64_t message[WORDS];

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        fill(message, round);
        shmem_uint64_put_signal_nbi(data, message, WORDS, &ready, round, SHMEM_SIGNAL_SET, 1);
        // nbi: `message` is in use until quiet. The receiver's answer tells that the data was read, which is
        // more than quiet would.
        wait_for_the_receiver(round);
    }
}

static void run(const char *what, void (*send)(void))
{
    unsigned wrong = 0;

    ready = back = 0;
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        send();
    else if (shmem_my_pe() == 1)
        wrong = receive_all();
    shmem_barrier_all();
    if (shmem_my_pe() == 1)
        printf("%-22s %d messages of %d words, %u stale words\n", what, ROUNDS, WORDS, wrong);
}

int main(void)
{
    shmem_init();
    if (shmem_n_pes() < 2) {
        fprintf(stderr, "put_signal: two PEs are needed: oshrun -np 2 put_signal\n");
        shmem_global_exit(2);
    }
    run("put, fence, flag:", send_data_then_flag);
    run("put with signal:", send_with_signal);
    shmem_finalize();
    return 0;
}
