// SPDX-License-Identifier: MIT
#include "arena/adopt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arena/adopt_own.h"
#include "arena/procfile.h"
#include "arena/xcopy.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#define HEADROOM_FROM 262144u            // less than this is not worth asking the cgroup
#define TIGHT_PIECE DOCK_HOLES_BACK_FROM // so that what is empty stays so
#define RETRY_NS 1000000000ull           // between two tries to move lingering pages back

struct dock_adopt *dock_adopters;

static pthread_mutex_t lock = DOCK_LOCK_OF_FORKS;
static struct dock_hold *holds;
static uint64_t retry_ns;

const char *const dock_adopt_why_name[DOCK_WHYS] = {
    [DOCK_WHY_NONE] = "none",     [DOCK_WHY_KIND] = "kind",       [DOCK_WHY_STACK] = "stack",
    [DOCK_WHY_PINNED] = "pinned", [DOCK_WHY_THREADS] = "threads", [DOCK_WHY_LIMIT] = "limit",
    [DOCK_WHY_HOST] = "host",     [DOCK_WHY_CHANGED] = "changed",
};

// Present when the program is instrumented, whether or not we are.
extern void __tsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));

static bool host_allows(void)
{
    const char *preload = getenv("LD_PRELOAD"), *why = NULL; // valgrind puts its vgpreload_* there

    if (__tsan_init)
        why = "ThreadSanitizer's own thread cannot be stopped"; // nor may a helper borrow its state
    else if (__msan_init)
        why = "MemorySanitizer's shadow does not follow the memory";
    else if (preload && strstr(preload, "vgpreload"))
        why = "valgrind keeps its own account of mappings";
    if (why)
        dock_info("memory is not adopted: %s", why);
    return !why;
}

enum dock_adopt_mode dock_adopt_wanted(void)
{
    const char *text = getenv("DRYDOCK_ADOPT");

    if (!text || !*text)
        text = "inner";
    if (!strcmp(text, "off"))
        return DOCK_ADOPT_OFF;
    if (strcmp(text, "inner") != 0 && strcmp(text, "on") != 0) {
        dock_error("DRYDOCK_ADOPT=%s is not known (off, inner, on): memory is not adopted", text);
        return DOCK_ADOPT_OFF;
    }
    if (!host_allows())
        return DOCK_ADOPT_OFF;
    return text[0] == 'i' ? DOCK_ADOPT_INNER : DOCK_ADOPT_ON;
}

void dock_adopt_lock(void)
{
    dock_lock(&lock);
}

void dock_adopt_unlock(void)
{
    dock_unlock_of_forks(&lock);
}

dock_a64 dock_adopted_bytes;
uint32_t dock_adopted_runs;

int dock_adopt_open(struct dock_adopt *a, enum dock_adopt_mode mode, struct dock_arena *arena,
                    struct dock_adopt_counts *counts, const struct dock_adopt_ops *ops, void *user,
                    size_t user_bytes)
{
    *a = (struct dock_adopt){
        .mode = mode, .arena = arena, .counts = counts, .ops = ops, .user = user, .user_bytes = user_bytes};
    dock_adopt_watch_forks();
    pthread_mutex_init(&a->gate, NULL);
    dock_adopt_lock();
    a->next = dock_adopters;
    dock_views_lock();
    dock_adopters = a;
    dock_views_unlock();
    if (mode != DOCK_ADOPT_OFF) {
        dock_adopt_hook();
        dock_fit_learn();
        dock_stop_prepare();
    }
    dock_adopt_unlock();
    return 0;
}

void dock_adopt_owns(struct dock_adopt *a, const int *fd, unsigned n)
{
    dock_adopt_lock();
    a->owned = n < DOCK_ADOPT_OWN ? n : DOCK_ADOPT_OWN;
    for (unsigned i = 0; i < a->owned; i++)
        a->own[i] = fd[i];
    dock_adopt_unlock();
}

void dock_adopt_engine(struct dock_adopt *a, bool runs)
{
    pthread_attr_t attr;
    void *stack = NULL;
    size_t size = 0;

    if (runs && !pthread_getattr_np(pthread_self(), &attr)) {
        pthread_attr_getstack(&attr, &stack, &size);
        pthread_attr_destroy(&attr);
    }
    // The gate comes after the lock for who shuts it: the engine never waits for the lock behind its gate,
    // except here at its birth, when nobody shuts it yet.
    if (runs)
        pthread_mutex_lock(&a->gate);
    else
        pthread_mutex_unlock(&a->gate);
    dock_adopt_lock();
    a->engine = runs;
    a->engine_tid = runs ? gettid() : 0;
    a->engine_stack = (uintptr_t)stack;
    a->engine_stack_end = (uintptr_t)stack + size;
    dock_adopt_unlock();
}

static void refuse(struct dock_adopt *a, enum dock_adopt_why why, uint64_t lo, uint64_t hi)
{
    dock_count64(&a->counts->refused[why], 1);
    dock_debug("%#llx +%#llx is not adopted: %s", (unsigned long long)lo, (unsigned long long)(hi - lo),
               dock_adopt_why_name[why]);
}

// ---- who else is concerned

static bool is_it(void *but, struct dock_hold *h)
{
    return h == but;
}

// Does anybody reach [lo, hi) through the kernel, who would store to the old pages while they move?
static bool others_concerned(struct dock_hold *but, uint64_t lo, uint64_t hi)
{
    for (const struct dock_adopt *a = dock_adopters; a; a = a->next)
        if (a->whole)
            return true;
    return !dock_holds_each(holds, lo, hi, is_it, but);
}

static void pause_all(void)
{
    for (struct dock_adopt *a = dock_adopters; a; a = a->next)
        if (!a->paused && !a->closed) {
            a->ops->pause(a->user);
            a->paused = true;
        }
}

static void resume_all(void)
{
    for (struct dock_adopt *a = dock_adopters; a; a = a->next)
        if (a->paused) {
            a->paused = false;
            a->ops->resume(a->user);
        }
}

// A run of pages that the arena has at `off` now: it is a piece of this hold, or one for each window.
static int put(struct dock_hold *h, uint64_t lo, uint64_t hi, uint64_t off)
{
    uint64_t from = lo > h->addr ? lo : h->addr, to = hi < h->addr + h->len ? hi : h->addr + h->len;
    uint64_t window = dock_mirror_size(h->of);
    int err = 0;

    for (off += from - lo; from < to && !err;) {
        uint64_t left = window - (off & (window - 1)), len = to - from < left ? to - from : left;
        err = dock_hold_add(h, from, len, off);
        if (!err)
            dock_mirror_ref(h->of, off, len);
        from += len;
        off += len;
    }
    return err;
}

// What of the run this hold has no piece for: where it has one, the program has put other memory in the place
// of what was registered, and that is not its.
static bool put_gaps(struct dock_hold *h, uint64_t lo, uint64_t hi, uint64_t off)
{
    uint64_t at = lo > h->addr ? lo : h->addr, end = hi < h->addr + h->len ? hi : h->addr + h->len, room;
    bool any = false;

    for (; at < end; at += room) {
        const struct dock_piece *p = dock_hold_at(h, at, &room);
        room = room < end - at ? room : end - at;
        if (!p && put(h, at, at + room, off + (at - lo)))
            break;
        any |= !p;
    }
    return any;
}

struct spreading {
    const struct dock_hold *from;
    uint64_t lo, hi, off;
};

static bool spread_to(void *arg, struct dock_hold *o)
{
    const struct spreading *s = arg;

    if (o != s->from && o->of == s->from->of && put_gaps(o, s->lo, s->hi, s->off))
        o->of->ops->changed(o->of->user, o);
    return true;
}

// Registrations that reached the pages through the kernel until now go on with what is mapped.
// It allocates, so faults of the caller's are handled again.
static void spread(struct dock_hold *h, uint64_t lo, uint64_t hi, uint64_t off)
{
    struct spreading s = {h, lo, hi, off};

    if (!others_concerned(h, lo, hi))
        return;
    dock_unsignalled_faults();
    dock_holds_each(holds, lo, hi, spread_to, &s);
}

// ---- a registration

struct range {
    uint64_t lo, hi;
};

struct survey {
    struct dock_adopt *a;
    struct dock_hold *h;
    struct range *wish; // pages that may move, each range of one mapping
    unsigned wishes;
    int err;
};

static void wish_for(struct survey *s, uint64_t lo, uint64_t hi)
{
    struct range *grown = realloc(s->wish, (s->wishes + 1) * sizeof *grown);

    if (!grown) {
        s->err = dock_no_memory("a list of mappings");
        return;
    }
    s->wish = grown;
    grown[s->wishes++] = (struct range){lo, hi};
}

// All but what the device itself works with.
static void wish_around(struct survey *s, uint64_t lo, uint64_t hi)
{
    for (uint64_t first, end; lo < hi && dock_self_in(lo, hi, &first, &end); lo = end) {
        if (lo < first)
            wish_for(s, lo, first);
        refuse(s->a, DOCK_WHY_KIND, first, end);
    }
    if (lo < hi)
        wish_for(s, lo, hi);
}

// The pages of a mapping that the registration may have.
// Where peers could not reach memory that stays plain the edges go along.
static void consider(struct survey *s, const struct dock_vma *v)
{
    uint64_t page = dock_page(), lo = s->h->addr, hi = s->h->addr + s->h->len;

    bool edges = (lo | hi) & (page - 1);

    if (edges && s->a->mode == DOCK_ADOPT_INNER && dock_xcopy_by_peers()) {
        lo = (lo + page - 1) & ~(page - 1);
        hi &= ~(page - 1);
    } else {
        lo &= ~(page - 1);
        hi = (hi + page - 1) & ~(page - 1);
    }
    lo = lo > v->lo ? lo : v->lo;
    hi = hi < v->hi ? hi : v->hi;
    if (lo >= hi)
        return;
    if (v->kind == DOCK_VMA_FILE && !v->shared)
        dock_fit_find_data();
    if (dock_vma_fits(v))
        wish_around(s, lo, hi);
    else
        refuse(s->a, v->kind == DOCK_VMA_STACK ? DOCK_WHY_STACK : DOCK_WHY_KIND, lo, hi);
}

static bool survey_one(void *arg, const struct dock_vma *v)
{
    struct survey *s = arg;

    if (s->h->write && !(v->prot & PROT_WRITE))
        s->err = dock_refuse(-EFAULT, "memory at %#llx may not be written", (unsigned long long)v->lo);
    else if (dock_vma_ours(s->a, v))
        s->err = put(s->h, v->lo, v->hi, v->off);
    else
        consider(s, v);
    return !s->err;
}

// Where it cannot be told what is mapped (no /proc, no descriptor left) all of it is plain. Private memory is
// looked at again when it moves; nothing is refused by an answer that may be another process's.
static int survey(struct survey *s)
{
    struct dock_hold *h = s->h;
    struct dock_vma v;
    int err = 0;

    if (!dock_maps_at(h->addr, true, &v) && v.kind == DOCK_VMA_ANON && v.hi - h->addr >= h->len &&
        (!h->write || v.prot & PROT_WRITE))
        survey_one(s, &v);
    else
        err = dock_maps_walk(h->addr, h->addr + h->len, survey_one, s);
    if (err && !s->err) {
        dock_debug("what is mapped cannot be told: %s", strerror(-err));
        refuse(s->a, DOCK_WHY_HOST, h->addr, h->addr + h->len);
        s->wishes = 0;
    }
    return s->err;
}

// One chunk, which may come out shorter. *why ends the range, and some of them all ranges; a thread's own
// pages are left out.
static int adopt_chunk(struct dock_adopt *a, struct dock_hold *h, uint64_t lo, uint64_t *hi,
                       enum dock_adopt_why *why)
{
    struct dock_mirror *m;
    int err;

    if (*hi - lo >= HEADROOM_FROM && !dock_fit_headroom(*hi - lo)) {
        dock_error("no room for %llu bytes in the memory limit of this control group",
                   (unsigned long long)(*hi - lo));
        return -ENOMEM;
    }
    err = dock_hold_room(h); // a chunk lies in one window and is one piece: what has moved is always held
    if (err)
        return err;
    m = dock_mirror_for(a, lo, *hi);
    *why = m && !dock_mirror_crowded(a, m, lo, *hi) ? DOCK_WHY_NONE : DOCK_WHY_LIMIT;
    if (*why)
        return 0;
    dock_unsignalled_begin(); // a handler that forks finds each page that has moved held
    err = dock_move_in(a, m, lo, hi, why);
    if (!err && !*why)
        err = put(h, lo, *hi, m->off + (lo - m->va));
    if (!err && !*why)
        spread(h, lo, *hi, m->off + (lo - m->va));
    dock_unsignalled_end();
    return err;
}

static int adopt_range(struct dock_adopt *a, struct dock_hold *h, uint64_t lo, uint64_t hi,
                       enum dock_adopt_why *why)
{
    uint64_t size = dock_mirror_size(a);
    int err = 0;

    for (*why = DOCK_WHY_NONE; lo < hi && !err && !*why;) {
        uint64_t end = (lo & ~(DOCK_ADOPT_CHUNK - 1ull)) + DOCK_ADOPT_CHUNK;
        uint64_t window_end = (lo & ~(size - 1)) + size;
        end = end < hi ? end : hi;
        end = end < window_end ? end : window_end;
        err = adopt_chunk(a, h, lo, &end, why);
        if (*why)
            refuse(a, *why, lo, *why == DOCK_WHY_STACK ? end : hi);
        if (*why == DOCK_WHY_STACK)
            *why = DOCK_WHY_NONE;
        lo = end;
    }
    return err;
}

static int adopt_wishes(struct survey *s)
{
    struct dock_adopt *a = s->a;
    // While somebody may still write to pages that were given back, no program memory moves there.
    enum dock_adopt_why why = dock_peek32(&a->arena->holding) ? DOCK_WHY_HOST : DOCK_WHY_NONE;
    uint64_t lo = s->wish[0].lo, hi = s->wish[s->wishes - 1].hi;
    int err = 0;

    if (why) {
        refuse(a, why, lo, hi);
        return 0;
    }
    if (others_concerned(s->h, lo, hi))
        pause_all();
    a->large = hi - lo >= DOCK_PARK_FROM;
    a->holes = hi - lo >= DOCK_HOLES_FROM && dock_holes_allowed();
    a->huge = hi - lo >= DOCK_HUGE_BYTES && dock_huge_wanted();
    for (unsigned i = 0; i < s->wishes && !err; i++) {
        err = adopt_range(a, s->h, s->wish[i].lo, s->wish[i].hi, &why);
        if (why == DOCK_WHY_THREADS || why == DOCK_WHY_PINNED || why == DOCK_WHY_HOST)
            break;
    }
    resume_all();
    return err;
}

// All of it is adopted already, in one piece: a registration inside of another costs little.
static bool lies_inside(const struct dock_adopt *a, const struct dock_hold *h, struct dock_vma *v)
{
    const struct dock_mirror *m;
    uint64_t off;

    if (!h->len || !dock_mirror_held(a, h->addr) || dock_maps_at(h->addr, false, v) || !dock_vma_ours(a, v) ||
        v->hi - h->addr < h->len || (h->write && !(v->prot & PROT_WRITE)))
        return false;
    off = v->off + (h->addr - v->lo);
    m = dock_mirror_at(a, off);
    return m && off - m->off == h->addr - m->va;
}

int dock_adopt_hold(struct dock_adopt *a, struct dock_hold *h)
{
    struct survey s = {.a = a, .h = h};
    struct dock_vma around;
    int err = 0;

    h->of = a;
    h->piece = NULL;
    h->pieces = h->room = 0;
    dock_holds_add(&holds, h);
    if (lies_inside(a, h, &around)) {
        err = put(h, around.lo, around.hi, around.off);
    } else if (h->len) {
        err = survey(&s);
    }
    if (!err && s.wishes)
        err = adopt_wishes(&s);
    free(s.wish);
    if (err) {
        dock_adopt_drop(a, h);
        h->of = NULL;
    }
    return err;
}

// A handler that forks finds no page that has moved back still held.
static bool move_out(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len)
{
    dock_unsignalled_begin();
    bool moved = dock_move_out(a, m, off, len, a->paused);
    if (moved) {
        dock_mirror_clear(a, m, off, len);
        dock_mirror_retire(a, off, len);
    }
    dock_unsignalled_end();
    return moved;
}

// Whoever reaches these pages at their place in the program stands still while they move: other devices'
// regions, keys for all memory. If the program has moved them itself, that place is not known: all do.
static bool give_piece_back(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len)
{
    uint64_t at = m->va + (off - m->off);
    bool moved;

    if (others_concerned(NULL, at, at + len))
        pause_all();
    moved = move_out(a, m, off, len);
    if (!moved && !a->paused && a->moved_by_program) {
        pause_all();
        moved = move_out(a, m, off, len);
    }
    return moved;
}

// For a moment a run is there twice. Where the control group has no room for that, which kills, the run goes
// back in small pieces.
static void move_back(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len)
{
    uint64_t end = off + len, piece = len < HEADROOM_FROM || dock_fit_headroom(len) ? len : TIGHT_PIECE;

    for (; off < end; off += piece) {
        piece = piece < end - off ? piece : end - off;
        if (!give_piece_back(a, m, off, piece)) {
            retry_ns = dock_now_ns() + RETRY_NS;
            return;
        }
    }
}

void dock_adopt_forget(void)
{
    for (struct dock_adopt *a = dock_adopters; a; a = a->next)
        a->inherited = true;
    dock_adopters = NULL;
    holds = NULL;
    dock_set64(&dock_adopted_bytes, 0);
    dock_adopted_runs = dock_park_pieces = 0;
}

void dock_adopt_drop(struct dock_adopt *a, struct dock_hold *h)
{
    if (a->inherited)
        return;
    dock_holds_remove(&holds, h);
    for (unsigned i = 0; i < h->pieces; i++)
        dock_mirror_unref(a, h->piece[i].off, h->piece[i].len, move_back);
    dock_hold_clear(h);
    if (a->lingering && dock_now_ns() > retry_ns)
        dock_mirror_lingering(a, move_back);
    resume_all();
}

bool dock_adopt_close(struct dock_adopt *a)
{
    bool clean;

    dock_adopt_lock();
    if (a->lingering)
        dock_mirror_lingering(a, move_back);
    resume_all();
    clean = !a->lingering;
    a->closed = true;
    if (!clean)
        dock_warn("%llu pages of the program stay in the arena of a device that is closed",
                  (unsigned long long)a->lingering);
    dock_views_lock();
    for (struct dock_adopt **at = &dock_adopters; clean && *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            break;
        }
    if (!dock_adopters)
        dock_proc_close();
    dock_views_unlock();
    if (clean)
        dock_mirrors_close(a);
    dock_adopt_unlock();
    return clean;
}
