// SPDX-License-Identifier: MIT
// timeout: 180
// After deregistration returns no byte moves; remote atomics are atomic among all initiators, on mapped and
// on plain memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/duo.h"

#define MEM (512u << 10)
#define AREA (128u << 10) // at 0 of an end's memory: what is registered and taken away
#define SOURCE (256u << 10)
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

// ---- a region that is taken away under those who use it

struct io_take {
    uint32_t lkey, rkey;
    uint32_t moved; // bytes that changed after the deregistration had returned
    uint64_t delay;
};

static void area_register(struct side *s, void *io)
{
    struct io_take *t = io;
    uint64_t at = (uintptr_t)s->e.mem;

    if (dock_mr_register(s->e.dev, s->e.pd, at, AREA, at, RIGHTS, &s->extra))
        abort();
    t->lkey = s->extra->lkey;
    t->rkey = s->extra->rkey;
}

static void area_take_away(struct side *s, void *io)
{
    struct io_take *t = io;
    uint64_t until = dock_now_ns() + t->delay;

    while (dock_now_ns() < until)
        dock_relax();
    if (dock_mr_deregister(s->extra))
        abort();
    s->extra = NULL;
    memset(s->e.mem, 0x11, AREA); // ours alone, from now on
    until = dock_now_ns() + 200000;
    while (dock_now_ns() < until)
        dock_relax();
    for (uint32_t i = 0; i < AREA; i++)
        t->moved += s->e.mem[i] != 0x11;
}

static void area_receive(struct side *s, void *io)
{
    struct dock_sge sge = {(uintptr_t)s->e.mem, AREA, ((struct io_take *)io)->lkey};
    struct dock_rq *rq = dock_qp_rq(s->e.qp);

    dock_recv_begin(rq);
    for (unsigned i = 0; i < 60; i++)
        dock_recv_put(rq, i, &sge, 1);
    dock_recv_end(rq);
}

enum use { WRITES, READS, SENDS, LOCAL };

struct hammer {
    struct duo *d;
    enum use use;
    uint32_t key;
    uint32_t status; // of the first failure
    dock_a32 wrs;    // that succeeded before it
};

// Use the area until it is refused: long ones and short ones by turns.
static void *hammer(void *arg)
{
    struct hammer *h = arg;
    struct end *e = &h->d->near.e;
    struct dock_wc wc = {.status = DOCK_OK};

    for (unsigned n = 0; n < 100000 && wc.status == DOCK_OK; n++) {
        uint32_t len = n % 3 ? 8 : 100000, off = n % 7 * 8;
        struct dock_sge sge = {(uintptr_t)e->mem + SOURCE, len, e->mr->lkey};
        struct dock_wr wr = {.op = DOCK_OP_WRITE,
                             .nsge = 1,
                             .sge = &sge,
                             .flags = DOCK_F_COMPLETE,
                             .rkey = h->key,
                             .raddr = h->d->mem + off};
        if (h->use == SENDS) {
            if (n == 60)
                break;
            wr.op = DOCK_OP_SEND;
        }
        if (h->use == READS)
            wr.op = DOCK_OP_READ;
        if (h->use == LOCAL) { // our own area is where the READ lands
            wr.op = DOCK_OP_READ;
            wr.rkey = h->d->mr.rkey;
            wr.raddr = h->d->mem + SOURCE;
            sge = (struct dock_sge){(uintptr_t)e->mem + off, len, h->key};
        }
        if (end_post(e, &wr))
            abort();
        if (!end_wait(e->scq, &wc, 20000))
            abort();
        atomic_fetch_add(&h->wrs, wc.status == DOCK_OK);
    }
    h->status = wc.status;
    return NULL;
}

static uint32_t refused(enum use use)
{
    return use == LOCAL ? DOCK_ST_LOC_PROT : use == SENDS ? DOCK_ST_REM_OP : DOCK_ST_REM_ACCESS;
}

// One region, taken away under use: `under_way` once it is used, else before, while or after the first
// request.
static uint32_t once(enum place place, enum use use, uint64_t delay, bool under_way)
{
    struct duo_opts o = {.near = {.mem = MEM}, .far = {.mem = MEM}};
    struct io_take t = {.delay = delay};
    struct duo d;
    struct hammer h = {.d = &d, .use = use};
    pthread_t thread;

    duo_open(&d, place, &o);
    memset(d.near.e.mem + SOURCE, 0x5a, AREA);
    if (use == LOCAL)
        area_register(&d.near, &t);
    else
        duo_far(&d, area_register, &t, sizeof t);
    h.key = use == LOCAL ? t.lkey : t.rkey;
    if (use == SENDS)
        duo_far(&d, area_receive, &t, sizeof t);
    pthread_create(&thread, NULL, hammer, &h);
    while (under_way && !dock_acquire32(&h.wrs))
        sched_yield();
    if (use == LOCAL)
        area_take_away(&d.near, &t);
    else
        duo_far(&d, area_take_away, &t, sizeof t);
    pthread_join(thread, NULL);
    if (t.moved)
        fprintf(stderr, "%s: %u bytes moved after the region was gone\n", place_name[place], t.moved);
    assert_int_equal(t.moved, 0);
    if (use != SENDS || h.status)
        assert_int_equal(h.status, refused(use));
    duo_close(&d);
    return h.wrs;
}

static void nothing_moves(enum use use)
{
    uint64_t r = dock_seed();
    unsigned rounds = 40 / slow_down();

    printf("seed %#llx\n", (unsigned long long)r);
    for (unsigned place = 0; place < PLACES; place++) {
        if (!place_possible(place))
            continue;
        uint32_t wrs = 0;
        for (unsigned i = 0; i < rounds + 2; i++)
            wrs += once((enum place)place, use, dock_rand(&r) % 1000000, i % 2);
        assert_true(wrs > 0);
    }
}

static void no_write_lands_after_deregistration(void **state)
{
    (void)state;
    nothing_moves(WRITES);
}

static void a_read_is_refused_after_deregistration(void **state)
{
    (void)state;
    nothing_moves(READS);
}

static void no_message_lands_after_deregistration(void **state)
{
    (void)state;
    nothing_moves(SENDS);
}

static void no_read_result_lands_after_deregistration(void **state)
{
    (void)state;
    nothing_moves(LOCAL);
}

// ---- atomics of two processes and several threads on one word

#define INITIATORS 2 // beside the near process: threads of the far one, over its self path

struct adder {
    struct end from, to; // `to` is of the domain of the word's region
    const struct dock_mr *mr;
    uint64_t word;
    uint32_t times;
    bool by_cas;
    pthread_t thread;
};

static struct adder adders[INITIATORS];

// Add 1: by FADD, or by CAS until nobody was faster.
static void add_one(struct end *e, uint32_t rkey, uint64_t word, bool by_cas)
{
    struct dock_sge sge = {(uintptr_t)e->mem, 8, e->mr->lkey};
    struct dock_wr wr = {.op = by_cas ? DOCK_OP_CAS : DOCK_OP_FADD,
                         .nsge = 1,
                         .sge = &sge,
                         .flags = DOCK_F_COMPLETE,
                         .rkey = rkey,
                         .raddr = word,
                         .operand = 1};
    uint64_t *old = (uint64_t *)(void *)e->mem;
    struct dock_wc wc;

    for (;;) {
        uint64_t guess = wr.compare;
        wr.operand = by_cas ? guess + 1 : 1;
        if (end_post(e, &wr) || !end_wait(e->scq, &wc, 30000) || wc.status)
            abort();
        if (!by_cas || *old == guess)
            return;
        wr.compare = *old;
    }
}

static void *add_many(void *arg)
{
    struct adder *a = arg;

    for (uint32_t i = 0; i < a->times; i++)
        add_one(&a->from, a->mr->rkey, a->word, a->by_cas);
    return NULL;
}

struct io_add {
    uint32_t times;
    uint64_t value;
};

static void start_adders(struct side *s, void *io)
{
    struct end_opts o = {.mem = 4096};

    for (unsigned i = 0; i < INITIATORS; i++) {
        struct adder *a = &adders[i];
        *a = (struct adder){.mr = s->e.mr,
                            .word = (uintptr_t)s->e.mem + 64,
                            .times = ((struct io_add *)io)->times,
                            .by_cas = i == 1};
        end_open(&a->from, s->e.dev, &o);
        end_open(&a->to, s->e.dev, &o);
        dock_qp_destroy(a->to.qp);
        struct dock_qp_attr qa = {.pd = s->e.pd,
                                  .send_cq = a->to.scq,
                                  .recv_cq = a->to.rcq,
                                  .max_send_wr = 1,
                                  .max_recv_wr = 1,
                                  .max_send_sge = 1,
                                  .max_recv_sge = 1};
        if (dock_qp_create(s->e.dev, &qa, &a->to.qp))
            abort();
        pair_connect(&a->from, &a->to);
        pthread_create(&a->thread, NULL, add_many, a);
    }
}

static void join_adders(struct side *s, void *io)
{
    for (unsigned i = 0; i < INITIATORS; i++) {
        pthread_join(adders[i].thread, NULL);
        end_close(&adders[i].from);
        end_close(&adders[i].to);
    }
    memcpy(&((struct io_add *)io)->value, s->e.mem + 64, 8);
}

static void atomics_are_atomic_among_processes_and_threads(void **state)
{
    (void)state;
    for (unsigned place = 0; place < PLACES; place++) {
        if (!place_possible(place))
            continue;
        struct io_add io = {.times = (place_plain((enum place)place) ? 4000 : 20000) / slow_down()};
        struct duo d;
        duo_open(&d, (enum place)place, NULL);
        duo_far(&d, start_adders, &io, sizeof io);
        for (uint32_t i = 0; i < io.times; i++)
            add_one(&d.near.e, d.mr.rkey, d.mem + 64, i % 4 == 0);
        duo_far(&d, join_adders, &io, sizeof io);
        if (io.value != (uint64_t)io.times * (INITIATORS + 1))
            fprintf(stderr, "%s: expected %llu, got %llu\n", place_name[place],
                    (unsigned long long)io.times * (INITIATORS + 1), (unsigned long long)io.value);
        assert_int_equal(io.value, (uint64_t)io.times * (INITIATORS + 1));
        duo_close(&d);
    }
}

// ---- the target's own processor on the same word

// Adds of the device between which the processor has added: only these show that both were at work at once.
enum { MIXED = 1000, SECONDS = 2 };

static struct {
    pthread_t thread;
    dock_a64 *word;
    dock_a64 adds; // beside the device, so far
    dock_a32 stop;
    bool adopted;
} own;

// Instructions of the processor, as a program would use them, until the device has done its part.
static void *add_by_processor(void *unused)
{
    for (uint32_t i = 0; !dock_peek32(&own.stop); i++) {
        uint64_t seen = atomic_load_explicit(own.word, memory_order_relaxed);

        if (i & 1)
            atomic_fetch_add_explicit(own.word, 1, memory_order_relaxed);
        else if (!atomic_compare_exchange_strong_explicit(own.word, &seen, seen + 1, memory_order_relaxed,
                                                          memory_order_relaxed))
            continue;
        atomic_fetch_add_explicit(&own.adds, 1, memory_order_relaxed);
    }
    return unused;
}

static void start_processor(struct side *s, void *io)
{
    (void)io;
    own.word = (dock_a64 *)(void *)(s->e.mem + 64);
    own.adopted = dock_peek64(&s->e.dev->port->adopt.bytes) != 0;
    atomic_store(&own.adds, 0);
    atomic_store(&own.stop, 0);
    atomic_store(own.word, 0);
    if (pthread_create(&own.thread, NULL, add_by_processor, NULL))
        abort();
}

struct io_own {
    uint64_t adds, value;
    bool adopted;
};

static void stop_processor(struct side *s, void *io)
{
    atomic_store(&own.stop, 1);
    pthread_join(own.thread, NULL);
    (void)s;
    *(struct io_own *)io = (struct io_own){
        .adds = dock_peek64(&own.adds), .value = atomic_load(own.word), .adopted = own.adopted};
}

// On memory that the device reaches by load and store, its atomics and the processor's are one order: in the
// arena, and in a program's own memory that was taken into it.
static void the_targets_own_processor_counts_beside_the_device(void **state)
{
    static const enum place places[] = {SELF_ARENA, HOST_ARENA, HOST_PLAIN};
    uint32_t seen = 0;

    (void)state;
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        struct duo_opts o = {.adopted = true};
        uint64_t until = dock_now_ns() + SECONDS * 1000000000ull, last = 0;
        uint32_t n = 0, mixed = 0;
        struct io_own io = {0};
        struct duo d;

        if (!place_possible(places[i]))
            continue;
        duo_open(&d, places[i], &o);
        duo_far(&d, start_processor, &io, sizeof io);
        for (; mixed < MIXED && dock_now_ns() < until; n++) {
            uint64_t old;
            add_one(&d.near.e, d.mr.rkey, d.mem + 64, n % 4 == 0);
            memcpy(&old, d.near.e.mem, 8);
            mixed += old > last;
            last = old + 1;
        }
        duo_far(&d, stop_processor, &io, sizeof io);
        print_message("%s: %u adds of the device, %u of them beside %llu of the processor\n",
                      place_name[places[i]], n, mixed, (unsigned long long)io.adds);
        if (!place_plain(places[i]) || io.adopted) // else the device works under its word of the target
            assert_int_equal(io.value, n + io.adds);
        else
            print_message("nothing was adopted: not looked at\n");
        seen += mixed;
        duo_close(&d);
    }
    if (!seen) // one processor, or a busy machine: nothing was shown
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_write_lands_after_deregistration),
        cmocka_unit_test(a_read_is_refused_after_deregistration),
        cmocka_unit_test(no_message_lands_after_deregistration),
        cmocka_unit_test(no_read_result_lands_after_deregistration),
        cmocka_unit_test(atomics_are_atomic_among_processes_and_threads),
        cmocka_unit_test(the_targets_own_processor_counts_beside_the_device),
    };

    return cmocka_run_group_tests_name("memory that goes, words that count", tests, NULL, NULL);
}
