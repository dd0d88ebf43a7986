// SPDX-License-Identifier: MIT
// fork(): adopted memory is shared memory, which a child would share with its parent. So it is DONTFORK, the
// child's handler builds private copies from the arena at the same addresses, and the parent's handler waits
// until it has, while the other threads stand still: the child sees the memory as it was at the fork, whoever
// writes first. What peers store meanwhile it may see in part, as with hardware. A child that runs no
// handlers (a raw clone) faults instead of corrupting its parent. vfork and posix_spawn share the address
// space until exec, and meet nothing of this.
//
// In the child libc comes before any handler: it sets the locks of its allocator and of its open files anew,
// which may lie in adopted pages, as may the stack. So for the moment of the clone, while nobody else runs,
// the arena's pages are mapped privately: the child has them from its first instruction on, with what it
// stores there. Its handler makes its copies of these.
//
// The handlers are registered before anybody else's: prepare then runs last, and the others first, before
// the program's own handlers let its threads go on.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arena/adopt_own.h"
#include "arena/idfile.h"
#include "arena/port.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/rawcall.h"

#define RANGES 65536u // more mappings a process cannot have
#define BEAT_MS 50

struct range {
    struct dock_adopt *a;
    uint64_t lo, hi, off;
    uint32_t prot;
    int fd;         // of the arena; -1: the program has closed it
    uint64_t aside; // lent: where the program's own mapping waits. 0: it is in its place
};

static struct {
    struct range *range;
    unsigned ranges;
    int unlisted; // why the list is not complete: -errno. What is missing there the child does not have
    int done[2];  // a pipe: the child has its copies, or is gone
    bool no_pipe;
    pid_t parent;
    bool stopping;              // the other threads, over this fork
    uint64_t room, room_length; // where lent mappings wait
} at_fork = {.done = {-1, -1}};

static bool list_one(void *arg, const struct dock_vma *v)
{
    struct dock_adopt *a = arg;

    if (dock_vma_ours(a, v) && !dock_views_have(v->lo) && at_fork.ranges < RANGES)
        at_fork.range[at_fork.ranges++] = (struct range){a, v->lo, v->hi, v->off, v->prot, -1, 0};
    return true;
}

const void *dock_fork_room(size_t *bytes)
{
    *bytes = RANGES * sizeof(struct range);
    return at_fork.range;
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
    at_fork.unlisted = 0;
    for (struct dock_adopt *a = dock_adopters; a && !at_fork.unlisted; a = a->next)
        if (dock_peek64(&a->counts->bytes))
            at_fork.unlisted = dock_maps_walk(0, UINT64_MAX, list_one, a);
}

// ---- at the clone: by the helper, nobody else runs

// Empty addresses. 0: there are none.
static uint64_t reserve(uint64_t len)
{
    long at =
        dock_rawcall(SYS_mmap, 0, (long)len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (!dock_rawcall_mapped(at))
        return 0;
    dock_lock_lift((uint64_t)at, len); // of an earlier mlockall(MCL_FUTURE)
    return (uint64_t)at;
}

// Open only when it is no longer locked, by an earlier mlockall(MCL_FUTURE): else the kernel would copy it
// all.
static bool map_lent(const struct range *r)
{
    uint64_t len = r->hi - r->lo;
    long at = dock_rawcall(SYS_mmap, (long)r->lo, (long)len, PROT_NONE,
                           MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, r->fd, (long)r->off);

    if (!dock_rawcall_mapped(at))
        return false;
    dock_lock_lift(r->lo, len);
    return !dock_rawcall(SYS_mprotect, (long)r->lo, (long)len, r->prot, 0, 0, 0);
}

// What is mapped there now goes first: it counts among the mappings that a process may have.
static void bring_back(struct range *r)
{
    long len = (long)(r->hi - r->lo);

    dock_rawcall(SYS_munmap, (long)r->lo, len, 0, 0, 0, 0);
    if (!dock_rawcall_mapped(dock_map_move(r->aside, (uint64_t)len, r->lo)) &&
        dock_rawcall_mapped(
            dock_rawcall(SYS_mmap, (long)r->lo, len, r->prot, MAP_SHARED | MAP_FIXED, r->fd, (long)r->off)))
        dock_rawcall(SYS_madvise, (long)r->lo, len, MADV_DONTFORK, 0, 0, 0);
    r->aside = 0;
}

// No memory of the program is touched between the two calls: the device's own structures may be there.
static void lend_one(struct range *r, uint64_t to)
{
    r->fd = dock_view_leads(&r->a->arena->view) ? r->a->arena->view.fd : -1;
    if (r->fd < 0 || !dock_rawcall_mapped(dock_map_move(r->lo, r->hi - r->lo, to)))
        return;
    r->aside = to;
    if (!map_lent(r))
        bring_back(r);
}

// What cannot be lent stays, and is not there for the child before its handler has run.
static void lend(void)
{
    list_ranges();
    at_fork.room_length = 0;
    for (unsigned i = 0; i < at_fork.ranges; i++)
        at_fork.room_length += at_fork.range[i].hi - at_fork.range[i].lo;
    at_fork.room = at_fork.room_length ? reserve(at_fork.room_length) : 0;
    if (!at_fork.room)
        return;
    dock_rawcall(SYS_madvise, (long)at_fork.room, (long)at_fork.room_length, MADV_DONTFORK, 0, 0, 0);
    uint64_t to = at_fork.room;
    for (unsigned i = 0; i < at_fork.ranges; to += at_fork.range[i].hi - at_fork.range[i].lo, i++)
        lend_one(&at_fork.range[i], to);
}

static void take_back(void)
{
    for (unsigned i = 0; i < at_fork.ranges; i++)
        if (at_fork.range[i].aside)
            bring_back(&at_fork.range[i]);
    if (at_fork.room)
        dock_rawcall(SYS_munmap, (long)at_fork.room, (long)at_fork.room_length, 0, 0, 0, 0);
    at_fork.room = 0;
}

static void close_end(unsigned i)
{
    if (at_fork.done[i] >= 0)
        dock_rawcall(SYS_close, at_fork.done[i], 0, 0, 0, 0, 0);
    at_fork.done[i] = -1;
}

static long one_beat(struct pollfd *p, unsigned n)
{
#ifdef SYS_poll
    return dock_rawcall(SYS_poll, (long)p, n, BEAT_MS, 0, 0, 0);
#else
    struct timespec t = {.tv_nsec = BEAT_MS * 1000000};

    return dock_rawcall(SYS_ppoll, (long)p, n, (long)&t, 0, 0, 0);
#endif
}

struct awaited {
    int fd; // -1: none is known
    long pid;
    void (*look_after)(long child); // or NULL
};

// Until the child says that it has its copies, or is gone. Its end of the pipe alone does not tell: a child
// that somebody made beside us without handlers may have it too. The threads that would answer peers stand
// still: that takes the longer the larger the memory, and peers give up who shows nothing for seconds. false:
// it takes too long. Nobody waits a second time.
static bool await_child(struct awaited child, uint64_t patience_ns)
{
    struct pollfd p[] = {{.fd = at_fork.done[0], .events = POLLIN}, {.fd = child.fd, .events = POLLIN}};
    uint64_t start = dock_now_ns();
    bool in_time = true;
    long n;

    close_end(1);
    while (in_time && at_fork.done[0] >= 0) {
        n = one_beat(p, 2);
        if (n && n != -EINTR)
            break;
        in_time = dock_now_ns() - start <= patience_ns;
        if (child.look_after)
            child.look_after(child.pid);
        for (struct dock_adopt *a = dock_adopters; a; a = a->next)
            if (a->engine) // else its device may be closed already, and only pages have stayed
                a->ops->beat(a->user);
    }
    close_end(0);
    return in_time;
}

// The forking thread has not seen its child yet: it waits here, so that nothing of its own changes either.
// There may be none, or none any more: then nobody is waited for at all.
static bool made(long child, void (*look_after)(long child))
{
    long fd = child > 0 ? dock_rawcall(SYS_pidfd_open, child, 0, 0, 0, 0, 0) : -ESRCH;
    struct awaited it = {.fd = fd < 0 ? -1 : (int)fd, .pid = child, .look_after = look_after};

    if (fd == -ESRCH) {
        close_end(1);
        close_end(0);
        return true;
    }
    bool in_time = await_child(it, DOCK_FORK_PATIENCE_NS);
    if (fd >= 0)
        dock_rawcall(SYS_close, fd, 0, 0, 0, 0, 0);
    return in_time;
}

static const struct dock_fork_steps steps = {.lend = lend, .take_back = take_back, .made = made};

// ---- the handlers

static void tell_of_threads(void)
{
    static bool said;

    if (!said)
        dock_warn("threads cannot be stopped over a fork: its child may see what they store meanwhile");
    said = true;
}

// What is written into it tells that the child is ready: no text may.
static bool open_pipe(void)
{
    if (pipe2(at_fork.done, O_CLOEXEC)) {
        at_fork.done[0] = at_fork.done[1] = -1;
        return false;
    }
    for (unsigned i = 0; i < 2; i++)
        at_fork.done[i] = dock_fd_own(at_fork.done[i]);
    if (at_fork.done[0] >= 0 && at_fork.done[1] >= 0)
        return true;
    close_end(0);
    close_end(1);
    return false;
}

// The locks are held over the fork: nothing moves, and the child finds them in order.
static void prepare(void)
{
    dock_adopt_lock();
    at_fork.parent = getpid();
    at_fork.ranges = 0;
    at_fork.unlisted = dock_adopted_any() && !make_room() ? -ENOMEM : 0;
    if (dock_adopted_any() && !at_fork.unlisted) {
        dock_views_lock();
        list_ranges();
        dock_views_unlock();
    }
    at_fork.stopping = at_fork.ranges;
    if (!at_fork.stopping) {
        dock_views_lock();
        dock_adopt_fork_begins();
    } else if (!dock_stop_fork(&steps)) {
        tell_of_threads();
    }
    at_fork.no_pipe = at_fork.stopping && !open_pipe();
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

static void parent(void)
{
    take_back(); // else it is done: the helper may have been killed
    if (!await_child((struct awaited){.fd = -1}, dock_stop_is_alone() ? UINT64_MAX : DOCK_FORK_PATIENCE_NS))
        tell_of_threads();
    for (unsigned i = 0; i < at_fork.ranges; i++)
        dock_count64(&at_fork.range[i].a->counts->forked_bytes, at_fork.range[i].hi - at_fork.range[i].lo);
    leave(false);
    dock_adopt_unlock();
    if (at_fork.no_pipe) // only now: who is stopped may have the log's lock
        dock_warn(
            "no descriptor to wait for a forked child with: it may see later stores to registered memory");
    if (at_fork.unlisted)
        dock_error(
            "what is mapped cannot be told (%s): a forked child does not have the registered memory of "
            "its parent",
            strerror(-at_fork.unlisted));
}

// Some of [at, at + len): as the child has it, which may have stored to it since; or as the arena has.
static long take(const struct range *r, uint64_t at, uint64_t len, uint64_t off, int fd)
{
    struct iovec to = {(void *)(uintptr_t)at, len}, from = to;

    if (!r->aside)
        return dock_rawcall(SYS_pread64, fd, (long)at, (long)len, (long)off, 0, 0);
    from.iov_base = (void *)(uintptr_t)(r->aside + (off - r->off));
    long n = dock_rawcall(SYS_process_vm_readv, getpid(), (long)&to, 1, (long)&from, 1, 0);
    if (n > 0)
        return n;
    memcpy(to.iov_base, from.iov_base, len);
    return (long)len;
}

// From the arena's pages; if the program has closed it, from the parent, which waits.
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
        long n = take(r, at, to - off, off, fd);
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

// In the child what was lent makes room for its own.
static bool set_aside(struct range *r)
{
    uint64_t len = r->hi - r->lo, to = reserve(len);

    r->aside = 0;
    if (!to || !dock_rawcall_mapped(dock_map_move(r->lo, len, to)))
        return false;
    r->aside = to;
    return r->prot & PROT_READ || !dock_rawcall(SYS_mprotect, (long)to, (long)len, PROT_READ, 0, 0, 0);
}

static void rebuild(struct range *r)
{
    long len = (long)(r->hi - r->lo);
    bool lent = r->aside;

    if ((lent && !set_aside(r)) || !dock_park_out(r->a, r->lo, (uint64_t)len, r->off, 0) ||
        !fill(r)) { // rather a fault than wrong bytes
        dock_rawcall(SYS_munmap, (long)r->lo, len, 0, 0, 0, 0);
        dock_error("a forked child cannot read the registered memory of its parent: it is not mapped here");
        return;
    }
    if (r->aside)
        dock_rawcall(SYS_munmap, (long)r->aside, len, 0, 0, 0, 0);
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

static int __attribute__((no_sanitize_address)) rebuild_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < at_fork.ranges; i++)
        rebuild(&at_fork.range[i]);
    return 0;
}

static bool stands_in_a_range(void)
{
    uint64_t at = (uintptr_t)__builtin_frame_address(0);
    unsigned i = 0;

    while (i < at_fork.ranges && (at < at_fork.range[i].lo || at >= at_fork.range[i].hi))
        i++;
    return i < at_fork.ranges;
}

static void child(void)
{
    at_fork.room = 0;                                              // it is not there
    if (!stands_in_a_range() || !dock_stop_elsewhere(rebuild_all)) // or the stack goes under its feet
        rebuild_all(NULL);
    if (at_fork.done[1] >= 0) // while the other end is open here: no SIGPIPE
        dock_rawcall(SYS_write, at_fork.done[1], (long)"", 1, 0, 0, 0);
    close_end(1);
    close_end(0);
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
