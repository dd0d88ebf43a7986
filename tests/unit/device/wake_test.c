// SPDX-License-Identifier: MIT
// timeout: 240
// long-timeout: 1200
// No lost doorbell, no lost wake-up: the store-buffering litmus on the device's own fences, posters that
// ring exactly as the holder lets go, consumers that sleep exactly as a completion comes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"

static uint32_t times(uint32_t n)
{
    return test_long() ? 20 * n : n;
}

// ---- the litmus: each thread stores its word, passes its fence, loads the other's

#define BATCH 1000

static dock_a32 word[2][BATCH * 16], arrived[2];
static uint32_t loaded[2][BATCH];

struct litmus {
    unsigned me;
    uint32_t rounds;
    void (*fence)(void);
};

static void meet(unsigned me, uint32_t round)
{
    atomic_store(&arrived[me], round);
    for (unsigned spins = 0; atomic_load(&arrived[!me]) < round; spins++)
        if (spins % 64 == 63)
            sched_yield();
}

static void *store_then_load(void *arg)
{
    const struct litmus *l = arg;
    unsigned me = l->me;

    for (uint32_t round = 0, step = 0; round < l->rounds; round++) {
        meet(me, ++step);
        for (unsigned i = 0; i < BATCH; i++) {
            dock_set32(&word[me][i * 16], round + 1);
            l->fence();
            loaded[me][i] = dock_peek32(&word[!me][i * 16]);
        }
        meet(me, ++step);
        if (me == 0)
            for (unsigned i = 0; i < BATCH; i++)
                if (loaded[0][i] != round + 1 && loaded[1][i] != round + 1) {
                    fprintf(stderr, "round %u: both threads missed the other's store\n", round);
                    abort();
                }
        meet(me, ++step);
    }
    return NULL;
}

static void full(void)
{
    dock_fence_full();
}

static void light(void)
{
    dock_fence_light();
}

static void litmus(uint32_t rounds, void (*one)(void), void (*other)(void))
{
    struct litmus l[2] = {{0, rounds, one}, {1, rounds, other}};
    pthread_t t[2];

    memset(word, 0, sizeof word);
    memset(arrived, 0, sizeof arrived);
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, store_then_load, &l[i]);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

static void two_full_fences_never_both_miss(void **state)
{
    (void)state;
    litmus(times(1000) / slow_down(), full, full); // batches: 10^6 rounds
}

static void a_light_and_a_heavy_fence_never_both_miss(void **state)
{
    (void)state;
    dock_fence_init();
    litmus(times(20), light, dock_fence_heavy);
    litmus(times(20), dock_fence_heavy, light);
}

// ---- doorbells: in each round all threads ring at once, and all that was posted must be executed before
// the next. The last ring of a round meets the token in the hand of another thread: nobody comes after it
// who could help.

#define POSTERS 3
#define BURST 3

struct posters {
    struct end a, b;
    uint32_t rounds;
    uint64_t seed;
    dock_a32 threads, round;
};

// What each thread does in a round follows from the seed.
static uint32_t burst_of(const struct posters *p, uint32_t thread, uint32_t round)
{
    return 1 + (uint32_t)dock_decide(p->seed, thread, round) % BURST;
}

static void *post_each_round(void *arg)
{
    struct posters *p = arg;
    uint32_t me = atomic_fetch_add(&p->threads, 1);
    struct dock_sge sge = {(uintptr_t)p->a.mem, 8, p->a.mr->lkey};
    struct dock_wr wr = {.op = DOCK_OP_WRITE,
                         .nsge = 1,
                         .sge = &sge,
                         .flags = DOCK_F_COMPLETE,
                         .rkey = p->b.mr->rkey,
                         .raddr = (uintptr_t)p->b.mem + me * 8};

    for (uint32_t round = 1; round <= p->rounds; round++) {
        struct dock_post post;
        wr.op = round % 2 ? DOCK_OP_WRITE : DOCK_OP_READ; // a READ is executed without the queue's lock
        for (unsigned spins = 0; dock_acquire32(&p->round) < round; spins++)
            if (spins % 64 == 63)
                sched_yield();
        for (uint32_t i = (uint32_t)dock_decide(p->seed, me + 100, round) % 40; i; i--)
            dock_relax();
        dock_post_begin(p->a.qp, &post);
        for (uint32_t i = burst_of(p, me, round); i; i--)
            if (dock_post_put(&post, &wr))
                abort();
        dock_post_end(&post);
    }
    return NULL;
}

static void run_rounds(struct posters *p)
{
    struct dock_wc wc;

    for (uint32_t round = 1; round <= p->rounds; round++) {
        uint64_t until = dock_now_ns() + 20000000000ull * slow_down(); // lost is for ever
        uint32_t left = 0;
        for (uint32_t i = 0; i < POSTERS; i++)
            left += burst_of(p, i, round);
        dock_publish32(&p->round, round);
        while (left) {
            if (end_poll(p->a.scq, &wc)) {
                assert_int_equal(wc.status, DOCK_OK);
                left--;
            } else if (dock_now_ns() > until) {
                const struct dock_sq *sq = &p->a.qp->sq; // LOCK or RUN set: its holder does not go on
                fprintf(stderr,
                        "round %u: %u completions never come, word %#x, published %u, executed %u; "
                        "again: DRYDOCK_SEED=%#llx\n",
                        round, left, dock_peek32(&sq->post.word), dock_peek32(sq->post.doorbell), sq->exec,
                        (unsigned long long)p->seed);
                abort();
            } else {
                sched_yield();
            }
        }
        assert_false(end_poll(p->a.scq, &wc));
    }
}

static void doorbells(bool engine, uint32_t rounds)
{
    struct dock_config cfg = {.no_engine_thread = !engine};
    struct end_opts o = {.wr = 32, .cqe = 64};
    struct posters p = {.rounds = rounds, .seed = dock_seed()};
    struct dock_dev *dev;
    pthread_t t[POSTERS];

    printf("seed %#llx\n", (unsigned long long)p.seed);
    assert_int_equal(dock_dev_open(&cfg, &dev), 0);
    end_open(&p.a, dev, &o);
    end_open(&p.b, dev, &o);
    pair_connect(&p.a, &p.b);
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_create(&t[i], NULL, post_each_round, &p);
    run_rounds(&p);
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(t[i], NULL);
    end_close(&p.a);
    end_close(&p.b);
    dock_dev_close(dev);
}

static void no_doorbell_is_lost_among_posters_without_an_engine(void **state)
{
    (void)state;
    doorbells(false, times(100000) / slow_down());
}

static void no_doorbell_is_lost_among_posters_and_an_engine(void **state)
{
    (void)state;
    doorbells(true, times(20000) / slow_down());
}

// Posts exactly as the engine falls asleep: what it has to finish is finished long before its deep sleep
// would end.
static void the_engine_is_woken_whenever_work_is_left_to_it(void **state)
{
    struct end_opts o = {.mem = 1 << 20};
    uint64_t r = dock_seed(), seed = r, worst = 0;
    struct dock_dev *dev;
    struct end a, b;
    struct dock_wc wc;

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    end_open(&a, dev, &o);
    end_open(&b, dev, &o);
    pair_connect(&a, &b);
    for (unsigned i = 0; i < times(200); i++) {
        struct dock_sge sge;
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &a, &sge, 0, 300000, b.mr, (uintptr_t)b.mem);
        struct timespec nap = {.tv_nsec = 9800000 + (long)(dock_rand(&r) % 600000)}; // it ticks for 10 ms
        nanosleep(&nap, NULL);
        uint64_t began = dock_now_ns();
        assert_int_equal(end_post(&a, &wr), 0);
        while (dock_peek64(&a.qp->rec->executed) != i + 1 && dock_now_ns() - began < 5000000000u)
            sched_yield();
        uint64_t took = dock_now_ns() - began;
        worst = took > worst ? took : worst;
        assert_true(end_wait(a.scq, &wc, 5000));
    }
    if (worst > 700000000ull)
        fprintf(stderr, "once it took %llu ms; again: DRYDOCK_SEED=%#llx\n",
                (unsigned long long)worst / 1000000, (unsigned long long)seed);
    assert_true(worst <= 700000000ull);
    end_close(&a);
    end_close(&b);
    dock_dev_close(dev);
}

// ---- completion events

static bool readable(struct dock_chan *chan, int ms)
{
    struct pollfd p = {.fd = dock_chan_fd(chan), .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static void take_event(struct dock_chan *chan, struct dock_cq *cq, void *user)
{
    void *got;

    assert_int_equal(dock_chan_get(chan, &got), 0);
    assert_ptr_equal(got, user);
    dock_cq_ack(cq, 1);
}

struct feeder {
    struct end *from;
    const struct dock_mr *to;
    uint8_t op;
    uint32_t rounds;
    uint64_t seed;
    dock_a32 credit;
};

// One request for each credit, after a pause that sweeps over the time between the consumer's look and its
// sleep.
static void *feed(void *arg)
{
    struct feeder *f = arg;
    uint64_t r = f->seed;
    struct dock_wc wc;

    for (uint32_t n = 1; n <= f->rounds; n++) {
        struct dock_sge sge;
        struct dock_wr wr = wr_onesided(f->op, f->from, &sge, 0, 8, f->to, f->to->va);
        for (unsigned spins = 0; dock_acquire32(&f->credit) < n; spins++)
            if (spins % 64 == 63)
                sched_yield();
        for (uint32_t i = (uint32_t)dock_rand(&r) % 300; i; i--)
            dock_relax();
        if (end_post(f->from, &wr))
            abort();
        if (f->op == DOCK_OP_SEND)
            while (!end_poll(f->from->scq, &wc))
                sched_yield();
    }
    return NULL;
}

// Sweep over the time that the feeder needs, so that completions come before, between and after the looks.
static void dawdle(uint64_t *r)
{
    if (dock_rand(r) % 8 == 0)
        sched_yield();
    for (uint32_t i = (uint32_t)dock_rand(r) % 600; i; i--)
        dock_relax();
}

// Arm, look once more, sleep: the completion was there at the second look, or its event wakes the sleeper.
static void wake_ups(bool other_device, uint32_t rounds)
{
    struct dock_dev *dev[2];
    struct dock_chan *chan;
    struct end a, b;
    struct dock_wc wc;
    pthread_t t;
    uint32_t slept = 0, late = 0;
    uint64_t r = dock_seed() + 1;

    assert_int_equal(dock_dev_open(NULL, &dev[0]), 0);
    dev[1] = dev[0];
    if (other_device)
        assert_int_equal(dock_dev_open(NULL, &dev[1]), 0);
    assert_int_equal(dock_chan_create(dev[1], &chan), 0);
    struct end_opts listening = {.chan = chan}, deaf = {0};
    end_open(&a, dev[0], other_device ? &deaf : &listening);
    end_open(&b, dev[1], other_device ? &listening : &deaf);
    pair_connect(&a, &b);
    struct dock_cq *cq = other_device ? b.rcq : a.scq;
    struct feeder f = {.from = &a,
                       .to = b.mr,
                       .op = other_device ? DOCK_OP_SEND : DOCK_OP_WRITE,
                       .rounds = rounds,
                       .seed = dock_seed()};
    pthread_create(&t, NULL, feed, &f);
    for (uint32_t n = 1; n <= rounds; n++) {
        if (other_device)
            assert_int_equal(end_recv(&b, n, b.mem, 8), 0);
        dock_publish32(&f.credit, n);
        while (!end_poll(cq, &wc)) {
            dawdle(&r);
            dock_cq_arm(cq, false, false);
            if (end_poll(cq, &wc)) {
                late++;
                break;
            }
            slept++;
            if (!readable(chan, 5000)) {
                fprintf(stderr, "round %u: a wake-up is lost; again: DRYDOCK_SEED=%#llx\n", n,
                        (unsigned long long)f.seed);
                abort();
            }
            take_event(chan, cq, other_device ? (void *)&b : (void *)&a);
        }
        assert_int_equal(wc.status, DOCK_OK);
    }
    pthread_join(t, NULL);
    printf("%u rounds, slept %u times, %u times found it at the second look\n", rounds, slept, late);
    end_close(&a);
    end_close(&b);
    assert_int_equal(dock_chan_destroy(chan), 0);
    if (other_device)
        dock_dev_close(dev[1]);
    dock_dev_close(dev[0]);
}

static void no_wake_up_is_lost_of_a_sender(void **state)
{
    (void)state;
    wake_ups(false, times(100000) / slow_down() / slow_down());
}

static void no_wake_up_is_lost_of_a_receiver_in_another_device(void **state)
{
    (void)state;
    wake_ups(true, times(20000) / slow_down() / slow_down());
}

// What was asked for x what comes: is there an event?
static void events_any_and_solicited(void **state)
{
    static const struct {
        const char *what;
        bool armed, solicited_only, solicited, fails, event;
    } t[] = {
        {"not armed", false, false, true, false, false},
        {"any, plain", true, false, false, false, true},
        {"any, solicited", true, false, true, false, true},
        {"solicited, plain", true, true, false, false, false},
        {"solicited, solicited", true, true, true, false, true},
        {"solicited, failed", true, true, false, true, true},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
        struct dock_dev *dev;
        struct dock_chan *chan;
        struct end a, b;
        struct dock_sge sge;
        struct dock_wc wc;
        assert_int_equal(dock_dev_open(NULL, &dev), 0);
        assert_int_equal(dock_chan_create(dev, &chan), 0);
        struct end_opts o = {.chan = chan}, none = {0};
        end_open(&a, dev, &none);
        end_open(&b, dev, &o);
        pair_connect(&a, &b);
        assert_int_equal(end_recv(&b, 1, b.mem, t[i].fails ? 4 : 8), 0);
        if (t[i].armed)
            dock_cq_arm(b.rcq, t[i].solicited_only, false);
        struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &a, &sge, 0, 8, b.mr, 0);
        wr.flags |= t[i].solicited ? DOCK_F_SOLICITED : 0;
        assert_int_equal(end_post(&a, &wr), 0);
        assert_true(end_wait(b.rcq, &wc, 3000));
        bool event = readable(chan, t[i].event ? 3000 : 5);
        if (event != t[i].event)
            fprintf(stderr, "%s: expected %d, got %d\n", t[i].what, t[i].event, event);
        assert_int_equal(event, t[i].event);
        if (event)
            take_event(chan, b.rcq, &b);
        end_close(&a);
        end_close(&b);
        dock_chan_destroy(chan);
        dock_dev_close(dev);
    }
}

static void post_one(struct end *a, struct end *b)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, a, &sge, 0, 8, b->mr, (uintptr_t)b->mem);

    assert_int_equal(end_post(a, &wr), 0);
}

// One shot; what lies there already raises nothing (verbs) or at once (URMA); any is not taken back by
// solicited.
static void arming_is_one_shot_and_old_completions_raise_nothing(void **state)
{
    struct dock_dev *dev;
    struct dock_chan *chan;
    struct end a, b;

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_chan_create(dev, &chan), 0);
    struct end_opts o = {.chan = chan}, none = {0};
    end_open(&a, dev, &o);
    end_open(&b, dev, &none);
    pair_connect(&a, &b);

    post_one(&a, &b);
    dock_cq_arm(a.scq, false, false);
    assert_false(readable(chan, 5)); // it was there before
    post_one(&a, &b);
    assert_true(readable(chan, 3000));
    take_event(chan, a.scq, &a);
    post_one(&a, &b);
    assert_false(readable(chan, 5)); // one shot
    dock_cq_arm(a.scq, false, true);
    assert_true(readable(chan, 3000)); // at once: completions wait
    take_event(chan, a.scq, &a);
    dock_cq_arm(a.scq, false, false);
    dock_cq_arm(a.scq, true, false);
    dock_cq_arm(a.scq, false, false);
    post_one(&a, &b);
    assert_true(readable(chan, 3000)); // armed thrice, one event
    take_event(chan, a.scq, &a);
    assert_false(readable(chan, 5));
    end_close(&a);
    end_close(&b);
    dock_chan_destroy(chan);
    dock_dev_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_full_fences_never_both_miss),
        cmocka_unit_test(a_light_and_a_heavy_fence_never_both_miss),
        cmocka_unit_test(no_doorbell_is_lost_among_posters_without_an_engine),
        cmocka_unit_test(no_doorbell_is_lost_among_posters_and_an_engine),
        cmocka_unit_test(the_engine_is_woken_whenever_work_is_left_to_it),
        cmocka_unit_test(no_wake_up_is_lost_of_a_sender),
        cmocka_unit_test(no_wake_up_is_lost_of_a_receiver_in_another_device),
        cmocka_unit_test(events_any_and_solicited),
        cmocka_unit_test(arming_is_one_shot_and_old_completions_raise_nothing),
    };

    return cmocka_run_group_tests_name("sleep and wake", tests, NULL, NULL);
}
