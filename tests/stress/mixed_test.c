// SPDX-License-Identifier: MIT
// timeout: 150
// long-timeout: 1500
// Processes x threads x queue pairs, every opcode mixed, every byte verified. Each thread of each process
// has a queue pair to the same thread of every process, itself included; half of the memory is plain. What
// a queue pair does follows from the seed and its number alone: DRYDOCK_SEED=... repeats it, up to who is
// faster. One thread of each process has connected queues, the other ones that name their target.
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

static void open_point(struct point *p, struct dock_dev *dev, unsigned process, unsigned peer,
                       unsigned thread)
{
    unsigned mine = slot_of(process, peer, thread);
    // A process is its own peer by one queue pair that is connected to itself.
    struct end_opts o = {.wr = DEPTH,
                         .sge = 4,
                         .inline_max = 128,
                         .cqe = 4 * DEPTH,
                         .mem = POINT_BYTES,
                         .service = thread % 2 ? DOCK_RM : DOCK_RC,
                         .plain = (process + peer + thread) % 2};

    memset(p, 0, sizeof *p);
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

static void process(unsigned me)
{
    static struct worker worker[THREADS];
    struct dock_config cfg = {.start_index = me ? 0xffffff00u : 0};
    struct dock_dev *dev;
    uint64_t wrs = 0;

    if (dock_dev_open(&cfg, &dev))
        abort();
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < PROCESSES; i++)
            open_point(&worker[t].point[i], dev, me, i, t);
    meet(0);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < PROCESSES; i++) {
            end_connect(&worker[t].point[i].e, worker[t].point[i].theirs->qpn, NULL);
            point_ready(&worker[t].point[i]);
        }
    meet(1);
    for (unsigned t = 0; t < THREADS; t++)
        pthread_create(&worker[t].thread, NULL, work, &worker[t]);
    for (unsigned t = 0; t < THREADS; t++)
        pthread_join(worker[t].thread, NULL);
    meet(2); // all cards tell what must stand in whose memory
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < PROCESSES; i++) {
            wrs += worker[t].point[i].posted;
            point_check(&worker[t].point[i]);
        }
    meet(3);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < PROCESSES; i++) {
            end_close(&worker[t].point[i].e);
            free(worker[t].point[i].shadow);
        }
    atomic_fetch_add(&board->wrs, wrs);
    if (dock_dev_close(dev))
        abort();
}

int main(void)
{
    pid_t pid[PROCESSES];
    int failed = 0;

    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board->seed = dock_seed();
    printf("seed %#llx, %u processes x %u threads, %u s\n", (unsigned long long)board->seed, PROCESSES,
           THREADS, seconds());
    fflush(NULL);
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
    printf("%llu WRs\n", (unsigned long long)board->wrs);
    return failed;
}
