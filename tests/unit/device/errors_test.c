// SPDX-License-Identifier: MIT
// timeout: 180
// What a cause leads to: status of the requester, status of the responder's receive, states of both queue
// pairs and the responder's asynchronous event, as one table, in every place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "lib/duo.h"

#define NONE 0xfffu // no receive completion is expected
#define ANY 0xffu
#define LEN 64u
#define REMOTE 8192u // offset in the far memory
#define MEM 65536u

#define ALL                                                                                                  \
    (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_ATOMIC)

struct
try {
    struct duo d;
    struct dock_wr wr;
    struct dock_sge sge;
};

// ---- arrangements at either end

struct io_region {
    uint32_t access;
    bool other_pd, gone, unmapped;
    uint32_t lkey, rkey;
    uint64_t at;
};

static void make_region(struct side *s, void *io)
{
    struct io_region *r = io;
    uint32_t pd = s->e.pd;
    uint64_t at = (uintptr_t)s->e.mem + REMOTE;

    if (r->other_pd && dock_pd_create(s->e.dev, &pd))
        abort();
    if (r->unmapped)
        at = (uintptr_t)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (dock_mr_register(s->e.dev, pd, at, 4096, at, r->access, &s->extra))
        abort();
    if (r->unmapped) // and nothing else will be mapped there
        mmap((void *)(uintptr_t)at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    r->lkey = s->extra->lkey;
    r->rkey = s->extra->rkey;
    r->at = at;
    if (r->gone) {
        dock_mr_deregister(s->extra);
        if (dock_mr_register(s->e.dev, pd, at, 4096, at, r->access, &s->extra))
            abort();
    }
}

static void destroy_queue(struct side *s, void *io)
{
    (void)io;
    dock_qp_destroy(s->e.qp);
    s->e.qp = NULL;
}

static void reset_queue(struct side *s, void *io)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE, .state = DOCK_RESET};

    (void)io;
    dock_qp_modify(s->e.qp, &m);
}

static void far_region(struct try *t, struct io_region r)
{
    duo_far(&t->d, make_region, &r, sizeof r);
    t->wr.rkey = r.rkey;
    t->wr.raddr = r.at;
}

static void near_region(struct try *t, struct io_region r)
{
    make_region(&t->d.near, &r);
    t->sge.key = r.lkey;
    t->sge.addr = r.at;
}

static void receive(struct try *t, uint32_t len, uint32_t key, uint32_t off)
{
    struct io_recv r = {.id = 5, .off = off, .len = len, .key = key};

    duo_far(&t->d, side_recv, &r, sizeof r);
    assert_int_equal(r.err, 0);
}

// ---- causes

static void right(struct try *t)
{
    receive(t, LEN, 0, REMOTE);
}

static void variant(struct try *t)
{
    t->wr.rkey ^= 2;
}

static void key_zero(struct try *t)
{
    t->wr.rkey = 0;
}

static void key_beyond_the_table(struct try *t)
{
    t->wr.rkey = 0xffffffff;
}

static void lkey_as_rkey(struct try *t)
{
    t->wr.rkey = t->d.mr.lkey;
}

static void first_byte_outside(struct try *t)
{
    t->wr.raddr = t->d.mem - 8;
}

static void last_byte_outside(struct try *t)
{
    t->wr.raddr = t->d.mem + MEM - t->sge.len + 8;
}

static void address_that_wraps(struct try *t)
{
    t->wr.raddr = ~0ull - 7;
}

static void no_remote_right(struct try *t)
{
    far_region(t, (struct io_region){.access = DOCK_ACCESS_LOCAL_WRITE});
}

static void only_other_rights(struct try *t)
{
    uint32_t own = t->wr.op == DOCK_OP_READ      ? DOCK_ACCESS_REMOTE_READ
                   : dock_op_is_atomic(t->wr.op) ? DOCK_ACCESS_REMOTE_ATOMIC
                                                 : DOCK_ACCESS_REMOTE_WRITE;

    far_region(t, (struct io_region){.access = ALL & ~own});
}

static void other_domain(struct try *t)
{
    far_region(t, (struct io_region){.access = ALL, .other_pd = true});
}

static void old_generation(struct try *t)
{
    far_region(t, (struct io_region){.access = ALL, .gone = true});
}

static void far_memory_gone(struct try *t)
{
    far_region(t, (struct io_region){.access = ALL, .unmapped = true});
}

static void misaligned(struct try *t)
{
    t->wr.raddr += 4;
}

static void short_receive(struct try *t)
{
    receive(t, LEN - 1, 0, REMOTE);
}

static void receive_without_region(struct try *t)
{
    receive(t, LEN, 0x00123400, REMOTE);
}

static void receive_by_rkey(struct try *t)
{
    receive(t, LEN, t->d.mr.rkey, REMOTE);
}

static void receive_outside_its_region(struct try *t)
{
    receive(t, LEN, 0, MEM - LEN + 1);
}

static void receive_into_read_only(struct try *t)
{
    struct io_region r = {.access = DOCK_ACCESS_REMOTE_READ};

    duo_far(&t->d, make_region, &r, sizeof r);
    receive(t, LEN, r.lkey, REMOTE);
}

static void local_key(struct try *t)
{
    right(t);
    t->sge.key = 0x00123400;
}

static void local_key_zero(struct try *t)
{
    right(t);
    t->sge.key = 0;
}

static void local_rkey(struct try *t)
{
    right(t);
    t->sge.key = t->d.near.e.mr->rkey;
}

static void local_first_byte(struct try *t)
{
    right(t);
    t->sge.addr = (uintptr_t)t->d.near.e.mem - 1;
}

static void local_last_byte(struct try *t)
{
    right(t);
    t->sge.addr = (uintptr_t)t->d.near.e.mem + MEM - t->sge.len + 1;
}

static void local_read_only(struct try *t)
{
    near_region(t, (struct io_region){.access = DOCK_ACCESS_REMOTE_READ});
}

static void local_other_domain(struct try *t)
{
    right(t);
    near_region(t, (struct io_region){.access = ALL, .other_pd = true});
}

static void local_old_generation(struct try *t)
{
    right(t);
    near_region(t, (struct io_region){.access = ALL, .gone = true});
}

static void local_memory_gone(struct try *t)
{
    right(t);
    near_region(t, (struct io_region){.access = ALL, .unmapped = true});
}

static void atomic_of_four_bytes(struct try *t)
{
    t->sge.len = 4;
}

static void nothing_done(struct try *t)
{
    (void)t;
}

static void nobody_destroyed(struct try *t)
{
    duo_far(&t->d, destroy_queue, NULL, 0);
}

static void nobody_reset(struct try *t)
{
    duo_far(&t->d, reset_queue, NULL, 0);
}

#define W DOCK_OP_WRITE
#define R DOCK_OP_READ
#define A DOCK_OP_FADD
#define S DOCK_OP_SEND
#define I DOCK_OP_WRITE_IMM
#define END 0xff

#define NO_EVENT (-1)
#define ACCESS_EVENT DOCK_EVENT_QP_ACCESS_ERR
#define REQUEST_EVENT DOCK_EVENT_QP_REQ_ERR

enum effect {
    DONE,
    DELIVERED,
    ACCESS,
    REQUEST,
    SHORT,
    RECEIVE,
    LOCAL,
    LOCAL_LATE,
    FAR_FAULT,
    LENGTH,
    NOT_READY,
    GONE,
    ABSENT
};

// Status of the requester, of the responder's receive; states of both queues; event at the responder.
static const struct {
    uint32_t requester, responder, near_state, far_state;
    int event;
} effects[] = {
    [DONE] = {DOCK_OK, NONE, DOCK_RTS, DOCK_RTS, NO_EVENT},
    [DELIVERED] = {DOCK_OK, DOCK_OK, DOCK_RTS, DOCK_RTS, NO_EVENT},
    [ACCESS] = {DOCK_ST_REM_ACCESS, NONE, DOCK_ERR, DOCK_ERR, ACCESS_EVENT},
    [REQUEST] = {DOCK_ST_REM_INV_REQ, NONE, DOCK_ERR, DOCK_ERR, REQUEST_EVENT},
    [SHORT] = {DOCK_ST_REM_INV_REQ, DOCK_ST_LOC_LEN, DOCK_ERR, DOCK_ERR, NO_EVENT},
    [RECEIVE] = {DOCK_ST_REM_OP, DOCK_ST_LOC_PROT, DOCK_ERR, DOCK_ERR, NO_EVENT},
    [LOCAL] = {DOCK_ST_LOC_PROT, NONE, DOCK_ERR, DOCK_RTS, NO_EVENT},
    [LOCAL_LATE] = {DOCK_ST_LOC_PROT, ANY, DOCK_ERR, DOCK_RTS, NO_EVENT},
    [FAR_FAULT] = {DOCK_ST_REM_OP, NONE, DOCK_ERR, ANY, NO_EVENT},
    [LENGTH] = {DOCK_ST_LOC_LEN, NONE, DOCK_ERR, DOCK_RTS, NO_EVENT},
    [NOT_READY] = {DOCK_ST_RNR_EXC, NONE, DOCK_ERR, DOCK_RTS, NO_EVENT},
    [GONE] = {DOCK_ST_RETRY_EXC, NONE, DOCK_ERR, ANY, NO_EVENT},
    [ABSENT] = {DOCK_ST_RETRY_EXC, NONE, DOCK_ERR, DOCK_RESET, NO_EVENT},
};

struct row {
    const char *cause;
    void (*arrange)(struct try *t);
    uint8_t ops[8]; // END ends them
    enum effect effect;
    bool plain_only;
};

static const struct row golden[] = {
    {"nothing wrong", right, {W, R, A, END}, DONE, false},
    {"nothing wrong, message", right, {S, I, END}, DELIVERED, false},
    {"another variant of the key", variant, {W, R, A, I, END}, ACCESS, false},
    {"key 0", key_zero, {W, R, A, END}, ACCESS, false},
    {"key ffffffff", key_beyond_the_table, {W, R, A, END}, ACCESS, false},
    {"lkey used as rkey", lkey_as_rkey, {W, R, A, END}, ACCESS, false},
    {"first byte outside", first_byte_outside, {W, R, A, I, END}, ACCESS, false},
    {"last byte outside", last_byte_outside, {W, R, A, I, END}, ACCESS, false},
    {"an address that wraps", address_that_wraps, {W, R, A, END}, ACCESS, false},
    {"region without remote rights", no_remote_right, {W, R, A, I, END}, ACCESS, false},
    {"region with the other rights", only_other_rights, {W, R, A, END}, ACCESS, false},
    {"region of another domain", other_domain, {W, R, A, END}, ACCESS, false},
    {"region that was deregistered", old_generation, {W, R, A, END}, ACCESS, false},
    {"misaligned atomic", misaligned, {A, END}, REQUEST, false},
    {"receive too short", short_receive, {S, END}, SHORT, false},
    {"receive with a key of nothing", receive_without_region, {S, END}, RECEIVE, false},
    {"receive by a remote key", receive_by_rkey, {S, END}, RECEIVE, false},
    {"receive outside its region", receive_outside_its_region, {S, END}, RECEIVE, false},
    {"receive into a read-only region", receive_into_read_only, {S, END}, RECEIVE, false},
    {"local key of nothing", local_key, {W, R, A, S, I, END}, LOCAL, false},
    {"local key 0", local_key_zero, {W, R, A, S, END}, LOCAL, false},
    {"local key is a remote one", local_rkey, {W, R, A, S, END}, LOCAL, false},
    {"local first byte outside", local_first_byte, {W, R, A, S, END}, LOCAL, false},
    {"local last byte outside", local_last_byte, {W, R, A, S, END}, LOCAL, false},
    {"local region not writable", local_read_only, {R, A, END}, LOCAL, false},
    {"local region of another domain", local_other_domain, {W, R, A, S, END}, LOCAL, false},
    {"local region deregistered", local_old_generation, {W, R, A, S, END}, LOCAL, false},
    {"local memory unmapped", local_memory_gone, {W, R, A, S, END}, LOCAL_LATE, true},
    {"remote memory unmapped", far_memory_gone, {W, R, A, END}, FAR_FAULT, true},
    {"atomic of four bytes", atomic_of_four_bytes, {A, END}, LENGTH, false},
    {"no receive, no retries", nothing_done, {S, I, END}, NOT_READY, false},
    {"queue destroyed", nobody_destroyed, {W, R, A, S, END}, GONE, false},
    {"queue reset", nobody_reset, {W, R, A, S, END}, ABSENT, false},
};

static const struct dock_qp_mod impatient = {.timeout = 8,
                                             .retry = 1,
                                             .rnr_retry = 0,
                                             .rnr_timer = 1,
                                             .rd_atomic = 16,
                                             .dest_rd_atomic = 16,
                                             .access = ALL & ~DOCK_ACCESS_LOCAL_WRITE};

static unsigned wrong;

static void differs(const struct row *r, const struct try *t, const char *what, uint32_t got, uint32_t want)
{
    if (got == want || want == ANY)
        return;
    wrong++;
    fprintf(stderr, "%s, opcode %#x (%s): %s: expected %#x, got %#x\n", r->cause, t->wr.op,
            place_name[t->d.place], what, want, got);
}

static void expect_responder(const struct row *r, struct try *t)
{
    struct io_wc w = {.ms = effects[r->effect].responder == NONE ? 0 : 10000 * slow_down()};

    if (effects[r->effect].responder == ANY)
        return;
    if (r->arrange == nobody_destroyed) // and with it whoever could poll
        return;
    duo_far(&t->d, side_wait, &w, sizeof w);
    if (w.got && effects[r->effect].responder == NONE && w.wc.status == DOCK_ST_FLUSH)
        return; // posted beforehand, and the queue failed for another reason
    differs(r, t, "status of the receive", w.got ? w.wc.status : NONE, effects[r->effect].responder);
    if (w.got)
        differs(r, t, "id of the receive", (uint32_t)w.wc.id, 5);
}

static void expect_states(const struct row *r, struct try *t)
{
    struct io_look l = {.ms = 0};

    differs(r, t, "state of the requester", dock_qp_state(t->d.near.e.qp), effects[r->effect].near_state);
    if (effects[r->effect].far_state != ANY &&
        !duo_far_reaches(&t->d, effects[r->effect].far_state, 10000 * slow_down())) {
        duo_far(&t->d, side_state, &l, sizeof l);
        differs(r, t, "state of the responder", l.state, effects[r->effect].far_state);
    }
    l.ms = effects[r->effect].event < 0 ? 5 : 10000 * slow_down();
    duo_far(&t->d, side_event, &l, sizeof l);
    differs(r, t, "event of the responder", (uint32_t)l.event, (uint32_t)effects[r->effect].event);
    l.ms = 0;
    side_event(&t->d.near, &l);
    differs(r, t, "event of the requester", (uint32_t)l.event, (uint32_t)NO_EVENT);
}

static const struct duo_opts both_impatient = {
    .near = {.mem = MEM}, .far = {.mem = MEM}, .near_knobs = &impatient, .far_knobs = &impatient};

static void run_row(const struct row *r, uint8_t op, struct duo *d)
{
    struct io_mem before = {.len = MEM}, after = {.len = MEM};
    struct dock_wc wc = {.status = 0xfff};
    struct try t = {.d = *d};

    t.wr =
        wr_onesided(op, &t.d.near.e, &t.sge, 0, dock_op_is_atomic(op) ? 8 : LEN, &t.d.mr, t.d.mem + REMOTE);
    t.wr.sge = &t.sge;
    t.wr.id = 77;
    t.wr.operand = 1;
    memset(t.d.near.e.mem, 0x5a, MEM);
    r->arrange(&t);
    duo_far(&t.d, side_sum, &before, sizeof before);
    assert_int_equal(end_post(&t.d.near.e, &t.wr), 0);
    if (!end_wait(t.d.near.e.scq, &wc, 5000 * slow_down()))
        wc.status = NONE;
    differs(r, &t, "status of the requester", wc.status, effects[r->effect].requester);
    differs(r, &t, "id of the completion", (uint32_t)wc.id, 77);
    expect_responder(r, &t);
    expect_states(r, &t);
    if (effects[r->effect].requester && op != DOCK_OP_SEND && op != DOCK_OP_WRITE_IMM) {
        duo_far(&t.d, side_sum, &after, sizeof after);
        // where an atomic's old value goes is looked at when it comes back
        bool late = dock_op_is_atomic(op) && effects[r->effect].requester == DOCK_ST_LOC_PROT;
        differs(r, &t, "remote bytes moved", before.sum != after.sum, late);
    }
    d->near = t.d.near;
    if (r->arrange == nobody_destroyed) {
        duo_close(d);
        duo_open(d, d->place, &both_impatient);
    } else {
        duo_again(d, &both_impatient);
    }
}

static void cause_and_effect(void **state)
{
    struct duo d;

    (void)state;
    wrong = 0;
    for (unsigned place = 0; place < PLACES; place++) {
        if (!place_possible((enum place)place))
            continue;
        duo_open(&d, (enum place)place, &both_impatient);
        for (unsigned i = 0; i < sizeof golden / sizeof *golden; i++)
            for (const uint8_t *op = golden[i].ops; *op != END; op++)
                if (!golden[i].plain_only || place_plain((enum place)place))
                    run_row(&golden[i], *op, &d);
        duo_close(&d);
    }
    assert_int_equal(wrong, 0);
}

// ---- rights of region x rights of queue x opcode

static void rights(uint32_t region, uint32_t queue, uint8_t op, uint32_t need, struct duo *d)
{
    struct dock_qp_mod knobs = impatient;
    struct row r = {.cause = "rights"};
    struct duo_opts o = {.near_knobs = &impatient, .far_knobs = &knobs};
    struct dock_wc wc = {.status = 0xfff};
    struct try t;

    knobs.access = queue;
    duo_again(d, &o);
    t.d = *d;
    t.wr = wr_onesided(op, &t.d.near.e, &t.sge, 0, 8, &t.d.mr, t.d.mem);
    t.wr.sge = &t.sge;
    far_region(&t, (struct io_region){.access = region | DOCK_ACCESS_LOCAL_WRITE});
    assert_int_equal(end_post(&t.d.near.e, &t.wr), 0);
    end_wait(t.d.near.e.scq, &wc, 5000 * slow_down());
    // A queue without the right refuses the request, a region without it the access.
    uint32_t want = !(queue & need) ? DOCK_ST_REM_INV_REQ : !(region & need) ? DOCK_ST_REM_ACCESS : DOCK_OK;
    differs(&r, &t, "status", wc.status, want);
    if (wc.status != want)
        fprintf(stderr, "  rights of the region %#x, of the queue %#x\n", region, queue);
}

static void rights_of_region_and_queue_by_opcode(void **state)
{
    static const struct {
        uint8_t op;
        uint32_t need;
    } ops[] = {{W, DOCK_ACCESS_REMOTE_WRITE},
               {R, DOCK_ACCESS_REMOTE_READ},
               {A, DOCK_ACCESS_REMOTE_ATOMIC},
               {DOCK_OP_CAS, DOCK_ACCESS_REMOTE_ATOMIC}};

    struct duo d;

    (void)state;
    wrong = 0;
    duo_open(&d, SELF_ARENA, &both_impatient);
    for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++)
        for (uint32_t region = 0; region < 8; region++)
            for (uint32_t queue = 0; queue < 8; queue++)
                rights(region << 1, queue << 1, ops[i].op, ops[i].need, &d);
    duo_close(&d);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cause_and_effect),
        cmocka_unit_test(rights_of_region_and_queue_by_opcode),
    };

    return cmocka_run_group_tests_name("causes and their effects", tests, NULL, NULL);
}
