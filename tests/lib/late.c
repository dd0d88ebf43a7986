// SPDX-License-Identifier: MIT
// One lock guards the list of requests; phases run outside it. Those that touch memory run one at a time,
// because a connection and its hazard have one user at a time; finishing may overlap with anything.
#include "lib/late.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seed.h"
#include "lib/late_request.h"

#define FAILS 64
#define THREADS 4
#define RNR_STEPS 16 // a receiver that was not ready is asked again after so many steps

// What is known of a connection beside its requests.
struct lane {
    const struct dock_conn *conn;
    bool broken;
    uint32_t broken_at; // the request that failed
    struct dock_worker worker;
    struct lane *next;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread[THREADS];
    unsigned threads;
    bool stop, hasty;
    enum late_order order;
    bool working; // a phase that touches memory is being run
    uint64_t seed, stream, steps;
    uint32_t without;
    struct late_request *first, **last;
    struct lane *lanes;
    struct late_count count;
    struct {
        uint32_t nth, status;
    } fail[FAILS];
    unsigned fails;
    late_watch_fn watch;
} late = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

const char *const late_rule_name[LATE_RULES] = {
    [LATE_WRITE_WRITE] = "write-write",     [LATE_WRITE_SEND] = "write-send",
    [LATE_WRITE_ATOMIC] = "write-atomic",   [LATE_WRITE_READ] = "write-read",
    [LATE_SEND_WRITE] = "send-write",       [LATE_SEND_SEND] = "send-send",
    [LATE_SEND_ATOMIC] = "send-atomic",     [LATE_SEND_READ] = "send-read",
    [LATE_ATOMIC_WRITE] = "atomic-write",   [LATE_ATOMIC_SEND] = "atomic-send",
    [LATE_ATOMIC_ATOMIC] = "atomic-atomic", [LATE_ATOMIC_READ] = "atomic-read",
    [LATE_SOURCE_ORDER] = "source-order",   [LATE_FINISH_SOURCE] = "finish-source",
    [LATE_FINISH_RESULT] = "finish-result", [LATE_FINISH_PLACED] = "finish-placed",
    [LATE_ATOMIC_UNIT] = "atomic-unit",     [LATE_STOP] = "stop",
};

static bool keeps(enum late_rule rule)
{
    return !(late.without & 1u << rule);
}

// ---- what may be next; the lock is held

static bool ordered(enum late_kind a, enum late_kind b)
{
    return a != LATE_READ && keeps((enum late_rule)(LATE_WRITE_WRITE + 4 * a + b));
}

// Is there a fence behind `e`, `r` included?
static bool fenced(const struct late_request *e, const struct late_request *r)
{
    const struct late_request *f = e->next;

    while (f != r && (f->sq != r->sq || !(f->x.flags & DOCK_F_FENCE)))
        f = f->next;
    return f->x.flags & DOCK_F_FENCE;
}

static bool matters(const struct late_request *e, const struct late_request *r)
{
    return late.order == LATE_ORDERED || (late.order == LATE_FENCED && fenced(e, r));
}

static bool source_open(const struct late_request *r)
{
    for (const struct late_request *e = late.first; keeps(LATE_SOURCE_ORDER) && e != r; e = e->next)
        if (e->sq == r->sq && !e->done[LATE_SOURCE])
            return false;
    return true;
}

static bool effect_open(const struct late_request *r)
{
    if (!r->done[LATE_SOURCE] || r->again > late.steps)
        return false;
    if (r->half)
        return true;
    for (const struct late_request *e = late.first; e; e = e->next)
        if (e != r && e->half && !e->done[LATE_EFFECT] && r->kind == LATE_ATOMIC && keeps(LATE_ATOMIC_UNIT))
            return false;
    for (const struct late_request *e = late.first; e != r; e = e->next)
        if (e->sq == r->sq && !e->done[LATE_EFFECT] && ordered(e->kind, r->kind) && matters(e, r))
            return false;
    return true;
}

static bool finish_open(const struct late_request *r)
{
    if (late_answered(r))
        return r->done[LATE_RESULT] || !keeps(LATE_FINISH_RESULT);
    if (!r->done[LATE_SOURCE] && keeps(LATE_FINISH_SOURCE))
        return false;
    return r->done[LATE_EFFECT] || !keeps(LATE_FINISH_PLACED);
}

static bool is_open(const struct late_request *r, enum late_phase phase)
{
    if (r->busy || r->done[phase] || (late.working && phase != LATE_FINISH))
        return false;
    switch (phase) {
    case LATE_SOURCE:
        return source_open(r);
    case LATE_EFFECT:
        return effect_open(r);
    case LATE_RESULT:
        return r->done[LATE_EFFECT];
    default:
        return r->fated || finish_open(r);
    }
}

// A choice that is fair at each step hardly ever keeps one phase back for long. Under every other seed a
// quarter of the phases are lazy: they come when nothing else can.
static bool is_lazy(const struct late_request *r, enum late_phase phase)
{
    return late.seed & 1 && dock_decide(late.seed, r->nth, phase) % 4 == 0;
}

static bool is_choice(const struct late_request *r, enum late_phase phase, bool lazy)
{
    return is_open(r, phase) && is_lazy(r, phase) == lazy;
}

static unsigned count_choices(bool lazy)
{
    unsigned n = 0;

    for (const struct late_request *r = late.first; r; r = r->next)
        for (int phase = 0; phase < LATE_PHASES; phase++)
            n += is_choice(r, (enum late_phase)phase, lazy);
    return n;
}

static struct late_request *nth_choice(uint64_t n, bool lazy, enum late_phase *phase)
{
    *phase = LATE_FINISH;
    for (struct late_request *r = late.first; r; r = r->next)
        for (int p = 0; p < LATE_PHASES; p++)
            if (is_choice(r, (enum late_phase)p, lazy) && n-- == 0) {
                *phase = (enum late_phase)p;
                return r;
            }
    return NULL;
}

// ---- failure; the lock is held

static struct lane *lane_of(const struct dock_conn *conn)
{
    struct lane *l = late.lanes;

    while (l && l->conn != conn)
        l = l->next;
    return l;
}

static void forget(struct late_request *r)
{
    struct late_request **at = &late.first;

    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    if (late.last == &r->next)
        late.last = at;
    late_request_free(r);
}

static bool is_over(const struct late_request *r)
{
    return r->done[LATE_EFFECT] && r->done[LATE_RESULT] && r->done[LATE_FINISH];
}

static void give_fate(struct late_request *r, uint32_t status)
{
    r->x.status = status;
    r->x.bytes = 0;
    r->fated = true;
    for (int phase = 0; phase < LATE_FINISH; phase++)
        r->done[phase] = true;
}

// A request failed: those behind it that are not placed yet never are.
static void break_lane(struct late_request *r)
{
    struct lane *l = lane_of(r->conn);
    struct late_request *next;

    give_fate(r, r->x.status);
    l->broken = true;
    l->broken_at = r->nth;
    for (struct late_request *e = r->next; e && keeps(LATE_STOP); e = next) {
        next = e->next;
        if (e->conn != r->conn || e->done[LATE_EFFECT])
            continue;
        give_fate(e, DOCK_ST_FLUSH);
        if (is_over(e))
            forget(e);
    }
}

static uint32_t injected(uint32_t nth)
{
    for (unsigned i = 0; i < late.fails; i++)
        if (late.fail[i].nth == nth)
            return late.fail[i].status;
    return DOCK_OK;
}

// ---- one phase from choosing to end; the lock is held on both sides

static void watch(const struct late_request *r, enum late_phase phase)
{
    if (late.watch)
        late.watch(&r->x, r->nth, phase);
}

// The request is forgotten before the device hears of it: the queue may be gone a moment later.
static void finish(struct late_request *r)
{
    void *sq = r->sq;
    uint32_t seq = r->seq, status = r->x.status, bytes = r->x.bytes ? r->x.bytes : r->x.len;

    watch(r, LATE_FINISH);
    r->done[LATE_FINISH] = true;
    late.count.finished++;
    if (is_over(r))
        forget(r);
    pthread_mutex_unlock(&late.lock);
    dock_up_finish(sq, seq, status, status ? 0 : bytes);
    pthread_mutex_lock(&late.lock);
}

static bool behind_failure(const struct late_request *r)
{
    const struct lane *l = lane_of(r->conn);

    return l->broken && l->broken_at < r->nth;
}

static enum late_got run_phase(struct late_request *r, enum late_phase phase)
{
    if (phase == LATE_EFFECT)
        return late_have_effect(r);
    if (phase == LATE_SOURCE)
        late_read_source(r);
    else
        late_write_result(r);
    return LATE_WHOLE;
}

static void touch(struct late_request *r, enum late_phase phase)
{
    r->busy = late.working = true;
    r->inject = injected(r->nth);
    pthread_mutex_unlock(&late.lock);
    enum late_got got = run_phase(r, phase);
    pthread_mutex_lock(&late.lock);
    r->busy = late.working = false;
    watch(r, phase);
    r->done[phase] = got == LATE_WHOLE;
    if (got == LATE_NOT_READY)
        r->again = late.steps + RNR_STEPS;
    late.count.after_stop += phase == LATE_EFFECT && got == LATE_WHOLE && !r->x.status && behind_failure(r);
    if (r->x.status)
        break_lane(r);
    if (is_over(r))
        forget(r);
}

static void perform(struct late_request *r, enum late_phase phase)
{
    late.steps++;
    if (phase == LATE_FINISH)
        finish(r);
    else
        touch(r, phase);
    pthread_cond_broadcast(&late.more);
}

static bool step_locked(void)
{
    unsigned eager = count_choices(false), n = eager ? eager : count_choices(true);
    enum late_phase phase;
    struct late_request *r = n ? nth_choice(dock_rand(&late.stream) % n, !eager, &phase) : NULL;

    late.steps++;
    if (r)
        perform(r, phase);
    return r != NULL;
}

// ---- what the device calls

static int late_connect(struct dock_conn *conn)
{
    int err = dock_host_connect(conn);
    struct lane *l;

    if (err)
        return err;
    l = calloc(1, sizeof *l);
    l->conn = conn;
    dock_up_join(conn->dev, &l->worker);
    pthread_mutex_lock(&late.lock);
    l->next = late.lanes;
    late.lanes = l;
    pthread_mutex_unlock(&late.lock);
    return 0;
}

static void late_disconnect(struct dock_conn *conn)
{
    struct lane **at = &late.lanes, *l;

    pthread_mutex_lock(&late.lock);
    while (*at && (*at)->conn != conn)
        at = &(*at)->next;
    l = *at;
    if (l)
        *at = l->next;
    for (struct late_request *r = late.first; r; r = r->next)
        if (r->conn == conn) {
            fprintf(stderr, "late: a connection is taken away with request %u under way\n", r->nth);
            abort();
        }
    pthread_mutex_unlock(&late.lock);
    if (l)
        dock_up_part(conn->dev, &l->worker);
    free(l);
    dock_host_disconnect(conn);
}

// The lock is held; r is not in the list yet.
static void account(struct late_request *r)
{
    uint32_t reads = late_answered(r), before = 0;

    for (const struct late_request *e = late.first; e; e = e->next)
        before += e->sq == r->sq && late_answered(e) && !e->done[LATE_FINISH];
    reads += before;
    if (late_answered(r) && reads > late.count.reads_high)
        late.count.reads_high = reads;
    late.count.fences_broken += r->x.flags & DOCK_F_FENCE && before;
}

static enum dock_go late_start(struct dock_conn *conn, struct dock_xfer *x, void *sq)
{
    struct late_request *r = late_request_make(conn, x, sq);
    uint32_t nth;

    pthread_mutex_lock(&late.lock);
    nth = r->nth = late.count.started++;
    account(r);
    r->worker = &lane_of(conn)->worker;
    if (keeps(LATE_STOP) && lane_of(conn)->broken)
        give_fate(r, DOCK_ST_FLUSH);
    *late.last = r;
    late.last = &r->next;
    pthread_cond_broadcast(&late.more);
    pthread_mutex_unlock(&late.lock);
    if (late.hasty)
        late_bring(nth, LATE_FINISH);
    return DOCK_GO_PENDING;
}

const struct dock_fabric late_fabric = {
    .name = "late",
    .late = true,
    .connect = late_connect,
    .disconnect = late_disconnect,
    .start = late_start,
};

// ---- what tests call

uint32_t late_without_env(void)
{
    const char *list = getenv("LATE_WITHOUT");
    uint32_t bits = 0;

    while (list && *list) {
        size_t n = strcspn(list, ",");
        int rule = 0;
        while (rule < LATE_RULES &&
               (strlen(late_rule_name[rule]) != n || strncmp(late_rule_name[rule], list, n) != 0))
            rule++;
        if (rule == LATE_RULES) {
            fprintf(stderr, "LATE_WITHOUT: no rule %.*s\n", (int)n, list);
            abort();
        }
        bits |= 1u << rule;
        list += n + (list[n] == ',');
    }
    return bits;
}

void late_again(uint64_t seed, uint32_t without)
{
    pthread_mutex_lock(&late.lock);
    if (late.first) {
        fprintf(stderr, "late: request %u is still under way\n", late.first->nth);
        abort();
    }
    late.seed = late.stream = seed;
    late.without = without | late_without_env();
    late.last = &late.first;
    late.fails = 0;
    late.hasty = false;
    memset(&late.count, 0, sizeof late.count);
    pthread_mutex_unlock(&late.lock);
}

void late_open(uint64_t seed, uint32_t without)
{
    late.stop = false;
    late_again(seed, without);
}

void late_close(void)
{
    late_threads_stop();
    late_again(0, 0);
}

unsigned late_enabled(void)
{
    pthread_mutex_lock(&late.lock);
    unsigned n = count_choices(false);
    pthread_mutex_unlock(&late.lock);
    return n;
}

bool late_step(void)
{
    pthread_mutex_lock(&late.lock);
    bool any = step_locked();
    pthread_mutex_unlock(&late.lock);
    return any;
}

void late_drain(void)
{
    pthread_mutex_lock(&late.lock);
    while (late.first)
        step_locked();
    pthread_mutex_unlock(&late.lock);
}

static struct late_request *find(uint32_t nth)
{
    struct late_request *r = late.first;

    while (r && r->nth != nth)
        r = r->next;
    return r;
}

// One phase of r, or of one before it that holds it up, but no finish of those.
static bool push(struct late_request *r, enum late_phase upto)
{
    for (int phase = 0; phase <= (int)upto; phase++)
        if (is_open(r, (enum late_phase)phase)) {
            perform(r, (enum late_phase)phase);
            return true;
        }
    for (struct late_request *e = late.first; e != r; e = e->next)
        for (int phase = 0; phase < LATE_RESULT; phase++)
            if (is_open(e, (enum late_phase)phase)) {
                perform(e, (enum late_phase)phase);
                return true;
            }
    return false;
}

bool late_bring(uint32_t nth, enum late_phase phase)
{
    struct late_request *r;
    bool moved = true, there;

    pthread_mutex_lock(&late.lock);
    there = find(nth) != NULL;
    while ((r = find(nth)) && !r->done[phase] && moved)
        moved = push(r, phase);
    pthread_mutex_unlock(&late.lock);
    return there && moved;
}

void late_fail(uint32_t nth, uint32_t status)
{
    pthread_mutex_lock(&late.lock);
    late.fail[late.fails % FAILS].nth = nth;
    late.fail[late.fails % FAILS].status = status;
    late.fails += late.fails < FAILS;
    pthread_mutex_unlock(&late.lock);
}

void late_hasty(bool on)
{
    late.hasty = on;
}

void late_set_order(enum late_order order)
{
    late.order = order;
}

void late_watch(late_watch_fn fn)
{
    late.watch = fn;
}

struct late_count late_count(void)
{
    pthread_mutex_lock(&late.lock);
    struct late_count c = late.count;
    pthread_mutex_unlock(&late.lock);
    return c;
}

// ---- threads of its own

static void nap(long ns)
{
    struct timespec t = {.tv_nsec = ns};

    nanosleep(&t, NULL);
}

static void *finisher(void *arg)
{
    uint64_t mine = dock_decide(late.seed, 1000, (uintptr_t)arg);

    pthread_mutex_lock(&late.lock);
    while (!late.stop) {
        if (!late.first) {
            pthread_cond_wait(&late.more, &late.lock);
            continue;
        }
        bool any = step_locked();
        uint64_t r = dock_rand(&mine) % 64;
        if (any && r >= 4)
            continue;
        pthread_mutex_unlock(&late.lock);
        nap(any && r >= 1 ? 0 : 20000);
        pthread_mutex_lock(&late.lock);
    }
    pthread_mutex_unlock(&late.lock);
    return NULL;
}

void late_threads_start(unsigned n)
{
    late.stop = false;
    for (late.threads = 0; late.threads < n && late.threads < THREADS; late.threads++)
        if (pthread_create(&late.thread[late.threads], NULL, finisher, (void *)(uintptr_t)late.threads))
            abort();
}

void late_threads_stop(void)
{
    pthread_mutex_lock(&late.lock);
    late.stop = true;
    pthread_cond_broadcast(&late.more);
    pthread_mutex_unlock(&late.lock);
    while (late.threads)
        pthread_join(late.thread[--late.threads], NULL);
}
