// SPDX-License-Identifier: MIT
// Event channels: a queue and a descriptor that is readable exactly while the queue holds something. Events
// wait raw; what belongs to their delivery (a queue pair that moves on, a group that is joined) is done by
// the thread that gets them, as programs expect of rdma_get_cm_event.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "face/rdmacm/rdmacm_face.h"

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct cm_chan *chan;
    int ret = cm_node_start();

    if (!ret && !cm_device())
        ret = -ENODEV;
    if (ret) {
        errno = -ret;
        return NULL;
    }
    chan = calloc(1, sizeof *chan);
    if (!chan) {
        errno = dock_refuse(ENOMEM, "rdma_create_event_channel: no memory");
        return NULL;
    }
    chan->last = &chan->first;
    chan->generation = cm.generation;
    chan->channel.fd = dock_fd_own(eventfd(0, EFD_CLOEXEC));
    if (chan->channel.fd < 0) {
        ret = dock_refuse(errno, "rdma_create_event_channel: no descriptor: %s", strerror(errno));
        free(chan);
        errno = ret;
        return NULL;
    }
    cm_acquire();
    chan->next = cm.chans;
    cm.chans = chan;
    cm_release();
    return &chan->channel;
}

// Where `channel` stands in the list, or NULL: programs exist whose threads name one that is destroyed.
static struct cm_chan **find(const struct rdma_event_channel *channel)
{
    struct cm_chan **p = &cm.chans;

    while (*p && &(*p)->channel != channel)
        p = &(*p)->next;
    return *p ? p : NULL;
}

int cm_chan_check(const struct rdma_event_channel *channel, const char *call)
{
    struct cm_chan **p = find(channel);

    if (!p)
        return dock_refuse(-EBADF, "%s: the channel was destroyed", call);
    if ((*p)->generation != cm.generation)
        return dock_refuse(-ENODEV, "%s: the channel belongs to the parent process", call);
    return 0;
}

// Lock held.
static void drop_queue(struct cm_chan *chan)
{
    for (struct cm_event *e = chan->first, *next; e; e = next) {
        next = e->next;
        if (e->event.event == RDMA_CM_EVENT_CONNECT_REQUEST && chan->generation == cm.generation)
            cm_refuse_child(cm_id(e->event.id));
        if (e->group)
            cm_group_acked(e->group); // nobody will
        cm_event_free(e);
    }
    chan->first = NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    struct cm_chan *chan = NULL, **p;

    if (!channel)
        return;
    cm_acquire();
    p = find(channel);
    if (p) {
        chan = *p;
        *p = chan->next;
        drop_queue(chan);
        if (chan->generation == cm.generation)
            cm_ids_orphan(chan);
    } else {
        dock_refuse(EBADF, "rdma_destroy_event_channel: the channel was destroyed");
    }
    cm_release();
    if (!chan)
        return;
    dock_close(chan->channel.fd);
    free(chan);
}

// ---- the queue; lock held

struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
    struct cm_event *e = calloc(1, sizeof *e);

    if (!e) {
        e = id->spare;
        id->spare = NULL;
    }
    if (!e) {
        dock_error("no memory for %s: the event is lost", rdma_event_str(type));
        return NULL;
    }
    e->event.id = &id->id;
    e->event.event = type;
    e->event.status = status;
    e->counted = id;
    return e;
}

void cm_event_free(struct cm_event *e)
{
    struct cm_id *id = e->counted;

    if (id->spare) {
        free(e);
        return;
    }
    memset(e, 0, sizeof *e);
    id->spare = e;
}

static void signal_readable(struct cm_chan *chan)
{
    uint64_t one = 1;

    // Each event is an edge of its own, for programs that wait for edges.
    if (write(chan->channel.fd, &one, sizeof one) < 0)
        dock_warn("an event channel cannot be signaled: %s", strerror(errno));
}

static void put(struct cm_chan *chan, struct cm_event *e)
{
    e->next = NULL;
    *chan->last = e;
    chan->last = &e->next;
    signal_readable(chan);
}

// The descriptor must not say that there is something when there is nothing. It holds a count then, so that
// the read does not wait.
static void empty_means_quiet(struct cm_chan *chan)
{
    struct pollfd p = {.fd = chan->channel.fd, .events = POLLIN};
    uint64_t count;

    if (!chan->first && poll(&p, 1, 0) == 1 && read(p.fd, &count, sizeof count) < 0)
        dock_warn("an event channel cannot be read: %s", strerror(errno));
}

void cm_event_queue(struct cm_event *e)
{
    if (!e->counted->id.channel) { // nobody can get it any more
        cm_event_free(e);
        return;
    }
    put(cm_chan(e->counted->id.channel), e);
}

void cm_tell(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
    struct cm_event *e = cm_event_new(id, type, status);

    if (e)
        cm_event_queue(e);
}

// Take all events of `id`, or only those of `group`, out of the queue, as a list in their order.
static struct cm_event *pick(struct cm_chan *chan, const struct cm_id *id, const struct cm_group *group)
{
    struct cm_event *picked = NULL, **end = &picked, **p;

    if (!chan) // it went before the id did
        return NULL;
    p = &chan->first;
    while (*p) {
        struct cm_event *e = *p;

        if (e->counted != id || (group && e->group != group)) {
            p = &e->next;
            continue;
        }
        *p = e->next;
        e->next = NULL;
        *end = e;
        end = &e->next;
    }
    chan->last = p;
    empty_means_quiet(chan);
    return picked;
}

void cm_events_drop(struct cm_id *id)
{
    for (struct cm_event *e = pick(cm_chan(id->id.channel), id, NULL), *next; e; e = next) {
        next = e->next;
        if (e->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            cm_refuse_child(cm_id(e->event.id));
        cm_event_free(e);
    }
}

unsigned cm_events_forget(struct cm_id *id, const struct cm_group *group)
{
    unsigned n = 0;

    for (struct cm_event *e = pick(cm_chan(id->id.channel), id, group), *next; e; e = next, n++) {
        next = e->next;
        cm_event_free(e);
    }
    return n;
}

void cm_events_move(struct cm_id *id, struct cm_chan *to)
{
    for (struct cm_event *e = pick(cm_chan(id->id.channel), id, NULL), *next; e; e = next) {
        next = e->next;
        if (e->event.event == RDMA_CM_EVENT_CONNECT_REQUEST) // who asks is a child of this channel
            e->event.id->channel = &to->channel;
        put(to, e);
    }
}

void cm_events_wait(struct cm_id *id)
{
    while (id->acked != id->delivered)
        pthread_cond_wait(&cm.acked, &cm.lock);
}

static struct cm_event *take(struct cm_chan *chan)
{
    struct cm_event *e = chan->first;

    if (!e)
        return NULL;
    chan->first = e->next;
    if (!chan->first)
        chan->last = &chan->first;
    empty_means_quiet(chan);
    e->counted->delivered++;
    if (e->event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        e->counted->pending--;
        e->event.id->channel = &chan->channel;
    }
    return e;
}

// ---- delivery, without lock

static bool drop(struct cm_event *e)
{
    rdma_ack_cm_event(&e->event);
    return false;
}

static bool deliver_response(struct cm_event *e)
{
    struct cm_id *id = cm_id(e->event.id);

    if (!id->id.qp)
        return true; // the program moves its own queue pair, then calls rdma_establish
    if (cm_finish_response(id)) {
        e->event.status = -errno;
        e->event.event = RDMA_CM_EVENT_CONNECT_ERROR;
        id->connect_error = true;
    } else {
        e->event.event = RDMA_CM_EVENT_ESTABLISHED;
    }
    return true;
}

// False: the event is not for the program after all.
static bool deliver(struct cm_event *e)
{
    struct cm_id *id = cm_id(e->event.id);

    switch (e->event.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        // A request that cannot have its own channel is refused as if there had been no room for it.
        if (!cm_id(e->event.listen_id)->sync || !rdma_migrate_id(&id->id, NULL))
            return true;
        rdma_destroy_id(&id->id);
        return drop(e);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        return deliver_response(e);
    case RDMA_CM_EVENT_REJECTED:
        if (id->connect_error)
            return drop(e);
        cm_qp_to_err(id);
        return true;
    case RDMA_CM_EVENT_DISCONNECTED:
        return id->connect_error ? drop(e) : true;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
        e->event.status = -cm_group_joined(e);
        if (e->event.status)
            e->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
        return true;
    default:
        return true;
    }
}

bool cm_has_event(struct rdma_event_channel *channel)
{
    bool has;

    cm_acquire();
    has = cm_chan(channel)->first;
    cm_release();
    return has;
}

// EAGAIN for a descriptor that the program made non-blocking, EINTR after a signal.
static int wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return dock_refuse(errno, "rdma_get_cm_event: the channel's descriptor is closed");
    if (flags & O_NONBLOCK)
        return EAGAIN;
    if (poll(&p, 1, -1) < 0)
        return errno;
    return p.revents & POLLNVAL ? EBADF : 0; // closed since the look above
}

// The next event; 0 or an errno value of either sign. Who sleeps while the channel is destroyed sleeps on, as
// with a kernel: programs exist that end then, and take a call that returns for a failure.
static int next_event(struct rdma_event_channel *channel, struct cm_event **e)
{
    for (;;) {
        int err, fd = -1;

        cm_acquire();
        err = cm_chan_check(channel, "rdma_get_cm_event");
        *e = err ? NULL : take(cm_chan(channel));
        if (!err)
            fd = channel->fd;
        cm_release();
        if (err || *e)
            return err;
        err = wait_readable(fd);
        if (err)
            return err;
    }
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    if (!channel || !event)
        return cm_fail(dock_refuse(EINVAL, "rdma_get_cm_event: no channel, or no place for the event"));
    for (;;) {
        struct cm_event *e;
        int err = next_event(channel, &e);

        if (err)
            return cm_fail(err);
        if (deliver(e)) {
            *event = &e->event;
            return 0;
        }
    }
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    struct cm_event *e = (struct cm_event *)event;

    if (!event)
        return cm_fail(dock_refuse(EINVAL, "rdma_ack_cm_event: no event given"));
    cm_acquire();
    e->counted->acked++;
    if (e->group)
        cm_group_acked(e->group);
    cm_event_free(e);
    pthread_cond_broadcast(&cm.acked);
    cm_release();
    return 0;
}

void cm_let_event_go(struct cm_id *id)
{
    if (!id->id.event)
        return;
    rdma_ack_cm_event(id->id.event);
    id->id.event = NULL;
}

static int complete(struct cm_id *id)
{
    struct rdma_cm_event *e;

    cm_let_event_go(id);
    if (rdma_get_cm_event(id->id.channel, &id->id.event))
        return -1;
    e = id->id.event;
    if (!e->status)
        return 0;
    return cm_fail(e->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : e->status);
}

int cm_end_call(struct cm_id *id, int ret)
{
    bool sync = id->sync;

    cm_release();
    if (ret)
        return cm_fail(ret);
    return sync ? complete(id) : 0;
}
