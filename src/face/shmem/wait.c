// SPDX-License-Identifier: MIT
// A thread that looks at memory until it changes: it spins a little, helps with work of its own process that
// is left, lets others run, and looks now and then whether the job still stands.
#include <sched.h>
#include <time.h>

#include "face/shmem/shmem_face.h"

#define SPINS 64u
#define YIELDS 20000u

// Empty polls help with queues whose budget ran out.
static void help(void)
{
    struct dock_wc wc;

    dock_cq_begin(osh.target_cq);
    dock_cq_next(osh.target_cq, &wc);
    dock_cq_end(osh.target_cq);
}

void osh_pause(struct osh_patience *p)
{
    static const struct timespec nap = {.tv_nsec = 20000};

    if (++p->looks < SPINS) {
        dock_relax();
        return;
    }
    help();
    if (p->looks % 256 == 0)
        osh_job_check();
    if (p->looks < YIELDS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}
