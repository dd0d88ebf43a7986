// SPDX-License-Identifier: MIT
// Posters, pollers, the engine and the finishing threads of a late fabric at once: every WR completes once,
// in order, with its data, whether its queue lives, fails in the middle, is put in error, or is destroyed
// with work in flight.
// timeout: 120
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/seed.h"
#include "lib/late.h"
#include "lib/pair.h"

#define QUEUES 2
#define DEPTH 32
#define SLOTS 64 // more than can be posted at once: a slot is not used twice at a time
#define WRS 1500
#define ROUNDS 4
#define PATTERN 0x5eed5eed5eed5eedull

// In an end's memory: a word per slot for each use, 64 bytes apart.
enum area { SOURCE, RESULT, TARGET, INBOX, COUNTER, CONSTANT, AREAS };

enum ending { COMPLETES, FAILS, IS_PUT_IN_ERROR, IS_DESTROYED };

struct queue {
    struct end a, b;
    uint64_t seed;
    unsigned number;
    dock_a32 posted; // WRs, told to the poller when the poster has stopped
    dock_a32 stopped, stop;
    const char *wrong; // of the poller
    uint32_t wrong_at;
    pthread_t poster, poller;
};

static uint64_t seed;

static void *word(struct end *e, enum area area, uint32_t id)
{
    return e->mem + ((size_t)area * SLOTS + id % SLOTS) * 64;
}

static uint64_t draw(const struct queue *q, uint32_t id, unsigned what)
{
    return dock_decide(q->seed, q->number * 8u + what, id);
}

static uint8_t op_of(const struct queue *q, uint32_t id)
{
    static const uint8_t op[] = {DOCK_OP_WRITE, DOCK_OP_WRITE, DOCK_OP_READ,
                                 DOCK_OP_FADD,  DOCK_OP_SEND,  DOCK_OP_NOP};

    return op[draw(q, id, 0) % sizeof op];
}

static bool signaled(const struct queue *q, uint32_t id)
{
    return id % 8 == 7 || draw(q, id, 1) % 4 == 0;
}

static struct dock_wr make(struct queue *q, uint32_t id, struct dock_sge *sge)
{
    uint8_t op = op_of(q, id);
    bool outward = op == DOCK_OP_WRITE || op == DOCK_OP_SEND;
    void *near = word(&q->a, outward ? SOURCE : RESULT, id);
    void *far = op == DOCK_OP_WRITE  ? word(&q->b, TARGET, id)
                : op == DOCK_OP_READ ? word(&q->b, CONSTANT, 0)
                                     : word(&q->b, COUNTER, 0);
    struct dock_wr wr =
        wr_onesided(op, &q->a, sge, (size_t)((char *)near - q->a.mem), 8, q->b.mr, (uintptr_t)far);

    wr.id = id;
    wr.operand = 1;
    wr.nsge = op != DOCK_OP_NOP;
    wr.flags = (signaled(q, id) ? DOCK_F_COMPLETE : 0) | (draw(q, id, 2) % 8 ? 0 : DOCK_F_FENCE);
    if (outward)
        *(uint64_t *)near = id + 1;
    return wr;
}

// Receives run out when messages come no more.
static void post_receive(struct queue *q, uint32_t id)
{
    while (end_recv(&q->b, id, word(&q->b, INBOX, id), 8) == -ENOMEM && !dock_acquire32(&q->stop) &&
           dock_qp_state(q->a.qp) != DOCK_ERR)
        sched_yield();
}

static bool post_one(struct queue *q, uint32_t id)
{
    struct dock_sge sge;
    struct dock_wr wr = make(q, id, &sge);

    if (wr.op == DOCK_OP_SEND)
        post_receive(q, id);
    while (end_post(&q->a, &wr) == -ENOMEM) {
        if (dock_acquire32(&q->stop))
            return false;
        sched_yield();
    }
    return true;
}

static void *post(void *arg)
{
    struct queue *q = arg;
    uint32_t id = 0;

    while (id < WRS && post_one(q, id))
        id++;
    dock_set32(&q->posted, id);
    dock_publish32(&q->stopped, 1); // pairs with the poller's acquire
    return NULL;
}

// What a WR that is known to be executed has left behind.
static const char *result_of(struct queue *q, uint32_t id, uint64_t *counter)
{
    uint64_t result = dock_peek64(word(&q->a, RESULT, id));

    switch (op_of(q, id)) {
    case DOCK_OP_WRITE: // a later one of this slot may have come
        return dock_peek64(word(&q->b, TARGET, id)) % SLOTS == (id + 1) % SLOTS &&
                       dock_peek64(word(&q->b, TARGET, id)) > id
                   ? NULL
                   : "a WRITE is not where it should be";
    case DOCK_OP_READ:
        return result == PATTERN ? NULL : "a READ brought something else";
    case DOCK_OP_FADD:
        return result == (*counter)++ ? NULL : "atomics of one queue are out of order";
    default:
        return NULL;
    }
}

struct progress {
    uint32_t next; // the first WR that is not covered
    uint64_t counter;
    bool failed;
};

static const char *judge(struct queue *q, struct progress *p, const struct dock_wc *wc)
{
    const char *wrong = NULL;

    if (wc->id < p->next || wc->id - p->next >= DEPTH)
        return "a completion is out of order";
    if (p->failed || wc->status) { // unsignaled ones before it succeeded
        if (p->failed && wc->id != p->next)
            return "behind a failure one is left out";
        if (p->failed && wc->status != DOCK_ST_FLUSH)
            return "behind a failure one is not flushed";
        p->failed = true;
    } else if (!signaled(q, (uint32_t)wc->id)) {
        return "an unsignaled one completes aloud";
    }
    for (; p->next < wc->id; p->next++) {
        if (signaled(q, p->next))
            return "a signaled one is missing";
        if (!wrong)
            wrong = result_of(q, p->next, &p->counter);
    }
    p->next++;
    return wrong || wc->status ? wrong : result_of(q, (uint32_t)wc->id, &p->counter);
}

static bool take_message(struct queue *q)
{
    struct dock_wc wc;

    if (!end_poll(q->b.rcq, &wc))
        return false;
    if (!wc.status && dock_peek64(word(&q->b, INBOX, (uint32_t)wc.id)) != wc.id + 1)
        q->wrong = "a message met another receive";
    return true;
}

static bool all_is_told(struct queue *q, const struct progress *p)
{
    uint32_t posted;

    if (!dock_acquire32(&q->stopped)) // pairs with the poster's publish
        return false;
    posted = dock_peek32(&q->posted);
    if (p->failed)
        return p->next == posted;
    while (posted && !signaled(q, posted - 1))
        posted--;
    return p->next >= posted;
}

static void *poll(void *arg)
{
    struct queue *q = arg;
    struct progress p = {0};
    struct dock_wc wc;

    while (!q->wrong && !all_is_told(q, &p)) {
        bool any = take_message(q);
        if (end_poll(q->a.scq, &wc)) {
            q->wrong = judge(q, &p, &wc);
            q->wrong_at = (uint32_t)wc.id;
        } else if (!any) {
            sched_yield();
        }
    }
    return NULL;
}

static void open_queue(struct queue *q, struct dock_dev *dev, unsigned number, uint64_t s)
{
    struct end_opts o = {.wr = DEPTH};
    struct dock_qp_mod knobs = {.timeout = 14,
                                .retry = 7,
                                .rnr_retry = 7,
                                .rnr_timer = 1,
                                .rd_atomic = 4,
                                .dest_rd_atomic = 16,
                                .access = DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |
                                          DOCK_ACCESS_REMOTE_ATOMIC};

    *q = (struct queue){.seed = s, .number = number};
    end_open(&q->a, dev, &o);
    end_open(&q->b, dev, &o);
    *(uint64_t *)word(&q->b, CONSTANT, 0) = PATTERN;
    end_connect(&q->b, dock_qp_number(q->a.qp), NULL);
    end_connect(&q->a, dock_qp_number(q->b.qp), &knobs);
}

static void nap_us(uint64_t us)
{
    struct timespec t = {.tv_nsec = (long)us * 1000};

    nanosleep(&t, NULL);
}

static void put_in_error(struct queue *q)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_ERR};

    assert_int_equal(dock_qp_modify(q->a.qp, &m), 0);
}

static void run_queue(struct queue *q, enum ending ending, uint64_t s)
{
    if (ending == IS_PUT_IN_ERROR || ending == IS_DESTROYED)
        nap_us(dock_decide(s, 98, q->number) % 3000);
    if (ending == IS_PUT_IN_ERROR)
        put_in_error(q);
    if (ending != IS_DESTROYED) // else nobody polls, and the poster stops at the full queue
        pthread_join(q->poller, NULL);
    dock_publish32(&q->stop, 1); // pairs with the poster's acquire
    pthread_join(q->poster, NULL);
}

static void run_queues(struct queue *q, enum ending ending, uint64_t s)
{
    for (unsigned i = 0; i < QUEUES; i++) {
        assert_int_equal(pthread_create(&q[i].poster, NULL, post, &q[i]), 0);
        if (ending != IS_DESTROYED)
            assert_int_equal(pthread_create(&q[i].poller, NULL, poll, &q[i]), 0);
    }
    for (unsigned i = 0; i < QUEUES; i++)
        run_queue(&q[i], ending, s);
}

static void round_of(enum ending ending, uint64_t s)
{
    struct dock_config cfg = {.fabric = &late_fabric};
    struct queue q[QUEUES];
    struct dock_dev *dev;

    late_open(s, 0);
    assert_int_equal(dock_dev_open(&cfg, &dev), 0);
    for (unsigned i = 0; i < QUEUES; i++)
        open_queue(&q[i], dev, i, s);
    for (unsigned i = 0; ending == FAILS && i < QUEUES; i++)
        late_fail((uint32_t)(dock_decide(s, 99, i) % WRS), DOCK_ST_REM_OP);
    late_threads_start(2);
    run_queues(q, ending, s);
    for (unsigned i = 0; i < QUEUES; i++) {
        if (q[i].wrong)
            fail_msg("queue %u, WR %u: %s; again: DRYDOCK_SEED=%#llx", i, q[i].wrong_at, q[i].wrong,
                     (unsigned long long)seed);
        end_close(&q[i].a); // with WRs in flight
        end_close(&q[i].b);
    }
    struct late_count n = late_count();
    assert_int_equal(n.started, n.finished);
    assert_true(n.reads_high <= 4);
    assert_int_equal(n.fences_broken, 0);
    assert_int_equal(n.after_stop, 0);
    late_threads_stop();
    assert_int_equal(dock_dev_close(dev), 0);
    late_close();
}

static void rounds_of(enum ending ending)
{
#ifdef DOCK_LONG
    unsigned rounds = 50 * ROUNDS;
#else
    unsigned rounds = ROUNDS;
#endif

    for (unsigned i = 0; i < rounds; i++)
        round_of(ending, dock_decide(seed, ending, i));
}

static void queues_that_live(void **state)
{
    (void)state;
    rounds_of(COMPLETES);
}

static void queues_that_fail_in_the_middle(void **state)
{
    (void)state;
    rounds_of(FAILS);
}

static void queues_that_are_put_in_error(void **state)
{
    (void)state;
    rounds_of(IS_PUT_IN_ERROR);
}

static void queues_that_are_destroyed_with_work_in_flight(void **state)
{
    (void)state;
    rounds_of(IS_DESTROYED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_that_live),
        cmocka_unit_test(queues_that_fail_in_the_middle),
        cmocka_unit_test(queues_that_are_put_in_error),
        cmocka_unit_test(queues_that_are_destroyed_with_work_in_flight),
    };

    seed = dock_seed();
    printf("seed %#llx (DRYDOCK_SEED)\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("posters, pollers and late finishers", tests, NULL, NULL);
}
