// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "ring/cqring.h"
#include "unit/ring/ring_fixture.h"

struct cq {
    uint64_t off, bytes;
    struct dock_cqrec *rec;
    struct dock_cqview v;
    uint32_t ci;
};

static const uint32_t starts[] = {0, 1, 65533, 65536, 0x7ffffffe, 0xfffffffd, 0xffffffff};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static void make(struct cq *q, uint32_t size, uint32_t depth, uint32_t start, uint32_t flags)
{
    q->bytes = sizeof *q->rec + size * sizeof(struct dock_cqe);
    assert_int_equal(dock_arena_alloc(&fix.arena, q->bytes, 64, &q->off), 0);
    q->rec = dock_arena_at(&fix.arena, q->off);
    dock_cqring_format(q->rec, (struct dock_cqe *)(q->rec + 1), q->off + sizeof *q->rec, size, depth, 7,
                       flags, start);
    assert_int_equal(dock_cqview_open(&fix.arena.view, q->off, &q->v), 0);
    q->ci = start;
}

static void drop(struct cq *q)
{
    dock_arena_free(&fix.arena, q->off, q->bytes);
}

static void fit_sum(struct dock_cqrec *rec)
{
    struct dock_cqshape shape = dock_cqrec_shape(rec);

    dock_set32(&rec->sum, dock_cqshape_sum(&shape));
}

static int put(struct cq *q, uint32_t mark)
{
    struct dock_cqe e = {.bytes = mark, .idx_local = mark};
    bool first = false;

    return dock_cq_produce(&q->v, &fix.me, &e, &first);
}

// The mark of the oldest entry, -1 when the ring is empty. The consumer index moves at once.
static int64_t take(struct cq *q)
{
    uint32_t dw0;
    struct dock_cqe *e = dock_cq_look(&q->v, q->ci, &dw0);

    if (!e)
        return -1;
    uint32_t mark = e->bytes;
    dock_publish32(&q->rec->ci, ++q->ci);
    return mark;
}

static void exactly_depth_completions_fit(void **state)
{
    static const struct {
        uint32_t size, depth;
    } t[] = {{1, 1}, {2, 2}, {4, 3}, {4, 4}, {8, 5}, {8, 7}, {8, 8}, {128, 100}};

    (void)state;
    for (unsigned i = 0; i < COUNT(t); i++)
        for (unsigned s = 0; s < COUNT(starts); s++) {
            struct cq q;
            make(&q, t[i].size, t[i].depth, starts[s], 0);
            for (uint32_t n = 0; n < t[i].depth; n++)
                assert_int_equal(put(&q, n), 0);
            assert_int_equal(put(&q, 999), -EOVERFLOW);
            for (uint32_t n = 0; n < t[i].depth; n++)
                assert_int_equal(take(&q), n);
            assert_int_equal(take(&q), -1);
            drop(&q);
        }
}

static void an_overrun_is_told_to_one_producer_only(void **state)
{
    struct cq q;
    struct dock_cqe e = {.bytes = 1};
    bool first = false;

    (void)state;
    make(&q, 1, 1, 0, 0);
    assert_int_equal(dock_cq_produce(&q.v, &fix.me, &e, &first), 0);
    assert_int_equal(dock_cq_produce(&q.v, &fix.me, &e, &first), -EOVERFLOW);
    assert_true(first);
    assert_int_equal(dock_cq_produce(&q.v, &fix.me, &e, &first), -EOVERFLOW);
    assert_false(first);
    assert_int_equal(dock_peek32(&q.rec->overrun), 1);
    drop(&q);
}

// At every fill level and over several passes exactly what was produced is valid, nothing before and
// nothing after.
static void owner_bits_tell_valid_from_stale_on_every_pass(void **state)
{
    (void)state;
    for (unsigned s = 0; s < COUNT(starts); s++) {
        struct cq q;
        uint32_t mark = 0, dw0;
        make(&q, 8, 8, starts[s], 0);
        for (unsigned round = 0; round < 40; round++) {
            unsigned n = round % 9;
            for (unsigned i = 0; i < n; i++)
                assert_int_equal(put(&q, mark + i), 0);
            for (unsigned i = 0; i < 8; i++)
                assert_int_equal(dock_cq_look(&q.v, q.ci + i, &dw0) != NULL, i < n);
            for (unsigned i = 0; i < n; i++)
                assert_int_equal(take(&q), mark++);
        }
        drop(&q);
    }
}

static void the_first_pass_writes_owner_one(void **state)
{
    struct cq q;
    struct dock_cqe *ring;

    (void)state;
    make(&q, 2, 2, 0, 0);
    ring = (struct dock_cqe *)(q.rec + 1);
    assert_int_equal(put(&q, 0), 0);
    assert_int_equal(atomic_load(&ring[0].dw0) >> 2 & 1, 1);
    take(&q);
    put(&q, 1);
    take(&q);
    assert_int_equal(put(&q, 2), 0); // second pass, slot 0
    assert_int_equal(atomic_load(&ring[0].dw0) >> 2 & 1, 0);
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

static void produce_and_die(void *arg, struct child *parent)
{
    struct cq *q = arg;
    struct dock_waiter w;
    static struct dock_view view;
    struct dock_cqview v;
    struct dock_cqe e = {.bytes = 500};
    bool first;

    (void)parent;
    fixture_as_peer(&w, &view);
    child_check(dock_cqview_open(&view, q->off, &v) == 0);
    dock_probe_hook = die;
    dock_cq_produce(&v, &w, &e, &first);
}

// A holder that died with the tail leaves no hole and nothing twice, wherever the tail stands.
static void the_tail_is_inherited(enum dock_moment at, bool published)
{
    for (unsigned s = 0; s < COUNT(starts); s++)
        for (uint32_t before = 0; before < 4; before++) {
            struct cq q;
            make(&q, 4, 4, starts[s], 0);
            for (uint32_t n = 0; n < before; n++)
                assert_int_equal(put(&q, n), 0);
            die_at = at;
            struct child c = child_start(produce_and_die, &q);
            assert_int_equal(child_end(&c), 42);
            assert_int_not_equal(dock_word_holder(dock_peek64(&q.rec->tail)), 0);
            if (before + published < 4)
                assert_int_equal(put(&q, 100), 0);
            else
                assert_int_equal(put(&q, 100), -EOVERFLOW);
            for (uint32_t n = 0; n < before; n++)
                assert_int_equal(take(&q), n);
            if (published)
                assert_int_equal(take(&q), 500);
            if (before + published < 4)
                assert_int_equal(take(&q), 100);
            assert_int_equal(take(&q), -1);
            assert_int_equal(put(&q, 101), 0);
            assert_int_equal(take(&q), 101);
            drop(&q);
        }
}

static void a_holder_that_died_before_publishing_has_moved_nothing(void **state)
{
    (void)state;
    the_tail_is_inherited(DOCK_AT_CQE_LOCK, false);
}

static void a_holder_that_died_after_publishing_has_completed(void **state)
{
    (void)state;
    the_tail_is_inherited(DOCK_AT_CQE_WRITE, true);
}

static void arming_fires_once_and_solicited_waits_for_solicited(void **state)
{
    struct cq q;

    (void)state;
    make(&q, 2, 2, 0, 0);
    assert_false(dock_cq_fires(&q.v, true));
    dock_publish32(&q.rec->armed, DOCK_ARM_SOLICITED);
    assert_false(dock_cq_fires(&q.v, false));
    assert_true(dock_cq_fires(&q.v, true));
    assert_false(dock_cq_fires(&q.v, true));
    dock_publish32(&q.rec->armed, DOCK_ARM_ANY);
    assert_true(dock_cq_fires(&q.v, false));
    assert_false(dock_cq_fires(&q.v, true));
    drop(&q);
}

// Every field of a record that a peer trusts: changed alone, the record is refused.
static void a_record_that_does_not_hold_together_is_refused(void **state)
{
    struct cq q;
    struct dock_cqview v;

    (void)state;
    make(&q, 4, 4, 0, 0);
    uint64_t ring = q.rec->ring;
    dock_a32 *words[] = {&q.rec->size, &q.rec->depth, &q.rec->id, &q.rec->flags, &q.rec->sum};
    for (unsigned i = 0; i < COUNT(words); i++) {
        *words[i] ^= 4;
        assert_int_equal(dock_cqview_open(&fix.arena.view, q.off, &v), -EBADMSG);
        *words[i] ^= 4;
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        q.rec->ring = ring ^ 1ull << bit;
        assert_int_equal(dock_cqview_open(&fix.arena.view, q.off, &v), -EBADMSG);
    }
    q.rec->ring = 1ull << 50; // a sum that fits does not make an offset outside the arena right
    fit_sum(q.rec);
    assert_int_equal(dock_cqview_open(&fix.arena.view, q.off, &v), -EBADMSG);
    q.rec->ring = ring;
    fit_sum(q.rec);
    assert_int_equal(dock_cqview_open(&fix.arena.view, q.off + 8, &v), -EBADMSG);
    assert_int_equal(dock_cqview_open(&fix.arena.view, q.off, &v), 0);
    drop(&q);
}

// A window of memory may be refused for a while: what the view knew stays, and it finds the ring later.
static void a_ring_that_cannot_be_mapped_is_looked_for_again(void **state)
{
    struct cq q;

    (void)state;
    make(&q, 4, 4, 0, 0);
    uint64_t ring = q.rec->ring;
    assert_int_equal(put(&q, 1), 0);
    q.rec->ring = 1ull << 50;
    fit_sum(q.rec);
    dock_publish32(&q.rec->epoch, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(put(&q, 9), -EBADMSG);
    q.rec->ring = ring;
    fit_sum(q.rec);
    assert_int_equal(put(&q, 2), 0);
    for (unsigned i = 1; i <= 2; i++)
        assert_int_equal(take(&q), i);
    assert_int_equal(take(&q), -1);
    drop(&q);
}

// Of a ring that was overrun, as asked for, the newest `depth` entries move, and everybody sees where they
// begin.
static void an_overrun_ring_moves_what_is_left_of_it(void **state)
{
    enum { DEPTH = 4, PUT = 10, DEEP = 7 };

    (void)state;
    for (unsigned s = 0; s < COUNT(starts); s++) {
        struct dock_cqe *ring;
        uint64_t off;
        struct cq q;
        make(&q, 8, DEPTH, starts[s], DOCK_CQ_OVERWRITE);
        for (uint32_t n = 0; n < PUT; n++)
            assert_int_equal(put(&q, n), 0);
        assert_int_equal(dock_arena_alloc(&fix.arena, 8 * sizeof *ring, 64, &off), 0);
        ring = dock_arena_at(&fix.arena, off);
        assert_int_equal(dock_cqring_move(&q.v, &fix.me, ring, off, 8, DEPTH - 1, &q.ci), -EBUSY);
        assert_int_equal(q.ci, starts[s]); // a refusal changes nothing
        assert_int_equal(dock_cqring_move(&q.v, &fix.me, ring, off, 8, DEEP, &q.ci), 0);
        assert_int_equal(q.ci, starts[s] + PUT - DEPTH);
        assert_int_equal(dock_peek32(&q.rec->ci), q.ci);
        for (uint32_t n = PUT - DEPTH; n < PUT; n++)
            assert_int_equal(take(&q), n);
        assert_int_equal(take(&q), -1);
        dock_arena_free(&fix.arena, off, 8 * sizeof *ring);
        drop(&q);
    }
}

#define PRODUCERS 4
#define EACH 5000

struct producer {
    struct cq *q;
    uint32_t first;
};

static void *produce(void *arg)
{
    struct producer *p = arg;

    for (uint32_t i = 0; i < EACH; i++) {
        while (dock_word_value(dock_peek64(&p->q->rec->tail)) - dock_acquire32(&p->q->rec->ci) >
               p->q->v.depth - PRODUCERS)
            sched_yield();
        if (put(p->q, p->first + i))
            abort();
    }
    return NULL;
}

static void many_producers_keep_their_own_order_and_lose_nothing(void **state)
{
    struct producer p[PRODUCERS];
    uint32_t next[PRODUCERS] = {0};
    pthread_t t[PRODUCERS];
    struct cq q;

    (void)state;
    make(&q, 64, 64, 0xfffff000u, 0);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        p[i] = (struct producer){&q, i << 16};
        pthread_create(&t[i], NULL, produce, &p[i]);
    }
    for (unsigned n = 0; n < PRODUCERS * EACH;) {
        int64_t mark = take(&q);
        if (mark < 0) {
            sched_yield();
            continue;
        }
        assert_int_equal(mark & 0xffff, next[mark >> 16]++);
        n++;
    }
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(take(&q), -1);
    drop(&q);
}

static void the_consumer_index_may_be_written_as_22_bits(void **state)
{
    static const uint32_t at[] = {(1u << 22) - 3, 0xfffffffd, 5};

    (void)state;
    for (unsigned s = 0; s < COUNT(at); s++) {
        struct cq q;
        make(&q, 8, 8, at[s], 0);
        for (uint32_t n = 0; n < 40; n++) {
            assert_int_equal(put(&q, n), 0);
            assert_int_equal(take(&q), n);
            dock_publish32(&q.rec->ci, q.ci & 0x3fffff);
        }
        for (uint32_t n = 0; n < 8; n++)
            assert_int_equal(put(&q, n), 0);
        assert_int_equal(put(&q, 8), -EOVERFLOW);
        drop(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_depth_completions_fit),
        cmocka_unit_test(an_overrun_is_told_to_one_producer_only),
        cmocka_unit_test(owner_bits_tell_valid_from_stale_on_every_pass),
        cmocka_unit_test(the_first_pass_writes_owner_one),
        cmocka_unit_test(a_holder_that_died_before_publishing_has_moved_nothing),
        cmocka_unit_test(a_holder_that_died_after_publishing_has_completed),
        cmocka_unit_test(arming_fires_once_and_solicited_waits_for_solicited),
        cmocka_unit_test(a_record_that_does_not_hold_together_is_refused),
        cmocka_unit_test(a_ring_that_cannot_be_mapped_is_looked_for_again),
        cmocka_unit_test(an_overrun_ring_moves_what_is_left_of_it),
        cmocka_unit_test(many_producers_keep_their_own_order_and_lose_nothing),
        cmocka_unit_test(the_consumer_index_may_be_written_as_22_bits),
    };

    return cmocka_run_group_tests_name("the completion ring", tests, fixture_setup, fixture_teardown);
}
