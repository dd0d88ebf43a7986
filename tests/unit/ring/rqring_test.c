// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>

#include "ring/rqring.h"
#include "unit/ring/ring_fixture.h"

struct rq {
    uint64_t off, bytes;
    struct dock_rqrec *rec;
    struct dock_rqview v;
    uint32_t pi;
};

static const uint32_t starts[] = {0, 1, 65534, 65536, 0x7ffffffe, 0xfffffffd, 0xffffffff};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static void make(struct rq *q, uint32_t size, uint32_t stride, uint32_t start)
{
    q->bytes = sizeof *q->rec + dock_rqring_bytes(size, stride);
    assert_int_equal(dock_arena_alloc(&fix.arena, q->bytes, 64, &q->off), 0);
    q->rec = dock_arena_at(&fix.arena, q->off);
    dock_rqring_format(q->rec, q->off + sizeof *q->rec, size, stride, 9, 3, start);
    assert_int_equal(dock_rqview_open(&fix.arena.view, q->off, &q->v), 0);
    q->pi = start;
}

static void drop(struct rq *q)
{
    dock_arena_free(&fix.arena, q->off, q->bytes);
}

static void post(struct rq *q, uint32_t number)
{
    dock_set32(&q->v.index[q->pi & (q->v.size - 1)], number);
    dock_publish32(&q->rec->pi, ++q->pi);
}

static void receives_are_taken_in_the_order_of_posting_whatever_their_numbers(void **state)
{
    (void)state;
    for (unsigned s = 0; s < COUNT(starts); s++) {
        struct rq q;
        uint32_t number, left, next = 0, out = 0;
        make(&q, 8, 1, starts[s]);
        for (unsigned round = 0; round < 30; round++) {
            unsigned n = 1 + round % 8;
            for (unsigned i = 0; i < n; i++)
                post(&q, next++ * 5 & 7);
            for (unsigned i = 0; i < n; i++) {
                assert_int_equal(dock_rq_take(&q.v, &fix.me, 0, &number, &left), 0);
                assert_int_equal(number, out++ * 5 & 7);
                assert_int_equal(left, n - 1 - i);
            }
            assert_int_equal(dock_rq_take(&q.v, &fix.me, 0, &number, &left), -EAGAIN);
        }
        drop(&q);
    }
}

static struct rq *watched;
static uint64_t claim_seen[2];
static uint32_t ci_seen[2];

static void watch(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    (void)object;
    (void)sequence;
    if (at == DOCK_AT_CLAIM || at == DOCK_AT_TAKEN) {
        claim_seen[at == DOCK_AT_TAKEN] = dock_peek64(&watched->v.claims[5]);
        ci_seen[at == DOCK_AT_TAKEN] = dock_word_value(dock_peek64(&watched->rec->ci));
    }
}

static void the_claim_stands_before_the_consumer_index_moves(void **state)
{
    struct rq q;
    uint32_t number, left;
    uint64_t claim = dock_claim_make(fix.me.me, 0xabcde);

    (void)state;
    make(&q, 8, 1, 0xffffffff);
    watched = &q;
    post(&q, 5);
    dock_probe_hook = watch;
    assert_int_equal(dock_rq_take(&q.v, &fix.me, claim, &number, &left), 0);
    dock_probe_hook = NULL;
    assert_int_equal(claim_seen[0], claim);
    assert_int_equal(ci_seen[0], 0xffffffff);
    assert_int_equal(claim_seen[1], claim);
    assert_int_equal(ci_seen[1], 0);
    assert_int_equal(dock_claim_queue(claim), 0xabcde);
    assert_int_equal(claim >> 32, fix.me.me);
    drop(&q);
}

static enum dock_moment die_at;

static void die(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    (void)object;
    (void)sequence;
    if (at == die_at)
        _exit(42);
}

static void take_and_die(void *arg, struct child *parent)
{
    struct rq *q = arg;
    struct dock_waiter w;
    static struct dock_view view;
    struct dock_rqview v;
    uint32_t number, left;

    fixture_as_peer(&w, &view);
    say(parent->to, &w.me, sizeof w.me);
    child_check(dock_rqview_open(&view, q->off, &v) == 0);
    dock_probe_hook = die;
    dock_rq_take(&v, &w, dock_claim_make(w.me, 1), &number, &left);
}

static void a_taker_that_died(enum dock_moment at, bool moved)
{
    struct rq q;
    uint32_t number, left;
    dock_who dead;

    make(&q, 4, 1, 0xffffffff);
    post(&q, 2);
    post(&q, 3);
    die_at = at;
    struct child c = child_start(take_and_die, &q);
    hear(c.from, &dead, sizeof dead);
    assert_int_equal(child_end(&c), 42);
    assert_int_equal(dock_peek64(&q.v.claims[2]), dock_claim_make(dead, 1)); // the owner's repair finds it
    assert_int_equal(dock_rq_take(&q.v, &fix.me, 77, &number, &left), 0);
    assert_int_equal(number, moved ? 3 : 2);
    assert_int_equal(left, moved ? 0 : 1);
    drop(&q);
}

static void one_who_died_between_claim_and_index_leaves_the_receive_posted(void **state)
{
    (void)state;
    a_taker_that_died(DOCK_AT_CLAIM, false);
}

static void one_who_died_after_the_index_moved_leaves_a_claim(void **state)
{
    (void)state;
    a_taker_that_died(DOCK_AT_TAKEN, true);
}

static void an_index_that_cannot_be_is_refused_and_a_number_is_bounded(void **state)
{
    struct rq q;
    uint32_t number, left;

    (void)state;
    make(&q, 4, 2, 10);
    dock_publish32(&q.rec->pi, 15); // five posted in a ring of four
    assert_int_equal(dock_rq_take(&q.v, &fix.me, 0, &number, &left), -EBADMSG);
    dock_publish32(&q.rec->pi, 9);
    assert_int_equal(dock_rq_take(&q.v, &fix.me, 0, &number, &left), -EBADMSG);
    assert_int_equal(dock_word_holder(dock_peek64(&q.rec->ci)), 0);
    q.pi = 10;
    post(&q, 0xffffffff);
    assert_int_equal(dock_rq_take(&q.v, &fix.me, 0, &number, &left), 0);
    assert_true(number < 4);
    drop(&q);
}

static void the_sges_of_a_receive_stand_together(void **state)
{
    struct rq q;

    (void)state;
    make(&q, 4, 4, 0);
    assert_int_equal((char *)dock_rq_sges(&q.v, 1) - (char *)dock_rq_sges(&q.v, 0), 64);
    assert_ptr_equal(dock_rq_sges(&q.v, 0), q.v.sges);
    assert_true((char *)(dock_rq_sges(&q.v, 3) + 4) <= (char *)q.v.index);
    assert_true((char *)(q.v.index + 4) <= (char *)q.v.claims);
    assert_true((uint64_t)((char *)(q.v.claims + 4) - (char *)q.rec) <= q.bytes);
    drop(&q);
}

static void a_record_that_does_not_hold_together_is_refused(void **state)
{
    struct rq q;
    struct dock_rqview v;

    (void)state;
    make(&q, 4, 2, 0);
    uint32_t *words[] = {&q.rec->size, &q.rec->stride, &q.rec->id, &q.rec->pd, &q.rec->sum};
    uint64_t *offsets[] = {&q.rec->sges, &q.rec->index, &q.rec->claims};
    for (unsigned i = 0; i < COUNT(words); i++) {
        *words[i] ^= 8;
        assert_int_equal(dock_rqview_open(&fix.arena.view, q.off, &v), -EBADMSG);
        *words[i] ^= 8;
    }
    for (unsigned i = 0; i < COUNT(offsets); i++) {
        uint64_t right = *offsets[i], wrong[] = {right + 64, right + 8, 1ull << 50, ~0ull - 63};
        for (unsigned k = 0; k < COUNT(wrong); k++) {
            *offsets[i] = wrong[k];
            assert_int_equal(dock_rqview_open(&fix.arena.view, q.off, &v), -EBADMSG);
            q.rec->sum = k ? dock_rqrec_sum(q.rec) : q.rec->sum; // a right sum does not make it right
            assert_int_equal(dock_rqview_open(&fix.arena.view, q.off, &v), -EBADMSG);
        }
        *offsets[i] = right;
        q.rec->sum = dock_rqrec_sum(q.rec);
    }
    assert_int_equal(dock_rqview_open(&fix.arena.view, q.off, &v), 0);
    drop(&q);
}

#define TAKERS 4
#define RECEIVES 20000

static struct rq shared_q;
static dock_a32 taken[RECEIVES], total;

static void *take_many(void *arg)
{
    uint32_t number, left;

    (void)arg;
    while (dock_peek32(&total) < RECEIVES) {
        if (dock_rq_take(&shared_q.v, &fix.me, 1, &number, &left)) {
            sched_yield();
            continue;
        }
        uint32_t what = shared_q.v.sges[number].len;
        dock_publish64(&shared_q.v.claims[number], 0); // its place may be used again
        atomic_fetch_add(&taken[what], 1);
        atomic_fetch_add(&total, 1);
    }
    return NULL;
}

static void no_receive_is_taken_twice_and_none_is_lost(void **state)
{
    pthread_t t[TAKERS];

    (void)state;
    make(&shared_q, 16, 1, 0xffffff00u);
    for (unsigned i = 0; i < TAKERS; i++)
        pthread_create(&t[i], NULL, take_many, NULL);
    for (uint32_t n = 0, number = 0; n < RECEIVES; n++) {
        uint32_t at;
        do { // a number whose claim is gone and that is not posted
            at = number++ & 15;
            if (dock_acquire64(&shared_q.v.claims[at]))
                sched_yield();
        } while (dock_acquire64(&shared_q.v.claims[at]) ||
                 shared_q.pi - dock_word_value(dock_peek64(&shared_q.rec->ci)) >= 8);
        bool posted = false;
        for (uint32_t i = dock_word_value(dock_acquire64(&shared_q.rec->ci)); i != shared_q.pi; i++)
            posted |= dock_peek32(&shared_q.v.index[i & 15]) == at;
        if (posted || dock_acquire64(&shared_q.v.claims[at])) {
            n--;
            continue;
        }
        shared_q.v.sges[at].len = n;
        post(&shared_q, at);
    }
    for (unsigned i = 0; i < TAKERS; i++)
        pthread_join(t[i], NULL);
    for (unsigned i = 0; i < RECEIVES; i++)
        assert_int_equal(taken[i], 1);
    drop(&shared_q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receives_are_taken_in_the_order_of_posting_whatever_their_numbers),
        cmocka_unit_test(the_claim_stands_before_the_consumer_index_moves),
        cmocka_unit_test(one_who_died_between_claim_and_index_leaves_the_receive_posted),
        cmocka_unit_test(one_who_died_after_the_index_moved_leaves_a_claim),
        cmocka_unit_test(an_index_that_cannot_be_is_refused_and_a_number_is_bounded),
        cmocka_unit_test(the_sges_of_a_receive_stand_together),
        cmocka_unit_test(a_record_that_does_not_hold_together_is_refused),
        cmocka_unit_test(no_receive_is_taken_twice_and_none_is_lost),
    };

    return cmocka_run_group_tests_name("the receive ring", tests, fixture_setup, fixture_teardown);
}
