// SPDX-License-Identifier: MIT
// timeout: 120
// When a slot of the send queue is free: exactly `depth` WRs fit, and a slot comes back when a completion
// that covers it has been polled, not when its WR was executed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/duo.h"

static struct duo d;

static void open_queue(uint32_t depth, uint32_t start)
{
    struct duo_opts o = {.near = {.wr = depth, .sge = 12, .inline_max = 192, .cqe = 2 * depth},
                         .start_index = start};

    duo_open(&d, SELF_ARENA, &o);
}

static struct dock_wr write_at(uint32_t n, struct dock_sge *sge, uint32_t flags)
{
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &d.near.e, sge, n * 8, 8, &d.mr, d.mem + n * 8);

    wr.id = n;
    wr.flags = flags;
    return wr;
}

static int post_write(uint32_t n, uint32_t flags)
{
    struct dock_sge sge;
    struct dock_wr wr = write_at(n, &sge, flags);

    return end_post(&d.near.e, &wr);
}

static void executed(uint64_t wrs)
{
    uint64_t until = dock_now_ns() + 5000000000ull * slow_down();

    while (dock_peek64(&d.near.e.qp->rec->executed) != wrs && dock_now_ns() < until)
        sched_yield();
    assert_int_equal(dock_peek64(&d.near.e.qp->rec->executed), wrs);
}

static void polled(uint64_t id)
{
    struct dock_wc wc;

    assert_true(end_wait(d.near.e.scq, &wc, 5000));
    assert_int_equal(wc.status, DOCK_OK);
    assert_int_equal(wc.id, id);
}

static void begins_at(uint32_t start)
{
    const struct dock_qp *qp = d.near.e.qp;

    assert_int_equal(dock_peek32(&qp->sq.post.pi), start);
    assert_int_equal(dock_peek32(&qp->rec->doorbell), start);
    assert_int_equal(dock_peek32(&qp->send_cq->rec->ci), start);
    assert_int_equal(dock_word_value(dock_peek64(&qp->send_cq->rec->tail)), start);
    assert_int_equal(dock_peek32(&qp->rq->rec->pi), start);
    assert_int_equal(dock_word_value(dock_peek64(&qp->rq->rec->ci)), start);
}

static void every_ring_begins_where_it_is_told(void **state)
{
    (void)state;
    open_queue(8, 65500);
    begins_at(65500);
    duo_close(&d);
    setenv("DRYDOCK_START_INDEX", "4294967200", 1);
    open_queue(8, 0);
    unsetenv("DRYDOCK_START_INDEX");
    begins_at(4294967200u);
    duo_close(&d);
    open_queue(8, 0);
    begins_at(0);
    duo_close(&d);
}

static const uint32_t depths[] = {1, 2, 3, 4, 5, 7, 8, 33, 64, 100};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static void exactly_depth_wrs_fit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT(depths); i++) {
        open_queue(depths[i], 0);
        for (uint32_t n = 0; n < depths[i]; n++)
            assert_int_equal(post_write(n, 0), 0);
        assert_int_equal(post_write(0, 0), -ENOMEM);
        duo_close(&d);
    }
}

static void exactly_depth_wrs_of_four_blocks_fit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT(depths); i++) {
        struct dock_sge sge;
        open_queue(depths[i], 0xffffffffu);
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE_IMM, &d.near.e, &sge, 0, 192, &d.mr, d.mem);
        wr.op = DOCK_OP_WRITE;
        wr.flags = DOCK_F_INLINE;
        wr.inline_len = 192;
        for (uint32_t n = 0; n < depths[i]; n++)
            assert_int_equal(end_post(&d.near.e, &wr), 0);
        assert_int_equal(end_post(&d.near.e, &wr), -ENOMEM);
        duo_close(&d);
    }
}

static void a_slot_is_free_when_its_completion_is_polled_not_when_it_is_executed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT(depths); i++) {
        uint32_t depth = depths[i];
        open_queue(depth, 0);
        for (uint32_t n = 0; n < depth; n++)
            assert_int_equal(post_write(n, DOCK_F_COMPLETE), 0);
        executed(depth);
        assert_int_equal(post_write(0, DOCK_F_COMPLETE), -ENOMEM);
        for (uint32_t n = 0; n < depth; n++) { // one polled, one fits
            polled(n);
            assert_int_equal(post_write(n, DOCK_F_COMPLETE), 0);
            assert_int_equal(post_write(n, DOCK_F_COMPLETE), -ENOMEM);
        }
        duo_close(&d);
    }
}

// The pieces are told last.
static void placed(uint64_t pieces)
{
    const struct dock_qrec *rec = d.near.e.qp->rec;
    uint64_t until = dock_now_ns() + 5000000000ull * slow_down();

    while (dock_peek64(&rec->executed) + dock_peek64(&rec->pieces) != pieces && dock_now_ns() < until)
        sched_yield();
    assert_int_equal(dock_peek64(&rec->executed) + dock_peek64(&rec->pieces), pieces);
}

// Told at the end of the run, and by whom that was is not ours to say.
static void under_way(uint32_t wrs)
{
    const struct dock_qrec *rec = d.near.e.qp->rec;
    uint64_t until = dock_now_ns() + 5000000000ull * slow_down();

    while (dock_peek32(&rec->under_way) != wrs && dock_now_ns() < until)
        sched_yield();
    assert_int_equal(dock_peek32(&rec->under_way), wrs);
}

// What `drydock show` adds up: of WRs that were pieces, of none, and of those that wait for their receiver.
static void the_record_counts_each_moment(void **state)
{
    struct io_recv recv = {.id = 4, .off = 0, .len = 8};
    struct dock_sge sge;

    (void)state;
    open_queue(8, 0);
    const struct dock_qp *qp = d.near.e.qp;
    const struct dock_qrec *rec = qp->rec;
    const struct dock_cqrec *cq = qp->send_cq->rec;
    assert_int_equal(rec->send_cq, qp->send_cq->rec_off);
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &d.near.e, &sge, 0, 3 * DOCK_PIECE + 1, &d.mr, d.mem);
    wr.flags = 0;
    assert_int_equal(post_write(0, 0), 0); // one piece, the short way
    assert_int_equal(end_post(&d.near.e, &wr), 0);
    wr = wr_onesided(DOCK_OP_FADD, &d.near.e, &sge, 0, 8, &d.mr, d.mem);
    wr.flags = 0;
    assert_int_equal(end_post(&d.near.e, &wr), 0);
    wr = (struct dock_wr){.op = DOCK_OP_NOP, .flags = DOCK_F_COMPLETE, .id = 3};
    assert_int_equal(end_post(&d.near.e, &wr), 0);
    polled(3);
    executed(4);
    placed(1 + 4 + 1);
    assert_int_equal(dock_peek64(&rec->bytes_out), 8 + 3 * DOCK_PIECE + 1 + 8);
    assert_int_equal(dock_peek64(&cq->polled), 1);
    assert_int_equal(dock_peek64(&cq->freed), 4);
    wr = wr_onesided(DOCK_OP_SEND, &d.near.e, &sge, 0, 8, &d.mr, 0);
    wr.id = 4;
    wr.flags = DOCK_F_COMPLETE;
    assert_int_equal(end_post(&d.near.e, &wr), 0);
    under_way(1); // fetched, not executed
    assert_int_equal(dock_peek64(&rec->executed), 4);
    side_recv(d.far, &recv);
    polled(4);
    executed(5);
    placed(1 + 4 + 1 + 1);
    under_way(0);
    assert_true(dock_peek64(&rec->visits) > 0); // a poller's, or the engine's: nobody rang
    assert_int_equal(dock_peek64(&cq->freed), 5);
    duo_close(&d);
}

static void a_completion_covers_the_unsignaled_before_it(void **state)
{
    static const uint32_t intervals[] = {1, 2, 3, 4, 8};

    (void)state;
    for (unsigned i = 0; i < COUNT(intervals); i++) {
        uint32_t every = intervals[i];
        open_queue(8, 0);
        for (uint32_t n = 0; n < 8; n++)
            assert_int_equal(post_write(n, n % every == every - 1 ? DOCK_F_COMPLETE : 0), 0);
        executed(8);
        for (uint32_t n = every - 1; n < 8; n += every) {
            polled(n);
            for (uint32_t k = 0; k < every; k++)
                assert_int_equal(post_write(100, 0), 0);
            assert_int_equal(post_write(100, 0), -ENOMEM);
        }
        duo_close(&d);
    }
}

// Two WRs signaled of eight: two completions, of the 4th and the 8th; all eight landed.
// S4: the two counters count apart.
static void two_of_eight_signaled_make_two_completions(void **state)
{
    struct dock_wc wc;

    (void)state;
    open_queue(8, 0);
    bytes_fill(d.near.e.mem, 64, 1);
    for (uint32_t n = 1; n <= 8; n++)
        assert_int_equal(post_write(n - 1, n % 4 ? 0 : DOCK_F_COMPLETE), 0);
    polled(3);
    polled(7);
    assert_false(end_poll(d.near.e.scq, &wc));
    assert_memory_equal(d.far->e.mem, d.near.e.mem, 64);
    executed(8);
    assert_int_equal(dock_peek64(&d.near.e.qp->rec->cqes), 2); // `drydock show`: completions
    duo_close(&d);
}

static void signal_all_needs_no_flag_and_flag_without_it_counts(void **state)
{
    (void)state;
    for (unsigned all = 0; all < 2; all++)
        for (unsigned flag = 0; flag < 2; flag++) {
            struct duo_opts o = {.near = {.signal_all = all}};
            struct dock_wc wc;
            duo_open(&d, SELF_ARENA, &o);
            assert_int_equal(post_write(0, flag ? DOCK_F_COMPLETE : 0), 0);
            executed(1);
            assert_int_equal(end_poll(d.near.e.scq, &wc), all || flag);
            duo_close(&d);
        }
}

static void never_signaled_the_queue_fills_and_nothing_is_lost(void **state)
{
    struct dock_qp_mod reset = {.mask = DOCK_MOD_STATE, .state = DOCK_RESET};
    struct dock_wc wc;

    (void)state;
    open_queue(4, 0);
    bytes_fill(d.near.e.mem, 64, 2);
    for (uint32_t n = 0; n < 4; n++)
        assert_int_equal(post_write(n, 0), 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(post_write(5, DOCK_F_COMPLETE), -ENOMEM);
        assert_false(end_poll(d.near.e.scq, &wc));
    }
    executed(4);
    assert_memory_equal(d.far->e.mem, d.near.e.mem, 32);
    assert_int_equal(d.far->e.mem[40], 0); // the refused one has not happened
    assert_int_equal(dock_qp_state(d.near.e.qp), DOCK_RTS);

    assert_int_equal(dock_qp_modify(d.near.e.qp, &reset), 0); // the way out
    end_connect(&d.near.e, d.qpn, NULL);
    for (uint32_t n = 0; n < 4; n++)
        assert_int_equal(post_write(n, n == 3 ? DOCK_F_COMPLETE : 0), 0);
    polled(3);
    duo_close(&d);
}

// A list: those before the bad one are posted and executed, the bad one and what follows are not.
static void a_list_stops_at_the_bad_one_and_the_earlier_are_executed(void **state)
{
    static const struct {
        int err;
        uint32_t nsge, inline_len;
    } bad[] = {{-EINVAL, 13, 0}, {-EINVAL, 1, 193}};

    (void)state;
    for (unsigned i = 0; i < COUNT(bad); i++)
        for (uint32_t at = 0; at < 4; at++) {
            struct dock_sge sge[13] = {{0}};
            struct dock_post p;
            open_queue(8, 0);
            bytes_fill(d.near.e.mem, 64, 3);
            dock_post_begin(d.near.e.qp, &p);
            for (uint32_t n = 0; n < at; n++) {
                struct dock_wr wr = write_at(n, sge, DOCK_F_COMPLETE);
                assert_int_equal(dock_post_put(&p, &wr), 0);
            }
            struct dock_wr wr = write_at(at, sge, bad[i].inline_len ? DOCK_F_INLINE : 0);
            wr.nsge = (uint8_t)bad[i].nsge;
            wr.inline_len = bad[i].inline_len;
            assert_int_equal(dock_post_put(&p, &wr), bad[i].err);
            dock_post_end(&p);
            for (uint32_t n = 0; n < at; n++)
                polled(n);
            executed(at);
            assert_memory_equal(d.far->e.mem, d.near.e.mem, at * 8);
            for (uint32_t n = 0; n < 8; n++) // no slot was lost
                assert_int_equal(post_write(n, 0), 0);
            assert_int_equal(post_write(0, 0), -ENOMEM);
            duo_close(&d);
        }
}

// L1: whatever the list is long, one ring of the doorbell publishes it.
static void a_list_is_one_doorbell(void **state)
{
    struct dock_sge sge;
    struct dock_post p;

    (void)state;
    open_queue(8, 0);
    for (uint32_t n = 1; n <= 8; n++) {
        uint64_t rings = dock_peek64(&d.near.e.qp->rec->rings),
                 posted = dock_peek64(&d.near.e.qp->rec->posted);

        dock_post_begin(d.near.e.qp, &p);
        for (uint32_t i = 0; i < n; i++) {
            struct dock_wr wr = write_at(i, &sge, DOCK_F_COMPLETE);
            assert_int_equal(dock_post_put(&p, &wr), 0);
        }
        assert_int_equal(dock_peek64(&d.near.e.qp->rec->rings), rings);
        dock_post_end(&p);
        assert_int_equal(dock_peek64(&d.near.e.qp->rec->rings), rings + 1);
        assert_int_equal(dock_peek64(&d.near.e.qp->rec->posted), posted + n);
        for (uint32_t i = 0; i < n; i++)
            polled(i);
    }
    duo_close(&d);
}

static void a_list_longer_than_the_queue_is_posted_as_far_as_it_fits(void **state)
{
    struct dock_sge sge;
    struct dock_post p;
    uint32_t n;

    (void)state;
    open_queue(5, 0);
    dock_post_begin(d.near.e.qp, &p);
    for (n = 0; n < 9; n++) {
        struct dock_wr wr = write_at(n, &sge, DOCK_F_COMPLETE);
        if (dock_post_put(&p, &wr) == -ENOMEM)
            break;
    }
    dock_post_end(&p);
    assert_int_equal(n, 5);
    for (n = 0; n < 5; n++)
        polled(n);
    duo_close(&d);
}

// ---- random traffic against a model of the slots

#define DEPTH 13
#define RECVS 16
#define AREA 65536u

struct model {
    uint64_t seed;
    uint64_t posted, covered, polled_recvs, posted_recvs, sends;
    uint64_t signaled[4 * DEPTH]; // ids that will complete, oldest first
    unsigned head, count;
};

static void say(const struct model *m, const char *what)
{
    fprintf(stderr, "%s at WR %llu; again: DRYDOCK_SEED=%#llx\n", what, (unsigned long long)m->posted,
            (unsigned long long)m->seed);
}

// A WR of one to four blocks, its effect on the far memory in `shadow`.
static struct dock_wr random_wr(struct model *m, uint64_t r, struct dock_sge *sge, char *shadow)
{
    static const uint8_t ops[] = {DOCK_OP_WRITE, DOCK_OP_WRITE, DOCK_OP_FADD,
                                  DOCK_OP_SEND,  DOCK_OP_NOP,   DOCK_OP_READ};
    uint32_t off = (uint32_t)(r >> 8) % (AREA - 512) & ~7u;
    struct dock_wr wr = {.op = ops[r % COUNT(ops)],
                         .sge = sge,
                         .nsge = 1,
                         .rkey = d.mr.rkey,
                         .raddr = d.mem + off,
                         .id = m->posted,
                         .flags = r >> 40 & 1 ? DOCK_F_COMPLETE : 0,
                         .operand = r};
    char *from = d.near.e.mem + AREA + m->posted % DEPTH * 256; // free again when the WR's slot is

    if (wr.op == DOCK_OP_SEND && m->posted_recvs == m->sends)
        wr.op = DOCK_OP_NOP;
    if (wr.op == DOCK_OP_WRITE) {
        uint32_t n = 1 + (uint32_t)(r >> 44) % 12, each = 1 + (uint32_t)(r >> 50) % 16;
        bytes_fill(from, n * each, r);
        memcpy(shadow + off, from, n * each);
        for (uint32_t i = 0; i < n; i++)
            sge[i] = (struct dock_sge){(uintptr_t)from + i * each, each, d.near.e.mr->lkey};
        wr.nsge = (uint8_t)n;
        if (r >> 60 & 1) {
            wr.flags |= DOCK_F_INLINE;
            wr.inline_len = n * each;
        }
        return wr;
    }
    *sge = (struct dock_sge){(uintptr_t)from, 8, d.near.e.mr->lkey};
    if (wr.op == DOCK_OP_FADD)
        *(uint64_t *)(void *)(shadow + off) += r;
    m->sends += wr.op == DOCK_OP_SEND;
    if (wr.op == DOCK_OP_NOP)
        wr.nsge = 0;
    return wr;
}

static void receive_some(struct model *m)
{
    struct dock_wc wc;

    while (m->posted_recvs - m->polled_recvs < RECVS)
        if (end_recv(&d.far->e, m->posted_recvs, d.far->e.mem + AREA, 64) == 0)
            m->posted_recvs++;
    assert_int_equal(end_recv(&d.far->e, 0, d.far->e.mem, 64), -ENOMEM); // exactly RECVS fit
    while (end_poll(d.far->e.rcq, &wc))
        assert_int_equal(wc.id, m->polled_recvs++);
}

static void poll_some(struct model *m, unsigned most)
{
    struct dock_wc wc;

    for (unsigned i = 0; i < most && end_poll(d.near.e.scq, &wc); i++) {
        if (m->count == 0 || wc.id != m->signaled[m->head] || wc.status)
            say(m, "an unexpected completion");
        assert_int_equal(wc.status, DOCK_OK);
        assert_true(m->count > 0);
        assert_int_equal(wc.id, m->signaled[m->head]);
        m->head = (m->head + 1) % COUNT(m->signaled);
        m->count--;
        m->covered = wc.id + 1;
    }
}

static void random_traffic(uint32_t start, uint64_t seed, unsigned wrs)
{
    static char shadow[AREA];
    struct duo_opts o = {.near = {.wr = DEPTH, .sge = 12, .inline_max = 192, .cqe = DEPTH},
                         .far = {.wr = RECVS},
                         .start_index = start};
    struct model m = {.seed = seed};
    struct dock_sge sge[12];

    duo_open(&d, SELF_ARENA, &o);
    memset(shadow, 0, sizeof shadow);
    for (uint64_t step = 0; m.posted < wrs; step++) {
        uint64_t r = dock_decide(seed, start, step);
        if (m.posted - m.covered == DEPTH) {
            assert_int_equal(post_write(0, 0), -ENOMEM);
            if (!m.count) // only a completion frees slots: the model keeps one signaled
                break;
            poll_some(&m, 1 + r % 3);
            continue;
        }
        if (r % 7 == 0)
            receive_some(&m);
        struct dock_wr wr = random_wr(&m, r, sge, shadow);
        if (m.posted - m.covered == DEPTH - 1 && !m.count)
            wr.flags |= DOCK_F_COMPLETE;
        int err = end_post(&d.near.e, &wr);
        if (err)
            say(&m, "a WR that fits was refused");
        assert_int_equal(err, 0);
        if (wr.flags & DOCK_F_COMPLETE)
            m.signaled[(m.head + m.count++) % COUNT(m.signaled)] = wr.id;
        m.posted++;
        if (r >> 62 == 0)
            poll_some(&m, 1);
    }
    executed(m.posted);
    assert_int_equal(m.posted, wrs);
    assert_memory_equal(d.far->e.mem, shadow, AREA);
    duo_close(&d);
}

static void random_traffic_across_the_wraps_of_16_and_32_bits(void **state)
{
    static const uint32_t starts[] = {0, 65536 - 200, 0x80000000u - 100, 0u - 300};
    uint64_t seed = dock_seed();

    (void)state;
    printf("seed %#llx\n", (unsigned long long)seed);
    for (unsigned i = 0; i < COUNT(starts); i++)
        random_traffic(starts[i], seed, 6000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ring_begins_where_it_is_told),
        cmocka_unit_test(exactly_depth_wrs_fit),
        cmocka_unit_test(exactly_depth_wrs_of_four_blocks_fit),
        cmocka_unit_test(a_slot_is_free_when_its_completion_is_polled_not_when_it_is_executed),
        cmocka_unit_test(the_record_counts_each_moment),
        cmocka_unit_test(a_completion_covers_the_unsignaled_before_it),
        cmocka_unit_test(two_of_eight_signaled_make_two_completions),
        cmocka_unit_test(signal_all_needs_no_flag_and_flag_without_it_counts),
        cmocka_unit_test(never_signaled_the_queue_fills_and_nothing_is_lost),
        cmocka_unit_test(a_list_stops_at_the_bad_one_and_the_earlier_are_executed),
        cmocka_unit_test(a_list_is_one_doorbell),
        cmocka_unit_test(a_list_longer_than_the_queue_is_posted_as_far_as_it_fits),
        cmocka_unit_test(random_traffic_across_the_wraps_of_16_and_32_bits),
    };

    return cmocka_run_group_tests_name("slots of the send queue", tests, NULL, NULL);
}
