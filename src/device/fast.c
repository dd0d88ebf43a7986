// SPDX-License-Identifier: MIT
// The small WRITE, READ or SEND in a straight line: one SGE, memory that both sides have mapped, a key that
// was found before. Whatever is different goes the long way through execute.c, which does the same with every
// check in words: what is skipped here is only what cannot matter for such a request.
#include "device/run.h"
#include "device/straight.h"

#define DATA_AT 48u // of a WRITE, a READ or a SEND in its WQE

// The first word of a WQE, flags and opcode. These flags change nothing in how it is executed when nothing is
// in flight, and the format does not use the rest of it: all other bits must be as they are wanted.
#define HARMLESS (DOCK_F_SOLICITED | DOCK_F_TOKEN_EN | DOCK_F_FENCE | (uint64_t)0x003f00ff << 32)
#define INLINE_BITS (DOCK_F_INLINE | (uint64_t)0xffc00000 << 32)
#define ONE_SGE (1u << 24) // of the low half of the second word

// A WQE is read word by word, each once and when it is wanted: what is executed is what was checked. In the
// width in which post.c wrote it a moment ago: a wider load would wait until those stores have left the
// store buffer.
static inline uint64_t word(const char *at)
{
    return dock_peek64((const dock_a64 *)(const void *)at);
}

static inline const char *block_at(const struct dock_sq *sq, uint32_t at)
{
    return sq->post.ring + (uint64_t)(at & sq->post.mask) * DOCK_BLOCK;
}

// The first word of a WQE at `at` that is ours, whole, and of this pass of the ring.
static inline uint64_t wanted(const struct dock_sq *sq, uint32_t at, enum dock_op op)
{
    return (uint64_t)op << 40 | (at & (sq->post.mask + 1) ? 0 : DOCK_F_OWNER);
}

static inline enum dock_op opcode(uint64_t head)
{
    return (enum dock_op)(head >> 40 & 0xff);
}

// The entry of a local key that is not the one used last. Entry 0 is never given a key: there is none.
const struct dock_lkey *dock_sq_other_lkey(struct dock_sq *sq, uint64_t name)
{
    const struct dock_dev *dev = sq->qp->dev;
    uint32_t tid = (uint32_t)name >> 8;
    struct dock_lkey *l = &dev->lkeys[tid < dev->nsegments ? tid : 0];

    return sq->lkey = dock_lkey_found(l, name) ? l : dev->lkeys;
}

// The remote key of a WRITE or a READ at `b`, whose second word is `target`.
static inline uint64_t remote(const char *b, uint64_t target)
{
    return dock_rkey_name(target >> 32 & DOCK_ID_MASK, (uint32_t)word(b + 32));
}

// A WRITE of one SGE that stands at `b`, placed. How many bytes; 0: none, as above.
static inline uint32_t place(struct dock_sq *sq, struct dock_conn *c, const char *b)
{
    uint64_t target = word(b + 8), local = word(b + DATA_AT);
    uint32_t len = (uint32_t)local;
    const char *from;

    if (__builtin_expect((uint32_t)target != ONE_SGE || len - 1 >= DOCK_STRAIGHT_BYTES, 0) ||
        !dock_straight_source(sq, local, word(b + DATA_AT + 8), &from))
        return 0;
    return dock_direct_write(c, remote(b, target), word(b + 40), from, len) ? len : 0;
}

// The same of one whose bytes stand in its first block.
static uint32_t place_inline(struct dock_conn *c, const char *b, uint64_t head)
{
    uint64_t target = word(b + 8);
    uint32_t len = (uint32_t)(head >> 54);

    return !(uint32_t)target && len - 1 < DOCK_BLOCK - DATA_AT &&
                   dock_direct_write(c, remote(b, target), word(b + 40), b + DATA_AT, len)
               ? len
               : 0;
}

// A READ of one SGE that stands at `b`, executed. How many bytes; 0 as above.
static uint32_t fetch(struct dock_sq *sq, struct dock_conn *c, const char *b, uint64_t head)
{
    uint64_t target = word(b + 8), local = word(b + DATA_AT);
    uint32_t len = (uint32_t)local;
    const char *to;

    if (head & INLINE_BITS || (uint32_t)target != ONE_SGE || len - 1 >= DOCK_STRAIGHT_BYTES ||
        c->service != DOCK_RC || !sq->qp->rd_atomic ||
        !dock_straight_source(sq, local, word(b + DATA_AT + 8), &to) ||
        !(sq->lkey->access & DOCK_ACCESS_LOCAL_WRITE))
        return 0;
    return dock_direct_read(c, remote(b, target), word(b + 40), (char *)(uintptr_t)to, len) ? len : 0;
}

// A SEND of one block, inline or of one SGE. How many bytes, and what became of it; 0 as above.
static uint32_t send(struct dock_sq *sq, struct dock_conn *c, const char *b, uint64_t head, uint32_t *status)
{
    uint32_t sges = (uint32_t)word(b + 8) >> 24, in_line = (uint32_t)(head >> 54);
    struct dock_direct_message m = {.op = opcode(head),
                                    .flags = (uint32_t)head,
                                    .imm = word(b + 40),
                                    .len = in_line,
                                    .from = b + DATA_AT};

    if (head & DOCK_F_INLINE) {
        if (in_line - 1 >= DOCK_BLOCK - DATA_AT || sges)
            return 0;
    } else {
        uint64_t local = word(b + DATA_AT);
        m.len = (uint32_t)local;
        if (m.len - 1 >= DOCK_STRAIGHT_BYTES || sges != 1 || in_line ||
            !dock_straight_source(sq, local, word(b + DATA_AT + 8), &m.from))
            return 0;
    }
    *status = dock_direct_send(c, &m);
    return *status == DOCK_DIRECT_NOT ? 0 : m.len;
}

// The completion of the WR at sq->exec, which went well.
static inline void complete(struct dock_sq *sq, enum dock_op op, uint32_t bytes)
{
    dock_sq_publish(sq, (uint32_t)op << 8, bytes, sq->exec, sq->x.target);
}

// The queue's indices follow the run: `n` WRs of one block each are executed, and what is to be told of
// them was.
static inline void settle(struct dock_sq *sq, uint32_t n)
{
    uint32_t seq = sq->seq + n;

    sq->exec += n;
    sq->seq = sq->retired = seq;                  // nothing is in flight here
    if (__builtin_expect(sq->post.free_early, 0)) // pairs with find_room in post.c, as in dock_sq_retire
        dock_publish64(&sq->post.freed, (uint64_t)seq << 32 | sq->exec);
}

// The same of one that was executed and failed.
static void __attribute__((noinline, cold))
fail(struct dock_sq *sq, enum dock_op op, uint32_t status, uint32_t bytes)
{
    dock_sq_retire(sq, &(struct dock_outcome){.status = status,
                                              .bytes = bytes,
                                              .last_block = sq->exec,
                                              .target = sq->x.target,
                                              .op = (uint8_t)op});
    sq->exec++;
    sq->seq++;
}

// Out of the line: with nobody listening a WRITE costs one look at a register more.
static void __attribute__((noinline, cold))
tell(const struct dock_sq *sq, enum dock_moment at, uint64_t sequence)
{
    dock_probe(at, sq->qp->number, DOCK_PROBE_STRAIGHT | sequence);
}

static inline uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// How many blocks from sq->exec on may be looked at in one go: not beyond the end of the ring.
static inline uint32_t reach(const struct dock_sq *sq, const struct dock_stay *stay)
{
    uint32_t ready = stay->pi - sq->exec;

    return ready == 1 ? 1 : least(least(ready, stay->wrs), sq->post.mask + 1 - (sq->exec & sq->post.mask));
}

// WRITEs of one SGE whose completion nobody wants, as many as come in a row and suit. The local and the
// remote stay are held; the state of our own queue changes only by whoever holds its token. How many.
static inline uint32_t haul(struct dock_sq *sq, struct dock_conn *c, struct dock_stay *stay,
                            const char *first, uint64_t want)
{
    const char *b = first, *end = b + (uint64_t)reach(sq, stay) * DOCK_BLOCK;
    int32_t left = (int32_t)stay->bytes;

    do {
        uint32_t len = (word(b) & ~HARMLESS) == want ? place(sq, c, b) : 0;
        if (__builtin_expect(!len, 0))
            break;
        left -= (int32_t)len;
        b += DOCK_BLOCK;
    } while (b != end && left > 0);
    sq->bytes += stay->bytes - (uint32_t)left;
    stay->bytes = left > 0 ? (uint32_t)left : 0;
    uint32_t n = (uint32_t)((uintptr_t)(b - first) / DOCK_BLOCK);
    stay->wrs -= n;
    settle(sq, n);
    return n;
}

// A WRITE of whatever kind. How many bytes; 0 as above.
static inline uint32_t write_any(struct dock_sq *sq, struct dock_conn *c, const char *b, uint64_t head)
{
    if (!dock_direct_writable(c))
        return 0;
    if (head & DOCK_F_INLINE)
        return place_inline(c, b, head);
    return head & INLINE_BITS ? 0 : place(sq, c, b);
}

// One of another kind: a WRITE with its completion, one that is inline, a READ, a SEND; while somebody
// listens, every WRITE. false: it does not suit.
static bool __attribute__((noinline))
haul_other(struct dock_sq *sq, struct dock_conn *c, struct dock_stay *stay, bool heard)
{
    const char *b = block_at(sq, sq->exec);
    uint64_t head = word(b), kind = head & ~(HARMLESS | DOCK_F_COMPLETE | INLINE_BITS);
    uint32_t status = DOCK_OK, len = 0;

    if (kind == wanted(sq, sq->exec, DOCK_OP_WRITE))
        len = write_any(sq, c, b, head);
    else if (kind == wanted(sq, sq->exec, DOCK_OP_READ))
        len = fetch(sq, c, b, head);
    else if (kind == wanted(sq, sq->exec, DOCK_OP_SEND) || kind == wanted(sq, sq->exec, DOCK_OP_SEND_IMM))
        len = send(sq, c, b, head, &status);
    if (!len)
        return false;
    sq->bytes += len;
    stay->bytes -= least(len, stay->bytes);
    stay->wrs--;
    if (__builtin_expect(heard, 0) && opcode(head) > DOCK_OP_SEND_IMM) // a SEND has told
        tell(sq, DOCK_AT_PLACE, sq->exec + 1);
    if (__builtin_expect(status, 0)) {
        fail(sq, opcode(head), status, len);
        return true;
    }
    if (head & DOCK_F_COMPLETE)
        complete(sq, opcode(head), len);
    settle(sq, 1);
    return true;
}

static inline bool more(const struct dock_sq *sq, const struct dock_stay *stay)
{
    return sq->exec != stay->pi && stay->wrs && stay->bytes;
}

// The same as stay_there, where somebody listens.
static void __attribute__((noinline, cold))
stay_heard(struct dock_sq *sq, struct dock_conn *c, struct dock_stay *stay)
{
    tell(sq, DOCK_AT_ENTER, c->hazard_value);
    while (haul_other(sq, c, stay, true) && dock_straight_goes_on(sq) && more(sq, stay))
        ;
}

// In the target's memory: what comes in turn and suits.
static inline void stay_there(struct dock_sq *sq, struct dock_conn *c, struct dock_stay *stay)
{
    do {
        const char *b = block_at(sq, sq->exec);
        uint64_t want = wanted(sq, sq->exec, DOCK_OP_WRITE);
        if ((word(b) & ~HARMLESS) == want && dock_direct_writable(c)) {
            if (!haul(sq, c, stay, b, want))
                return;
        } else if (!haul_other(sq, c, stay, false) || !dock_straight_goes_on(sq)) {
            return;
        }
    } while (more(sq, stay));
}

static inline bool suits(uint32_t op)
{
    return op == DOCK_OP_WRITE || op == DOCK_OP_READ || op <= DOCK_OP_SEND_IMM;
}

// Is it worth to enter the target's memory? What is at the head, if anything is, is looked at only where the
// doorbell can be right.
static inline bool may_suit(const struct dock_sq *sq, uint32_t pi)
{
    if (!sq->straight || sq->mid || pi - sq->exec - 1 > sq->post.mask)
        return false;
    // Half of its first word: the long way's requests are written by halves.
    uint32_t op = dock_peek32((const dock_a32 *)(const void *)(block_at(sq, sq->exec) + 4)) >> 8 & 0xff;
    return suits(op);
}

void dock_sq_fast(struct dock_sq *sq, struct dock_stay *stay)
{
    struct dock_conn *c = sq->conn;
    bool entered;

    // Of a budget that is used up nothing may be looked at: what is behind it may be anything.
    if (!more(sq, stay) || !may_suit(sq, stay->pi) || dock_straight_closed(sq, c))
        return;
    entered = dock_straight_enter(sq, c);
    if (entered && __builtin_expect(dock_probe_hook != NULL, 0))
        stay_heard(sq, c, stay);
    else if (entered)
        stay_there(sq, c, stay);
    dock_straight_leave(sq, c, entered);
    dock_conn_wake(c);
}

// The only request that is posted, of another kind than below.
static bool __attribute__((noinline)) go_alone_other(struct dock_sq *sq, struct dock_conn *c)
{
    struct dock_stay stay = {.bytes = DOCK_BUDGET_BYTES, .wrs = 1};
    bool entered = dock_straight_enter(sq, c), done = entered && haul_other(sq, c, &stay, false);

    dock_straight_leave(sq, c, entered);
    dock_conn_wake(c);
    return done;
}

// The only request that is posted. A WRITE of one SGE is all of the above in one line. false: nothing was
// done.
static inline bool go_alone(struct dock_sq *sq)
{
    struct dock_conn *c = sq->conn;
    const char *b = block_at(sq, sq->exec);
    uint64_t head = word(b);
    uint32_t len = 0;
    bool entered;

    if (!sq->straight || sq->mid || dock_probe_hook || dock_straight_closed(sq, c))
        return false;
    if (__builtin_expect((head & ~(HARMLESS | DOCK_F_COMPLETE)) != wanted(sq, sq->exec, DOCK_OP_WRITE), 0))
        return suits(opcode(head)) && go_alone_other(sq, c);
    entered = dock_straight_enter(sq, c);
    if (entered && dock_direct_writable(c))
        len = place(sq, c, b);
    if (len) {
        if (head & DOCK_F_COMPLETE)
            complete(sq, DOCK_OP_WRITE, len);
        settle(sq, 1);
    }
    dock_straight_leave(sq, c, entered);
    sq->bytes += len;
    return len;
}

// All but a lone WRITE, and what may take longer: that is done with the token alone.
static void __attribute__((noinline)) end_others(struct dock_sq *sq, struct dock_stay stay)
{
    if (!dock_sq_evicted(sq)) {
        dock_sq_fast(sq, &stay);
        dock_sq_tell(sq, DOCK_BY_POSTER);
    }
    // Something not our own may be left of earlier, and is on a list.
    if (__builtin_expect(sq->exec == stay.pi && !sq->mid && !sq->mark, 1))
        dock_publish32(&sq->post.word, 0); // pairs with dock_sq_lock, and take in run.c
    else
        dock_sq_go_on(sq, &stay);
}

// Small requests are done while lock and token are both held.
void dock_sq_end(struct dock_sq *sq, uint32_t pi)
{
    if (pi - sq->exec != 1 || dock_sq_evicted(sq) || !go_alone(sq)) {
        end_others(sq, (struct dock_stay){.pi = pi, .bytes = DOCK_BUDGET_BYTES, .wrs = DOCK_BUDGET_WRS});
        return;
    }
    dock_sq_tell(sq, DOCK_BY_POSTER);
    if (__builtin_expect(!sq->mark, 1))
        dock_publish32(&sq->post.word, 0); // pairs with dock_sq_lock, and take in run.c
    else
        dock_sq_go_on(sq, &(struct dock_stay){.bytes = DOCK_BUDGET_BYTES, .wrs = DOCK_BUDGET_WRS});
}

void dock_sq_tell_placed(struct dock_sq *sq, const struct dock_post *p)
{
    enum dock_op op = opcode(word(block_at(sq, sq->exec)));

    if (__builtin_expect(p->status, 0)) {
        fail(sq, op, p->status, p->told);
    } else {
        complete(sq, op, p->told);
        settle(sq, 1);
    }
}

void dock_sq_end_placed(struct dock_sq *sq, const struct dock_post *p)
{
    uint32_t told = p->told != 0;

    settle(sq, p->placed - told);
    if (told)
        dock_sq_tell_placed(sq, p);
    dock_conn_wake(p->way);
    if (__builtin_expect(sq->exec == p->pi && !sq->mark, 1)) {
        dock_sq_tell(sq, DOCK_BY_POSTER);
        dock_publish32(&sq->post.word, 0); // pairs with dock_sq_lock, and take in run.c
    } else {
        end_others(sq, (struct dock_stay){.pi = p->pi,
                                          .bytes = DOCK_BUDGET_BYTES - p->bytes,
                                          .wrs = DOCK_BUDGET_WRS - p->placed});
    }
}
