// SPDX-License-Identifier: MIT
// OpenSHMEM on the device: what the files of this face share. A PE has one open target queue, which answers
// the one-sided requests of every PE, and each context has one send queue per PE that it talks to. What a
// call promises is one of the device's three moments: nbi is posted, a blocking put is executed (its source
// may be reused), get, fetching atomics and quiet are observed.
#ifndef DOCK_SHMEM_FACE_H
#define DOCK_SHMEM_FACE_H

#include <pthread.h>
#include <shmem.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/extent.h"
#include "base/job.h"
#include "base/lock.h"
#include "base/log.h"
#include "device/cq.h"
#include "device/device.h"
#include "device/sq.h"

struct dock_peer;

// ---- symmetric memory: two ranges, the heap (in the arena) and the program's static data

enum { OSH_HEAP, OSH_DATA, OSH_RANGES };

struct osh_range {
    uint64_t base, len;
    uint32_t key; // rkey of its owner's registration
};

// What a PE tells the others at its start.
struct osh_card {
    struct osh_range range[OSH_RANGES];
    uint64_t heap_off; // in its arena
    uint32_t target;   // queue
    dock_who who;
    int32_t pid;
};

_Static_assert(sizeof(struct osh_card) <= DOCK_JOB_CARD, "a card fits its seat");

struct osh_pe {
    char *near; // its heap in our address space, where stores reach it (near.h); NULL: requests do
    struct dock_peer *peer; // beside it: each store looks at both
    char *heap;             // its heap in our address space
    struct osh_card card;
};

// ---- contexts

#define OSH_DEPTH 256u

// The way to one PE: a send queue, and how far it is.
struct osh_way {
    struct dock_qp *qp;       // NULL: not used yet
    const dock_a64 *executed; // by the device, a count of WRs
    uint64_t posted;          // by us
    uint64_t asked;           // the last WR that was signaled
    uint64_t done;            // WRs that a polled completion covers
    uint32_t fences;          // of the context, as the last WR knew them
    dock_a32 under_way;       // WRs that no store may pass, unless they are executed
    int pe;
};

struct dock_shmem_ctx {
    struct dock_shmem_team *team; // NULL: the world
    struct dock_cq *cq;
    long options;
    uint32_t fences; // so far
    bool locked;     // several threads may be at it
    dock_a32 lock;
    uint64_t sink; // where results go that nobody wants
    struct dock_shmem_ctx *next, *prev;
    struct osh_way way[]; // by PE of the world
};

// ---- groups: whom a collective is among, a team or an active set

#define OSH_ROUNDS 20u // of a sync: 2^20 PEs
#define OSH_CHAIN 20u  // the word that passes an offset on
#define OSH_WORDS 32u
#define OSH_TEAMS 64u

struct osh_group {
    int start, stride, size, me; // PEs of the world; `me` counts members
    uint64_t *word;              // OSH_WORDS of them, symmetric
    uint64_t *epoch;             // of a team: syncs so far; NULL: the words count up and down (pSync)
};

struct dock_shmem_team {
    struct osh_group g;
    uint64_t epoch;
    unsigned slot;
    shmem_team_config_t config;
};

// ---- the process

struct osh {
    int me, n; // n is 0 until init is through
    int thread;
    int nested;
    unsigned spins;
    struct osh_pe *pe;
    struct dock_shmem_ctx *ctx;   // the default one
    dock_a64 *stores;             // the device's counts of what no queue counts (near.h); NULL: nobody counts
    struct dock_shmem_team world; // and SHMEM_TEAM_SHARED is the same
    // the rest is not looked at per request
    struct dock_dev *dev;
    uint32_t pd;
    struct dock_mr *range_mr[OSH_RANGES], *own; // `own`: the local key of everything
    struct dock_cq *target_cq;
    struct dock_qp *target;
    void *reserved; // the heap lies in it
    char *heap;
    uint64_t heap_size;
    struct dock_job *job;
    char job_file[160];
    pthread_mutex_t lock;                             // of contexts and teams
    struct dock_shmem_ctx *contexts, *ended_contexts; // the latter are kept, so that their use is named
    uint64_t free_slots;                              // of team words, a bit each
    bool own_device;
    bool ended;
};

extern struct osh osh;

// The head of the heap is ours: the words of the teams, and room for what collectives exchange.
struct osh_head {
    uint64_t word[OSH_TEAMS][OSH_WORDS];
    uint64_t mask[2]; // what team splits agree on: source and result
    dock_a32 cpu;     // where this PE was when it last waited long, and 1 (wait.c)
};

static inline struct osh_head *osh_head(void)
{
    return (struct osh_head *)(void *)osh.heap;
}

#define OSH_ALIGN_MAX ((uintptr_t)16 << 20)
#define OSH_HEAD_BYTES ((sizeof(struct osh_head) + 4095) & ~4095ul)
// Small objects beside one that is as long as SHMEM_SYMMETRIC_SIZE says, and what rounding takes.
#define OSH_HEAP_SLACK (64ul << 10)

// ---- boot.c, job.c, pmi.c

int osh_job_join(void); // rank, size, seat
void osh_job_publish(const struct osh_card *card);
void osh_job_meet(void); // wait until all cards are there, and take them
void osh_job_finished(void);
void osh_job_leave(void);
void osh_job_bereft(void); // this process will end, and is not the cause
// Is the job being ended because somebody is gone? Then this process ends, in words.
void osh_job_check(void);
void osh_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold, noreturn));

struct osh_pmi {
    int rank, size;
    char file[160];
};
// Meet through PMI-1 on the descriptor that a launcher gave. -errno.
int osh_pmi_join(int fd, struct osh_pmi *out);
void osh_pmi_met(void); // all cards are there
void osh_pmi_finish(void);
void osh_pmi_abort(int status);

// ---- data.c: the program's static data. -ENOENT: it has none that can be written.
int osh_data_find(uint64_t *base, uint64_t *len);

// ---- heap.c
int osh_heap_open(uint64_t size);
void osh_heap_close(void);

// ---- post.c: requests

int osh_ctx_open(struct dock_shmem_team *team, long options, struct dock_shmem_ctx **out);
void osh_ctx_close(struct dock_shmem_ctx *c);
void osh_ctx_end_all(void); // the library ends before they do
int osh_way_open(struct dock_shmem_ctx *c, int pe);
void osh_bad_pe(int pe, int n) __attribute__((cold, noreturn));
void osh_bad_address(const void *addr, size_t len, int pe) __attribute__((cold, noreturn));

static inline struct dock_shmem_ctx *osh_ctx(shmem_ctx_t c)
{
    return __builtin_expect(c == SHMEM_CTX_DEFAULT, 1) ? osh.ctx : c;
}

// A PE number as the context counts, as the world does.
static inline int osh_world_pe(const struct dock_shmem_ctx *c, int pe)
{
    if (__builtin_expect(!c || (unsigned)pe >= (unsigned)(c->team ? c->team->g.size : osh.n), 0))
        osh_bad_pe(pe, c && c->team ? c->team->g.size : osh.n);
    return c->team ? c->team->g.start + pe * c->team->g.stride : pe;
}

struct osh_remote {
    uint64_t addr;
    uint32_t key;
};

static inline struct osh_remote osh_remote(const void *addr, size_t len, int pe)
{
    const struct osh_card *mine = &osh.pe[osh.me].card, *theirs = &osh.pe[pe].card;

    for (unsigned i = 0; i < OSH_RANGES; i++) {
        uint64_t inside = (uintptr_t)addr - mine->range[i].base;
        if (__builtin_expect(inside < mine->range[i].len && len <= mine->range[i].len - inside, 1))
            return (struct osh_remote){theirs->range[i].base + inside, theirs->range[i].key};
    }
    osh_bad_address(addr, len, pe);
}

void osh_put(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe);
void osh_put_nbi(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe);
void osh_get(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe);
void osh_get_nbi(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe);
// `blocks` of `size` bytes each; the strides are in bytes.
struct osh_strides {
    ptrdiff_t dest, source;
    size_t size, blocks;
};
void osh_iput(struct dock_shmem_ctx *c, void *dest, const void *source, struct osh_strides s, int pe);
void osh_iget(struct dock_shmem_ctx *c, void *dest, const void *source, struct osh_strides s, int pe);

struct osh_signal {
    uint64_t *addr, value;
    int op;
};
void osh_put_signal(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, struct osh_signal s,
                    int pe, bool nbi);

// Atomics of 4 or 8 bytes; the result comes into *fetch (NULL: not wanted).
struct osh_atomic {
    uint8_t op, size;
    uint64_t operand, compare;
};
uint64_t osh_post_fetch(struct dock_shmem_ctx *c, void *dest, struct osh_atomic a, int pe);
void osh_post_atomic(struct dock_shmem_ctx *c, void *fetch, void *dest, struct osh_atomic a, int pe);

void osh_fence(struct dock_shmem_ctx *c);
void osh_quiet(struct dock_shmem_ctx *c);
void osh_quiet_way(struct dock_shmem_ctx *c, struct osh_way *w);
// Is all of it executed, so that it is placed?
bool osh_way_executed(struct dock_shmem_ctx *c, struct osh_way *w);

// ---- table.c: queues that the program drives itself
void osh_tables_end(void);

// ---- wait.c: patience of a thread that looks at memory
struct osh_patience {
    unsigned looks;
};
#define OSH_HELP_EVERY 64u
void osh_pause_long(unsigned looks); // helps with work that is left, and lets others run when it is time
// In line: it stands between the arrival of a word and its waiter.
static inline void osh_pause(struct osh_patience *p)
{
    if (__builtin_expect(++p->looks % OSH_HELP_EVERY != 0 && p->looks < osh.spins, 1))
        dock_relax();
    else
        osh_pause_long(p->looks);
}
void osh_looked(void);    // behind a call that looked once, in vain
unsigned osh_spins(void); // how many looks come before others are let run

// ---- sync.c

void osh_sync(const struct osh_group *g);
// The team behind a handle, NULL for SHMEM_TEAM_INVALID.
struct dock_shmem_team *osh_team(shmem_team_t t);
static inline int osh_member(const struct osh_group *g, int i)
{
    return g->start + i * g->stride;
}
// false: this PE is not in the set, and has nothing to do.
bool osh_active_set(int start, int log_stride, int size, long *psync, struct osh_group *out);

#endif
