// SPDX-License-Identifier: MIT
// Direct drive: four producers, four queues.
//
// A producer (an accelerator calls it an AIV; here it is a thread) writes WQEs into a ring that the device
// reads, and stores the new head to the doorbell. No library and no lock stand in between, so a queue has one
// producer: each gets a queue pair of its own, with its own ring, head, doorbell and completion queue. Their
// payloads are slices of one remote buffer that do not overlap: several queues cure the race on the head, not
// one on the data.
//
//     drydock run one_queue_per_aiv
#include <pthread.h>

#include "drive.h"

enum { PRODUCERS = DRIVE_QUEUES, SLICE = 64 * 1024, PIECE = 256 };

static struct drive d;

static void *aiv(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    struct drydock_queue *q = &d.way[me].q;
    size_t begin = (size_t)me * SLICE;
    long wqes = 0;

    for (size_t at = begin; at < begin + SLICE; at += PIECE) {
        // Ask for a completion every 16th time. It covers the 15 before it, and its polling frees their
        // slots.
        uint32_t flags = ++wqes % 16 ? 0 : DRYDOCK_COMPLETE;
        // Full is no error: poll what is done and post again. The doorbell first: what is not rung is not
        // done.
        while (drydock_post_write(q, &d.to, d.to.address + at, d.source + at, PIECE, flags) == DRYDOCK_FULL) {
            drydock_ring(q);
            drydock_poll(q);
        }
        // One doorbell for eight WQEs: posted is not published.
        if (wqes % 8 == 0)
            drydock_ring(q);
    }
    drydock_ring(q);
    // Executed, and known to be: only now may the source slice be changed.
    int err = drydock_quiet(q);
    printf("producer %u: queue %u, %ld WQEs, %u completions, quiet says %d\n", me + 1, me + 1, wqes,
           q->polled, err);
    return (void *)(uintptr_t)(err != 0);
}

static uint64_t checksum(const unsigned char *p, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + p[i];
    return sum;
}

int main(void)
{
    pthread_t thread[PRODUCERS];
    void *failed, *any = NULL;

    setvbuf(stdout, NULL, _IOLBF, 0); // a line of one thread is not cut by another's
    drive_open(&d, PRODUCERS, (size_t)PRODUCERS * SLICE);
    for (size_t i = 0; i < d.bytes; i++)
        d.source[i] = (unsigned char)(i * 7 + i / 251);
    for (unsigned i = 0; i < PRODUCERS; i++)
        must(!pthread_create(&thread[i], NULL, aiv, (void *)(uintptr_t)i), "pthread_create");
    for (unsigned i = 0; i < PRODUCERS; i++) {
        pthread_join(thread[i], &failed);
        any = failed ? failed : any;
    }
    int right = !any && checksum(d.source, d.bytes) == checksum(d.target, d.bytes);
    printf("four slices in one remote buffer: the checksum is %s\n", right ? "right" : "WRONG");
    drive_close(&d);
    return !right;
}
