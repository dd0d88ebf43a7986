// SPDX-License-Identifier: MIT
// timeout: 150
// long-timeout: 1500
// Processes x threads x queue pairs, every opcode mixed, every byte verified. Each thread of each process
// has a queue pair to the same thread of every process, itself included; half of the memory is plain. The
// connected ones share a receive queue, and reach half of what they reach through windows; a third thread
// sends datagrams. What
// a queue pair does follows from the seed and its number alone: DRYDOCK_SEED=... repeats it, up to who is
// faster. One thread of each process has connected queues, the other ones that name their target: it sends to
// all its peers by the first of them. Under ThreadSanitizer, which sees one process, the processes are
// threads of it with a device each: views of one arena share their mapping, so it sees the devices over one
// alias.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "stress/datagram.h"
#include "stress/mixed.h"

static unsigned seconds(void)
{
    return test_long() ? 300 : 20;
}

static struct board *board;

// Wait until all processes have come here.
static void meet(unsigned step)
{
    struct timespec nap = {.tv_nsec = 500000};

    atomic_fetch_add(&board->arrived[step], 1);
    while (atomic_load(&board->arrived[step]) < PROCESSES)
        nanosleep(&nap, NULL);
}

static unsigned slot_of(unsigned process, unsigned peer, unsigned thread)
{
    return (process * PROCESSES + peer) * THREADS + thread;
}

static void open_pool(struct pool *s, struct dock_dev *dev, uint32_t pd)
{
    struct dock_srq_attr a = {.pd = pd, .max_wr = POOL, .max_sge = 1};

    if (dock_mem_alloc(dev, POOL * MESSAGE, (void **)&s->mem) ||
        dock_mr_register(dev, pd, (uintptr_t)s->mem, POOL * MESSAGE, (uintptr_t)s->mem,
                         DOCK_ACCESS_LOCAL_WRITE, &s->mr) ||
        dock_srq_create(dev, &a, &s->srq))
        abort();
    for (unsigned i = 0; i < POOL; i++)
        if (pool_receive(s, i))
            abort();
}

static void close_pool(struct pool *s, struct dock_dev *dev)
{
    if (dock_srq_destroy(s->srq) || dock_mr_deregister(s->mr))
        abort();
    dock_mem_free(dev, s->mem, POOL * MESSAGE);
}

static void open_point(struct point *p, struct dock_dev *dev, unsigned process, unsigned peer,
                       unsigned thread, uint32_t pd, struct pool *pool)
{
    unsigned mine = slot_of(process, peer, thread);
    bool rm = thread % 2;
    // A process is its own peer by one queue pair that is connected to itself.
    struct end_opts o = {.wr = rm ? PROCESSES * DEPTH : DEPTH,
                         .sge = 4,
                         .inline_max = 128,
                         .cqe = 4 * PROCESSES * DEPTH,
                         .mem = POINT_BYTES,
                         .service = rm ? DOCK_RM : DOCK_RC,
                         .plain = (process + peer + thread) % 2,
                         .pd = pd,
                         .srq = pool ? pool->srq : NULL};

    memset(p, 0, sizeof *p);
    p->index = rm ? peer : 0;
    p->via = p - p->index;
    p->pool = pool;
    end_open(&p->e, dev, &o);
    p->number = mine;
    p->seed = dock_mix(board->seed ^ mine);
    p->shadow = calloc(1, AREA);
    p->theirs = &board->card[slot_of(peer, process, thread)];
    p->mine = &board->card[mine];
    *p->mine = (struct card){
        .qpn = dock_qp_number(p->e.qp), .mr = *p->e.mr, .mem = (uintptr_t)p->e.mem, .seed = p->seed};
}

struct worker {
    struct point point[PROCESSES];
    pthread_t thread;
};

static void complain(const struct worker *w)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        const struct point *p = &w->point[i];
        fprintf(stderr, "queue %u: state %d, posted %llu, covered %llu, received %llu, bye sent %d, got %d\n",
                dock_qp_number(p->e.qp), (int)dock_qp_state(p->e.qp), (unsigned long long)p->posted,
                (unsigned long long)p->covered, (unsigned long long)p->received, p->bye_sent, p->bye_got);
    }
    point_die(&w->point[0], "nothing has moved for a long time");
}

static void *work(void *arg)
{
    struct worker *w = arg;
    uint64_t until = dock_now_ns() + seconds() * 1000000000ull, moved = dock_now_ns();

    for (unsigned left = PROCESSES; left;) {
        uint64_t now = dock_now_ns();
        left = 0;
        for (unsigned i = 0; i < PROCESSES; i++) {
            if (point_step(&w->point[i], now > until))
                moved = now;
            left += !point_finished(&w->point[i]);
        }
        if (now - moved > 20000000000ull * slow_down())
            complain(w);
        if (moved != now)
            sched_yield();
    }
    return NULL;
}

// Both halves of a process: threads with queue pairs, and one with datagrams.
struct half {
    struct dock_dev *dev;
    uint32_t pd;
    struct pool pool;
    struct worker worker[THREADS];
    struct datagrams datagrams;
};

static void each_point(struct half *h, void (*fn)(struct point *p))
{
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < PROCESSES; i++)
            fn(&h->worker[t].point[i]);
}

static void connect_point(struct point *p)
{
    end_connect(&p->e, p->theirs->qpn, NULL);
    point_ready(p);
}

static void count_point(struct point *p)
{
    atomic_fetch_add(&board->wrs, p->posted);
    point_check(p);
}

static void open_half(struct half *h, unsigned me)
{
    struct dock_config cfg = {.start_index = me ? 0xffffff00u : 0};

    if (dock_dev_open(&cfg, &h->dev) || dock_pd_create(h->dev, &h->pd))
        abort();
    open_pool(&h->pool, h->dev, h->pd);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < PROCESSES; i++)
            open_point(&h->worker[t].point[i], h->dev, me, i, t, h->pd, t % 2 ? NULL : &h->pool);
    datagrams_open(&h->datagrams, h->dev, board, me);
}

static void close_half(struct half *h)
{
    each_point(h, point_close);
    end_close(&h->datagrams.e);
    close_pool(&h->pool, h->dev);
    if (dock_pd_destroy(h->dev, h->pd) || dock_dev_close(h->dev))
        abort();
}

static void process(unsigned me)
{
    static struct half half[PROCESSES];
    struct half *h = &half[me];

    open_half(h, me);
    meet(0);
    each_point(h, connect_point);
    meet(1);
    h->datagrams.until_ns = dock_now_ns() + seconds() * 1000000000ull;
    pthread_create(&h->datagrams.thread, NULL, datagrams_run, &h->datagrams);
    for (unsigned t = 0; t < THREADS; t++)
        pthread_create(&h->worker[t].thread, NULL, work, &h->worker[t]);
    for (unsigned t = 0; t < THREADS; t++)
        pthread_join(h->worker[t].thread, NULL);
    pthread_join(h->datagrams.thread, NULL);
    meet(2); // all cards tell what must stand in whose memory
    each_point(h, count_point);
    atomic_fetch_add(&board->datagrams, h->datagrams.got);
    meet(3);
    close_half(h);
}

#ifdef __SANITIZE_THREAD__
static void *thread(void *arg)
{
    process((unsigned)(uintptr_t)arg);
    return NULL;
}

static int run_all(void)
{
    pthread_t t[PROCESSES];

    for (unsigned i = 0; i < PROCESSES; i++)
        if (pthread_create(&t[i], NULL, thread, (void *)(uintptr_t)i))
            abort();
    for (unsigned i = 0; i < PROCESSES; i++)
        pthread_join(t[i], NULL);
    return 0;
}
#else
static int run_all(void)
{
    pid_t pid[PROCESSES];
    int failed = 0;

    for (unsigned i = 0; i < PROCESSES; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            process(i);
            exit(0);
        }
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        pid_t done = waitpid(-1, &status, 0);
        if (status == 0 || failed)
            continue;
        failed = 1; // the others wait for it: let them go
        fprintf(stderr, "process %d ended with status %#x; again: DRYDOCK_SEED=%#llx\n", (int)done,
                (unsigned)status, (unsigned long long)board->seed);
        for (unsigned k = 0; k < PROCESSES; k++)
            if (pid[k] != done)
                kill(pid[k], SIGKILL);
    }
    return failed;
}
#endif

int main(void)
{
    int failed;

    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board->seed = dock_seed();
    printf("seed %#llx, %u processes x %u threads, %u s\n", (unsigned long long)board->seed, PROCESSES,
           THREADS, seconds());
    fflush(NULL);
    failed = run_all();
    printf("%llu WRs, %llu datagrams received\n", (unsigned long long)board->wrs,
           (unsigned long long)board->datagrams);
    return failed;
}
