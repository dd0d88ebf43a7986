// SPDX-License-Identifier: MIT
// Stopping the other threads by a signal: each runs a handler that acknowledges and waits. A thread in a
// system call leaves it for the handler, so no store of the kernel is under way. The program sees more of it
// than of ptrace: poll, nanosleep and others return EINTR. So this is for where nothing else is left
// (adopt_stop.c).
//
// A signal must not come late, when nobody handles it any more: that ends the process. Who does not take it
// in time may have it blocked, so it is ignored for a moment, which takes back what is pending for any
// thread, blocked or not, and then the disposition is the old one. Only a tracer may hold a signal that it
// shows afterwards: when not all have acknowledged, the handler stays, and goes with a stop that all
// acknowledge, by when they have had the earlier ones. A program that sets a handler of its own for that very
// signal in the middle of a stop may see one.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arena/adopt_stop_own.h"
#include "base/clock.h"
#include "base/rawsignal.h"

#define PATIENCE_NS 50000000ull // since the last one has acknowledged, or for a thread to let the signal in
#define LOOK_NS 1000000
#define FIRST_SIGNAL 34 // those below are libc's

static struct {
    dock_a32 round; // of stops: handlers wait until it is over
    dock_a32 told;  // somebody has acknowledged
    int32_t pid;
    int number;
    uint64_t blocked; // by any thread that was looked at
} sig;

static void nap(dock_a32 *word)
{
    struct timespec t = {.tv_nsec = LOOK_NS};

    dock_rawcall(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, 0, (long)&t, 0, 0);
}

// ---- the handler

// What a thread is asked with: odd, and never the same again. It answers by putting the address of its facts
// there; 0: it is not asked any more.
static uint64_t question(uint32_t i)
{
    return (uint64_t)dock_peek32(&sig.round) << 32 | i << 1 | 1;
}

struct facts {
    uint64_t sp, tp, frame;
    uint64_t lo, hi; // the alternate stack, if that is what the handler is on
};

static void __attribute__((no_sanitize_address)) park(int number, siginfo_t *info, void *context)
{
    const ucontext_t *c = context;
    uint64_t asked = (uintptr_t)info->si_value.sival_ptr, low = (uintptr_t)c->uc_stack.ss_sp;
    uint32_t round = (uint32_t)(asked >> 32), i = (uint32_t)asked >> 1;
    struct facts f = {.sp = dock_context_sp(c),
                      .tp = dock_thread_pointer(),
                      .frame = (uintptr_t)__builtin_frame_address(0)};

    (void)number;
    if (info->si_code != SI_QUEUE || info->si_pid != sig.pid || !(asked & 1) || i >= DOCK_STOP_THREADS)
        return; // somebody else's
    if (f.frame - low < c->uc_stack.ss_size) {
        f.lo = low;
        f.hi = low + c->uc_stack.ss_size;
    }
    if (!dock_claim64(&dock_stopping.thread[i].word, &asked, (uintptr_t)&f)) // pairs with answers
        return;                                                              // it comes late
    if (!dock_swap32(&sig.told, 1))                                          // pairs with await_all
        dock_rawcall(SYS_futex, (long)&sig.told, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    while (dock_acquire32(&sig.round) == round) // pairs with let_go
        dock_rawcall(SYS_futex, (long)&sig.round, FUTEX_WAIT_PRIVATE, round, 0, 0, 0);
}

static const struct dock_rawaction parking = {
    .handler = park,
    .flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | DOCK_RAW_RESTORER,
    .restorer = dock_rawrestorer,
    .mask = UINT64_MAX,
};

static bool is_default(const struct dock_rawaction *a)
{
    return (uintptr_t)a->handler == (uintptr_t)SIG_DFL;
}

static bool is_free(const struct dock_rawaction *a)
{
    return is_default(a) || a->handler == park;
}

// ---- which signal, and whom

static bool is_engine(int32_t tid)
{
    for (const struct dock_adopt *a = dock_adopters; a; a = a->next)
        if (a->engine && a->engine_tid == tid)
            return true;
    return false;
}

static const char *behind(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? at + strlen(key) : NULL;
}

static uint64_t hexadecimal(const char *s)
{
    uint64_t n = 0;

    for (; (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'f'); s++)
        n = n << 4 | (uint64_t)(*s <= '9' ? *s - '0' : *s - 'a' + 10);
    return n;
}

// While a thread waits for signals (sigwait) the kernel shows as let in what it waits for, and ours would be
// taken for one of them. Of a process that is not dumpable only the kernel's function is shown; a sleeper
// without one cannot be told.
static bool waits_for_signals(int32_t tid, bool sleeps)
{
    char text[128];
    uint64_t call = 0;

    if (dock_thread_file(tid, "/syscall", text, sizeof text) <= 0)
        return dock_thread_file(tid, "/wchan", text, sizeof text) <= 0 || strstr(text, "sigtimedwait") ||
               (sleeps && text[0] == '0');
    for (const char *s = text; *s >= '0' && *s <= '9'; s++)
        call = call * 10 + (uint64_t)(*s - '0');
    return call == SYS_rt_sigtimedwait;
}

static enum dock_taken read_status(int32_t tid, uint64_t *mask, bool *sleeps)
{
    char text[4096];

    if (dock_thread_file(tid, "/status", text, sizeof text) <= 0)
        return DOCK_REFUSED;
    const char *state = behind(text, "\nState:\t"), *tracer = behind(text, "\nTracerPid:\t"),
               *blocked = behind(text, "\nSigBlk:\t");
    *sleeps = state && *state == 'S';
    if (state && (*state == 'Z' || *state == 'X'))
        return DOCK_GONE;
    if (!blocked || (!dock_stopping.asked_for && (!tracer || *tracer != '0')))
        return DOCK_REFUSED;
    *mask |= hexadecimal(blocked);
    return DOCK_TAKEN;
}

// What a thread blocks. One that waited for signals at the look at its mask, and not before and after it,
// shows what it blocks at the next one.
static enum dock_taken read_mask(int32_t tid, uint64_t *mask)
{
    enum dock_taken taken = DOCK_REFUSED;
    bool sleeps = false;

    *mask = 0;
    if (!waits_for_signals(tid, false))
        taken = read_status(tid, mask, &sleeps);
    if (taken == DOCK_TAKEN && waits_for_signals(tid, sleeps))
        taken = DOCK_REFUSED;
    if (taken == DOCK_TAKEN && !sleeps)
        taken = read_status(tid, mask, &sleeps);
    return taken == DOCK_REFUSED && dock_thread_is_dead(tid) ? DOCK_GONE : taken; // it may have ended since
}

// One more; when the signal is chosen, once it lets that in: libc blocks all of them for a moment where a
// thread begins and ends.
static enum dock_taken look(struct dock_stop_thread *t)
{
    uint64_t mask = 0, by = dock_now_ns() + PATIENCE_NS, bit = sig.number ? 1ull << (sig.number - 1) : 0;
    enum dock_taken taken = is_engine(t->tid) ? DOCK_GONE : read_mask(t->tid, &mask);

    while (taken == DOCK_TAKEN && mask & bit) {
        static dock_a32 nobody;
        if (dock_now_ns() > by)
            return DOCK_REFUSED;
        nap(&nobody);
        taken = read_mask(t->tid, &mask);
    }
    sig.blocked |= mask;
    dock_stopping.threads += taken == DOCK_TAKEN;
    return taken;
}

static int highest_free(uint64_t blocked)
{
    struct dock_rawaction now = {.flags = 0};
    int number = DOCK_RAW_SIGNALS;

    while (number >= FIRST_SIGNAL &&
           (blocked >> (number - 1) & 1 || dock_rawaction(number, NULL, &now) || !is_free(&now)))
        number--;
    return number >= FIRST_SIGNAL ? number : 0;
}

// One that the program has no handler for, and that nobody blocks: somebody may wait for such a one.
static bool choose(void)
{
    static dock_a32 nobody;
    uint64_t by = dock_now_ns() + PATIENCE_NS;

    for (;;) {
        dock_stopping.threads = 0;
        sig.blocked = dock_stopping.mask;
        sig.number = 0;
        if (dock_threads_pass(look) < 0)
            return false;
        sig.number = highest_free(sig.blocked);
        if (sig.number || dock_now_ns() > by)
            return sig.number;
        nap(&nobody);
    }
}

// ---- the signal goes out, and comes back

// The program may have set one of its own just before.
static bool install(struct dock_rawaction *was)
{
    if (dock_rawaction(sig.number, &parking, was))
        return false;
    if (is_free(was))
        return true;
    dock_rawaction(sig.number, was, NULL);
    return false;
}

// Nothing is pending any more.
static void take_back(const struct dock_rawaction *then)
{
    const struct dock_rawaction ignored = {.handler = (void (*)(int, siginfo_t *, void *))(uintptr_t)SIG_IGN};
    struct dock_rawaction now = {.flags = 0}; // the kernel fills it behind the compiler's back

    if (dock_rawaction(sig.number, NULL, &now) || now.handler != park)
        return; // the program has set its own
    dock_rawaction(sig.number, &ignored, NULL);
    dock_rawaction(sig.number, then, NULL);
}

static bool ask(uint32_t i)
{
    struct dock_stop_thread *t = &dock_stopping.thread[i];
    siginfo_t info;
    long err;

    memset(&info, 0, sizeof info);
    info.si_signo = sig.number;
    info.si_code = SI_QUEUE;
    info.si_pid = sig.pid;
    info.si_value.sival_ptr = (void *)(uintptr_t)question(i);
    dock_set64(&t->word, question(i)); // the signal orders it
    err = dock_rawcall(SYS_rt_tgsigqueueinfo, dock_stopping.pid, t->tid, sig.number, (long)&info, 0, 0);
    if (err == -ESRCH && dock_thread_is_dead(t->tid)) {
        dock_set64(&t->word, 0);
        err = 0;
    }
    return !err;
}

// Does this one stand still, or is it no more?
static bool answers(uint32_t i)
{
    return dock_acquire64(&dock_stopping.thread[i].word) != question(i); // pairs with park
}

static void stop_asking(uint32_t i)
{
    uint64_t asked = question(i);

    dock_claim64(&dock_stopping.thread[i].word, &asked, 0);
}

static uint32_t count_open(bool look_for_dead)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < dock_stopping.threads; i++) {
        if (look_for_dead && !answers(i) && dock_thread_is_dead(dock_stopping.thread[i].tid))
            stop_asking(i);
        open += !answers(i);
    }
    return open;
}

static bool await_all(void)
{
    uint64_t by = dock_now_ns() + PATIENCE_NS, looked = dock_now_ns();
    uint32_t least = UINT32_MAX;

    for (;;) {
        dock_swap32(&sig.told, 0); // pairs with park: who answers behind this look wakes us
        uint64_t now = dock_now_ns();
        bool late = now - looked > LOOK_NS;
        uint32_t open = count_open(late);
        if (!open)
            return true;
        if (open < least)
            by = now + PATIENCE_NS;
        else if (now > by)
            return false;
        least = open;
        looked = late ? now : looked;
        nap(&sig.told);
    }
}

static bool park_all(void)
{
    uint32_t asked = 0;
    int fresh;

    do { // those that were running may have made more
        for (; asked < dock_stopping.threads; asked++)
            if (!ask(asked))
                return false;
        if (!await_all())
            return false;
        fresh = dock_threads_pass(look);
    } while (fresh > 0);
    return fresh == 0;
}

static void let_go(void)
{
    dock_publish32(&sig.round, dock_peek32(&sig.round) + 1); // pairs with park
    dock_rawcall(SYS_futex, (long)&sig.round, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
}

// What of the address space is theirs.
static void note_facts(void)
{
    for (uint32_t i = 0; i < dock_stopping.threads; i++) {
        struct dock_stop_thread *t = &dock_stopping.thread[i];
        const struct facts *f = (const struct facts *)(uintptr_t)dock_acquire64(&t->word); // pairs with park
        if (!f)
            continue;
        t->sp = f->sp;
        t->tp = f->tp;
        t->frame = f->frame;
        t->lo = f->lo;
        t->hi = f->hi;
    }
}

static bool begin(void)
{
    struct dock_rawaction was = {.flags = 0}; // the kernel fills it

    if (!dock_threads_room() || !dock_threads_begin())
        return false;
    sig.pid = dock_stopping.pid;
    if (!choose() || !install(&was))
        return false;
    if (!park_all()) {
        for (uint32_t i = 0; i < dock_stopping.threads; i++)
            stop_asking(i);
        take_back(&parking);
        let_go();
        return false;
    }
    const struct dock_rawaction none = {.flags = 0};
    take_back(is_default(&was) ? &was : &none); // nobody sets another meanwhile
    note_facts();
    return true;
}

const struct dock_stop_way dock_stop_by_signal = {.begin = begin, .end = let_go, .behind_gates = true};
