// SPDX-License-Identifier: MIT
// timeout: 120
// What the owner of memory takes back while others work in it: regions, queues, completion rings. Two devices
// of one process over one mapping of the target's arena, so that ThreadSanitizer sees both sides: whatever
// the owner does after a call has returned must be ordered after what its peers did before. Senders and owner
// have nothing in common but the device and an aim that goes one way. Requests may fail here, and many do.
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

// Where to send; it never changes once it is published.
struct aim {
    uint32_t qpn;
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

static void publish(const struct end *to, const struct dock_mr *mr)
{
    struct aim *a = &aims[published++];

    *a = (struct aim){.qpn = dock_qp_number(to->qp), .mr = *mr};
    atomic_store_explicit(&aim, a, memory_order_release); // pairs with post_one
}

// One thing that an owner does to memory that its peers work in, again and again.
struct owner {
    struct end to;
    struct dock_chan *chan;
    char *mem;
    uint64_t received;
    uint32_t depth;
};

static void nap(void)
{
    struct timespec t = {.tv_nsec = 300000};

    nanosleep(&t, NULL);
}

static void post_receive(struct owner *o, uint64_t id)
{
    assert_int_equal(end_recv(&o->to, id, o->to.mem + RECV_AT + id % RECVS * LEN, LEN), 0);
}

static void open_target(struct owner *o)
{
    struct end_opts e = {
        .service = DOCK_RM, .mem = 65536, .on_error = DOCK_ON_ERROR_CONTINUE, .cqe = 64, .chan = o->chan};

    end_open(&o->to, other, &e);
    memset(o->to.mem, 1, o->to.mem_size); // what was freed before may be here
    end_connect(&o->to, 0, &impatient);
    for (uint64_t i = 0; i < RECVS; i++)
        post_receive(o, i);
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

static void a_region(struct owner *o)
{
    struct dock_mr *mr;

    memset(o->mem, 2, SENDERS * RANGE + 64);
    assert_int_equal(dock_mr_register(other, o->to.pd, (uintptr_t)o->mem, SENDERS * RANGE + 64,
                                      (uintptr_t)o->mem,
                                      DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ |
                                          DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_ATOMIC,
                                      &mr),
                     0);
    publish(&o->to, mr);
    nap();
    assert_int_equal(dock_mr_deregister(mr), 0);
    memset(o->mem, 3, SENDERS * RANGE + 64); // nobody works here any more
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
    publish(&o->to, o->to.mr);
}

static void a_state(struct owner *o)
{
    static const enum dock_state to[] = {DOCK_ERR, DOCK_RESET};

    publish(&o->to, o->to.mr);
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
    publish(&o->to, o->to.mr);
    nap();
    take_messages(o);
    end_close(&o->to);
    open_target(o);
}

// ---- all of it

static void start(struct sender *s, unsigned number, const uint8_t *ops, unsigned nops)
{
    struct end_opts e = {.service = DOCK_RM, .mem = 65536, .on_error = DOCK_ON_ERROR_CONTINUE};

    *s = (struct sender){.number = number, .ops = ops, .nops = nops};
    end_open(&s->e, dev, &e);
    end_connect(&s->e, 0, &impatient);
    assert_int_equal(pthread_create(&s->thread, NULL, send_on, s), 0);
}

static void run(void (*change)(struct owner *o), const uint8_t *ops, unsigned nops)
{
    static struct sender s[SENDERS];
    struct owner o = {.depth = 64};
    uint64_t until = dock_now_ns() + RUN_MS * 1000000ull * (test_long() ? 20 : 1);

    atomic_store(&over, false);
    atomic_store(&arrived, 0);
    atomic_store(&failed, 0);
    published = 0;
    assert_int_equal(dock_chan_create(other, &o.chan), 0);
    assert_int_equal(dock_mem_alloc(other, SENDERS * RANGE + 64, (void **)&o.mem), 0);
    open_target(&o);
    publish(&o.to, o.to.mr);
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
    end_close(&o.to);
    dock_mem_free(other, o.mem, SENDERS * RANGE + 64);
    assert_int_equal(dock_chan_destroy(o.chan), 0);
}

static void a_region_is_its_owners_after_deregistration(void **state)
{
    (void)state;
    run(a_region, in_regions, sizeof in_regions);
}

static void a_ring_is_changed_under_its_producers(void **state)
{
    (void)state;
    run(a_ring, in_messages, sizeof in_messages);
}

static void a_receive_is_its_owners_after_the_queue_was_stopped(void **state)
{
    (void)state;
    run(a_state, in_messages, sizeof in_messages);
}

static void memory_of_a_destroyed_queue_is_used_again(void **state)
{
    (void)state;
    run(a_queue, in_messages, sizeof in_messages);
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
    };

    return cmocka_run_group_tests_name("two devices over one alias", tests, open_devices, close_devices);
}
