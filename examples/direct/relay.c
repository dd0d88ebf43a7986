// SPDX-License-Identifier: MIT
// link: shmem
// Direct drive: to a PE by way of another.
//
// PE 0 has a table of queues: a slot for each way to each PE, a queue for each producer in the slot. The
// straight way to PE 2 is a queue of PE 0's own device. The way through PE 1 is a queue in PE 1's device,
// which PE 0 fills and rings with the same stores: PE 1's device fetches the WQE, reads the payload out of
// PE 0's heap, writes it at PE 2, and answers into the completion queue that PE 0 polls. PE 1's program has
// no part in it.
//
// Then the straight way is closed. What is posted there fails; the relay carries on, in the order of posting.
//
//     oshrun -np 3 relay
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drydock/shmem.h"

enum { TO = 2, RELAY = 1, ROUNDS = 200, BYTES = 4096 };

static uint64_t signal_word; // static objects are symmetric too

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "PE %d: %s\n", shmem_my_pe(), what);
    shmem_global_exit(1);
}

// Put with signal on this queue: the payload, and behind it the signal. Returns what quiet says.
static int put(const struct drydock_table *t, struct drydock_queue *q, char *buffer, uint64_t value)
{
    uint64_t to, signal_at;
    const struct drydock_target *heap = drydock_table_target(t, buffer, TO, &to);
    const struct drydock_target *word = drydock_table_target(t, &signal_word, TO, &signal_at);

    memset(buffer, (int)value, BYTES); // free again: quiet has said so
    must(drydock_post_write_notify(q, heap, to, buffer, BYTES, word, signal_at, value, DRYDOCK_COMPLETE) == 0,
         "the ring is full");
    drydock_ring(q);
    return drydock_quiet(q);
}

static void send_all(struct drydock_table *t, char *buffer)
{
    struct drydock_queue *straight = drydock_table_queue(t, TO, TO, 0);
    struct drydock_queue *relayed = drydock_table_queue(t, TO, RELAY, 0);

    printf("the straight way to PE %d is slot %d, by way of PE %d slot %d\n", TO,
           drydock_table_slot(t, TO, TO), RELAY, drydock_table_slot(t, TO, RELAY));
    printf("straight: quiet says %d\n", put(t, straight, buffer, 1));
    printf("relayed: quiet says %d\n", put(t, relayed, buffer, 2));
    must(drydock_table_cut(t, TO) == 0, "cut");
    printf("the straight way is closed: %s\n",
           put(t, straight, buffer, 3) ? "what is posted there fails" : "AND CARRIES ON");
    for (uint64_t value = 4; value < 4 + ROUNDS; value++)
        must(put(t, relayed, buffer, value) == 0, "the relay fails");
    printf("relayed: %u WQEs, %u completions\n", relayed->posted, relayed->polled);
}

// Whoever sees a signal sees its payload, or a later one: the relay keeps the order.
static void watch(const char *buffer)
{
    unsigned wrong = 0;

    for (uint64_t seen = 0; seen < 3 + ROUNDS;) {
        seen = shmem_signal_wait_until(&signal_word, SHMEM_CMP_GT, seen);
        wrong += seen == 3;
        if (seen == 3 + ROUNDS) // the last one: nothing comes any more that could change the payload
            for (unsigned i = 0; i < BYTES; i++)
                wrong += (unsigned char)buffer[i] != (unsigned char)seen;
    }
    printf("PE %d: all signals came, with their payload: %s\n", TO, wrong ? "NO" : "yes");
    must(!wrong, "order");
}

int main(void)
{
    struct drydock_table *t;

    setvbuf(stdout, NULL, _IOLBF, 0);
    shmem_init();
    must(shmem_n_pes() >= 3, "three PEs are needed");
    char *buffer = shmem_malloc(BYTES);
    must(buffer && drydock_table_open(1, 64, DRYDOCK_TABLE_RELAYS, &t) == 0, "no table");
    if (shmem_my_pe() == 0)
        send_all(t, buffer);
    else if (shmem_my_pe() == TO)
        watch(buffer);
    drydock_table_close(t);
    shmem_free(buffer);
    shmem_finalize();
    return 0;
}
