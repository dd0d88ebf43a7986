// SPDX-License-Identifier: MIT
// shmem_init to shmem_finalize: the device, symmetric memory, the target queue, everybody's cards, the
// default context; and back in the same order.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arena/arena.h"
#include "fabric/fabric.h"
#include "face/shmem/api.h"
#include "face/shmem/near.h"
#include "face/shmem/queues.h"
#include "face/shmem/shmem_face.h"

#ifdef DOCK_SANITIZED
#define HEAP_USUAL (24ull << 20)
#else
#define HEAP_USUAL (256ull << 20)
#endif

struct osh osh = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define RIGHTS                                                                                               \
    (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_ATOMIC)

// Since 1.4 the variables begin with SHMEM_, before with SMA_.
static const char *variable(const char *name)
{
    char full[40];

    snprintf(full, sizeof full, "SHMEM_%s", name);
    const char *text = getenv(full);
    if (text)
        return text;
    snprintf(full, sizeof full, "SMA_%s", name);
    return getenv(full);
}

// A number with an optional unit, as the standard has it.
static uint64_t heap_size(void)
{
    static const char units[] = "kmgt";
    const char *text = variable("SYMMETRIC_SIZE"), *unit;
    char *end;
    double v = text ? strtod(text, &end) : 0;

    if (!text || !*text)
        return HEAP_USUAL;
    if (*end && (unit = strchr(units, *end | 0x20)) && !end[1]) {
        v *= (double)(1ull << 10 * (unit - units + 1));
        end++;
    }
    if (*end || !(v >= 1) || v > (double)(1ull << 46))
        osh_fatal("SHMEM_SYMMETRIC_SIZE=%s: a number of bytes is needed, with k, m, g or t behind it", text);
    return ((uint64_t)v + 4095) & ~4095ull;
}

// The heap begins at a multiple of what shmem_align can be asked for: one offset is then aligned on every PE,
// wherever its heap lies.
static int reserve(uint64_t bytes)
{
    int err = dock_mem_reserve(osh.dev, bytes + OSH_ALIGN_MAX, &osh.reserved);

    if (!err)
        osh.heap = (char *)(((uintptr_t)osh.reserved + OSH_ALIGN_MAX - 1) & ~(OSH_ALIGN_MAX - 1));
    return err;
}

// The process's device, which all faces share; a heap that is longer than its windows needs one of its own.
static int open_device(uint64_t bytes)
{
    struct dock_config cfg = {.window_shift = 31};
    int err = dock_dev_get(&osh.dev);

    if (err)
        return err;
    err = reserve(bytes);
    if (err != -EFBIG)
        return err;
    dock_dev_put(osh.dev);
    while (1ull << cfg.window_shift < bytes + OSH_ALIGN_MAX)
        cfg.window_shift++;
    err = dock_dev_open(&cfg, &osh.dev);
    osh.own_device = !err;
    return err ? err : reserve(bytes);
}

static int register_range(unsigned which, uint64_t base, uint64_t len, struct osh_card *card)
{
    int err = dock_mr_register(osh.dev, osh.pd, base, len, base, RIGHTS, &osh.range_mr[which]);

    if (!err)
        card->range[which] = (struct osh_range){base, len, osh.range_mr[which]->rkey};
    return err;
}

static int register_all(struct osh_card *card)
{
    uint64_t base, len;
    int err = register_range(OSH_HEAP, (uintptr_t)osh.heap, osh.heap_size, card);

    if (!err && osh_data_find(&base, &len) == 0)
        err = register_range(OSH_DATA, base, len, card);
    return err ? err : dock_mr_implicit(osh.dev, osh.pd, &osh.own);
}

// Reach the others' devices now, so that the first request to each finds it, and shmem_ptr its heap.
static void reach(int pe)
{
    static const struct timespec nap = {.tv_nsec = 50000};
    struct osh_pe *p = &osh.pe[pe];
    int err;

    while ((err = dock_up_peer(osh.dev, p->card.who, &p->peer)) == -EAGAIN) {
        osh_job_check();
        nanosleep(&nap, NULL);
    }
    if (err == -EHOSTUNREACH) { // it ended while we came: the cause is there, not here
        osh_job_check();
        osh_job_bereft();
        osh_fatal("PE %d is gone, before this PE had reached it", pe);
    }
    if (err)
        osh_fatal("PE %d (process %d) cannot be reached: %s", pe, p->card.pid, strerror(-err));
    p->heap = pe == osh.me ? osh.heap : dock_view_at(p->peer->view, p->card.heap_off, osh.heap_size);
    p->near = osh_near_wanted() ? p->heap : NULL;
}

static int open_memory(struct osh_card *card)
{
    int err;

    osh.heap_size = heap_size() + OSH_HEAD_BYTES + OSH_HEAP_SLACK;
    err = open_device(osh.heap_size);
    if (!err)
        err = dock_pd_create(osh.dev, &osh.pd);
    if (!err)
        err = dock_mem_offset(osh.dev, osh.heap, osh.heap_size, &card->heap_off);
    if (!err)
        err = register_all(card);
    return err ? err : osh_heap_open(osh.heap_size);
}

static void meet(struct osh_card *card)
{
    osh.pe = calloc((size_t)osh.n, sizeof *osh.pe);
    if (!osh.pe)
        osh_fatal("no memory for the cards of %d PEs", osh.n);
    card->target = dock_qp_number(osh.target);
    card->who = dock_dev_who(osh.dev);
    card->pid = getpid();
    osh_job_publish(card);
    osh_job_meet();
    for (int pe = 0; pe < osh.n; pe++)
        if (osh.pe[pe].card.range[OSH_HEAP].len != osh.heap_size ||
            osh.pe[pe].card.range[OSH_DATA].len != card->range[OSH_DATA].len)
            osh_fatal("PE %d has another symmetric memory: another program, or SHMEM_SYMMETRIC_SIZE differs",
                      pe);
    for (int pe = 0; pe < osh.n; pe++)
        reach(pe);
}

static void tell(void)
{
    if (osh.me)
        return;
    if (variable("VERSION"))
        fprintf(stderr, "OpenSHMEM %d.%d of %s\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION,
                SHMEM_VENDOR_STRING);
    if (variable("INFO"))
        fprintf(stderr,
                "SHMEM_VERSION         say which OpenSHMEM this is\n"
                "SHMEM_INFO            this\n"
                "SHMEM_SYMMETRIC_SIZE  bytes of the symmetric heap, with k, m, g or t (now %llu)\n"
                "SHMEM_DEBUG           say on standard error what is done (as DRYDOCK_LOG=info)\n",
                (unsigned long long)(osh.heap_size - OSH_HEAD_BYTES - OSH_HEAP_SLACK));
}

// Leaving main is as good as shmem_finalize; a failure is not waited for.
static void at_exit(int status, void *pid)
{
    if (status == 0 && osh.n && !osh.ended && (pid_t)(intptr_t)pid == getpid()) {
        osh.nested = 1;
        shmem_finalize();
    }
}

static void start(int thread)
{
    struct osh_card card = {0};
    int err;

    if (variable("DEBUG"))
        setenv("DRYDOCK_LOG", "info", 0);
    err = osh_job_join();
    if (!err)
        err = open_memory(&card);
    if (!err)
        err = osh_target_open();
    if (err)
        osh_fatal("shmem_init: %s", strerror(-err));
    osh.spins = osh_spins();
    meet(&card);
    osh.thread = thread;
    osh.stores = thread == SHMEM_THREAD_MULTIPLE ? NULL : osh.pe[osh.me].peer->port->stores;
    osh.world = (struct dock_shmem_team){.g = {.stride = 1,
                                               .size = osh.n,
                                               .me = osh.me,
                                               .word = osh_head()->word[0],
                                               .epoch = &osh.world.epoch}};
    osh.free_slots = ~1ull;
    err = osh_ctx_open(NULL, 0, &osh.ctx);
    if (err)
        osh_fatal("shmem_init: %s", strerror(-err));
    on_exit(at_exit, (void *)(intptr_t)getpid());
    tell();
}

int shmem_init_thread(int requested, int *provided)
{
    if (osh.ended)
        osh_fatal("shmem_init was called after shmem_finalize");
    if (osh.nested++ == 0)
        start(requested < SHMEM_THREAD_SINGLE     ? SHMEM_THREAD_SINGLE
              : requested > SHMEM_THREAD_MULTIPLE ? SHMEM_THREAD_MULTIPLE
                                                  : requested);
    if (provided)
        *provided = osh.thread;
    return 0;
}
API(shmem_init_thread);

void shmem_init(void)
{
    shmem_init_thread(SHMEM_THREAD_SINGLE, NULL);
}
API(shmem_init);

static void release(void)
{
    osh_ctx_end_all();
    osh.stores = NULL;
    for (int pe = 0; pe < osh.n; pe++)
        dock_up_peer_put(osh.dev, osh.pe[pe].peer);
    osh_target_close();
    dock_mr_deregister(osh.own);
    for (unsigned i = 0; i < OSH_RANGES; i++)
        if (osh.range_mr[i])
            dock_mr_deregister(osh.range_mr[i]);
    osh_heap_close();
    dock_mem_free(osh.dev, osh.reserved, osh.heap_size + OSH_ALIGN_MAX);
    dock_pd_destroy(osh.dev, osh.pd);
    if (osh.own_device)
        dock_dev_close(osh.dev);
    else
        dock_dev_put(osh.dev);
    free(osh.pe);
    osh_job_leave();
}

void shmem_finalize(void)
{
    if (osh.n == 0)
        osh_bad_pe(0, 0);
    if (--osh.nested > 0) {
        shmem_barrier_all();
        return;
    }
    for (struct dock_shmem_ctx *c = osh.contexts; c; c = c->next)
        osh_quiet(c);
    shmem_barrier_all(); // from here on nobody sends anything
    osh_tables_end();
    osh.ended = true;
    osh_job_finished();
    release();
    osh.ctx = NULL;
    osh.n = 0;
}
API(shmem_finalize);
