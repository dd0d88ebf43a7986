// SPDX-License-Identifier: MIT
// timeout: 120
// XRC over one alias, as alias_test.c: a shared queue, or the targets through which it is reached, are taken
// away under their users. Initiators, targets and shared queue belong to a device each, so that neither of
// the latter two is safe by the other's waiting; ThreadSanitizer sees all sides. Of what a sender has done
// the owner knows nothing that would order it: only that it has failed, and waits for the next aim.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"

#ifdef __SANITIZE_THREAD__
#define RUN_MS 600u
#else
#define RUN_MS 60u
#endif
#define SENDERS 2u
#define DEPTH 8u   // requests of a sender in flight
#define LEN 49152u // it takes longer than what the owner does between its call and its own store
#define RECVS 8u
#define ADD_AT (SENDERS * LEN) // behind a part for each sender: a word that all add to
#define RECV_AT (ADD_AT + 64)
#define MEM (RECV_AT + RECVS * LEN)
#define DOMAIN 5u
#define AIMS 4096u

// Where to send; it never changes once it is published.
struct aim {
    unsigned turn;
    uint32_t srq, target[SENDERS];
    struct dock_mr mr;
};

static struct dock_dev *dev, *between, *other; // of the initiators, the targets, the shared queue
static struct aim aims[AIMS];
static unsigned published;
static _Atomic(const struct aim *) aim;
static _Atomic bool over;
static _Atomic unsigned arrived, failed;

struct sender {
    pthread_t thread;
    struct end e;
    unsigned number, turn;
    _Atomic unsigned waits; // its requests of this turn have ended
    uint64_t posted, done;
};

struct owner {
    struct end to, through; // CQs and memory of the shared queue; CQs of the targets
    struct dock_rq *srq;
    struct dock_qp *target[SENDERS];
    uint64_t received;
};

static struct sender senders[SENDERS];

static const struct dock_qp_mod impatient = {
    .timeout = 8, .retry = 1, .rnr_retry = 1, .rnr_timer = 1, .rd_atomic = 16, .dest_rd_atomic = 16};

static struct dock_qp *half(struct end *e, enum dock_xrc which)
{
    bool sends = which == DOCK_XRC_INI;
    struct dock_qp_attr a = {.service = DOCK_RC,
                             .role = sends ? DOCK_SENDS : DOCK_RECEIVES,
                             .xrc = which,
                             .xrcd = DOMAIN,
                             .pd = e->pd,
                             .send_cq = e->scq,
                             .recv_cq = e->rcq,
                             .max_send_wr = sends ? DEPTH : 0,
                             .max_send_sge = sends};
    struct dock_qp *qp;

    memcpy(a.eid, test_eid, 16);
    assert_int_equal(dock_qp_create(e->dev, &a, &qp), 0);
    return qp;
}

static void reset(struct dock_qp *qp)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_RESET};

    assert_int_equal(dock_qp_modify(qp, &m), 0);
}

// ---- a sender

static void post_one(struct sender *s, const struct aim *a)
{
    static const uint8_t ops[] = {DOCK_OP_SEND, DOCK_OP_WRITE, DOCK_OP_READ, DOCK_OP_SEND_IMM, DOCK_OP_FADD};
    uint8_t op = ops[s->posted % sizeof ops];
    struct dock_sge sge;
    uint32_t len = op == DOCK_OP_FADD || s->posted % 3 == 0 ? 8 : LEN;
    uint64_t at = a->mr.va + (op == DOCK_OP_FADD ? ADD_AT : (uint64_t)s->number * LEN);
    struct dock_wr wr = wr_onesided(op, &s->e, &sge, s->posted % DEPTH * LEN, len, &a->mr, at);

    wr.operand = 1;
    wr.remote = a->srq;
    assert_int_equal(end_post(&s->e, &wr), 0);
    s->posted++;
}

// false: it has failed, and so will all behind it.
static bool drain(struct sender *s)
{
    struct dock_wc wc;
    bool good = true;

    while (end_poll(s->e.scq, &wc)) {
        good &= !wc.status;
        atomic_fetch_add_explicit(wc.status ? &failed : &arrived, 1, memory_order_relaxed);
        s->done++;
    }
    return good;
}

static void until_it_fails(struct sender *s, const struct aim *a)
{
    bool good = true;

    reset(s->e.qp);
    end_connect(&s->e, a->target[s->number], &impatient);
    while (good && !atomic_load_explicit(&over, memory_order_relaxed)) {
        if (s->posted - s->done < DEPTH)
            post_one(s, a);
        else
            sched_yield();
        good = drain(s);
    }
    for (; s->done != s->posted; drain(s))
        sched_yield();
}

static void *send_on(void *arg)
{
    struct sender *s = arg;

    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        const struct aim *a = atomic_load_explicit(&aim, memory_order_acquire); // pairs with publish
        if (a->turn == s->turn) {
            sched_yield();
            continue;
        }
        until_it_fails(s, a);
        s->turn = a->turn;
        atomic_store_explicit(&s->waits, s->turn, memory_order_relaxed);
    }
    return NULL;
}

// ---- the owner

static void post_receive(struct owner *o, uint64_t id)
{
    struct dock_sge s = {
        .addr = (uintptr_t)o->to.mem + RECV_AT + id % RECVS * LEN, .len = LEN, .key = o->to.mr->lkey};

    dock_recv_begin(o->srq);
    assert_int_equal(dock_recv_put(o->srq, id, &s, 1), 0);
    dock_recv_end(o->srq);
}

static void take_messages(struct owner *o, bool post)
{
    for (struct dock_wc wc; end_poll(o->to.rcq, &wc); o->received++) {
        memset(o->to.mem + RECV_AT + wc.id % RECVS * LEN, (int)o->received, LEN);
        if (post && !wc.status)
            post_receive(o, wc.id);
    }
}

static void make_shared_queue(struct owner *o)
{
    struct dock_srq_attr a = {.pd = o->to.pd, .max_wr = RECVS, .max_sge = 1};

    assert_int_equal(dock_xrc_srq_create(other, &a, o->to.rcq, DOMAIN, &o->srq), 0);
    for (uint64_t i = 0; i < RECVS; i++)
        post_receive(o, i);
}

static void connect_target(struct owner *o, unsigned i)
{
    struct end e = {.service = DOCK_RC, .qp = o->target[i]};

    end_connect(&e, dock_qp_number(senders[i].e.qp), NULL);
}

static void make_targets(struct owner *o)
{
    for (unsigned i = 0; i < SENDERS; i++) {
        o->target[i] = half(&o->through, DOCK_XRC_TGT);
        connect_target(o, i);
    }
}

static void end_targets(struct owner *o)
{
    for (unsigned i = 0; i < SENDERS; i++)
        assert_int_equal(dock_qp_destroy(o->target[i]), 0);
}

static void publish(const struct owner *o)
{
    struct aim *a = &aims[published++];

    *a = (struct aim){.turn = published, .srq = dock_srq_number(o->srq), .mr = *o->to.mr};
    for (unsigned i = 0; i < SENDERS; i++)
        a->target[i] = dock_qp_number(o->target[i]);
    atomic_store_explicit(&aim, a, memory_order_release); // pairs with send_on
}

static bool all_wait(void)
{
    for (unsigned i = 0; i < SENDERS; i++)
        if (atomic_load_explicit(&senders[i].waits, memory_order_relaxed) != published)
            return false;
    return true;
}

// Some arrive; nobody has an owner to wait for who posts no receives.
static void serve_for_a_while(struct owner *o)
{
    unsigned before = atomic_load_explicit(&arrived, memory_order_relaxed);
    uint64_t until = dock_now_ns() + 1000000000ull * slow_down();

    while (atomic_load_explicit(&arrived, memory_order_relaxed) - before < 4 * DEPTH && !all_wait() &&
           dock_now_ns() < until)
        take_messages(o, true);
}

static void await_senders(void)
{
    uint64_t until = dock_now_ns() + 30000000000ull * slow_down();

    while (!all_wait() && dock_now_ns() < until)
        sched_yield();
    assert_true(all_wait());
}

static void the_shared_queue(struct owner *o)
{
    assert_int_equal(dock_xrc_srq_destroy(o->srq), 0);
    memset(o->to.mem, 3, o->to.mem_size); // nobody works here any more
    take_messages(o, false);
    await_senders();
    make_shared_queue(o);
    for (unsigned i = 0; i < SENDERS; i++) { // one that was asked for a queue that is gone has failed
        reset(o->target[i]);
        connect_target(o, i);
    }
}

// There is no other way to the memory of a sender.
static void the_targets(struct owner *o)
{
    for (unsigned i = 0; i < SENDERS; i++) {
        assert_int_equal(dock_qp_destroy(o->target[i]), 0);
        memset(o->to.mem + i * LEN, 3, LEN);
    }
    memset(o->to.mem, 4, o->to.mem_size);
    take_messages(o, true);
    await_senders();
    make_targets(o);
}

// ---- all of it

static void start(struct sender *s, unsigned number)
{
    struct end_opts e = {.service = DOCK_RC, .mem = DEPTH * LEN};

    *s = (struct sender){.number = number};
    end_open(&s->e, dev, &e);
    assert_int_equal(dock_qp_destroy(s->e.qp), 0);
    s->e.qp = half(&s->e, DOCK_XRC_INI);
}

static void run(void (*take_away)(struct owner *o))
{
    struct end_opts e = {.service = DOCK_RC, .mem = MEM};
    struct owner o = {.received = 0};
    uint64_t until = dock_now_ns() + RUN_MS * 1000000ull * (test_long() ? 20 : 1);

    atomic_store(&over, false);
    atomic_store(&arrived, 0);
    atomic_store(&failed, 0);
    published = 0;
    end_open(&o.to, other, &e);
    end_open(&o.through, between, &e);
    memset(o.to.mem, 1, o.to.mem_size);
    for (unsigned i = 0; i < SENDERS; i++)
        start(&senders[i], i);
    make_shared_queue(&o);
    make_targets(&o);
    publish(&o);
    for (unsigned i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_on, &senders[i]), 0);
    while (published < AIMS && (published < 4 || dock_now_ns() < until)) {
        serve_for_a_while(&o);
        take_away(&o);
        publish(&o);
    }
    serve_for_a_while(&o);
    atomic_store_explicit(&over, true, memory_order_relaxed);
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
    printf("%u changes, %u requests arrived, %u failed, %llu completions\n", published, atomic_load(&arrived),
           atomic_load(&failed), (unsigned long long)o.received);
    assert_true(atomic_load(&arrived) > 0 && atomic_load(&failed) > 0);
    end_targets(&o);
    assert_int_equal(dock_xrc_srq_destroy(o.srq), 0);
    for (unsigned i = 0; i < SENDERS; i++)
        end_close(&senders[i].e);
    end_close(&o.to);
    end_close(&o.through);
}

static void a_shared_queue_goes_under_its_initiators(void **state)
{
    (void)state;
    run(the_shared_queue);
}

static void targets_go_under_their_initiators(void **state)
{
    (void)state;
    run(the_targets);
}

static int open_devices(void **state)
{
    (void)state;
    return dock_dev_open(NULL, &dev) || dock_dev_open(NULL, &between) || dock_dev_open(NULL, &other);
}

static int close_devices(void **state)
{
    (void)state;
    return dock_dev_close(dev) || dock_dev_close(between) || dock_dev_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shared_queue_goes_under_its_initiators),
        cmocka_unit_test(targets_go_under_their_initiators),
    };

    return cmocka_run_group_tests_name("XRC over one alias", tests, open_devices, close_devices);
}
