// SPDX-License-Identifier: MIT
// Each litmus program under thousands of seeds, on the device over the late fabric: what is forbidden is
// never seen, what is allowed is seen under some seed. Twice: with all that fabric.h promises, and with the
// floor, where a WRITE may complete before its data is visible (what verbs programs may rely on).
//
// litmus_test                    all rows
// litmus_test ROW...             these
// litmus_test ROW RUN promise|floor   one run, step by step
// litmus_test --rules            names of the rules that LATE_WITHOUT gives up, and of the harness's own
// LITMUS_NO_DRAIN=1: posting does not drain the store buffer, the rule that no fabric can keep.
// LITMUS_HALF_ATOMICS=1: a processor's own atomics come between the halves of the fabric's. On mapped words,
// and these are, the device's are the processor's too.
// timeout: 120
// long-timeout: 900
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/seed.h"
#include "device/identity.h"
#include "lib/late.h"
#include "lib/pair.h"
#include "rows.h"

#define LANES 3
#define PARTIES 3
#define REGS 4
#define BUFFER 8
#define STRIDE 64
#define IDLE 32 // so many picks of parties that cannot go on: let others

#ifdef DOCK_LONG
#define RUNS 200000u
#else
#define RUNS 8000u
#endif

static struct {
    struct dock_dev *dev;
    struct dock_mr *mr;
    uint32_t pd;
    char *mem;
    struct end near[LANES], far[LANES];
    bool no_drain, half_atomics;
} world;

struct run {
    const struct row *row;
    uint64_t stream;
    uint64_t reg[REGS];
    unsigned pc[PARTIES];
    struct {
        uint8_t word, value;
    } buffer[PARTIES][BUFFER]; // stores of a CPU that memory has not seen, oldest first
    unsigned buffered[PARTIES];
    bool told;
};

static const char *const word_name[WORDS] = {"X", "Y", "D",   "F",   "Z",    "a",
                                             "b", "c", "one", "two", "four", "five"};
static const char *const phase_name[LATE_PHASES] = {"reads its source", "has its effect", "writes its result",
                                                    "is finished"};

static void die(const struct run *r, const char *why)
{
    fprintf(stderr, "%s: %s\n", r ? r->row->name : "setup", why);
    abort();
}

// ---- the world: one device, a pair of queues per lane, one region

static void *word_at(unsigned w)
{
    return world.mem + (size_t)w * STRIDE;
}

static uint64_t memory(unsigned w)
{
    return dock_peek64(word_at(w)); // everything runs in this thread
}

static void make_end(struct end *e)
{
    struct dock_cq_attr ca = {.depth = 64};

    *e = (struct end){.dev = world.dev, .pd = world.pd, .mr = world.mr, .mem = world.mem};
    if (dock_cq_create(world.dev, &ca, &e->scq) || dock_cq_create(world.dev, &ca, &e->rcq))
        die(NULL, dock_log_last());
    struct dock_qp_attr qa = {.service = DOCK_RC,
                              .pd = world.pd,
                              .send_cq = e->scq,
                              .recv_cq = e->rcq,
                              .max_send_wr = 16,
                              .max_recv_wr = 16,
                              .max_send_sge = 1,
                              .max_recv_sge = 1,
                              .max_inline = 16};
    if (dock_qp_create(world.dev, &qa, &e->qp))
        die(NULL, dock_log_last());
}

static void open_world(void)
{
    struct dock_config cfg = {.fabric = &late_fabric, .no_engine_thread = true};
    uint32_t rights = DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |
                      DOCK_ACCESS_REMOTE_ATOMIC;

    world.no_drain = getenv("LITMUS_NO_DRAIN") != NULL;
    world.half_atomics = getenv("LITMUS_HALF_ATOMICS") != NULL;
    memcpy(test_eid, dock_identity()->gid[0].raw, 16);
    late_open(0, 0);
    if (dock_dev_open(&cfg, &world.dev) || dock_pd_create(world.dev, &world.pd) ||
        dock_mem_alloc(world.dev, 4096, (void **)&world.mem) ||
        dock_mr_register(world.dev, world.pd, (uintptr_t)world.mem, 4096, (uintptr_t)world.mem, rights,
                         &world.mr))
        die(NULL, dock_log_last());
    for (unsigned l = 0; l < LANES; l++) {
        make_end(&world.near[l]);
        make_end(&world.far[l]);
        pair_connect(&world.near[l], &world.far[l]);
    }
}

static void close_end(struct end *e)
{
    if (dock_qp_destroy(e->qp) || dock_cq_destroy(e->scq) || dock_cq_destroy(e->rcq))
        die(NULL, dock_log_last());
}

static void close_world(void)
{
    for (unsigned l = 0; l < LANES; l++) {
        close_end(&world.near[l]);
        close_end(&world.far[l]);
    }
    if (dock_mr_deregister(world.mr))
        die(NULL, dock_log_last());
    dock_mem_free(world.dev, world.mem, 4096);
    if (dock_pd_destroy(world.dev, world.pd) || dock_dev_close(world.dev))
        die(NULL, dock_log_last());
    late_close();
}

// ---- a CPU with a store buffer

static void flush_oldest(struct run *r, unsigned p)
{
    unsigned w = r->buffer[p][0].word;

    if (r->told)
        printf("  party %u's store of %u to %s reaches memory\n", p, r->buffer[p][0].value, word_name[w]);
    dock_set64(word_at(w), r->buffer[p][0].value);
    r->buffered[p]--;
    memmove(r->buffer[p], r->buffer[p] + 1, r->buffered[p] * sizeof r->buffer[p][0]);
}

static void drain(struct run *r, unsigned p)
{
    while (r->buffered[p] && !world.no_drain)
        flush_oldest(r, p);
}

static uint64_t load(const struct run *r, unsigned p, unsigned w)
{
    for (unsigned i = r->buffered[p]; i-- > 0;)
        if (r->buffer[p][i].word == w)
            return r->buffer[p][i].value;
    return memory(w);
}

static void store(struct run *r, unsigned p, const struct step *s)
{
    if (r->buffered[p] == BUFFER)
        die(r, "more stores than the buffer holds");
    r->buffer[p][r->buffered[p]].word = s->to;
    r->buffer[p][r->buffered[p]++].value = s->from;
}

static uint64_t locked_add(struct run *r, unsigned p, unsigned w)
{
    uint64_t old;

    while (r->buffered[p])
        flush_oldest(r, p);
    old = memory(w);
    dock_set64(word_at(w), old + 1);
    return old;
}

// ---- steps of a party

static void post(struct run *r, unsigned p, const struct step *s)
{
    static const uint8_t op[] = {
        [PUT_] = DOCK_OP_WRITE, [GET_] = DOCK_OP_READ, [FAA_] = DOCK_OP_FADD, [SND_] = DOCK_OP_SEND};
    bool outward = s->what == PUT_ || s->what == SND_;
    unsigned near = outward ? s->from : s->to, far = outward ? s->to : s->from;
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(op[s->what], &world.near[s->lane], &sge, (size_t)near * STRIDE, 8,
                                    world.mr, (uintptr_t)word_at(far));

    drain(r, p);
    wr.operand = 1;
    wr.flags = s->how & UNSIGNALED ? 0 : DOCK_F_COMPLETE;
    if (s->how & FENCED)
        wr.flags |= DOCK_F_FENCE;
    if (s->how & INLINE) {
        wr.flags |= DOCK_F_INLINE;
        wr.inline_len = 8;
    }
    if (end_post(&world.near[s->lane], &wr))
        die(r, dock_log_last());
}

static bool poll(struct run *r, struct dock_cq *cq)
{
    struct dock_wc wc;

    if (!end_poll(cq, &wc))
        return false;
    if (wc.status)
        die(r, "a completion with an error");
    return true;
}

static const struct step *next(const struct run *r, unsigned p)
{
    const struct step *s = &r->row->party[p][r->pc[p]];

    return s->what == END ? NULL : s;
}

static void tell(const struct run *r, unsigned p, const struct step *s)
{
    static const char *const name[] = {"",        "put",  "get", "faa",   "send", "poll",
                                       "receive", "load", "see", "store", "rmw",  "after"};

    if (!r->told)
        return;
    printf("  party %u: %s", p, name[s->what]);
    if (s->what >= PUT_ && s->what <= SND_)
        printf(" lane %u %s<-%s%s", s->lane, word_name[s->to], word_name[s->from],
               s->how & FENCED ? " fenced" : "");
    else if (s->what == LD_ || s->what == SEE_)
        printf(" %s: %llu", word_name[s->from], (unsigned long long)load(r, p, s->from));
    else if (s->what == ST_)
        printf(" %s:=%u", word_name[s->to], s->from);
    printf("\n");
}

// false: it cannot go on yet.
static bool step(struct run *r, unsigned p)
{
    const struct step *s = next(r, p);

    if (s->what == AFTER_ && r->pc[s->to] < s->from)
        return false;
    if (s->what == POLL_ && !poll(r, world.near[s->lane].scq))
        return false;
    if (s->what == RCV_ && !poll(r, world.far[s->lane].rcq))
        return false;
    if (s->what == SEE_ && load(r, p, s->from) != s->lane)
        return false;
    tell(r, p, s);
    if (s->what >= PUT_ && s->what <= SND_)
        post(r, p, s);
    else if (s->what == LD_ || s->what == SEE_)
        r->reg[s->to] = load(r, p, s->from);
    else if (s->what == ST_)
        store(r, p, s);
    else if (s->what == RMW_)
        r->reg[s->to] = locked_add(r, p, s->from);
    r->pc[p]++;
    return true;
}

// ---- a run

static void begin(struct run *r)
{
    static const uint8_t constant[WORDS] = {[one] = 1, [two] = 2, [four] = 4, [five] = 5};
    const struct row *row = r->row;

    for (unsigned w = 0; w < WORDS; w++)
        dock_set64(word_at(w), constant[w]);
    for (unsigned i = 0; i < 3; i++)
        if (row->start[i].value)
            dock_set64(word_at(row->start[i].what), row->start[i].value);
    for (unsigned p = 0; p < PARTIES; p++)
        for (const struct step *s = row->party[p]; s->what != END; s++)
            if (s->what == SND_ && end_recv(&world.far[s->lane], 0, word_at(s->to), 8))
                die(r, dock_log_last());
}

static void take_the_rest(struct run *r)
{
    for (unsigned l = 0; l < LANES; l++) {
        while (poll(r, world.near[l].scq))
            ;
        while (poll(r, world.far[l].rcq))
            ;
    }
}

static bool looks_in_vain(const struct run *r)
{
    for (unsigned p = 0; p < PARTIES; p++)
        if (next(r, p) && next(r, p)->what == SEE_)
            return true;
    return false;
}

// Nothing moves by itself: what the fabric kept for the end is next. false: nothing is left.
static bool kept_back(struct run *r, unsigned *idle)
{
    bool waits = *idle == IDLE;

    *idle = 0;
    if (late_step())
        return true;
    if (waits && !looks_in_vain(r))
        die(r, "a party waits for what never comes");
    return false;
}

// One of all that can happen next: a party's step, a store that reaches memory, a phase of the fabric.
// false: nothing is left.
static bool advance(struct run *r, unsigned *idle)
{
    unsigned fabric = late_enabled(), parties[PARTIES], stores[PARTIES], np = 0, ns = 0;
    bool moved = true;

    for (unsigned p = 0; p < PARTIES; p++) {
        if (next(r, p))
            parties[np++] = p;
        if (r->buffered[p])
            stores[ns++] = p;
    }
    if (np + ns + fabric == 0 || *idle == IDLE)
        return kept_back(r, idle);
    uint64_t pick = dock_rand(&r->stream) % (np + ns + fabric);
    if (pick < np)
        moved = step(r, parties[pick]);
    else if (pick < np + ns)
        flush_oldest(r, stores[pick - np]);
    else
        late_step();
    *idle = moved || fabric ? 0 : *idle + 1;
    return true;
}

static bool seen(const struct run *r)
{
    for (unsigned i = 0; i < 3 && r->row->outcome[i].kind != NONE; i++) {
        const struct check *k = &r->row->outcome[i];
        uint64_t v = k->kind == REG ? r->reg[k->what] : memory(k->what);
        if (v != k->value)
            return false;
    }
    return true;
}

static uint32_t without(bool floor)
{
    return floor ? 1u << LATE_FINISH_PLACED : 0;
}

static bool has_locked_add(const struct row *row)
{
    for (unsigned p = 0; p < PARTIES; p++)
        for (const struct step *s = row->party[p]; s->what != END; s++)
            if (s->what == RMW_)
                return true;
    return false;
}

static bool run(const struct row *row, uint64_t seed, bool floor, bool told)
{
    struct run r = {.row = row, .stream = seed, .told = told};
    unsigned idle = 0;

    memset(r.reg, 0xff, sizeof r.reg); // not loaded
    late_set_whole_atomics(has_locked_add(row) && !world.half_atomics);
    late_again(dock_mix(seed), without(floor));
    begin(&r);
    while (advance(&r, &idle))
        ;
    take_the_rest(&r);
    if (late_count().fences_broken && told)
        printf("  a fence was broken\n");
    return seen(&r);
}

// ---- rows

struct tally {
    unsigned runs, seen, first;
};

static uint64_t base_seed;

static uint64_t seed_of(const struct row *row, unsigned n, bool floor)
{
    return dock_decide(base_seed, (uint64_t)(row - rows) * 2 + floor, n);
}

static struct tally tally(const struct row *row, unsigned runs, bool floor)
{
    struct tally t = {.runs = runs};

    for (unsigned n = 0; n < runs; n++)
        if (run(row, seed_of(row, n, floor), floor, false) && t.seen++ == 0)
            t.first = n;
    return t;
}

static bool right(const struct row *row, const struct tally *t, bool floor)
{
    bool may = row->verdict == ALLOWED || (row->verdict == EARLY && floor);

    if (may == (t->seen != 0))
        return true;
    printf("%s: %s, but seen in %u of %u runs with %s\n", row->name, may ? "allowed" : "forbidden", t->seen,
           t->runs, floor ? "the floor" : "what fabric.h promises");
    if (t->seen)
        printf("  again, step by step: DRYDOCK_SEED=%#llx litmus_test %s %u %s\n",
               (unsigned long long)base_seed, row->name, t->first, floor ? "floor" : "promise");
    else
        printf("  again: DRYDOCK_SEED=%#llx litmus_test %s\n", (unsigned long long)base_seed, row->name);
    return false;
}

static bool judge(const struct row *row, unsigned runs)
{
    static const char *const name[] = {"forbidden", "allowed", "allowed, not over this fabric"};
    struct tally floor = tally(row, runs, true), promise = tally(row, runs, false);
    bool good = right(row, &floor, true);

    good &= right(row, &promise, false);
    printf("%-4s %-4s floor %5u/%u  promise %5u/%u  %s: %s", good ? "ok" : "BAD", row->name, floor.seen, runs,
           promise.seen, runs, name[row->verdict], row->text);
    if (floor.seen)
        printf(" (run %u floor)", floor.first);
    printf("\n");
    return good;
}

static const struct row *find(const char *name)
{
    for (unsigned i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    fprintf(stderr, "no row %s\n", name);
    exit(2);
}

static unsigned usual_runs(void)
{
    const char *slow = getenv("DRYDOCK_SLOW");
    unsigned by = slow ? (unsigned)atoi(slow) : 1;

    return by > 1 ? RUNS / by : RUNS;
}

static void watch(const struct dock_xfer *x, uint32_t nth, enum late_phase phase)
{
    static const char *const op[] = {
        [DOCK_OP_SEND] = "send", [DOCK_OP_WRITE] = "put", [DOCK_OP_READ] = "get", [DOCK_OP_FADD] = "faa"};

    printf("  request %u (%s) %s\n", nth, op[x->op], phase_name[phase]);
}

static int one_run(const struct row *row, const char *n, bool floor)
{
    printf("%s: %s\n", row->name, row->text);
    late_watch(watch);
    bool hit = run(row, seed_of(row, (unsigned)atoi(n), floor), floor, true);
    late_watch(NULL);
    printf("%s\n", hit ? "seen" : "not seen");
    return 0;
}

static int many(int argc, char **argv)
{
    unsigned bad = 0, runs = usual_runs();

    for (int i = 1; i < argc; i++)
        bad += !judge(find(argv[i]), runs);
    for (unsigned i = 0; argc == 1 && i < ROWS; i++)
        bad += !judge(&rows[i], runs);
    printf("%u wrong\n", bad);
    return bad != 0;
}

int main(int argc, char **argv)
{
    int result;

    if (argc == 2 && !strcmp(argv[1], "--rules")) {
        for (unsigned i = 0; i < LATE_RULES; i++)
            printf("%s\n", late_rule_name[i]);
        printf("post-drains\nmapped-atomics\n");
        return 0;
    }
    base_seed = dock_seed();
    printf("seed %#llx (DRYDOCK_SEED)\n", (unsigned long long)base_seed);
    open_world();
    if (argc == 4 && (!strcmp(argv[3], "floor") || !strcmp(argv[3], "promise")))
        result = one_run(find(argv[1]), argv[2], !strcmp(argv[3], "floor"));
    else
        result = many(argc, argv);
    close_world();
    return result;
}
