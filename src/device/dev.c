// SPDX-License-Identifier: MIT
// Opening and closing a device: its arena, its id, its port record, its engine.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena/xcopy.h"
#include "base/clock.h"
#include "base/descriptor.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "arena/idfile.h"
#include "device/internal.h"
#include "device/limits.h"

#define STOPPED_MS 5000

static uint64_t number_of(const char *name, uint64_t usual)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : usual;
}

// What the manuals allow, and adapters do: a program must take an event that nothing stands behind.
static bool wants_noise(void)
{
    const char *text = getenv("DRYDOCK_EVENTS");
    bool noisy = text && !strcmp(text, "noisy");

    if (text && *text && !noisy && strcmp(text, "exact") != 0)
        dock_warn("DRYDOCK_EVENTS=%s is no mode (exact, noisy): exact it is", text);
    return noisy;
}

static void read_config(struct dock_dev *dev, const struct dock_config *cfg)
{
    if (cfg)
        dev->cfg = *cfg;
    dock_limits_read(&dev->limits);
    dev->fabric = dev->cfg.fabric;
    dev->start_index =
        dev->cfg.start_index ? dev->cfg.start_index : (uint32_t)number_of("DRYDOCK_START_INDEX", 0);
    if (!dev->cfg.stopped_ms)
        dev->cfg.stopped_ms = number_of("DRYDOCK_STOPPED_MS", STOPPED_MS);
    dev->noisy = wants_noise();
    dev->waiter.stopped_limit_ns = dev->cfg.stopped_ms * 1000000;
    dev->waiter.ids = &dev->ids_table;
    dev->nsegments = 65536;
}

// Tables by tid and pd are indexed, not searched; their pages come as they are touched.
static void *table(size_t count, size_t size)
{
    void *p =
        mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
#ifdef __SANITIZE_ADDRESS__
    __lsan_register_root_region(p, count * size); // what only a table points to is no leak
#endif
    return p;
}

static int make_tables(struct dock_dev *dev)
{
    dev->lkeys = table(dev->nsegments, sizeof *dev->lkeys);
    dev->mr = table(dev->nsegments, sizeof *dev->mr);
    dev->variant = table(dev->nsegments, 1);
    dev->pd_users = table(dev->limits.max_pd + 1, sizeof *dev->pd_users);
    return dev->lkeys && dev->mr && dev->variant && dev->pd_users ? 0 : -ENOMEM;
}

static void free_table(void *p, size_t count, size_t size)
{
    if (!p)
        return;
#ifdef __SANITIZE_ADDRESS__
    __lsan_unregister_root_region(p, count * size);
#endif
    munmap(p, count * size);
}

static void free_tables(struct dock_dev *dev)
{
    free_table(dev->lkeys, dev->nsegments, sizeof *dev->lkeys);
    free_table(dev->mr, dev->nsegments, sizeof *dev->mr);
    free_table(dev->variant, dev->nsegments, 1);
    free_table(dev->pd_users, dev->limits.max_pd + 1, sizeof *dev->pd_users);
}

static void program_name(char out[16])
{
    strncpy(out, program_invocation_short_name, 15);
}

// The port record, with its tables; magic last, so that a peer sees it whole.
static int make_port(struct dock_dev *dev)
{
    struct dock_port *port = dock_arena_at(&dev->arena, 0);
    int err =
        dock_arena_reserve(&dev->arena, DOCK_HAZARDS * sizeof(struct dock_hazard), 4096, &port->hazards);

    if (!err)
        err = dock_arena_reserve(&dev->arena, dev->nsegments * sizeof(struct dock_segrec), 4096,
                                 &port->segments);
    if (err)
        return err;
    dev->port = port;
    dev->segments = dock_arena_at(&dev->arena, port->segments);
    dev->hazards = dock_arena_at(&dev->arena, port->hazards);
    port->version = DOCK_PORT_VERSION;
    port->who = dev->waiter.me;
    port->pid = getpid();
    port->nsegments = dev->nsegments;
    port->full_fences = !dock_peek32(&dock_fence_asymmetric);
    port->started_ns = dock_now_ns();
    program_name(port->program);
    dock_publish64(&port->magic, DOCK_PORT_MAGIC); // pairs with port_stands in peers.c
    return 0;
}

struct dock_gift dock_dev_gift(const struct dock_dev *dev)
{
    return (struct dock_gift){.who = dev->waiter.me,
                              .pid = getpid(),
                              .shift = dev->arena.view.shift,
                              .arena_fd = dev->arena.view.fd,
                              .bell_fd = dev->bell_fd,
                              .pidfd = dev->self_pidfd};
}

static void init_locks(struct dock_dev *dev)
{
    pthread_mutex_init(&dev->lock, NULL);
    pthread_mutex_init(&dev->peer_lock, NULL);
    pthread_mutex_init(&dev->events_lock, NULL);
    pthread_mutex_init(&dev->ids.lock, NULL);
}

static void destroy_locks(struct dock_dev *dev)
{
    pthread_mutex_destroy(&dev->ids.lock);
    pthread_mutex_destroy(&dev->events_lock);
    pthread_mutex_destroy(&dev->peer_lock);
    pthread_mutex_destroy(&dev->lock);
}

static int join_host(struct dock_dev *dev)
{
    int err = dock_rundir_open(dev->cfg.dir, &dev->dir);

    if (err)
        return err;
    err = dock_idtable_open(&dev->dir, &dev->ids_table);
    if (err)
        goto no_table;
    err = dock_idtable_join(&dev->ids_table, &dev->waiter.me);
    if (err)
        goto no_id;
    return 0;
no_id:
    dock_idtable_close(&dev->ids_table);
no_table:
    dock_rundir_close(&dev->dir);
    return err;
}

static void leave_host(struct dock_dev *dev)
{
    dock_groups_close(&dev->groups);
    dock_domains_close(&dev->domains);
    dock_idtable_leave(&dev->ids_table, dev->waiter.me);
    dock_idtable_close(&dev->ids_table);
    dock_rundir_close(&dev->dir);
}

static int open_bell(struct dock_dev *dev)
{
    dev->bell_fd = dock_fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (dev->bell_fd < 0)
        return dock_cannot("no descriptor for the device's bell", -errno);
    dev->self_pidfd = dock_fd_own(
        (int)syscall(SYS_pidfd_open, getpid(), 0)); // -1 where there is none: liveness by record lock
    return 0;
}

static void close_bell(struct dock_dev *dev)
{
    close(dev->bell_fd);
    if (dev->self_pidfd >= 0)
        close(dev->self_pidfd);
}

// A fabric that finishes later touches memory outside of the epoch that a move waits for.
static enum dock_adopt_mode adoption(const struct dock_dev *dev)
{
    bool late = dev->fabric && dev->fabric->late;

    return late || dev->cfg.force_plain ? DOCK_ADOPT_OFF : dock_adopt_wanted();
}

// What stays open as long as the device does.
static void name_descriptors(struct dock_dev *dev)
{
    const int own[] = {dev->dir.fd,    dev->ids_table.file->fd, dev->bell_fd,
                       dev->listen_fd, dev->self_pidfd,         dev->epoll_fd};

    static_assert(sizeof own / sizeof *own <= DOCK_ADOPT_OWN, "there is room for all of them");
    dock_adopt_owns(&dev->adopt, own, sizeof own / sizeof *own);
}

int dock_dev_open(const struct dock_config *cfg, struct dock_dev **out)
{
    // Pages of its own: the program's heap may be adopted around its buffers, and what a move needs to go on
    // must not lie in what moves.
    struct dock_dev *dev = table(1, sizeof *dev);
    int err;

    if (!dev)
        return dock_no_memory("a device");
    init_locks(dev);
    read_config(dev, cfg);
    dock_fence_init();
    dock_xcopy_allow();
    err = make_tables(dev);
    if (err)
        goto no_tables;
    err = join_host(dev);
    if (err)
        goto no_tables;
    err = dock_arena_create(&dev->arena, dev->cfg.window_shift, sizeof(struct dock_port));
    if (err)
        goto no_arena;
    dock_limits_fit(&dev->limits, dev->arena.view.shift);
    err = make_port(dev);
    if (err)
        goto no_port;
    err = dock_adopt_open(&dev->adopt, adoption(dev), &dev->arena, &dev->port->adopt, &dock_mr_adopt_ops, dev,
                          sizeof *dev);
    if (err)
        goto no_port;
    err = open_bell(dev);
    if (err)
        goto no_bell;
    err = dock_gift_listen(&dev->dir, dev->waiter.me, &dev->listen_fd);
    if (err)
        goto no_listener;
    err = dock_peers_open(dev);
    if (err)
        goto no_peers;
    err = dock_engine_start(dev);
    if (err)
        goto no_engine;
    name_descriptors(dev);
    *out = dev;
    return 0;
no_engine:
    dock_peers_close(dev);
no_peers:
    dock_gift_unlisten(&dev->dir, dev->waiter.me, dev->listen_fd);
no_listener:
    close_bell(dev);
no_bell:
    dock_adopt_close(&dev->adopt);
no_port:
    dock_arena_destroy(&dev->arena);
no_arena:
    leave_host(dev);
no_tables:
    free_tables(dev);
    destroy_locks(dev);
    free_table(dev, 1, sizeof *dev);
    dock_error("the device could not be opened: %s", strerror(-err));
    return err;
}

static int close_whole(struct dock_dev *dev)
{
    if (dev->arena.view.pid != getpid())
        return 0; // in a forked child: the engine, the mappings and the names are its parent's
    if (dev->n_qp || dev->n_cq || dev->n_srq || dev->n_mr || dev->n_mw)
        return dock_refuse(-EBUSY,
                           "the device has %u queue pairs, %u CQs, %u shared receive queues, %u regions",
                           dev->n_qp, dev->n_cq, dev->n_srq, dev->n_mr + dev->n_mw);
    dock_adopt_owns(&dev->adopt, NULL, 0);
    dock_engine_stop(dev);
    // While all of it stands: until then a move of another device's may pause this one.
    bool clean = dock_adopt_close(&dev->adopt);
    dock_gift_unlisten(&dev->dir, dev->waiter.me, dev->listen_fd);
    dock_peers_close(dev);
    close_bell(dev);
    dock_ids_close(dev);
    if (clean)
        dock_arena_destroy(&dev->arena);
    leave_host(dev);
    free_tables(dev);
    destroy_locks(dev);
    if (clean)
        free_table(dev, 1, sizeof *dev);
    return 0;
}

// It waits for the engine, and no thread is cancelled there.
int dock_dev_close(struct dock_dev *dev)
{
    dock_uncancelled_begin();
    int err = close_whole(dev);
    dock_uncancelled_end();
    return err;
}

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct dock_dev *shared;
static unsigned shared_users;
static pid_t shared_pid;

int dock_dev_get(struct dock_dev **out)
{
    int err = 0;

    dock_lock(&shared_lock);
    if (shared && shared_pid != getpid()) { // a forked child: what it inherited is its parent's
        shared = NULL;
        shared_users = 0;
    }
    if (!shared)
        err = dock_dev_open(NULL, &shared);
    if (!err) {
        shared_pid = getpid();
        shared_users++;
        *out = shared;
    }
    dock_unlock(&shared_lock);
    return err;
}

int dock_dev_put(struct dock_dev *dev)
{
    int err = 0;

    dock_lock(&shared_lock);
    if (dev == shared && --shared_users == 0) {
        err = dock_dev_close(dev);
        if (err)
            shared_users = 1;
        else
            shared = NULL;
    }
    dock_unlock(&shared_lock);
    return err;
}

const struct dock_limits *dock_dev_limits(const struct dock_dev *dev)
{
    return &dev->limits;
}

dock_who dock_dev_who(const struct dock_dev *dev)
{
    return dev->waiter.me;
}

int dock_count_up(struct dock_dev *dev, uint32_t *count, uint32_t limit, const char *what)
{
    int err = -ENOMEM;

    dock_lock(&dev->lock);
    if (*count < limit) {
        ++*count;
        err = 0;
    }
    dock_unlock(&dev->lock);
    return err ? dock_refuse(err, "no more than %u %s", limit, what) : 0;
}

void dock_count_down(struct dock_dev *dev, uint32_t *count)
{
    dock_lock(&dev->lock);
    --*count;
    dock_unlock(&dev->lock);
}

int dock_mem_alloc(struct dock_dev *dev, size_t size, void **out)
{
    uint64_t off;
    int err = dock_arena_alloc(&dev->arena, (size + 4095) & ~4095ul, 4096, &off);

    if (err)
        return err;
    atomic_fetch_add_explicit(&dev->port->arena_bytes, (size + 4095) & ~4095ul, memory_order_relaxed);
    *out = dock_arena_at(&dev->arena, off);
    return 0;
}

int dock_mem_reserve(struct dock_dev *dev, size_t size, void **out)
{
    uint64_t off;
    int err = dock_arena_reserve(&dev->arena, (size + 4095) & ~4095ul, 4096, &off);

    if (err)
        return err;
    atomic_fetch_add_explicit(&dev->port->arena_bytes, (size + 4095) & ~4095ul, memory_order_relaxed);
    *out = dock_arena_at(&dev->arena, off);
    return 0;
}

int dock_mem_offset(struct dock_dev *dev, const void *p, size_t size, uint64_t *off)
{
    return dock_arena_offset(&dev->arena, p, size, off);
}

void dock_mem_drop(struct dock_dev *dev, void *p, size_t size)
{
    uint64_t off;

    if (!dock_arena_offset(&dev->arena, p, size, &off))
        dock_arena_punch(&dev->arena, off, size);
}

void dock_mem_free(struct dock_dev *dev, void *p, size_t size)
{
    uint64_t off;

    if (!p || dock_arena_offset(&dev->arena, p, 1, &off))
        return;
    dock_arena_free(&dev->arena, off, (size + 4095) & ~4095ul);
    atomic_fetch_sub_explicit(&dev->port->arena_bytes, (size + 4095) & ~4095ul, memory_order_relaxed);
}
