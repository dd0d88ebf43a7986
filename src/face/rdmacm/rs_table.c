// SPDX-License-Identifier: MIT
// Sockets by number: making and finding them.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "face/rdmacm/rs.h"

static pthread_mutex_t lock = DOCK_LOCK_OF_FORKS;
static struct rs **table;
static size_t room;

// A fork waits for who is at the table: the child finds it whole, and open.
static void close_table(void)
{
    dock_lock(&lock);
}

static void open_table(void)
{
    dock_unlock_of_forks(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(close_table, open_table, open_table);
}

static struct rs *look(int fd)
{
    struct rs *rs;

    dock_lock(&lock);
    rs = fd >= 0 && (size_t)fd < room ? table[fd] : NULL;
    if (rs)
        rs->refs++;
    dock_unlock_of_forks(&lock);
    return rs;
}

bool rs_is(int fd)
{
    struct rs *rs = look(fd);

    if (rs)
        rs_drop(rs);
    return rs != NULL;
}

struct rs *rs_get(int fd)
{
    struct rs *rs = look(fd);
    int why;

    if (!rs) {
        errno = dock_refuse(EBADF, "rsocket: %d is no rsocket", fd);
        return NULL;
    }
    if (cm_id_ok(rs->id, "rsocket"))
        return rs;
    why = errno;
    rs_drop(rs);
    errno = why;
    return NULL;
}

static int keep(struct rs *rs)
{
    size_t wanted = room ? room : 64;
    struct rs **more;
    int ret = 0;

    dock_lock(&lock);
    while (wanted <= (size_t)rs->fd)
        wanted *= 2;
    if (wanted > room) {
        more = realloc(table, wanted * sizeof(*more));
        if (more) {
            memset(more + room, 0, (wanted - room) * sizeof(*more));
            table = more;
            room = wanted;
        } else {
            ret = -ENOMEM;
        }
    }
    if (!ret)
        table[rs->fd] = rs;
    dock_unlock_of_forks(&lock);
    return ret;
}

static void set_defaults(struct rs *rs, int domain)
{
    pthread_mutex_init(&rs->lock, NULL);
    rs->refs = 1;
    rs->domain = domain;
    rs->sq_size = rs->rq_size = RS_DEPTH;
    rs->inline_size = 64;
}

struct rs *rs_new(int domain, const struct rs_kind *kind, struct rdma_cm_id *id)
{
    struct rs *rs = calloc(1, sizeof *rs);
    int err = ENOMEM;

    if (!rs)
        goto failed;
    set_defaults(rs, domain);
    rs->kind = kind;
    err = kind->make(rs);
    if (err)
        goto not_made;
    rs->channel = rdma_create_event_channel();
    if (!rs->channel || fcntl(rs->channel->fd, F_SETFL, O_NONBLOCK))
        goto no_channel;
    rs->fd = rs->channel->fd;
    rs->passive = id != NULL;
    if (id ? rdma_migrate_id(id, rs->channel) : rdma_create_id(rs->channel, &id, rs, kind->space))
        goto no_channel;
    rs->id = id;
    id->context = rs;
    if (!keep(rs))
        return rs;
    rs->id = NULL;
    if (!rs->passive)
        rdma_destroy_id(id);
no_channel:
    err = errno ? errno : ENOMEM;
    if (rs->channel)
        rdma_destroy_event_channel(rs->channel);
    kind->end(rs);
not_made:
    free(rs);
failed:
    errno = dock_refuse(err, "rsocket: none can be made: %s", strerror(err));
    return NULL;
}

static void destroy(struct rs *rs)
{
    rs->kind->end(rs);
    rdma_destroy_id(rs->id);
    rdma_destroy_event_channel(rs->channel);
    pthread_mutex_destroy(&rs->lock);
    free(rs);
}

void rs_drop(struct rs *rs)
{
    bool last;

    dock_lock(&lock);
    last = --rs->refs == 0;
    dock_unlock_of_forks(&lock);
    if (last)
        destroy(rs);
}

void rs_free(struct rs *rs)
{
    bool first;

    dock_lock(&lock);
    first = table[rs->fd] == rs; // two threads may close one socket
    if (first)
        table[rs->fd] = NULL;
    dock_unlock_of_forks(&lock);
    if (first)
        rs_drop(rs);
}

struct rs *rs_enter(int fd)
{
    struct rs *rs = rs_get(fd);

    if (rs)
        dock_lock(&rs->lock);
    return rs;
}

int rs_leave(struct rs *rs, int err)
{
    dock_unlock(&rs->lock);
    rs_drop(rs);
    return err ? cm_fail(err) : 0;
}
