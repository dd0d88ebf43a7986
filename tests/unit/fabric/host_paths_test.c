// SPDX-License-Identifier: MIT
// timeout: 240
// Each opcode x place x {right, bad key, bad bounds, zero length} x {connected, naming its target} from one
// table; the host places between two processes, and once more over the fabric that finishes late. What moved
// is compared byte by byte at the end where it arrived, what was refused moved nothing. A message names no
// remote memory: its key and its bounds are those of its own SGE, and of the receive that it meets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/seed.h"
#include "device/internal.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/late.h"

#define MEM (1u << 20)
#define SRC 4096u    // near: what is written, where READs and old values land
#define DST 8192u    // far: what one-sided requests reach
#define BUF 524288u  // far: what receives take
#define NOTE 458752u // far: the notification
#define NOTE_SEED 98 // of what stands there before

#define TOKEN 77u // RM: of the segment that a SEND with invalidate takes away

enum way { RIGHT, BAD_KEY, BAD_BOUNDS, ZERO, WAYS, RECV_KEY = WAYS, RECV_BOUNDS, RECV_SHORT, MESSAGE_WAYS };
static const char *const way_name[] = {"right",
                                       "bad key",
                                       "bad bounds",
                                       "zero length",
                                       "bad key of the receive",
                                       "bad bounds of the receive",
                                       "short receive"};

// What kind of request it is, for what is checked.
enum kind { PUT, GET, ATOMIC, MESSAGE, PUT_MESSAGE, PUT_NOTIFY, NOTHING };

static const struct {
    const char *name;
    uint8_t op;
    enum kind kind;
} ops[] = {
    {"WRITE", DOCK_OP_WRITE, PUT},
    {"WRITE_IMM", DOCK_OP_WRITE_IMM, PUT_MESSAGE},
    {"WRITE_NOTIFY", DOCK_OP_WRITE_NOTIFY, PUT_NOTIFY},
    {"WRITE_ADD", DOCK_OP_WRITE_ADD, PUT_NOTIFY},
    {"READ", DOCK_OP_READ, GET},
    {"SEND", DOCK_OP_SEND, MESSAGE},
    {"SEND_IMM", DOCK_OP_SEND_IMM, MESSAGE},
    {"SEND_INV", DOCK_OP_SEND_INV, MESSAGE},
    {"CAS", DOCK_OP_CAS, ATOMIC},
    {"FADD", DOCK_OP_FADD, ATOMIC},
    {"SWAP", DOCK_OP_SWAP, ATOMIC},
    {"FSUB", DOCK_OP_FSUB, ATOMIC},
    {"FAND", DOCK_OP_FAND, ATOMIC},
    {"FOR", DOCK_OP_FOR, ATOMIC},
    {"FXOR", DOCK_OP_FXOR, ATOMIC},
    {"NOP", DOCK_OP_NOP, NOTHING},
};

static const uint32_t sizes[] = {1, 8, 13, 64, 4096, 65537, 300001};
#define COUNT(a) (sizeof(a) / sizeof *(a))

struct run {
    struct duo d;
    enum dock_service service;
    unsigned op;
    enum way way;
    uint32_t len;
    struct dock_sge sge[3];
    struct dock_wr wr;
    uint32_t key; // SEND_INV: of what it takes away
};

static unsigned wrong;
static bool late;     // over the late fabric
static uint64_t seed; // of what it does next

static void differs(const struct run *r, const char *what, uint64_t got, uint64_t want)
{
    if (got == want)
        return;
    wrong++;
    fprintf(stderr, "%s%s, %s%s, %s, %u bytes: %s: expected %#llx, got %#llx\n",
            r->service == DOCK_RM ? "RM " : "", ops[r->op].name, place_name[r->d.place], late ? ", late" : "",
            way_name[r->way], r->len, what, (unsigned long long)want, (unsigned long long)got);
    if (late)
        fprintf(stderr,
                "again: DRYDOCK_SEED=%#llx scripts/run-one build/dev/tests/unit/fabric/host_paths_test\n",
                (unsigned long long)seed);
}

static uint64_t apply(uint8_t op, uint64_t old, uint64_t v, uint64_t compare)
{
    switch (op) {
    case DOCK_OP_CAS:
        return old == compare ? v : old;
    case DOCK_OP_FADD:
        return old + v;
    case DOCK_OP_SWAP:
        return v;
    case DOCK_OP_FSUB:
        return old - v;
    case DOCK_OP_FAND:
        return old & v;
    case DOCK_OP_FOR:
        return old | v;
    default:
        return old ^ v;
    }
}

static uint64_t far_sum(struct run *r, uint32_t off, uint32_t len)
{
    struct io_mem m = {.off = off, .len = len};

    duo_far(&r->d, side_sum, &m, sizeof m);
    return m.sum;
}

static void far_bytes(struct run *r, uint32_t off, uint32_t len, uint64_t seed)
{
    struct io_mem m = {.off = off, .len = len, .seed = seed};

    duo_far(&r->d, side_fill, &m, sizeof m);
}

static bool is_message(enum kind k)
{
    return k == MESSAGE || k == PUT_MESSAGE;
}

// What a SEND with invalidate takes away at the far end: a window of a connection's target, a segment of one
// that is named.
struct io_right {
    enum dock_service service;
    uint32_t key, status; // status: 0 done, or why not
    bool stands;
};

static void far_give_right(struct side *s, void *io)
{
    struct io_right *r = io;
    struct io_bind b = {.kind = DOCK_SEG_MW2,
                        .variant = 3,
                        .off = DST,
                        .len = 4096,
                        .access = DOCK_ACCESS_REMOTE_WRITE,
                        .status = 1};
    uintptr_t at = (uintptr_t)s->e.mem + DST;

    if (r->service == DOCK_RC) {
        side_bind(s, &b);
        r->key = b.key;
        r->status = b.status;
        return;
    }
    r->status = (uint32_t)dock_mr_register(s->e.dev, s->e.pd, at, 4096, at,
                                           DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_WRITE, &s->extra);
    if (r->status)
        return;
    dock_mr_set_token(s->extra, true, TOKEN);
    r->key = s->extra->tid << 8;
}

// Is it there still? A window goes with the question, a segment with duo_again.
static void far_right_stands(struct side *s, void *io)
{
    struct io_right *r = io;
    struct io_bind b = {0};

    r->stands = s->extra && !(dock_acquire64(&s->e.dev->segments[s->extra->tid].generation) & 1);
    if (r->service == DOCK_RC)
        side_unbind(s, &b);
    r->status = b.status;
}

// Three pieces, the middle one empty; atomics one of eight bytes.
static void build(struct run *r)
{
    struct dock_sge *s = r->sge;
    uint64_t at = (uintptr_t)r->d.near.e.mem + SRC;
    uint32_t first = r->len / 3, key = r->d.near.e.mr->lkey;
    enum kind k = ops[r->op].kind;

    s[0] = (struct dock_sge){at, first, key};
    s[1] = (struct dock_sge){at, 0, key};
    s[2] = (struct dock_sge){at + first, r->len - first, key};
    r->wr = (struct dock_wr){.op = ops[r->op].op,
                             .id = 9,
                             .sge = s,
                             .nsge = 3,
                             .flags = DOCK_F_COMPLETE,
                             .rkey = r->d.mr.rkey,
                             .raddr = r->d.mem + DST,
                             .imm = 0xabcd,
                             .operand = 0x0ff0ff0f,
                             .compare = 0x1234,
                             .notify_key = r->d.mr.rkey,
                             .notify_addr = r->d.mem + NOTE,
                             .notify_token = r->d.mr.token,
                             .notify_value = 77};
    if (k == ATOMIC) {
        s[0].len = r->len;
        r->wr.nsge = 1;
    }
    if (k == NOTHING)
        r->wr.nsge = 0;
    if (r->way == BAD_KEY)
        *(k == MESSAGE ? &s[2].key : &r->wr.rkey) ^= 4;
    r->wr.token = r->wr.rkey;
    if (r->service == DOCK_RM)
        wr_aim(&r->wr, r->d.qpn);
    if (r->way == BAD_BOUNDS && k == MESSAGE)
        s[2].addr = (uintptr_t)r->d.near.e.mem + MEM - s[2].len + 8;
    else if (r->way == BAD_BOUNDS)
        r->wr.raddr = (r->d.mem + MEM - r->len + 8) & ~7ull;
    if (r->wr.op == DOCK_OP_SEND_INV) {
        r->wr.rkey = r->key;
        r->wr.token = r->service == DOCK_RM ? TOKEN : r->key;
    }
}

static uint32_t expected_of_message(const struct run *r)
{
    switch (r->way) {
    case BAD_KEY:
    case BAD_BOUNDS:
        return DOCK_ST_LOC_PROT;
    case RECV_KEY:
    case RECV_BOUNDS:
        return DOCK_ST_REM_OP;
    case RECV_SHORT:
        return r->service == DOCK_RM ? DOCK_ST_REM_RESP_LEN : DOCK_ST_REM_INV_REQ;
    default:
        return DOCK_OK;
    }
}

// What the requester is told. A request of no bytes names no memory: its key is not looked at.
static uint32_t expected(const struct run *r)
{
    enum kind k = ops[r->op].kind;

    if (k == MESSAGE)
        return expected_of_message(r);
    if (k == ATOMIC && r->way == ZERO)
        return DOCK_ST_LOC_LEN;
    if (k == NOTHING || r->way == RIGHT || r->way == ZERO)
        return DOCK_OK;
    return DOCK_ST_REM_ACCESS;
}

// Where bytes may change: of a message, in its receive.
static uint32_t watched(const struct run *r)
{
    return ops[r->op].kind == MESSAGE ? MEM : BUF;
}

static void expect_bytes(struct run *r, uint64_t old, uint64_t far_before)
{
    const char *mine = r->d.near.e.mem + SRC;
    enum kind k = ops[r->op].kind;
    uint64_t word;

    if (expected(r) || r->way == ZERO || k == NOTHING) {
        differs(r, "bytes at the far end changed", far_sum(r, 0, watched(r)) != far_before,
                k == PUT_NOTIFY && !expected(r));
        return;
    }
    if (k == ATOMIC) {
        memcpy(&word, mine, 8);
        differs(r, "the old value", word, old);
        uint64_t new = apply(r->wr.op, old, r->wr.operand, r->wr.compare);
        differs(r, "the new value", far_sum(r, DST, 8), bytes_sum((char *)&new, 8));
        return;
    }
    differs(r, "digest of the bytes", far_sum(r, k == MESSAGE ? BUF : DST, r->len), bytes_sum(mine, r->len));
    word = r->wr.notify_value + (r->wr.op == DOCK_OP_WRITE_ADD ? dock_mix(NOTE_SEED) : 0);
    if (k == PUT_NOTIFY)
        differs(r, "notification", far_sum(r, NOTE, 8), bytes_sum((char *)&word, 8));
}

// Of a message that its receive could not take: it completes, a connection's queue ends with it.
static void expect_failed_receive(struct run *r)
{
    struct io_wc w = {.ms = 3000 * slow_down(), .wc.status = 0xfff};
    uint32_t state = r->service == DOCK_RM ? DOCK_RTS : DOCK_ERR;

    duo_far(&r->d, side_wait, &w, sizeof w);
    differs(r, "a receive completed", w.got, 1);
    differs(r, "status of the receive", w.wc.status,
            r->way == RECV_SHORT ? DOCK_ST_LOC_LEN : DOCK_ST_LOC_PROT);
    differs(r, "its id", w.wc.id, 31);
    differs(r, "the far queue's state is right", duo_far_reaches(&r->d, state, 3000 * slow_down()), 1);
}

static uint64_t expected_imm(const struct run *r)
{
    if (r->wr.op != DOCK_OP_SEND_INV)
        return 0xabcd;
    return r->service == DOCK_RM ? (uint64_t)TOKEN << 32 | r->key : r->key;
}

static void expect_receive(struct run *r)
{
    struct io_wc w = {.ms = 3000 * slow_down()};

    if (r->way >= RECV_KEY) {
        expect_failed_receive(r);
        return;
    }
    // A queue that serves others does not fail with one's bad request: its receive stays posted. So does that
    // of a message that was wrong before it left.
    if (expected(r) && (r->service == DOCK_RM || ops[r->op].kind == MESSAGE)) {
        w.ms = 0;
        duo_far(&r->d, side_wait, &w, sizeof w);
        differs(r, "a receive completed", w.got, 0);
        differs(r, "the far queue stays ready", duo_far_reaches(&r->d, DOCK_RTS, 0), 1);
        return;
    }
    duo_far(&r->d, side_wait, &w, sizeof w);
    differs(r, "a receive completed", w.got, 1);
    if (!w.got || (expected(r) && (w.wc.status == DOCK_ST_FLUSH || w.wc.status == DOCK_ST_LOC_PROT)))
        return;
    differs(r, "status of the receive", w.wc.status, 0);
    differs(r, "its id", w.wc.id, 31);
    differs(r, "its bytes", w.wc.bytes, r->len);
    differs(r, "its source", w.wc.src_qp, dock_qp_number(r->d.near.e.qp));
    differs(r, "the source's address told", w.wc.told_eid, r->service == DOCK_RM);
    if (w.wc.told_eid)
        differs(r, "the source's address", (uint64_t)memcmp(w.wc.eid, test_eid, 16), 0);
    if (r->wr.op != DOCK_OP_SEND)
        differs(r, "its immediate", w.wc.imm, expected_imm(r));
    if (ops[r->op].kind == MESSAGE)
        differs(r, "its opcode", w.wc.op,
                r->wr.op == DOCK_OP_SEND       ? DOCK_ROP_SEND
                : r->wr.op == DOCK_OP_SEND_INV ? DOCK_ROP_SEND_INV
                                               : DOCK_ROP_SEND_IMM);
}

// Nothing is done by the post itself there: what is under way goes on in steps.
static bool completed(struct run *r, struct dock_wc *wc)
{
    if (late)
        late_drain();
    return end_wait(r->d.near.e.scq, wc, 5000 * slow_down());
}

static struct io_recv receive(const struct run *r)
{
    return (struct io_recv){.id = 31,
                            .off = r->way == RECV_BOUNDS ? MEM - r->len + 8 : BUF,
                            .len = r->way == RECV_SHORT ? r->len - 8 : r->len,
                            .key = r->way == RECV_KEY ? r->d.mr.lkey ^ 4 : 0};
}

static void give_right(struct run *r)
{
    struct io_right right = {.service = r->service};

    duo_far(&r->d, far_give_right, &right, sizeof right);
    differs(r, "what it takes away is made", right.status, 0);
    r->key = right.key;
}

static void expect_right(struct run *r)
{
    struct io_right right = {.service = r->service};

    duo_far(&r->d, far_right_stands, &right, sizeof right);
    differs(r, "what it takes away stands", right.stands, expected(r) != DOCK_OK);
    differs(r, "and is destroyed", right.status, 0);
}

static bool adopted; // plain memory is, in this test

static void one(const struct duo *d, enum dock_service service, unsigned op, enum way way, uint32_t len)
{
    struct run r = {.d = *d, .service = service, .op = op, .way = way, .len = len};
    struct dock_wc wc = {.status = 0xfff};
    struct io_recv recv = receive(&r);
    uint64_t old = 0x1234, before;

    bytes_fill(r.d.near.e.mem + SRC, len + 64, op + len);
    far_bytes(&r, DST, len + 64, 99);
    far_bytes(&r, NOTE, 8, NOTE_SEED);
    if (ops[op].kind == ATOMIC) { // a value that CAS finds: the far memory gets it by a WRITE
        memcpy(r.d.near.e.mem, &old, 8);
        struct dock_wr set = wr_onesided(DOCK_OP_WRITE, &r.d.near.e, r.sge, 0, 8, &r.d.mr, r.d.mem + DST);
        wr_aim(&set, r.d.qpn);
        set.sge = r.sge;
        assert_int_equal(end_post(&r.d.near.e, &set), 0);
        assert_true(completed(&r, &wc));
    }
    if (ops[op].op == DOCK_OP_SEND_INV)
        give_right(&r);
    before = far_sum(&r, 0, watched(&r));
    build(&r);
    if (is_message(ops[op].kind))
        duo_far(&r.d, side_recv, &recv, sizeof recv);
    assert_int_equal(end_post(&r.d.near.e, &r.wr), 0);
    if (late && !expected(&r) && ops[op].kind != NOTHING)
        differs(&r, "completed by the post itself", end_poll(r.d.near.e.scq, &wc), 0);
    differs(&r, "a completion", completed(&r, &wc), 1);
    differs(&r, "status", wc.status, expected(&r));
    differs(&r, "id", wc.id, 9);
    if (!wc.status) {
        differs(&r, "bytes", wc.bytes, ops[op].kind == NOTHING ? 0 : len);
        differs(&r, "opcode", wc.op, r.wr.op);
    }
    if (is_message(ops[op].kind))
        expect_receive(&r);
    expect_bytes(&r, old, before);
    if (ops[op].op == DOCK_OP_SEND_INV)
        expect_right(&r);
    if (late)
        late_drain();
    duo_again(&r.d, &(struct duo_opts){0});
}

static void opcode_by_way(const struct duo *d, enum dock_service service)
{
    bool few = service == DOCK_RM || late;

    for (unsigned op = 0; op < COUNT(ops); op++)
        for (unsigned way = 0; way < (ops[op].kind == MESSAGE ? MESSAGE_WAYS : WAYS); way++) {
            if (ops[op].kind == ATOMIC || ops[op].kind == NOTHING || way == ZERO) {
                one(d, service, op, (enum way)way, way == ZERO ? 0 : 8);
                continue;
            }
            // The way to the target is another, the copying is the same: three sizes show that
            for (unsigned s = few ? 3 : 0; s < COUNT(sizes); s++)
                if (few ? sizes[s] != 65537 && (way == RIGHT || sizes[s] == 64)
                        : way == RIGHT || sizes[s] == 64 || sizes[s] == 300001)
                    one(d, service, op, (enum way)way, sizes[s]);
        }
}

static void service_by_opcode_by_way(enum place place, enum dock_service service)
{
    struct duo_opts o = {.near = {.mem = MEM, .service = service},
                         .far = {.mem = MEM, .service = service},
                         .fabric = late ? &late_fabric : NULL,
                         .adopted = adopted};
    struct duo d;

    if (late)
        late_open(seed, late_without_env());
    duo_open(&d, place, &o);
    opcode_by_way(&d, service);
    duo_close(&d);
    if (late)
        late_close();
}

static void place_by_opcode_by_way(enum place place)
{
    wrong = 0;
    service_by_opcode_by_way(place, DOCK_RC);
    if (!adopted) // the memory is the same to either service, and time is short
        service_by_opcode_by_way(place, DOCK_RM);
    assert_int_equal(wrong, 0);
}

static void every_opcode_every_way_self_arena(void **state)
{
    (void)state;
    place_by_opcode_by_way(SELF_ARENA);
}

static void every_opcode_every_way_self_plain(void **state)
{
    (void)state;
    if (!place_possible(SELF_PLAIN))
        skip();
    place_by_opcode_by_way(SELF_PLAIN);
}

static void every_opcode_every_way_two_processes_arena(void **state)
{
    (void)state;
    if (!place_possible(HOST_ARENA))
        skip();
    place_by_opcode_by_way(HOST_ARENA);
}

static void every_opcode_every_way_two_processes_plain(void **state)
{
    (void)state;
    if (!place_possible(HOST_PLAIN))
        skip();
    place_by_opcode_by_way(HOST_PLAIN);
}

static void every_opcode_every_way_two_processes_adopted(void **state)
{
    (void)state;
    if (!place_possible(HOST_PLAIN) || getenv("DRYDOCK_EMULATED"))
        skip();
    adopted = true;
    place_by_opcode_by_way(HOST_PLAIN);
    adopted = false;
}

static void every_opcode_every_way_over_a_late_fabric(void **state)
{
    (void)state;
    late = true;
    seed = dock_seed();
    place_by_opcode_by_way(SELF_ARENA);
    late = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_opcode_every_way_self_arena),
        cmocka_unit_test(every_opcode_every_way_self_plain),
        cmocka_unit_test(every_opcode_every_way_two_processes_arena),
        cmocka_unit_test(every_opcode_every_way_two_processes_plain),
        cmocka_unit_test(every_opcode_every_way_two_processes_adopted),
        cmocka_unit_test(every_opcode_every_way_over_a_late_fabric),
    };

    return cmocka_run_group_tests_name("opcodes, places, ways to be wrong", tests, NULL, NULL);
}
