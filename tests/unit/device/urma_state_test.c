// SPDX-License-Identifier: MIT
// What URMA's queues have beside verbs': halves of a pair, binding, tokens before segments, suspension, the
// marks of an arrival in SUSPENDED and ERR, and taking out what was never begun.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "device/internal.h"
#include "lib/duo.h"

#define LEN 64u

static struct dock_dev *dev, *other;
static struct dock_sge sge;

static const struct dock_qp_mod impatient = {
    .timeout = 10, .retry = 1, .rnr_retry = 1, .rnr_timer = 1, .rd_atomic = 16};

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

static void open_ready(struct end *e, struct dock_dev *d, const struct end_opts *o)
{
    end_open(e, d, o);
    end_connect(e, 0, &impatient);
}

static struct dock_wc expect(struct dock_cq *cq, uint64_t id, uint32_t status)
{
    struct dock_wc wc = {.status = 0xfff};

    if (!end_wait(cq, &wc, 10000 * slow_down()) || wc.status != status || wc.id != id)
        fprintf(stderr, "completion %llu: expected status %#x, got %llu, %#x\n", (unsigned long long)id,
                status, (unsigned long long)wc.id, wc.status);
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.id, id);
    return wc;
}

static void expect_none(struct dock_cq *cq)
{
    struct dock_wc wc;

    assert_false(end_poll(cq, &wc));
}

static struct dock_wr aimed(struct end *from, uint8_t op, uint32_t to, const struct dock_mr *mr, uint64_t id,
                            uint32_t len)
{
    struct dock_wr wr = wr_onesided(op, from, &sge, 0, len, mr, mr->va);

    wr.id = id;
    wr.imm = id;
    wr_aim(&wr, to);
    return wr;
}

static void post(struct end *from, uint8_t op, uint32_t to, const struct dock_mr *mr, uint64_t id,
                 uint32_t len)
{
    struct dock_wr wr = aimed(from, op, to, mr, id, len);

    assert_int_equal(end_post(from, &wr), 0);
}

static int go(struct dock_qp *qp, enum dock_state to)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = to};

    return dock_qp_modify(qp, &m);
}

// ---- halves

static struct dock_qp *half(struct end *e, enum dock_role role, struct dock_rq *srq, struct dock_cq *cq)
{
    struct dock_qp_attr a = {.service = DOCK_RM,
                             .pd = e->pd,
                             .role = role,
                             .srq = srq,
                             .send_cq = role == DOCK_SENDS ? cq : NULL,
                             .recv_cq = role == DOCK_RECEIVES ? cq : NULL,
                             .max_send_wr = role == DOCK_SENDS ? 8 : 0,
                             .max_send_sge = 1,
                             .on_error = DOCK_ON_ERROR_CONTINUE};
    struct dock_qp *qp;

    assert_int_equal(dock_qp_create(e->dev, &a, &qp), 0);
    struct dock_qp_mod m = impatient;
    m.mask = DOCK_MOD_STATE | DOCK_MOD_TIMEOUT | DOCK_MOD_RETRY | DOCK_MOD_RNR_RETRY | DOCK_MOD_RNR_TIMER;
    m.state = DOCK_RTS;
    assert_int_equal(dock_qp_modify(qp, &m), 0);
    return qp;
}

static void receive_into(struct dock_rq *rq, struct end *e, uint64_t id)
{
    struct dock_sge s = {.addr = (uintptr_t)e->mem + 4096, .len = LEN, .key = e->mr->lkey};

    dock_recv_begin(rq);
    assert_int_equal(dock_recv_put(rq, id, &s, 1), 0);
    dock_recv_end(rq);
}

// One receive queue behind two pairs and one of its own number: each tells where the message came in.
static void a_receive_queue_is_shared_and_a_target_of_its_own(void **state)
{
    struct end_opts plain = {.service = DOCK_RM, .mem = 65536, .on_error = DOCK_ON_ERROR_CONTINUE}, o = plain;
    struct end from, a, b;
    struct dock_rq *srq;

    (void)state;
    open_ready(&from, dev, &plain);
    open_ready(&a, other, &plain); // its region is the buffer
    struct dock_srq_attr sa = {.pd = a.pd, .max_wr = 16, .max_sge = 1};
    assert_int_equal(dock_srq_create(other, &sa, &srq), 0);
    struct dock_qp *jfr = half(&a, DOCK_RECEIVES, srq, a.rcq), *jfs = half(&a, DOCK_SENDS, NULL, a.scq);
    o.srq = srq;
    open_ready(&b, other, &o);
    for (uint64_t n = 0; n < 6; n++) {
        struct dock_qp *to = n % 2 ? b.qp : jfr;
        receive_into(srq, &a, n);
        post(&from, DOCK_OP_SEND_IMM, dock_qp_number(to), a.mr, n, LEN);
        expect(from.scq, n, DOCK_OK);
        struct dock_wc wc = expect(n % 2 ? b.rcq : a.rcq, n, DOCK_OK);
        assert_int_equal(wc.qp_num, dock_qp_number(to));
        assert_ptr_equal(wc.qp, to);
    }
    // What only sends is nobody's target, and what only receives takes no post
    post(&from, DOCK_OP_SEND, dock_qp_number(jfs), a.mr, 7, LEN);
    expect(from.scq, 7, DOCK_ST_RETRY_EXC);
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, &a, &sge, 0, 8, from.mr, 0);
    struct dock_post p;
    wr_aim(&wr, dock_qp_number(from.qp));
    dock_post_begin(jfr, &p);
    assert_int_equal(dock_post_put(&p, &wr), -ENOMEM);
    dock_post_end(&p);
    // but it sends
    assert_int_equal(end_recv(&from, 8, from.mem, LEN), 0);
    dock_post_begin(jfs, &p);
    assert_int_equal(dock_post_put(&p, &wr), 0);
    dock_post_end(&p);
    expect(a.scq, 0, DOCK_OK);
    assert_int_equal(expect(from.rcq, 8, DOCK_OK).src_qp, dock_qp_number(jfs));
    assert_int_equal(dock_qp_destroy(jfr), 0);
    assert_int_equal(dock_qp_destroy(jfs), 0);
    end_close(&b);
    assert_int_equal(dock_srq_destroy(srq), 0);
    end_close(&a);
    end_close(&from);
}

// ---- binding

static void bind_to(struct dock_qp *qp, uint32_t dest)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_DEST, .dest_qp = dest};

    memcpy(m.eid, test_eid, 16);
    assert_int_equal(dock_qp_modify(qp, &m), 0);
}

static struct dock_qp *rc(struct end *e)
{
    struct dock_qp_attr a = {.service = DOCK_RC,
                             .urma = true,
                             .pd = e->pd,
                             .send_cq = e->scq,
                             .recv_cq = e->rcq,
                             .max_send_wr = 8,
                             .max_recv_wr = 8,
                             .max_send_sge = 1,
                             .max_recv_sge = 1};
    struct dock_qp *qp;

    assert_int_equal(dock_qp_create(e->dev, &a, &qp), 0);
    struct dock_qp_mod m = impatient;
    m.mask = DOCK_MOD_STATE | DOCK_MOD_TIMEOUT | DOCK_MOD_RETRY | DOCK_MOD_RNR_RETRY | DOCK_MOD_RD_ATOMIC;
    m.state = DOCK_RTS;
    assert_int_equal(dock_qp_modify(qp, &m), 0);
    return qp;
}

// Posts to a queue of `at` beside its own.
static void write_by(struct dock_qp *qp, struct end *at, struct end *to, uint64_t id, uint32_t status)
{
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, at, &sge, 0, LEN, to->mr, to->mr->va);
    struct dock_post p;

    wr.id = id;
    bytes_fill(at->mem, LEN, id);
    dock_post_begin(qp, &p);
    assert_int_equal(dock_post_put(&p, &wr), 0);
    dock_post_end(&p);
    expect(at->scq, id, status);
    if (!status)
        assert_memory_equal(at->mem, to->mem, LEN);
}

static void a_ready_queue_is_bound_and_bound_anew(void **state)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 65536};
    struct end from, to[2];
    struct dock_qp *mine, *theirs[2];

    (void)state;
    open_ready(&from, dev, &o);
    mine = rc(&from);
    for (unsigned i = 0; i < 2; i++) {
        open_ready(&to[i], i ? dev : other, &o);
        theirs[i] = rc(&to[i]);
        bind_to(theirs[i], dock_qp_number(mine));
    }
    for (unsigned i = 0; i < 4; i++) {
        bind_to(mine, dock_qp_number(theirs[i % 2]));
        write_by(mine, &from, &to[i % 2], i, DOCK_OK);
    }
    bind_to(mine, 0);
    write_by(mine, &from, &to[0], 9, DOCK_ST_RETRY_EXC);
    assert_int_equal(dock_qp_state(mine), DOCK_ERR);
    assert_int_equal(go(mine, DOCK_RESET), 0);
    assert_int_equal(go(mine, DOCK_RTS), 0);
    bind_to(mine, dock_qp_number(theirs[1]));
    write_by(mine, &from, &to[1], 10, DOCK_OK);
    dock_qp_destroy(mine);
    for (unsigned i = 0; i < 2; i++) {
        dock_qp_destroy(theirs[i]);
        end_close(&to[i]);
    }
    end_close(&from);
}

// ---- tokens

static void a_message_may_invalidate_a_segment(void **state)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 65536, .on_error = DOCK_ON_ERROR_CONTINUE};
    struct end from, to;
    struct dock_mr *seg;

    (void)state;
    open_ready(&from, dev, &o);
    open_ready(&to, other, &o);
    assert_int_equal(dock_mr_register(other, to.pd, (uintptr_t)to.mem, 4096, (uintptr_t)to.mem,
                                      DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_WRITE, &seg),
                     0);
    dock_mr_set_token(seg, true, 77);
    for (unsigned i = 0; i < 2; i++) {
        post(&from, DOCK_OP_WRITE, dock_qp_number(to.qp), seg, 1, LEN);
        expect(from.scq, 1, DOCK_OK);
        struct dock_wr wr = wr_onesided(DOCK_OP_SEND_INV, &from, &sge, 0, LEN, seg, 0);
        wr_aim(&wr, dock_qp_number(to.qp));
        wr.token = 78; // another token invalidates nothing
        assert_int_equal(end_post(&from, &wr), 0);
        expect(from.scq, 0, DOCK_ST_REM_ACCESS);
        wr.token = 77;
        assert_int_equal(end_recv(&to, 3, to.mem + 8192, LEN), 0);
        assert_int_equal(end_post(&from, &wr), 0);
        expect(from.scq, 0, DOCK_OK);
        struct dock_wc wc = expect(to.rcq, 3, DOCK_OK);
        assert_int_equal(wc.op, DOCK_ROP_SEND_INV);
        assert_int_equal(wc.imm, 77ull << 32 | seg->tid << 8);
        post(&from, DOCK_OP_WRITE, dock_qp_number(to.qp), seg, 2, LEN);
        expect(from.scq, 2, DOCK_ST_REM_ACCESS);
        dock_mr_set_token(seg, true, 77); // its owner opens it again
    }
    dock_mr_deregister(seg);
    end_close(&from);
    end_close(&to);
}

static void a_token_is_reserved_before_its_segment_and_after(void **state)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 65536};
    struct dock_mr *seg, *second;
    struct end e;
    uint32_t tid;

    (void)state;
    open_ready(&e, dev, &o);
    assert_int_equal(dock_tid_reserve(dev, &tid), 0);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t at = (uintptr_t)e.mem;
        assert_int_equal(dock_mr_register_as(dev, e.pd, at, 4096, at, 0, tid, &seg), 0);
        assert_int_equal(seg->tid, tid);
        assert_int_equal(dock_tid_release(dev, tid), -EBUSY);
        assert_int_equal(dock_mr_register_as(dev, e.pd, at, 4096, at, 0, tid, &second), -EBUSY);
        assert_int_equal(dock_mr_deregister(seg), 0);
    }
    assert_int_equal(dock_tid_release(dev, tid), 0);
    assert_int_equal(dock_tid_release(dev, tid), -EINVAL);
    end_close(&e);
}

// ---- rest

// The first of them fails. Under one doorbell: between two the queue would tell that it is at rest.
static void post_five(struct end *from, struct end *to)
{
    struct dock_mr mr = *to->mr;
    struct dock_post p;

    dock_post_begin(from->qp, &p);
    for (uint64_t id = 1; id <= 5; id++) {
        mr.token = to->mr->token ^ (id == 1 ? 4 : 0);
        struct dock_wr wr = aimed(from, DOCK_OP_WRITE, dock_qp_number(to->qp), &mr, id, LEN);
        assert_int_equal(dock_post_put(&p, &wr), 0);
    }
    dock_post_end(&p);
}

static void expect_works(struct end *from, struct end *to)
{
    for (uint64_t id = 20; id < 100; id++) { // more than the queue is deep: every slot came back
        post(from, DOCK_OP_WRITE, dock_qp_number(to->qp), to->mr, id, LEN);
        expect(from->scq, id, DOCK_OK);
    }
}

enum then { FLUSH_OUT, TO_ERROR, GO_ON, THENS };

// An error, then the mark, and then what the program makes of the four that were not begun.
static void an_error_suspends_and_the_program_decides(void **state)
{
    (void)state;
    for (enum then then = 0; then < THENS; then++) {
        struct end_opts o = {.service = DOCK_RM,
                             .mem = 65536,
                             .wr = 16,
                             .on_error = DOCK_ON_ERROR_SUSPEND,
                             .unordered = then == GO_ON};
        struct end from, to;
        struct dock_wc wc[8];
        open_ready(&from, dev, &o);
        open_ready(&to, other, &o);
        post_five(&from, &to);
        expect(from.scq, 1, DOCK_ST_REM_ACCESS);
        assert_int_equal(dock_qp_state(from.qp), DOCK_SUSPENDED);
        assert_int_equal(dock_qp_flush(from.qp, 8, wc), 0); // the mark was not polled
        expect(from.scq, 0, DOCK_ST_SUSPEND_DONE);
        expect_none(from.scq);
        assert_int_equal(end_recv(&from, 6, from.mem + 4096, LEN), 0); // it receives all the same
        post(&to, DOCK_OP_SEND, dock_qp_number(from.qp), from.mr, 6, LEN);
        expect(from.rcq, 6, DOCK_OK);
        if (then == GO_ON) {
            assert_int_equal(go(from.qp, DOCK_RTS), 0);
            for (uint64_t id = 2; id <= 5; id++)
                expect(from.scq, id, DOCK_OK);
            expect_works(&from, &to);
            end_close(&from);
            end_close(&to);
            continue;
        }
        assert_int_equal(go(from.qp, DOCK_RTS), -EINVAL);
        if (then == FLUSH_OUT) {
            assert_int_equal(dock_qp_flush(from.qp, 3, wc), 3);
            assert_int_equal(dock_qp_flush(from.qp, 8, wc + 3), 1);
            assert_int_equal(dock_qp_flush(from.qp, 8, wc), 0);
            for (unsigned i = 0; i < 4; i++) {
                assert_int_equal(wc[i].id, i + 2);
                assert_int_equal(wc[i].bytes, LEN);
                assert_int_equal(wc[i].src_qp, dock_qp_number(to.qp));
            }
        }
        assert_int_equal(go(from.qp, DOCK_ERR), 0);
        for (uint64_t id = 2; then == TO_ERROR && id <= 5; id++)
            expect(from.scq, id, DOCK_ST_FLUSH);
        expect(from.scq, 0, DOCK_ST_FLUSH_DONE);
        expect_none(from.scq);
        assert_int_equal(dock_qp_flush(from.qp, 8, wc), 0);
        assert_int_equal(go(from.qp, DOCK_ERR), 0); // is there already: no second mark
        expect_none(from.scq);
        assert_int_equal(go(from.qp, DOCK_RESET), 0);
        assert_int_equal(go(from.qp, DOCK_RTS), 0);
        expect_works(&from, &to);
        end_close(&from);
        end_close(&to);
    }
}

static void an_error_stops_and_the_mark_comes_behind_the_flushed(void **state)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 65536, .on_error = DOCK_ON_ERROR_STOP};
    struct end from, to;

    (void)state;
    open_ready(&from, dev, &o);
    open_ready(&to, other, &o);
    post_five(&from, &to);
    expect(from.scq, 1, DOCK_ST_REM_ACCESS);
    for (uint64_t id = 2; id <= 5; id++)
        expect(from.scq, id, DOCK_ST_FLUSH);
    expect(from.scq, 0, DOCK_ST_FLUSH_DONE);
    expect_none(from.scq);
    end_close(&from);
    end_close(&to);
}

// A program that sends it to rest gets the same marks, with nothing posted and with a long request under way.
static void a_program_suspends_and_stops_a_queue(void **state)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 1 << 20, .on_error = DOCK_ON_ERROR_SUSPEND, .wr = 16};
    struct end from, to;
    struct dock_wc wc[4];

    (void)state;
    for (unsigned busy = 0; busy < 2; busy++) {
        open_ready(&from, dev, &o);
        open_ready(&to, other, &o);
        for (uint64_t id = 1; busy && id <= 2; id++)
            post(&from, DOCK_OP_WRITE, dock_qp_number(to.qp), to.mr, id, 1 << 20);
        assert_int_equal(go(from.qp, DOCK_SUSPENDED), 0);
        uint64_t done = 0;
        struct dock_wc c = {.status = 0xfff};
        while (end_wait(from.scq, &c, 10000 * slow_down()) && c.status == DOCK_OK)
            assert_int_equal(c.id, ++done); // what was begun is finished first
        assert_int_equal(c.status, DOCK_ST_SUSPEND_DONE);
        expect_none(from.scq);
        assert_int_equal(dock_qp_flush(from.qp, 4, wc), busy ? 2 - done : 0);
        assert_int_equal(go(from.qp, DOCK_ERR), 0);
        expect(from.scq, 0, DOCK_ST_FLUSH_DONE);
        end_close(&from);
        end_close(&to);
    }
}

// ---- groups

#define MEMBERS 5u

static void group_of(struct dock_dev *at, enum dock_bundle_policy policy, struct dock_bundle **g,
                     struct end *e)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 65536};

    assert_int_equal(dock_bundle_create(at, &(struct dock_bundle_attr){.policy = policy}, g), 0);
    o.bundle = *g;
    for (unsigned i = 0; i < MEMBERS; i++) {
        open_ready(&e[i], at, &o);
        for (unsigned k = 0; k < 4; k++)
            assert_int_equal(end_recv(&e[i], i, e[i].mem, LEN), 0);
    }
    assert_int_equal(dock_bundle_destroy(*g), -EBUSY);
}

static unsigned received_by(struct end *e)
{
    struct dock_wc wc;

    for (unsigned i = 0; i < MEMBERS; i++)
        if (e[i].qp && end_poll(e[i].rcq, &wc)) {
            assert_int_equal(wc.status, DOCK_OK);
            return i;
        }
    return MEMBERS;
}

static void to_group(struct end *from, const struct dock_bundle *g, uint8_t hint, uint32_t status)
{
    struct dock_wr wr = wr_onesided(DOCK_OP_SEND, from, &sge, 0, LEN, from->mr, 0);

    wr_aim(&wr, dock_bundle_number(g));
    wr.bundle = true;
    wr.hint = hint;
    assert_int_equal(end_post(from, &wr), 0);
    expect(from->scq, 0, status);
}

static void a_group_gives_its_members_turns_or_goes_by_the_hint(void **state)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 65536, .on_error = DOCK_ON_ERROR_CONTINUE};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        enum dock_bundle_policy policy = i % 2 ? DOCK_BUNDLE_HINT : DOCK_BUNDLE_TURN;
        struct dock_bundle *g;
        struct end from, e[MEMBERS];
        open_ready(&from, dev, &o);
        group_of(i / 2 ? dev : other, policy, &g, e);
        for (unsigned n = 0; n < 3 * MEMBERS; n++) {
            uint8_t hint = (uint8_t)(n * 7);
            to_group(&from, g, hint, DOCK_OK);
            assert_int_equal(received_by(e), (policy == DOCK_BUNDLE_HINT ? hint : n) % MEMBERS);
        }
        end_close(&e[0]); // the last one has its place now
        e[0].qp = NULL;
        for (unsigned n = 0; n < MEMBERS - 1; n++) {
            to_group(&from, g, (uint8_t)n, DOCK_OK);
            unsigned got = received_by(e);
            assert_in_range(got, 1, MEMBERS - 1);
        }
        for (unsigned k = 1; k < MEMBERS; k++)
            end_close(&e[k]);
        to_group(&from, g, 0, DOCK_ST_RETRY_EXC); // nobody is left
        assert_int_equal(dock_bundle_destroy(g), 0);
        end_close(&from);
    }
}

static void a_group_has_32_members_at_most(void **state)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 4096};
    static struct end e[DOCK_BUNDLE_MAX];
    struct dock_bundle *g;
    struct dock_qp *more;

    (void)state;
    assert_int_equal(dock_bundle_create(dev, &(struct dock_bundle_attr){.policy = DOCK_BUNDLE_TURN}, &g), 0);
    o.bundle = g;
    for (unsigned i = 0; i < DOCK_BUNDLE_MAX; i++)
        end_open(&e[i], dev, &o);
    struct dock_qp_attr a = e[0].qp->attr;
    assert_int_equal(dock_qp_create(dev, &a, &more), -EPERM);
    for (unsigned i = 0; i < DOCK_BUNDLE_MAX; i++)
        end_close(&e[i]);
    assert_int_equal(dock_bundle_destroy(g), 0);
}

// ---- events, fewer of them

static bool event_within(struct dock_chan *chan, struct dock_cq *cq, unsigned ms)
{
    struct pollfd p = {.fd = dock_chan_fd(chan), .events = POLLIN};
    void *user;

    if (poll(&p, 1, (int)ms) != 1)
        return false;
    assert_int_equal(dock_chan_get(chan, &user), 0);
    dock_cq_ack(cq, 1);
    return true;
}

static void message(struct end *from, struct end *to)
{
    assert_int_equal(end_recv(to, 1, to->mem, LEN), 0);
    post(from, DOCK_OP_SEND, dock_qp_number(to->qp), to->mr, 1, LEN);
    expect(from->scq, 1, DOCK_OK);
}

static void moderated_events_wait_for_a_count_or_a_time(void **state)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 65536};
    struct end from, to;

    (void)state;
    assert_int_equal(dock_chan_create(other, &o.chan), 0);
    open_ready(&to, other, &o);
    struct dock_chan *chan = o.chan;
    o.chan = NULL;
    open_ready(&from, dev, &o);
    for (unsigned i = 0; i < 2; i++) {
        dock_cq_moderate(to.rcq, 4, 0); // a count alone
        dock_cq_arm(to.rcq, false, false);
        for (unsigned n = 0; n < 3; n++)
            message(&from, &to);
        assert_false(event_within(chan, to.rcq, 20));
        message(&from, &to);
        assert_true(event_within(chan, to.rcq, 10000 * slow_down()));
        for (unsigned n = 0; n < 4; n++)
            expect(to.rcq, 1, DOCK_OK);
        dock_cq_moderate(to.rcq, 100, 2000); // whatever comes first
        dock_cq_arm(to.rcq, false, false);
        message(&from, &to);
        assert_true(event_within(chan, to.rcq, 10000 * slow_down()));
        expect(to.rcq, 1, DOCK_OK);
        dock_cq_moderate(to.rcq, 100, 0); // held, and let go when it is switched off
        dock_cq_arm(to.rcq, false, false);
        message(&from, &to);
        assert_false(event_within(chan, to.rcq, 20));
        dock_cq_moderate(to.rcq, 0, 0);
        assert_true(event_within(chan, to.rcq, 10000 * slow_down()));
        expect(to.rcq, 1, DOCK_OK);
    }
    end_close(&from);
    end_close(&to);
    assert_int_equal(dock_chan_destroy(chan), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receive_queue_is_shared_and_a_target_of_its_own),
        cmocka_unit_test(a_ready_queue_is_bound_and_bound_anew),
        cmocka_unit_test(a_message_may_invalidate_a_segment),
        cmocka_unit_test(a_token_is_reserved_before_its_segment_and_after),
        cmocka_unit_test(an_error_suspends_and_the_program_decides),
        cmocka_unit_test(an_error_stops_and_the_mark_comes_behind_the_flushed),
        cmocka_unit_test(a_program_suspends_and_stops_a_queue),
        cmocka_unit_test(a_group_gives_its_members_turns_or_goes_by_the_hint),
        cmocka_unit_test(a_group_has_32_members_at_most),
        cmocka_unit_test(moderated_events_wait_for_a_count_or_a_time),
    };

    return cmocka_run_group_tests_name("URMA's queues", tests, open_devices, close_devices);
}
