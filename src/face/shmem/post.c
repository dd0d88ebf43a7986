// SPDX-License-Identifier: MIT
// Requests: from a put or get to WRs on the context's queue to that PE, and how far they are. WRs are
// unsignaled, except one when quiet asks and one in a quarter of the ring, so that slots come free in time.
#include "base/clock.h"
#include "device/identity.h"
#include "face/shmem/near.h"
#include "face/shmem/shmem_face.h"

#define ASK_EVERY (OSH_DEPTH / 4)
#define PIECE (1u << 30) // a WR carries no more
#define BATCH 32u        // WRs behind one doorbell

static void lock(struct dock_shmem_ctx *c)
{
    if (__builtin_expect(c->locked, 0))
        dock_spin_lock(&c->lock);
}

static void unlock(struct dock_shmem_ctx *c)
{
    if (__builtin_expect(c->locked, 0))
        dock_spin_unlock(&c->lock);
}

static void __attribute__((cold, noreturn)) failed(const struct osh_way *w, uint32_t status)
{
    osh_job_check();
    if (status == DOCK_ST_RETRY_EXC) {
        osh_job_bereft();
        osh_fatal("PE %d is gone, and a request to it was not finished", w->pe);
    }
    osh_fatal("a request to PE %d failed with status %#x", w->pe, status);
}

// Take what is complete. The context is locked.
static void reap(struct dock_shmem_ctx *c)
{
    struct dock_wc wc;
    int got;

    if (dock_cq_idle(c->cq))
        return;
    dock_cq_begin(c->cq);
    while ((got = dock_cq_next(c->cq, &wc)) > 0) {
        struct osh_way *w = dock_qp_user(wc.qp);
        if (__builtin_expect(wc.status, 0))
            failed(w, wc.status);
        w->done = wc.id;
    }
    dock_cq_end(c->cq);
    if (__builtin_expect(got < 0, 0))
        osh_fatal("the completion queue of a context was overrun");
}

static void __attribute__((noinline)) make_room(struct dock_shmem_ctx *c, const struct osh_way *w)
{
    struct osh_patience p = {0};
    uint64_t done = w->done;

    for (reap(c); w->done == done; reap(c))
        osh_pause(&p);
}

// The queue's first failure leaves a completion that says why.
static void __attribute__((cold, noreturn)) in_error(struct dock_shmem_ctx *c, const struct osh_way *w)
{
    reap(c);
    failed(w, DOCK_ST_RETRY_EXC);
}

// WRs behind one doorbell. Between begin and end nothing else may happen to the queue.
struct batch {
    struct dock_shmem_ctx *c;
    struct osh_way *w;
    struct dock_post post;
    unsigned count;
};

static inline void begin(struct batch *b, struct dock_shmem_ctx *c, struct osh_way *w)
{
    b->c = c;
    b->w = w;
    b->count = 0;
    dock_post_begin(w->qp, &b->post);
    if (__builtin_expect(dock_post_state(&b->post) != DOCK_RTS, 0)) {
        dock_post_end(&b->post);
        in_error(c, w);
    }
}

static inline void end(struct batch *b)
{
    dock_post_end(&b->post);
    if (__builtin_expect(b->w->asked + b->count > b->w->posted, 0)) // one of these was signaled
        reap(b->c);
}

static inline void add(struct batch *b, struct dock_wr *wr)
{
    struct osh_way *w = b->w;

    if (__builtin_expect(b->count == BATCH, 0)) {
        end(b);
        begin(b, b->c, w);
    }
    wr->id = w->posted + 1;
    if (__builtin_expect(w->fences != b->c->fences, 0)) {
        wr->flags |= DOCK_F_FENCE;
        w->fences = b->c->fences;
    }
    if (__builtin_expect(wr->id % ASK_EVERY == 0, 0))
        wr->flags |= DOCK_F_COMPLETE;
    while (__builtin_expect(dock_post_put(&b->post, wr), 0)) {
        dock_post_end(&b->post);
        make_room(b->c, w);
        begin(b, b->c, w);
    }
    b->count++;
    w->posted++;
    dock_set32(&w->under_way, 1); // who must see it is this thread, or was told by it
    if (wr->flags & DOCK_F_COMPLETE)
        w->asked = w->posted;
}

// One WR, by itself. Returns its number.
static inline uint64_t post(struct dock_shmem_ctx *c, struct osh_way *w, struct dock_wr *wr)
{
    struct batch b;

    begin(&b, c, w);
    add(&b, wr);
    end(&b);
    return w->posted;
}

static inline struct osh_way *way(struct dock_shmem_ctx *c, int pe)
{
    struct osh_way *w = &c->way[pe];

    if (__builtin_expect(!w->qp, 0) && osh_way_open(c, pe))
        osh_fatal("no queue to PE %d can be made", pe);
    return w;
}

// ---- the three moments

// Executed: the sources of all WRs up to `number` have been read.
static inline void wait_executed(struct dock_shmem_ctx *c, struct osh_way *w, uint64_t number)
{
    struct osh_patience p = {0};

    // pairs with the publish in the device's run loop
    while (__builtin_expect(dock_acquire64(w->executed) < number, 0)) {
        reap(c);
        osh_pause(&p);
    }
}

bool osh_way_executed(struct dock_shmem_ctx *c, struct osh_way *w)
{
    bool all;

    lock(c);
    all = dock_acquire64(w->executed) >= w->posted; // pairs as above
    if (all)
        dock_set32(&w->under_way, 0);
    unlock(c);
    return all;
}

// Observed: a completion covers `number`. The context is locked, and not while it waits.
static void wait_done(struct dock_shmem_ctx *c, struct osh_way *w, uint64_t number)
{
    struct osh_patience p = {0};

    for (reap(c); w->done < number; reap(c)) {
        unlock(c);
        osh_pause(&p);
        lock(c);
    }
}

static void ask(struct dock_shmem_ctx *c, struct osh_way *w)
{
    struct dock_wr wr = {.op = DOCK_OP_NOP, .flags = DOCK_F_COMPLETE};

    if (w->asked != w->posted)
        post(c, w, &wr);
}

void osh_quiet_way(struct dock_shmem_ctx *c, struct osh_way *w)
{
    lock(c);
    if (w->done != w->posted) {
        ask(c, w);
        wait_done(c, w, w->posted);
    }
    unlock(c);
}

void osh_quiet(struct dock_shmem_ctx *c)
{
    // All are asked before the first is waited for.
    lock(c);
    for (int pe = 0; pe < osh.n; pe++)
        if (c->way[pe].done != c->way[pe].posted)
            ask(c, &c->way[pe]);
    unlock(c);
    for (int pe = 0; pe < osh.n; pe++)
        osh_quiet_way(c, &c->way[pe]);
    dock_fence_full(); // stores through shmem_ptr as well
}

// The next WR to each PE carries a fence. A queue of this host places its WRs in order in any case; the fence
// is what keeps the order where a queue has several ways to its peer, and what the tests' fabric goes by.
// The program's own stores (shmem_ptr) stay before what follows.
void osh_fence(struct dock_shmem_ctx *c)
{
    lock(c);
    c->fences++;
    unlock(c);
    dock_fence_store();
}

// ---- put and get

static inline void transfer(struct dock_shmem_ctx *c, struct osh_way *w, uint8_t op, uint32_t flags,
                            struct osh_remote r, const void *here, size_t len)
{
    while (__builtin_expect(len > PIECE, 0)) {
        struct dock_sge sge = {.addr = (uintptr_t)here, .len = PIECE, .key = osh.own->lkey};
        struct dock_wr wr = {.op = op, .nsge = 1, .sge = &sge, .rkey = r.key, .raddr = r.addr};
        post(c, w, &wr);
        here = (const char *)here + PIECE;
        r.addr += PIECE;
        len -= PIECE;
    }
    struct dock_sge sge = {.addr = (uintptr_t)here, .len = (uint32_t)len, .key = osh.own->lkey};
    struct dock_wr wr = {.op = op, .nsge = 1, .flags = flags, .sge = &sge, .rkey = r.key, .raddr = r.addr};
    post(c, w, &wr);
}

void osh_put(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe)
{
    pe = osh_world_pe(c, pe);
    if (__builtin_expect(len == 0, 0))
        return;
    if (__builtin_expect(osh_near_put(c, dest, source, len, pe), 1))
        return;
    struct osh_remote r = osh_remote(dest, len, pe);
    lock(c);
    struct osh_way *w = way(c, pe);
    transfer(c, w, DOCK_OP_WRITE, 0, r, source, len);
    wait_executed(c, w, w->posted);
    unlock(c);
}

void osh_put_nbi(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe)
{
    pe = osh_world_pe(c, pe);
    if (len == 0)
        return;
    if (__builtin_expect(osh_near_put(c, dest, source, len, pe), 1))
        return;
    struct osh_remote r = osh_remote(dest, len, pe);
    lock(c);
    transfer(c, way(c, pe), DOCK_OP_WRITE, 0, r, source, len);
    unlock(c);
}

void osh_get(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe)
{
    pe = osh_world_pe(c, pe);
    if (len == 0)
        return;
    if (__builtin_expect(osh_near_get(c, dest, source, len, pe), 1))
        return;
    struct osh_remote r = osh_remote(source, len, pe);
    lock(c);
    struct osh_way *w = way(c, pe);
    transfer(c, w, DOCK_OP_READ, DOCK_F_COMPLETE, r, dest, len);
    wait_done(c, w, w->posted);
    unlock(c);
}

void osh_get_nbi(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, int pe)
{
    pe = osh_world_pe(c, pe);
    if (len == 0)
        return;
    if (__builtin_expect(osh_near_get(c, dest, source, len, pe), 1))
        return;
    struct osh_remote r = osh_remote(source, len, pe);
    lock(c);
    transfer(c, way(c, pe), DOCK_OP_READ, 0, r, dest, len);
    unlock(c);
}

// Blocks longer than a WR carries: each is a transfer of its own.
static void strided_long(struct dock_shmem_ctx *c, struct osh_way *w, uint8_t op, struct osh_remote r,
                         ptrdiff_t far, const char *here, ptrdiff_t near, const struct osh_strides *s)
{
    for (size_t i = 0; i < s->blocks; i++) {
        struct osh_remote there = {r.addr + (uint64_t)((ptrdiff_t)i * far), r.key};
        uint32_t flags = op == DOCK_OP_READ && i + 1 == s->blocks ? DOCK_F_COMPLETE : 0;
        transfer(c, w, op, flags, there, here + (ptrdiff_t)i * near, s->size);
    }
}

// Blocks with gaps: a WR each, a doorbell for each batch. `far` strides in the peer's memory, `near` in ours.
static void strided(struct dock_shmem_ctx *c, struct osh_way *w, uint8_t op, struct osh_remote r,
                    ptrdiff_t far, const void *here, ptrdiff_t near, const struct osh_strides *s)
{
    struct batch b;

    if (s->size > PIECE) {
        strided_long(c, w, op, r, far, here, near, s);
        return;
    }
    begin(&b, c, w);
    for (size_t i = 0; i < s->blocks; i++) {
        struct dock_sge sge = {.addr = (uintptr_t)here + (uintptr_t)((ptrdiff_t)i * near),
                               .len = (uint32_t)s->size,
                               .key = osh.own->lkey};
        struct dock_wr wr = {.op = op,
                             .nsge = 1,
                             .sge = &sge,
                             .rkey = r.key,
                             .raddr = r.addr + (uint64_t)((ptrdiff_t)i * far)};
        if (op == DOCK_OP_READ && i + 1 == s->blocks)
            wr.flags = DOCK_F_COMPLETE;
        add(&b, &wr);
    }
    end(&b);
}

// The lowest of what the blocks touch, whichever way the stride goes; how long all of it is in *len.
static const char *strided_low(const void *addr, ptrdiff_t stride, const struct osh_strides *s, int pe,
                               size_t *len)
{
    ptrdiff_t span;

    if (__builtin_mul_overflow(s->blocks - 1, stride, &span) ||
        __builtin_add_overflow(span < 0 ? -(size_t)span : (size_t)span, s->size, len))
        osh_bad_address(addr, SIZE_MAX, pe); // longer than all memory
    return span < 0 ? (const char *)addr + span : addr;
}

static struct osh_remote strided_remote(const void *addr, ptrdiff_t stride, const struct osh_strides *s,
                                        int pe)
{
    size_t len;
    const char *low = strided_low(addr, stride, s, pe, &len);
    struct osh_remote r = osh_remote(low, len, pe);

    r.addr += (uint64_t)((const char *)addr - low);
    return r;
}

static char *strided_near(struct dock_shmem_ctx *c, const void *addr, ptrdiff_t stride,
                          const struct osh_strides *s, int pe)
{
    size_t len;
    const char *low = strided_low(addr, stride, s, pe, &len);
    char *near = osh_near(c, low, len, pe);

    return near ? near + ((const char *)addr - low) : NULL;
}

static void strided_copy(char *to, const char *from, const struct osh_strides *s)
{
    for (size_t i = 0; i < s->blocks; i++)
        dock_direct_copy(to + (ptrdiff_t)i * s->dest, from + (ptrdiff_t)i * s->source, s->size);
}

void osh_iput(struct dock_shmem_ctx *c, void *dest, const void *source, struct osh_strides s, int pe)
{
    pe = osh_world_pe(c, pe);
    if (s.blocks == 0 || s.size == 0)
        return;
    char *near = strided_near(c, dest, s.dest, &s, pe);
    if (near) {
        strided_copy(near, source, &s);
        osh_near_count(DOCK_STORE_PUT);
        return;
    }
    struct osh_remote r = strided_remote(dest, s.dest, &s, pe);
    lock(c);
    struct osh_way *w = way(c, pe);
    strided(c, w, DOCK_OP_WRITE, r, s.dest, source, s.source, &s);
    wait_executed(c, w, w->posted);
    unlock(c);
}

void osh_iget(struct dock_shmem_ctx *c, void *dest, const void *source, struct osh_strides s, int pe)
{
    pe = osh_world_pe(c, pe);
    if (s.blocks == 0 || s.size == 0)
        return;
    const char *near = strided_near(c, source, s.source, &s, pe);
    if (near) {
        strided_copy(dest, near, &s);
        dock_fence_load(); // as in osh_get
        osh_near_count(DOCK_STORE_GET);
        return;
    }
    struct osh_remote r = strided_remote(source, s.source, &s, pe);
    lock(c);
    struct osh_way *w = way(c, pe);
    strided(c, w, DOCK_OP_READ, r, s.source, dest, s.dest, &s);
    wait_done(c, w, w->posted);
    unlock(c);
}

// ---- atomics and signals

static uint64_t post_atomic(struct dock_shmem_ctx *c, struct osh_way *w, struct osh_remote r,
                            struct osh_atomic a, void *result, uint32_t flags)
{
    struct dock_sge sge = {.addr = (uintptr_t)result, .len = a.size, .key = osh.own->lkey};
    struct dock_wr wr = {.op = a.op,
                         .nsge = 1,
                         .flags = flags,
                         .sge = &sge,
                         .rkey = r.key,
                         .raddr = r.addr,
                         .operand = a.operand,
                         .compare = a.compare};

    return post(c, w, &wr);
}

void osh_post_atomic(struct dock_shmem_ctx *c, void *fetch, void *dest, struct osh_atomic a, int pe)
{
    pe = osh_world_pe(c, pe);
    struct osh_remote r = osh_remote(dest, a.size, pe);
    lock(c);
    post_atomic(c, way(c, pe), r, a, fetch ? fetch : &c->sink, 0);
    unlock(c);
}

uint64_t osh_post_fetch(struct dock_shmem_ctx *c, void *dest, struct osh_atomic a, int pe)
{
    uint64_t old = 0; // little endian: a short word is the low half

    pe = osh_world_pe(c, pe);
    struct osh_remote r = osh_remote(dest, a.size, pe);
    lock(c);
    struct osh_way *w = way(c, pe);
    wait_done(c, w, post_atomic(c, w, r, a, &old, DOCK_F_COMPLETE));
    unlock(c);
    return old;
}

// SET rides in the WRITE's own request; ADD is an atomic behind it, and behind a fence, on the same queue.
void osh_put_signal(struct dock_shmem_ctx *c, void *dest, const void *source, size_t len, struct osh_signal s,
                    int pe, bool nbi)
{
    pe = osh_world_pe(c, pe);
    if (osh_near_signal(c, dest, source, len, s, pe))
        return;
    struct osh_remote word = osh_remote(s.addr, 8, pe), r = {0};
    size_t before = s.op == SHMEM_SIGNAL_ADD || len > PIECE ? len : 0; // what goes ahead of the notifying WR
    if (len)
        r = osh_remote(dest, len, pe);
    lock(c);
    struct osh_way *w = way(c, pe);
    if (before)
        transfer(c, w, DOCK_OP_WRITE, 0, r, source, len);
    if (s.op == SHMEM_SIGNAL_ADD) {
        struct osh_atomic a = {.op = DOCK_OP_FADD, .size = 8, .operand = s.value};
        post_atomic(c, w, word, a, &c->sink, len ? DOCK_F_FENCE : 0);
    } else {
        struct dock_sge sge = {
            .addr = (uintptr_t)source, .len = (uint32_t)(len - before), .key = osh.own->lkey};
        struct dock_wr wr = {.op = DOCK_OP_WRITE_NOTIFY,
                             .nsge = sge.len != 0,
                             .flags = before ? DOCK_F_FENCE : 0,
                             .sge = &sge,
                             .rkey = r.key,
                             .raddr = r.addr,
                             .notify_key = word.key,
                             .notify_addr = word.addr,
                             .notify_value = s.value};
        post(c, w, &wr);
    }
    if (!nbi)
        wait_executed(c, w, w->posted);
    unlock(c);
}

// ---- what is refused

void osh_bad_pe(int pe, int n)
{
    if (osh.n == 0)
        osh_fatal("OpenSHMEM was called %s", osh.ended ? "after shmem_finalize" : "before shmem_init");
    if (n == 0 || n == osh.n)
        osh_fatal("PE %d: there are %d PEs, 0 to %d, or the context is not valid", pe, osh.n, osh.n - 1);
    osh_fatal("PE %d: the context's team has %d PEs, 0 to %d", pe, n, n - 1);
}

void osh_bad_address(const void *addr, size_t len, int pe)
{
    const struct osh_range *r = osh.pe[osh.me].card.range;

    osh_fatal(
        "%p, %zu bytes, for PE %d: not symmetric memory. The heap is %#llx to %#llx, the program's static "
        "data %#llx to %#llx",
        addr, len, pe, (unsigned long long)r[0].base, (unsigned long long)r[0].base + r[0].len,
        (unsigned long long)r[1].base, (unsigned long long)r[1].base + r[1].len);
}
