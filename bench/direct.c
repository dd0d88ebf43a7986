// SPDX-License-Identifier: MIT
// Direct drive (include/drydock/direct.h): what the producer's side costs against bare stores of the same
// bytes, how fast the device executes what producers ring, and four producers on four queues against one.
// 8-byte WRITEs inside one process, memory in the arena, a completion every 16.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "device/identity.h"
#include "drydock/direct.h"

#define BLOCKS 256u
#define COUNT 8192u
#define QUEUES 4

struct way {
    struct bench_end near, far;
    struct drydock_queue q;
    struct drydock_target t;
};

static struct drydock_queue view(struct dock_qp *qp)
{
    struct dock_direct v;

    bench_must(dock_qp_direct(qp, &v), "dock_qp_direct");
    return (struct drydock_queue){.ring = (unsigned char *)v.ring,
                                  .cq = (const unsigned char *)v.cq,
                                  .doorbell = v.doorbell,
                                  .cq_doorbell = v.cq_doorbell,
                                  .page = v.page,
                                  .state = v.state,
                                  .blocks = v.blocks,
                                  .cqes = v.cqes,
                                  .head = v.pi,
                                  .rung = v.pi,
                                  .tail = v.pi,
                                  .cq_head = v.ci};
}

static void open_way(struct way *w, struct dock_dev *dev)
{
    bench_open(&w->near, dev, 4096);
    bench_open(&w->far, dev, 4096);
    bench_must(dock_qp_destroy(w->near.qp), "dock_qp_destroy");
    struct dock_qp_attr raw = {.service = DOCK_RC,
                               .pd = w->near.pd,
                               .send_cq = w->near.cq,
                               .recv_cq = w->near.cq,
                               .max_send_wr = BLOCKS,
                               .max_recv_wr = 1,
                               .max_send_sge = 1,
                               .max_recv_sge = 1,
                               .raw = true};
    bench_must(dock_qp_create(dev, &raw, &w->near.qp), "dock_qp_create");
    bench_connect(&w->near, dock_qp_number(w->far.qp));
    bench_connect(&w->far, dock_qp_number(w->near.qp));
    w->q = view(w->near.qp);
    w->t = (struct drydock_target){.address = (uintptr_t)w->far.mem,
                                   .length = 4096,
                                   .segment = w->far.mr->rkey >> 8,
                                   .token = w->far.mr->rkey};
    // The keys of the near end are of its own domain, the target's too: one process, two domains.
}

// ---- the producer's side: no device looks at this ring, so only the stores are measured

static _Alignas(64) unsigned char lone_ring[BLOCKS * 64];
static _Alignas(64) _Atomic uint32_t lone_doorbell;

static double fill_and_ring(void *arg)
{
    struct way *w = arg;
    struct drydock_queue q = {.ring = lone_ring, .doorbell = &lone_doorbell, .blocks = BLOCKS};
    uint64_t begin = dock_now_ns();

    for (unsigned i = 0; i < COUNT; i++) {
        drydock_post_write(&q, &w->t, w->t.address, w->near.mem, 8, 0);
        drydock_ring(&q);
        q.tail = q.rung; // as if a completion had been polled
    }
    return (double)(dock_now_ns() - begin) / COUNT;
}

static double bare_stores(void *arg)
{
    const struct way *w = arg;
    uint64_t begin = dock_now_ns();

    for (uint32_t i = 0; i < COUNT; i++) {
        _Atomic uint64_t *slot = (_Atomic uint64_t *)(void *)(lone_ring + (size_t)(i & (BLOCKS - 1)) * 64);
        for (unsigned k = 0; k < 8; k++)
            atomic_store_explicit(&slot[k], w->t.address + k, memory_order_relaxed);
        atomic_store_explicit(&lone_doorbell, i + 1, memory_order_release);
    }
    return (double)(dock_now_ns() - begin) / COUNT;
}

// ---- executed

static void *drive(void *arg)
{
    struct way *w = arg;

    for (unsigned i = 0; i < COUNT; i++) {
        uint32_t flags = i % 16 == 15 ? DRYDOCK_COMPLETE : 0;
        while (drydock_post_write(&w->q, &w->t, w->t.address, w->near.mem, 8, flags) == DRYDOCK_FULL)
            drydock_poll(&w->q);
        if (i % 16 == 15)
            drydock_ring(&w->q);
    }
    bench_must(drydock_quiet(&w->q), "quiet");
    return NULL;
}

static double executed(void *arg)
{
    uint64_t begin = dock_now_ns();

    drive(arg);
    return (double)(dock_now_ns() - begin) / COUNT;
}

static double host_api(void *arg)
{
    struct way *w = arg;
    struct dock_sge sge;
    struct bench_name peer = bench_name_of(&w->near);
    struct dock_wr plain = bench_write(&w->far, &peer, &sge, 8), told = plain;
    uint64_t begin = dock_now_ns();

    told.flags = DOCK_F_COMPLETE;
    for (unsigned i = 0; i < COUNT; i += 16) {
        struct dock_post p;
        dock_post_begin(w->far.qp, &p);
        for (unsigned k = 0; k < 16; k++)
            bench_must(dock_post_put(&p, k == 15 ? &told : &plain), "dock_post_put");
        dock_post_end(&p);
        bench_drain(&w->far, 1);
    }
    return (double)(dock_now_ns() - begin) / COUNT;
}

static double four_producers(void *arg)
{
    struct way *w = arg;
    pthread_t t[QUEUES];
    uint64_t begin = dock_now_ns();

    for (unsigned i = 0; i < QUEUES; i++)
        bench_must(pthread_create(&t[i], NULL, drive, &w[i]), "pthread_create");
    for (unsigned i = 0; i < QUEUES; i++)
        pthread_join(t[i], NULL);
    return (double)(dock_now_ns() - begin) / COUNT / QUEUES;
}

// ---- the watch: what the engine takes of a processor beside the calling thread, in percent

static double clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double others_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

// `rings` doorbells, one each 100 us, or as many naps.
static double watch(struct way *w, unsigned rings, bool ring)
{
    const struct timespec nap = {.tv_nsec = 40000}; // and what the system adds
    double begin = clock_ns(CLOCK_MONOTONIC), cpu = others_ns();

    for (unsigned i = 0; i < rings; i++) {
        if (ring) {
            drydock_post_write(&w->q, &w->t, w->t.address, w->near.mem, 8, DRYDOCK_COMPLETE);
            drydock_ring(&w->q);
        }
        nanosleep(&nap, NULL);
        drydock_poll(&w->q);
    }
    return (others_ns() - cpu) * 100 / (clock_ns(CLOCK_MONOTONIC) - begin);
}

int main(void)
{
    static struct way w[QUEUES];
    struct dock_dev *dev;
    double figure, limit;

    bench_must(dock_dev_open(NULL, &dev), "dock_dev_open");
    for (unsigned i = 0; i < QUEUES; i++)
        open_way(&w[i], dev);
    bench_medians((struct bench_run){fill_and_ring, w}, (struct bench_run){bare_stores, w}, &figure, &limit);
    bench_row("direct drive: fill and doorbell, one WQE", "ns", figure, limit, "72 bytes of bare stores",
              "at most 1.2");
    bench_medians((struct bench_run){executed, w}, (struct bench_run){host_api, w}, &figure, &limit);
    bench_row("direct drive: posted, executed by the engine, polled", "ns", figure, limit,
              "host API, lists of 16", "");
    bench_medians((struct bench_run){four_producers, w}, (struct bench_run){executed, w}, &figure, &limit);
    bench_row("direct drive: four producers on four queues, a WQE", "ns", figure, limit, "one producer", "");
    bench_row("direct drive: watch of four queues, none moved for less than a second", "%",
              watch(w, 5000, false), 1, "a hundredth", "");
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL); // the doorbells have cooled down
    bench_row("direct drive: watch of four idle queues, of a core", "%", watch(w, 5000, false), 1,
              "a hundredth", "at most 1.00");
    bench_row("direct drive: watch while a doorbell moves every 0.1 ms", "%", watch(w, 5000, true), 100,
              "a core", "");
    return 0;
}
