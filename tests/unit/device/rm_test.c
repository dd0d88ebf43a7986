// SPDX-License-Identifier: MIT
// Queues without a connection, URMA's: one reaches many, each request names its target; what fails for one
// target leaves the others and the target alone.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/internal.h"
#include "lib/duo.h"

#define TARGETS 100u
#define LEN 64u

static struct dock_dev *dev, *other;
static struct dock_sge sge;

// So few retries that a test need not wait long for their end.
static const struct dock_qp_mod impatient = {
    .timeout = 10, .retry = 1, .rnr_retry = 1, .rnr_timer = 1, .rd_atomic = 16};

static struct end_opts rm(enum dock_on_error on_error)
{
    return (struct end_opts){.service = DOCK_RM, .mem = 65536, .on_error = on_error};
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

static void post_to(struct end *from, uint8_t op, struct end *to, uint64_t id, uint32_t len)
{
    post(from, op, dock_qp_number(to->qp), to->mr, id, len);
}

static void receives(struct end *e, uint64_t id)
{
    assert_int_equal(end_recv(e, id, e->mem + 4096, LEN), 0);
}

static void delivered(struct end *from, struct end *to, uint64_t id)
{
    receives(to, id);
    post_to(from, DOCK_OP_SEND_IMM, to, id, LEN);
    expect(from->scq, id, DOCK_OK);
    assert_int_equal(expect(to->rcq, id, DOCK_OK).imm, id);
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

// Half of them in another device; in turn, so that each is found again among the others.
static void one_queue_reaches_many_and_each_is_told_who_sent(void **state)
{
    static struct end to[TARGETS];
    struct end_opts o = rm(DOCK_ON_ERROR_CONTINUE);
    struct end from;

    (void)state;
    open_ready(&from, dev, &o);
    for (unsigned i = 0; i < TARGETS; i++)
        open_ready(&to[i], i % 2 ? dev : other, &o);
    for (uint64_t n = 0; n < 3u * TARGETS; n++) {
        struct end *t = &to[n * 37 % TARGETS];
        bytes_fill(from.mem, LEN, n);
        receives(t, n);
        post_to(&from, DOCK_OP_WRITE, t, 2 * n, LEN);
        post_to(&from, DOCK_OP_SEND_IMM, t, 2 * n + 1, LEN);
        assert_int_equal(expect(from.scq, 2 * n, DOCK_OK).src_qp, dock_qp_number(t->qp));
        assert_int_equal(expect(from.scq, 2 * n + 1, DOCK_OK).src_qp, dock_qp_number(t->qp));
        struct dock_wc wc = expect(t->rcq, n, DOCK_OK);
        assert_int_equal(wc.src_qp, dock_qp_number(from.qp));
        assert_memory_equal(wc.eid, test_eid, 16);
        assert_int_equal(wc.imm, 2 * n + 1);
        assert_memory_equal(t->mem, from.mem, LEN);
        assert_memory_equal(t->mem + 4096, from.mem, LEN);
    }
    for (unsigned i = 0; i < TARGETS; i++)
        end_close(&to[i]);
    end_close(&from);
}

struct fault {
    const char *name;
    uint8_t op;
    uint32_t status, receive; // receive: status at the target, 0xfff = none
    uint32_t far_recv, key_flip;
    bool nobody;
};

static const struct fault faults[] = {
    {"no receive", DOCK_OP_SEND, DOCK_ST_RNR_EXC, 0xfff, 0, 0, false},
    {"short receive", DOCK_OP_SEND, DOCK_ST_REM_RESP_LEN, DOCK_ST_LOC_LEN, LEN - 1, 0, false},
    {"another key", DOCK_OP_WRITE, DOCK_ST_REM_ACCESS, 0xfff, 0, 4, false},
    {"another key, READ", DOCK_OP_READ, DOCK_ST_REM_ACCESS, 0xfff, 0, 4, false},
    {"another key, atomic", DOCK_OP_FADD, DOCK_ST_REM_ACCESS, 0xfff, 0, 4, false},
    {"nobody there, SEND", DOCK_OP_SEND, DOCK_ST_RETRY_EXC, 0xfff, 0, 0, true},
    {"nobody there, WRITE", DOCK_OP_WRITE, DOCK_ST_RETRY_EXC, 0xfff, 0, 0, true},
};

// Under one doorbell: one that fails at the bad target, 1, and one that the good one has a receive for, 2. A
// queue that stops at the first would tell that it is at rest before a second doorbell.
static void post_bad_and_good(const struct fault *f, struct end *from, struct end *bad, struct end *good)
{
    struct dock_mr mr = *bad->mr;
    uint32_t number = dock_qp_number(bad->qp);
    struct dock_post p;
    struct dock_wr wr;

    mr.token ^= f->key_flip;
    if (f->far_recv)
        assert_int_equal(end_recv(bad, 1, bad->mem, f->far_recv), 0);
    if (f->nobody) {
        dock_qp_destroy(bad->qp);
        bad->qp = NULL;
    }
    receives(good, 2);
    dock_post_begin(from->qp, &p);
    wr = aimed(from, f->op, number, &mr, 1, f->op == DOCK_OP_FADD ? 8 : LEN);
    assert_int_equal(dock_post_put(&p, &wr), 0);
    wr = aimed(from, DOCK_OP_SEND, dock_qp_number(good->qp), good->mr, 2, LEN);
    assert_int_equal(dock_post_put(&p, &wr), 0);
    dock_post_end(&p);
}

static void a_failure_with_one_target_leaves_the_rest_alone(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct end_opts o = rm(DOCK_ON_ERROR_CONTINUE);
        struct end from, bad, good;
        open_ready(&from, dev, &o);
        open_ready(&bad, other, &o);
        open_ready(&good, other, &o);
        post_bad_and_good(&faults[i], &from, &bad, &good);
        expect(from.scq, 1, faults[i].status);
        expect(from.scq, 2, DOCK_OK);
        expect(good.rcq, 2, DOCK_OK);
        assert_int_equal(dock_qp_state(from.qp), DOCK_RTS);
        if (faults[i].receive != 0xfff)
            expect(bad.rcq, 1, faults[i].receive);
        if (!faults[i].nobody) {
            assert_int_equal(dock_qp_state(bad.qp), DOCK_RTS);
            delivered(&from, &bad, 3);
        }
        end_close(&from);
        end_close(&bad);
        end_close(&good);
    }
}

static void a_queue_that_is_to_stop_flushes_the_rest_and_its_targets_do_not_notice(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct end_opts o = rm(DOCK_ON_ERROR_STOP);
        struct end from, bad, good;
        open_ready(&from, dev, &o);
        open_ready(&bad, dev, &o);
        open_ready(&good, other, &o);
        post_bad_and_good(&faults[i], &from, &bad, &good);
        expect(from.scq, 1, faults[i].status);
        expect(from.scq, 2, DOCK_ST_FLUSH);
        expect_none(good.rcq);
        assert_int_equal(dock_qp_state(from.qp), DOCK_ERR);
        assert_int_equal(dock_qp_state(good.qp), DOCK_RTS);
        end_close(&from);
        end_close(&bad);
        end_close(&good);
    }
}

// The receive that the first half had taken is told as flushed; the target goes on.
static void give_up_in_mid_message(bool destroy)
{
    struct end_opts o = {.service = DOCK_RM, .mem = 1 << 20, .on_error = DOCK_ON_ERROR_STOP};
    struct dock_config cfg = {.no_engine_thread = true};
    struct dock_qp_mod error = {.mask = DOCK_MOD_STATE, .state = DOCK_ERR};
    struct dock_dev *quiet;
    struct end from, to, second;

    assert_int_equal(dock_dev_open(&cfg, &quiet), 0);
    open_ready(&from, quiet, &o);
    open_ready(&to, quiet, &o);
    assert_int_equal(end_recv(&to, 1, to.mem, 1 << 20), 0);
    post_to(&from, DOCK_OP_SEND, &to, 1, 1 << 20); // one budget of it is executed
    assert_true(from.qp->sq.mid);
    if (destroy) {
        assert_int_equal(dock_qp_destroy(from.qp), 0);
        from.qp = NULL;
    } else {
        assert_int_equal(dock_qp_modify(from.qp, &error), 0);
        expect(from.scq, 1, DOCK_ST_FLUSH);
    }
    expect(to.rcq, 1, DOCK_ST_FLUSH);
    assert_int_equal(dock_qp_state(to.qp), DOCK_RTS);
    open_ready(&second, quiet, &o);
    delivered(&second, &to, 4);
    end_close(&from);
    end_close(&second);
    end_close(&to);
    assert_int_equal(dock_dev_close(quiet), 0);
}

static void a_message_that_its_sender_gives_up_frees_its_receive(void **state)
{
    (void)state;
    give_up_in_mid_message(false);
    give_up_in_mid_message(true);
}

static void requests_reach_the_next_queue_of_a_number(void **state)
{
    struct end_opts o = rm(DOCK_ON_ERROR_CONTINUE);
    struct end from, to;
    uint32_t number;
    unsigned tries = 0;

    (void)state;
    open_ready(&from, dev, &o);
    open_ready(&to, dev, &o);
    delivered(&from, &to, 1);
    number = dock_qp_number(to.qp);
    do {
        end_close(&to);
        end_open(&to, dev, &o);
    } while (dock_qp_number(to.qp) != number && ++tries < 5000);
    assert_int_equal(dock_qp_number(to.qp), number);
    end_connect(&to, 0, &impatient);
    delivered(&from, &to, 2);
    end_close(&from);
    end_close(&to);
}

// The device that had the number is gone, another one is there.
static void a_target_in_the_next_device_is_reached_under_the_same_way_of_naming(void **state)
{
    struct end_opts o = rm(DOCK_ON_ERROR_CONTINUE);
    struct end from, to;
    struct dock_dev *third;

    (void)state;
    open_ready(&from, dev, &o);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(dock_dev_open(NULL, &third), 0);
        open_ready(&to, third, &o);
        delivered(&from, &to, i);
        uint32_t number = dock_qp_number(to.qp);
        struct dock_mr mr = *to.mr;
        end_close(&to);
        assert_int_equal(dock_dev_close(third), 0);
        post(&from, DOCK_OP_WRITE, number, &mr, 9, 8);
        expect(from.scq, 9, DOCK_ST_RETRY_EXC);
    }
    end_close(&from);
}

// A segment's token is the program's, and so is a queue's.
static void tokens_of_segment_and_queue_are_checked_where_asked(void **state)
{
    static const struct {
        bool checked;
        uint32_t flip, status;
    } t[] = {{true, 0, DOCK_OK}, {true, 1, DOCK_ST_REM_ACCESS}, {false, 0, DOCK_OK}, {false, 1, DOCK_OK}};
    struct end_opts o = rm(DOCK_ON_ERROR_CONTINUE);
    struct end from, to;

    (void)state;
    open_ready(&from, dev, &o);
    open_ready(&to, other, &o);
    for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
        struct dock_qp_mod m = {.mask = DOCK_MOD_QKEY | DOCK_MOD_ACCESS,
                                .qkey = 0xabcd0000 + i,
                                .access = DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |
                                          (t[i].checked ? DOCK_ACCESS_TOKEN : 0)};
        assert_int_equal(dock_qp_modify(to.qp, &m), 0);
        dock_mr_set_token(to.mr, t[i].checked, 0x12340000 + i);
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &from, &sge, 0, 8, to.mr, to.mr->va);
        wr.token = to.mr->token ^ t[i].flip;
        wr.target_token = 0xabcd0000 + i;
        wr_aim(&wr, dock_qp_number(to.qp));
        assert_int_equal(end_post(&from, &wr), 0);
        expect(from.scq, 0, t[i].status);
        for (unsigned k = 0; k < 2;
             k++) { // WRITE with immediate: the segment's is right, the queue's may not be
            receives(&to, 5);
            wr.op = k ? DOCK_OP_WRITE_IMM : DOCK_OP_SEND;
            wr.token = to.mr->token;
            wr.target_token = (0xabcd0000 + i) ^ t[i].flip;
            assert_int_equal(end_post(&from, &wr), 0);
            expect(from.scq, 0, t[i].status);
            if (t[i].status) {
                wr.target_token ^= t[i].flip;
                assert_int_equal(end_post(&from, &wr), 0);
                expect(from.scq, 0, DOCK_OK);
            }
            expect(to.rcq, 5, DOCK_OK);
        }
    }
    end_close(&from);
    end_close(&to);
}

// Unreliable messages: delivered whole, or dropped and nobody told; what cannot be one is the sender's error.
static void unreliable_messages(void **state)
{
    struct end_opts o = {.service = DOCK_UM, .mem = 65536, .on_error = DOCK_ON_ERROR_CONTINUE};
    struct end from, to;

    (void)state;
    open_ready(&from, dev, &o);
    open_ready(&to, other, &o);
    bytes_fill(from.mem, 4096, 5);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(end_recv(&to, 7, to.mem, 4096), 0);
        post_to(&from, DOCK_OP_SEND_IMM, &to, 1, 4096);
        expect(from.scq, 1, DOCK_OK);
        struct dock_wc wc = expect(to.rcq, 7, DOCK_OK);
        assert_int_equal(wc.bytes, 4096); // no header before the data
        assert_false(wc.grh);
        assert_int_equal(wc.src_qp, dock_qp_number(from.qp));
        assert_memory_equal(wc.eid, test_eid, 16);
        assert_memory_equal(to.mem, from.mem, 4096);
        post_to(&from, DOCK_OP_SEND, &to, 2, LEN); // no receive
        expect(from.scq, 2, DOCK_OK);
        post(&from, DOCK_OP_SEND, 0xffff0, to.mr, 3, LEN); // nobody has that number
        expect(from.scq, 3, DOCK_OK);
        expect_none(to.rcq);
        post_to(&from, DOCK_OP_SEND, &to, 4, 4097);
        expect(from.scq, 4, DOCK_ST_LOC_LEN);
        assert_int_equal(dock_qp_state(from.qp), DOCK_RTS);
    }
    end_close(&from);
    end_close(&to);
}

// Of requests without a message: WRITE, which may be lost as a message may, and READ, whose reader learns.
static void unreliable_writes_and_reads(void **state)
{
    struct end_opts o = {.service = DOCK_UM, .mem = 65536, .on_error = DOCK_ON_ERROR_CONTINUE};
    struct end from, to;
    struct dock_mr wrong;

    (void)state;
    open_ready(&from, dev, &o);
    open_ready(&to, other, &o);
    wrong = *to.mr;
    wrong.rkey ^= 4; // of the same segment, another token
    wrong.token ^= 4;
    bytes_fill(from.mem, 4096, 5);
    post_to(&from, DOCK_OP_WRITE, &to, 1, 4096);
    expect(from.scq, 1, DOCK_OK);
    assert_memory_equal(to.mem, from.mem, 4096);
    bytes_fill(to.mem, 4096, 6);
    post_to(&from, DOCK_OP_READ, &to, 2, 4096);
    expect(from.scq, 2, DOCK_OK);
    assert_memory_equal(to.mem, from.mem, 4096);
    post(&from, DOCK_OP_WRITE, 0xffff0, to.mr, 3, LEN); // nobody has that number
    expect(from.scq, 3, DOCK_OK);
    post(&from, DOCK_OP_READ, 0xffff0, to.mr, 4, LEN);
    expect(from.scq, 4, DOCK_ST_RETRY_EXC);
    post(&from, DOCK_OP_WRITE, dock_qp_number(to.qp), &wrong, 5, LEN);
    expect(from.scq, 5, DOCK_OK);
    assert_memory_equal(to.mem, from.mem, 4096);
    post(&from, DOCK_OP_READ, dock_qp_number(to.qp), &wrong, 6, LEN);
    expect(from.scq, 6, DOCK_ST_REM_ACCESS);
    post_to(&from, DOCK_OP_READ, &to, 7, 4097);
    expect(from.scq, 7, DOCK_ST_LOC_LEN);
    post_to(&from, DOCK_OP_WRITE_IMM, &to, 8, 8);
    expect(from.scq, 8, DOCK_ST_UNSUPPORTED);
    post_to(&from, DOCK_OP_FADD, &to, 9, 8);
    expect(from.scq, 9, DOCK_ST_UNSUPPORTED);
    assert_int_equal(dock_qp_state(from.qp), DOCK_RTS);
    end_close(&from);
    end_close(&to);
}

static void services_do_not_mix(void **state)
{
    static const enum dock_service service[] = {DOCK_RC, DOCK_UD, DOCK_UM};
    struct end_opts o = rm(DOCK_ON_ERROR_CONTINUE);

    (void)state;
    for (unsigned i = 0; i < sizeof service / sizeof *service; i++) {
        struct end_opts theirs = {.service = service[i]};
        struct end from, to;
        open_ready(&from, dev, &o);
        end_open(&to, dev, &theirs);
        end_connect(&to, dock_qp_number(from.qp), NULL);
        receives(&to, 1);
        post_to(&from, DOCK_OP_SEND, &to, 1, 8);
        expect(from.scq, 1, DOCK_ST_RETRY_EXC);
        expect_none(to.rcq);
        end_close(&from);
        end_close(&to);
    }
}

// ---- threads of two devices, each with one queue that they share, to all targets of both

#define POSTERS 4u
#define ROUNDS 400u
#define GOALS 6u

struct crowd {
    struct end from[2], to[GOALS];
};

struct poster {
    struct crowd *crowd;
    unsigned number;
    pthread_t thread;
};

static void *add_to_all(void *arg)
{
    const struct poster *me = arg;
    struct crowd *c = me->crowd;
    struct end *from = &c->from[me->number % 2];
    struct dock_wc wc;

    for (unsigned n = 0; n < ROUNDS; n++) {
        struct end *to = &c->to[(n + me->number) % GOALS];
        struct dock_sge s = {.addr = (uintptr_t)from->mem + me->number * 8, .len = 8, .key = from->mr->lkey};
        struct dock_wr wr = {.op = DOCK_OP_FADD,
                             .nsge = 1,
                             .sge = &s,
                             .flags = DOCK_F_COMPLETE,
                             .raddr = to->mr->va,
                             .rkey = to->mr->rkey,
                             .token = to->mr->token,
                             .operand = 1};
        wr_aim(&wr, dock_qp_number(to->qp));
        while (end_post(from, &wr)) // full: a completion of either thread makes room
            if (end_poll(from->scq, &wc))
                assert_int_equal(wc.status, DOCK_OK);
    }
    return NULL;
}

static void threads_share_a_queue_to_many(void **state)
{
    struct end_opts o = rm(DOCK_ON_ERROR_CONTINUE);
    static struct crowd c;
    struct poster p[POSTERS];
    struct dock_wc wc;
    uint64_t sum = 0, want = (uint64_t)POSTERS * ROUNDS;

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        open_ready(&c.from[i], i ? dev : other, &o);
    for (unsigned i = 0; i < GOALS; i++)
        open_ready(&c.to[i], i % 2 ? dev : other, &o);
    for (unsigned i = 0; i < POSTERS; i++) {
        p[i] = (struct poster){.crowd = &c, .number = i};
        pthread_create(&p[i].thread, NULL, add_to_all, &p[i]);
    }
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(p[i].thread, NULL);
    for (unsigned i = 0; i < 2; i++)
        while (dock_peek64(&c.from[i].qp->rec->cqes) != want / 2 || end_poll(c.from[i].scq, &wc))
            end_poll(c.from[i].scq, &wc);
    for (unsigned i = 0; i < GOALS; i++) {
        sum += dock_acquire64((dock_a64 *)(void *)c.to[i].mem);
        end_close(&c.to[i]);
    }
    assert_int_equal(sum, want);
    for (unsigned i = 0; i < 2; i++)
        end_close(&c.from[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_queue_reaches_many_and_each_is_told_who_sent),
        cmocka_unit_test(a_failure_with_one_target_leaves_the_rest_alone),
        cmocka_unit_test(a_queue_that_is_to_stop_flushes_the_rest_and_its_targets_do_not_notice),
        cmocka_unit_test(a_message_that_its_sender_gives_up_frees_its_receive),
        cmocka_unit_test(requests_reach_the_next_queue_of_a_number),
        cmocka_unit_test(a_target_in_the_next_device_is_reached_under_the_same_way_of_naming),
        cmocka_unit_test(tokens_of_segment_and_queue_are_checked_where_asked),
        cmocka_unit_test(unreliable_messages),
        cmocka_unit_test(unreliable_writes_and_reads),
        cmocka_unit_test(services_do_not_mix),
        cmocka_unit_test(threads_share_a_queue_to_many),
    };

    return cmocka_run_group_tests_name("queues without a connection", tests, open_devices, close_devices);
}
