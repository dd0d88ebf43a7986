// SPDX-License-Identifier: MIT
// timeout: 120
// What the owner of memory takes back while others work in it: regions, windows, queues, shared ones and
// members of groups, completion rings. Two devices of one process over one mapping of the target's arena, so
// that ThreadSanitizer sees both sides: whatever the owner does after a call has returned must be ordered
// after what its peers did before. Senders and owner have nothing in common but the device and an aim that
// goes one way. Requests may fail here, and many do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"

#ifdef __SANITIZE_THREAD__
#define RUN_MS 600u
#else
#define RUN_MS 40u
#endif
#define SENDERS 2u
#define DEPTH 8u // requests of a sender in flight
#define LEN 320u // more than what is stored word by word
#define RECVS 16u
#define RECV_AT 32768u
#define RANGE 4096u // a sender's own part of the region; behind the last one a word that all add to
#define AIMS 4096u
#define MEM (SENDERS * RANGE + 64)
#define RIGHTS (DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_ATOMIC)

// Where to send; it never changes once it is published.
struct aim {
    uint32_t qpn;
    bool group;
    struct dock_mr mr;
};

static struct dock_dev *dev, *other;
static struct aim aims[AIMS];
static unsigned published;
static _Atomic(const struct aim *) aim;
static _Atomic bool over;
static _Atomic unsigned arrived, failed;

static const uint8_t in_regions[] = {DOCK_OP_WRITE, DOCK_OP_READ, DOCK_OP_FADD, DOCK_OP_WRITE};
static const uint8_t in_messages[] = {DOCK_OP_SEND, DOCK_OP_SEND_IMM, DOCK_OP_WRITE_IMM};
static const uint8_t in_groups[] = {DOCK_OP_SEND, DOCK_OP_SEND_IMM};

struct sender {
    pthread_t thread;
    struct end e;
    unsigned number;
    const uint8_t *ops;
    unsigned nops;
    uint64_t posted, done;
};

static const struct dock_qp_mod impatient = {
    .timeout = 8, .retry = 1, .rnr_retry = 1, .rnr_timer = 1, .rd_atomic = 16};

static bool drain(struct sender *s)
{
    struct dock_wc wc;

    if (!end_poll(s->e.scq, &wc))
        return false;
    atomic_fetch_add_explicit(wc.status ? &failed : &arrived, 1, memory_order_relaxed);
    s->done++;
    return true;
}

static void post_one(struct sender *s)
{
    const struct aim *a = atomic_load_explicit(&aim, memory_order_acquire); // pairs with publish
    uint8_t op = s->ops[s->posted % s->nops];
    struct dock_sge sge;
    uint32_t len = op == DOCK_OP_FADD || s->posted % 3 == 0 ? 8 : LEN;
    uint64_t at = a->mr.va + (op == DOCK_OP_FADD ? SENDERS * RANGE : (uint64_t)s->number * RANGE);
    struct dock_wr wr = wr_onesided(op, &s->e, &sge, s->posted % DEPTH * LEN, len, &a->mr, at);

    wr.operand = 1;
    wr_aim(&wr, a->qpn);
    wr.bundle = a->group;
    assert_int_equal(end_post(&s->e, &wr), 0);
    s->posted++;
}

static void *send_on(void *arg)
{
    struct sender *s = arg;

    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        if (s->posted - s->done < DEPTH)
            post_one(s);
        if (!drain(s) && s->posted - s->done == DEPTH)
            sched_yield();
    }
    while (s->done != s->posted)
        if (!drain(s))
            sched_yield();
    return NULL;
}

// One thing that an owner does to memory that its peers work in, again and again.
struct owner {
    struct end to;
    struct dock_chan *chan;
    struct dock_bundle *bundle; // the group that it is a member of
    bool shares;                // a receive queue with nobody, which goes with it
    struct dock_rq *srq;
    uint32_t pd;
    struct dock_mr *region, *window[2]; // of type 1 and 2 over the region
    char *mem;
    uint64_t received, binds;
    uint32_t depth;
};

static void publish(const struct owner *o, const struct dock_mr *mr)
{
    struct aim *a = &aims[published++];

    *a = (struct aim){.qpn = o->bundle ? dock_bundle_number(o->bundle) : dock_qp_number(o->to.qp),
                      .group = o->bundle,
                      .mr = *mr};
    atomic_store_explicit(&aim, a, memory_order_release); // pairs with post_one
}

// What is in flight is aimed at what was there before, and takes all its retries to end: every fourth aim
// stands until a request has arrived, or the next ones would never meet anything that still lives.
static void nap(void)
{
    struct timespec t = {.tv_nsec = 300000};
    uint32_t before = atomic_load_explicit(&arrived, memory_order_relaxed);
    uint64_t until = dock_now_ns() + 1000000000ull * slow_down();

    do
        nanosleep(&t, NULL);
    while (published % 4 == 1 && atomic_load_explicit(&arrived, memory_order_relaxed) == before &&
           dock_now_ns() < until);
}

static void post_receive(struct owner *o, uint64_t id)
{
    struct dock_rq *rq = o->srq ? o->srq : dock_qp_rq(o->to.qp);
    struct dock_sge s = {
        .addr = (uintptr_t)o->to.mem + RECV_AT + id % RECVS * LEN, .len = LEN, .key = o->to.mr->lkey};

    dock_recv_begin(rq);
    assert_int_equal(dock_recv_put(rq, id, &s, 1), 0);
    dock_recv_end(rq);
}

static void share(struct owner *o)
{
    struct dock_srq_attr a = {.max_wr = RECVS, .max_sge = 1};

    assert_int_equal(dock_pd_create(other, &o->pd), 0);
    a.pd = o->pd;
    assert_int_equal(dock_srq_create(other, &a, &o->srq), 0);
}

static void open_target(struct owner *o)
{
    struct end_opts e = {.service = DOCK_RM,
                         .mem = 65536,
                         .on_error = DOCK_ON_ERROR_CONTINUE,
                         .cqe = 64,
                         .chan = o->chan,
                         .bundle = o->bundle};

    if (o->shares)
        share(o);
    e.srq = o->srq;
    e.pd = o->pd;
    end_open(&o->to, other, &e);
    memset(o->to.mem, 1, o->to.mem_size); // what was freed before may be here
    end_connect(&o->to, 0, &impatient);
    for (uint64_t i = 0; i < RECVS; i++)
        post_receive(o, i);
}

static void close_target(struct owner *o)
{
    end_close(&o->to);
    if (!o->shares)
        return;
    assert_int_equal(dock_srq_destroy(o->srq), 0);
    assert_int_equal(dock_pd_destroy(other, o->pd), 0);
}

// What has arrived is looked at, written to, and posted again.
static unsigned take_messages(struct owner *o)
{
    struct dock_wc wc;
    unsigned n = 0;

    for (; end_poll(o->to.rcq, &wc); n++) {
        memset(o->to.mem + RECV_AT + wc.id % RECVS * LEN, (int)n, LEN);
        if (!wc.status)
            post_receive(o, wc.id);
    }
    o->received += n;
    return n;
}

// ---- the owner's calls

static struct dock_mr *register_mem(struct owner *o)
{
    struct dock_mr *mr;

    assert_int_equal(dock_mr_register(other, o->to.pd, (uintptr_t)o->mem, MEM, (uintptr_t)o->mem,
                                      RIGHTS | DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_MW_BIND, &mr),
                     0);
    return mr;
}

static void a_region(struct owner *o)
{
    struct dock_mr *mr;

    memset(o->mem, 2, MEM);
    mr = register_mem(o);
    publish(o, mr);
    nap();
    assert_int_equal(dock_mr_deregister(mr), 0);
    memset(o->mem, 3, MEM); // nobody works here any more
}

static void own_request(struct owner *o, const struct dock_wr *wr)
{
    struct dock_wc wc = {.status = 0xfff};

    assert_int_equal(end_post(&o->to, wr), 0);
    assert_true(end_wait(o->to.scq, &wc, 20000 * slow_down()));
    assert_int_equal(wc.status, DOCK_OK);
}

// A bind of no bytes takes a window of type 1 back, a request of its own one of type 2.
static void a_window(struct owner *o)
{
    struct dock_mr *w = o->window[o->binds % 2];
    struct dock_wr bind = {.op = DOCK_OP_BIND,
                           .flags = DOCK_F_COMPLETE,
                           .rkey = w->tid << 8,
                           .remote = o->region->lkey,
                           .raddr = (uintptr_t)o->mem,
                           .operand = MEM,
                           .compare = RIGHTS,
                           .imm = (uint8_t)++o->binds};
    struct dock_wr end = bind;

    memset(o->mem, 2, MEM);
    own_request(o, &bind);
    publish(o, w);
    nap();
    if (w->kind == DOCK_SEG_MW2)
        end =
            (struct dock_wr){.op = DOCK_OP_INV, .flags = DOCK_F_COMPLETE, .rkey = w->rkey, .token = w->rkey};
    end.operand = 0;
    own_request(o, &end);
    memset(o->mem, 3, MEM);
}

static void a_ring(struct owner *o)
{
    struct pollfd p = {.fd = dock_chan_fd(o->chan), .events = POLLIN};
    void *user;

    assert_int_equal(dock_cq_arm(o->to.rcq, false, false), 0);
    for (unsigned i = 0; i < 8; i++)
        take_messages(o);
    if (poll(&p, 1, 1) == 1) {
        assert_int_equal(dock_chan_get(o->chan, &user), 0);
        dock_cq_ack(o->to.rcq, 1);
    }
    take_messages(o);
    o->depth = 320 - o->depth; // 64 or 256
    assert_int_equal(dock_cq_resize(o->to.rcq, o->depth), 0);
    publish(o, o->to.mr);
}

static void a_state(struct owner *o)
{
    static const enum dock_state to[] = {DOCK_ERR, DOCK_RESET};

    publish(o, o->to.mr);
    nap();
    take_messages(o);
    for (unsigned i = 0; i < 2; i++) {
        struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = to[i]};
        assert_int_equal(dock_qp_modify(o->to.qp, &m), 0);
        memset(o->to.mem + RECV_AT, 4, RECVS * LEN); // no receive stands
        for (struct dock_wc wc; end_poll(o->to.rcq, &wc);)
            o->received++;
    }
    end_connect(&o->to, 0, &impatient);
    for (uint64_t i = 0; i < RECVS; i++)
        post_receive(o, i);
}

static void a_queue(struct owner *o)
{
    publish(o, o->to.mr);
    nap();
    take_messages(o);
    close_target(o);
    open_target(o);
}

// ---- all of it

enum kind { OF_ITS_OWN, WINDOWED, MEMBER, SHARED };

static void start(struct sender *s, unsigned number, const uint8_t *ops, unsigned nops)
{
    struct end_opts e = {.service = DOCK_RM, .mem = 65536, .on_error = DOCK_ON_ERROR_CONTINUE};

    *s = (struct sender){.number = number, .ops = ops, .nops = nops};
    end_open(&s->e, dev, &e);
    end_connect(&s->e, 0, &impatient);
    assert_int_equal(pthread_create(&s->thread, NULL, send_on, s), 0);
}

static void open_windows(struct owner *o)
{
    o->region = register_mem(o);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(dock_mw_create(other, o->to.pd, i ? DOCK_SEG_MW2 : DOCK_SEG_MW1, &o->window[i]), 0);
}

static void close_windows(struct owner *o)
{
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(dock_mw_destroy(o->window[i]), 0);
    assert_int_equal(dock_mr_deregister(o->region), 0);
}

static void run(void (*change)(struct owner *o), const uint8_t *ops, unsigned nops, enum kind kind)
{
    static struct sender s[SENDERS];
    struct owner o = {.depth = 64, .shares = kind == SHARED};
    uint64_t until = dock_now_ns() + RUN_MS * 1000000ull * (test_long() ? 20 : 1);

    atomic_store(&over, false);
    atomic_store(&arrived, 0);
    atomic_store(&failed, 0);
    published = 0;
    assert_int_equal(dock_chan_create(other, &o.chan), 0);
    assert_int_equal(dock_mem_alloc(other, MEM, (void **)&o.mem), 0);
    if (kind == MEMBER)
        assert_int_equal(
            dock_bundle_create(other, &(struct dock_bundle_attr){.policy = DOCK_BUNDLE_TURN}, &o.bundle), 0);
    open_target(&o);
    if (kind == WINDOWED)
        open_windows(&o);
    publish(&o, o.to.mr);
    for (unsigned i = 0; i < SENDERS; i++)
        start(&s[i], i, ops, nops);
    while (published < AIMS &&
           (published < 4 || !atomic_load_explicit(&arrived, memory_order_relaxed) || dock_now_ns() < until))
        change(&o);
    atomic_store_explicit(&over, true, memory_order_relaxed);
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(s[i].thread, NULL);
    printf("%u changes, %u requests arrived, %u failed, %llu completions\n", published, atomic_load(&arrived),
           atomic_load(&failed), (unsigned long long)o.received);
    assert_true(atomic_load(&arrived) > 0);
    for (unsigned i = 0; i < SENDERS; i++)
        end_close(&s[i].e);
    take_messages(&o);
    if (kind == WINDOWED)
        close_windows(&o);
    close_target(&o);
    if (kind == MEMBER)
        assert_int_equal(dock_bundle_destroy(o.bundle), 0);
    dock_mem_free(other, o.mem, MEM);
    assert_int_equal(dock_chan_destroy(o.chan), 0);
}

static void a_region_is_its_owners_after_deregistration(void **state)
{
    (void)state;
    run(a_region, in_regions, sizeof in_regions, OF_ITS_OWN);
}

static void a_ring_is_changed_under_its_producers(void **state)
{
    (void)state;
    run(a_ring, in_messages, sizeof in_messages, OF_ITS_OWN);
}

static void a_receive_is_its_owners_after_the_queue_was_stopped(void **state)
{
    (void)state;
    run(a_state, in_messages, sizeof in_messages, OF_ITS_OWN);
}

static void memory_of_a_destroyed_queue_is_used_again(void **state)
{
    (void)state;
    run(a_queue, in_messages, sizeof in_messages, OF_ITS_OWN);
}

static void a_window_is_closed_under_its_users(void **state)
{
    (void)state;
    run(a_window, in_regions, sizeof in_regions, WINDOWED);
}

static void a_member_leaves_its_group_under_its_senders(void **state)
{
    (void)state;
    run(a_queue, in_groups, sizeof in_groups, MEMBER);
}

static void a_shared_receive_queue_goes_with_its_memory(void **state)
{
    (void)state;
    run(a_queue, in_messages, sizeof in_messages, SHARED);
}

static int open_devices(void **state)
{
    (void)state;
    return dock_dev_open(NULL, &dev) || dock_dev_open(NULL, &other);
}

static int close_devices(void **state)
{
    (void)state;
    return dock_dev_close(dev) || dock_dev_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_is_its_owners_after_deregistration),
        cmocka_unit_test(a_ring_is_changed_under_its_producers),
        cmocka_unit_test(a_receive_is_its_owners_after_the_queue_was_stopped),
        cmocka_unit_test(memory_of_a_destroyed_queue_is_used_again),
        cmocka_unit_test(a_window_is_closed_under_its_users),
        cmocka_unit_test(a_member_leaves_its_group_under_its_senders),
        cmocka_unit_test(a_shared_receive_queue_goes_with_its_memory),
    };

    return cmocka_run_group_tests_name("two devices over one alias", tests, open_devices, close_devices);
}
