// SPDX-License-Identifier: MIT
// A thread that looks at memory until it changes: it spins, helps with work of its own process that is left,
// lets others run, and looks now and then whether the job still stands. Where each PE can have a processor it
// spins for some tens of microseconds: whoever yields at once comes back much later on a busy machine, and
// the PE that it waits for then waits for it. Unless both are on one processor at the moment.
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "face/shmem/near.h"
#include "face/shmem/shmem_face.h"

#define SPINS_WITH_ROOM 2048u
#define YIELDS 20000u // looks, the spins included
#define CROWDED_NS 2000000u
#define NAPS 4096u // before a yield is tried again

// Empty polls help with queues whose budget ran out.
static void help(void)
{
    struct dock_wc wc;

    if (dock_cq_idle(osh.target_cq))
        return;
    dock_cq_begin(osh.target_cq);
    dock_cq_next(osh.target_cq, &wc);
    dock_cq_end(osh.target_cq);
}

unsigned osh_spins(void)
{
    // Those that are online, not those that this PE may run on: a launcher may have bound each to its own.
    return osh.n <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS_WITH_ROOM : OSH_HELP_EVERY;
}

// Does another PE wait, or did when it last did, on the processor that this one is on? Then each look keeps
// it from its work. Every PE says where it is in the head of its heap.
static bool beside_another(void)
{
    uint32_t here = (uint32_t)sched_getcpu() + 1; // 0: never said

    dock_set32(&osh_head()->cpu, here); // a hint, of any age
    for (int pe = 0; pe < osh.n; pe++) {
        const struct osh_pe *p = &osh.pe[pe];
        if (pe == osh.me || !p->heap || dock_peek32(&p->peer->dead))
            continue;
        if (dock_peek32(&((const struct osh_head *)(const void *)p->heap)->cpu) == here)
            return true;
    }
    return false;
}

// Who yields on a processor that others want comes back when each of them had its turn, which may take a
// hundred naps; who sleeps is let in soon after it wakes. So a yield that took long is followed by naps.
static void let_others(unsigned looks)
{
    static const struct timespec nap = {.tv_nsec = 20000};
    static _Thread_local unsigned naps;

    if (naps == 0 && looks < YIELDS) {
        uint64_t before = dock_now_ns();
        sched_yield();
        if (dock_now_ns() - before > CROWDED_NS)
            naps = NAPS;
        return;
    }
    if (naps)
        naps--;
    nanosleep(&nap, NULL);
}

void osh_pause_long(unsigned looks)
{
    help();
    if (looks < osh.spins && !beside_another())
        return;
    osh_job_check(); // each time: on a busy machine the next one may come after a second
    let_others(looks);
}

void osh_looked(void)
{
    static _Thread_local struct osh_patience p;

    // A test that fails is most likely called again at once: let the others get on.
    if (++p.looks % OSH_HELP_EVERY == 0)
        osh_pause_long(osh.spins);
}
