// SPDX-License-Identifier: MIT
// fork(): adopted memory is shared memory, which a child would share with its parent. So it is DONTFORK, the
// child's handler builds private copies from the arena at the same addresses, and the parent's handler waits
// until it has, while the other threads stand still: the child sees the memory as it was at the fork, whoever
// writes first. What peers store meanwhile it may see in part, as with hardware. A child that runs no
// handlers (a raw clone) faults instead of corrupting its parent. vfork and posix_spawn share the address
// space until exec, and meet nothing of this.
//
// The handlers are registered before anybody else's: prepare then runs last, and the others first, before
// the program's own handlers let its threads go on.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arena/adopt_own.h"
#include "arena/idfile.h"
#include "arena/port.h"
#include "base/log.h"
#include "base/rawcall.h"

#define RANGES 65536u // more mappings a process cannot have
#define BEAT_MS 200

struct range {
    struct dock_adopt *a;
    uint64_t lo, hi, off;
    uint32_t prot;
};

static struct {
    struct range *range;
    unsigned ranges;
    int done[2]; // a pipe: the child has its copies, or is gone
    pid_t parent;
    bool stopping; // the other threads, over this fork
} at_fork = {.done = {-1, -1}};

static bool list_one(void *arg, const struct dock_vma *v)
{
    struct dock_adopt *a = arg;

    if (dock_vma_ours(a, v) && !dock_views_have(v->lo) && at_fork.ranges < RANGES)
        at_fork.range[at_fork.ranges++] = (struct range){a, v->lo, v->hi, v->off, v->prot};
    return true;
}

static bool make_room(void)
{
    at_fork.range = dock_room_once(at_fork.range, RANGES * sizeof(struct range));
    return at_fork.range;
}

// Once in the prepare handler, and again by the helper when nobody changes a mapping any more.
static void list_ranges(void)
{
    at_fork.ranges = 0;
    for (struct dock_adopt *a = dock_adopters; a; a = a->next)
        if (dock_peek64(&a->counts->bytes))
            dock_maps_walk(0, UINT64_MAX, list_one, a);
}

static void tell_of_threads(void)
{
    static bool said;

    if (!said)
        dock_warn("threads cannot be stopped over a fork: its child may see what they store meanwhile");
    said = true;
}

// The locks are held over the fork: nothing moves, and the child finds them in order.
static void prepare(void)
{
    dock_adopt_lock();
    at_fork.parent = getpid();
    at_fork.ranges = 0;
    if (dock_adopted_any() && make_room()) {
        dock_views_lock();
        list_ranges();
        dock_views_unlock();
    }
    at_fork.stopping = at_fork.ranges;
    if (!at_fork.stopping) {
        dock_views_lock();
        dock_adopt_fork_begins();
    } else if (!dock_stop_fork(list_ranges)) {
        tell_of_threads();
    }
    if (at_fork.ranges && pipe2(at_fork.done, O_CLOEXEC))
        at_fork.done[0] = at_fork.done[1] = -1;
}

// What prepare has taken of the views and the threads.
static void leave(bool in_child)
{
    if (!at_fork.stopping) {
        dock_adopt_fork_ends(in_child);
        dock_views_unlock();
    } else if (!dock_stop_forked(in_child)) {
        tell_of_threads();
    }
}

// Until the child has closed its end, or is gone. The threads that would answer peers stand still: that takes
// the longer the larger the memory, and peers give up who shows nothing for seconds.
static void await_child(int end)
{
    struct pollfd p = {.fd = end, .events = POLLIN};
    char byte;
    int n;

    while ((n = poll(&p, 1, BEAT_MS)) == 0 || (n < 0 && errno == EINTR))
        for (struct dock_adopt *a = dock_adopters; a; a = a->next)
            if (a->engine) // else its device may be closed already, and only pages have stayed
                a->ops->beat(a->user);
    while (read(end, &byte, 1) < 0 && errno == EINTR)
        ;
}

static void parent(void)
{
    bool waits = at_fork.done[0] >= 0, no_pipe = at_fork.ranges && !waits;

    if (waits) {
        close(at_fork.done[1]);
        await_child(at_fork.done[0]);
        close(at_fork.done[0]);
        at_fork.done[0] = at_fork.done[1] = -1;
    }
    for (unsigned i = 0; i < at_fork.ranges; i++)
        dock_count64(&at_fork.range[i].a->counts->forked_bytes, at_fork.range[i].hi - at_fork.range[i].lo);
    leave(false);
    dock_adopt_unlock();
    if (no_pipe) // only now: who is stopped may have the log's lock
        dock_warn(
            "no descriptor to wait for a forked child with: it may see later stores to registered memory");
}

// From the arena; if the program has closed it, from the parent, which waits.
static bool fill(const struct range *r)
{
    uint64_t at = r->lo, off = r->off;
    uint64_t end = r->off + (r->hi - r->lo), to = off;
    int fd = dock_view_leads(&r->a->arena->view) ? r->a->arena->view.fd : -1;

    while (fd >= 0 && at < r->hi) {
        if (off == to && !dock_holes_run_of_file(fd, end, &off, &to))
            off = end; // the rest is zeros, as the new pages are
        at = r->lo + (off - r->off);
        if (off == end)
            break;
        long n = dock_rawcall(SYS_pread64, fd, (long)at, (long)(to - off), (long)off, 0, 0);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            break;
        at += (uint64_t)n;
        off += (uint64_t)n;
    }
    while (at < r->hi) {
        struct iovec v = {(void *)(uintptr_t)at, r->hi - at};
        long n = dock_rawcall(SYS_process_vm_readv, at_fork.parent, (long)&v, 1, (long)&v, 1, 0);
        if (n <= 0)
            return false;
        at += (uint64_t)n;
    }
    return true;
}

static void rebuild(const struct range *r)
{
    long len = (long)(r->hi - r->lo);

    if (!dock_park_out(r->a, r->lo, (uint64_t)len, r->off, 0))
        return;
    if (!fill(r)) { // rather a fault than wrong bytes
        dock_rawcall(SYS_munmap, (long)r->lo, len, 0, 0, 0, 0);
        dock_error("a forked child cannot read the registered memory of its parent: it is not mapped here");
        return;
    }
    if (r->prot != (PROT_READ | PROT_WRITE))
        dock_rawcall(SYS_mprotect, (long)r->lo, len, r->prot, 0, 0, 0);
}

// What the child has inherited is a device whose queues are all in RESET and whose completions never come:
// every use is refused with the reason, and none touches the parent's memory.
static void blind(const struct dock_view *v, void *base)
{
    dock_rawcall(SYS_mmap, (long)base, 1l << v->shift, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

static void child(void)
{
    for (unsigned i = 0; i < at_fork.ranges; i++)
        rebuild(&at_fork.range[i]);
    if (at_fork.done[0] >= 0) {
        close(at_fork.done[0]);
        close(at_fork.done[1]); // the parent reads the end
        at_fork.done[0] = at_fork.done[1] = -1;
    }
    dock_views_each(blind);
    for (struct dock_adopt *a = dock_adopters; a; a = a->next) {
        struct dock_port *port = dock_arena_at(a->arena, 0);
        if (port)
            dock_set32(&port->fatal, DOCK_FATAL_FORKED);
    }
    for (struct dock_adopt *a = dock_adopters; a; a = a->next)
        for (struct dock_mirror *m = a->mirrors; m; m = m->next)
            dock_park_close(a, m);
    leave(true);
    dock_adopt_forget();
    dock_adopt_unlock();
}

static void register_handlers(void)
{
    pthread_atfork(prepare, parent, child);
}

void dock_adopt_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_handlers);
}

__attribute__((constructor)) static void watch_early(void)
{
    dock_adopt_watch_forks();
    dock_idfile_watch_forks();
}
