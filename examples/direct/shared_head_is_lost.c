// SPDX-License-Identifier: MIT
// Direct drive: two producers on one queue, and what becomes of it.
//
// Both read head 8. Both fill slot 8. Both ring "9". One WQE has overwritten the other, the head has moved
// once, and the ring looks as healthy as ever: hardware says nothing and somebody's data never arrives. It is
// no race for the payload, whose addresses differ; it is a race for the queue's own head.
//
// Built with the check, the header keeps notes beside the ring (who wrote which place), and the device names
// both.
//
//     drydock run shared_head_is_lost
#define DRYDOCK_DIRECT_CHECK
#define DRYDOCK_PRODUCER my_number // an expression that is different in every producer

#include <pthread.h>

static _Thread_local unsigned my_number = 1;

#include "drive.h"

static struct drive d;
static struct drydock_queue *shared; // the mistake: one for both
static pthread_barrier_t both_have_read_the_head;

static void *aiv(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    struct drydock_queue mine = *shared; // an AIV works on its own copy of the head, as any core does

    my_number = me;
    pthread_barrier_wait(&both_have_read_the_head);
    uint32_t head = drydock_head(&mine);
    drydock_post_write(&mine, &d.to, d.to.address + 64 * me, d.source + 64 * me, 64, DRYDOCK_COMPLETE);
    drydock_ring(&mine);
    printf("producer %u: read head %u, filled slot %u, rang %u\n", me, head, head % mine.blocks, mine.rung);
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    unsigned landed = 0;
    int err;

    setvbuf(stdout, NULL, _IOLBF, 0);
    drive_open(&d, 1, 4096);
    memset(d.source, 'x', d.bytes);
    shared = &d.way[0].q;

    for (unsigned i = 0; i < 8; i++) // one producer at a time: all is well
        drydock_post_write(shared, &d.to, d.to.address + 1024, d.source, 8, DRYDOCK_COMPLETE);
    drydock_ring(shared);
    printf("one producer, eight WQEs: quiet says %d\n", drydock_quiet(shared));

    pthread_barrier_init(&both_have_read_the_head, NULL, 2);
    must(!pthread_create(&a, NULL, aiv, (void *)1), "pthread_create");
    must(!pthread_create(&b, NULL, aiv, (void *)2), "pthread_create");
    pthread_join(a, NULL);
    pthread_join(b, NULL);

    // The shared head moves by what was written back: once.
    shared->rung = 9;
    while ((err = drydock_quiet(shared)) ==
           0) // done, says the ring; until the device has looked at the notes
        ;
    for (unsigned p = 1; p <= 2; p++)
        landed += d.target[64 * p] == 'x';
    printf("two posts, one head: %s landed, the device has stopped the queue\n",
           landed == 2 ? "both" : "at most one");
    drive_close(&d);
    return landed == 2 || err == 0;
}
