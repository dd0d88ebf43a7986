// SPDX-License-Identifier: MIT
// Event channels: a queue and a descriptor that is readable exactly while the queue holds something. Events
// wait raw; what belongs to their delivery (a queue pair that moves on, a group that is joined) is done by
// the thread that gets them, as programs expect of rdma_get_cm_event.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
    chan->channel.fd = eventfd(0, EFD_CLOEXEC);
    if (chan->channel.fd < 0) {
        ret = dock_refuse(errno, "rdma_create_event_channel: no descriptor: %s", strerror(errno));
        free(chan);
        errno = ret;
        return NULL;
    }
    return &chan->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    struct cm_chan *chan = cm_chan(channel);

    if (!channel)
        return;
    cm_acquire();
    for (struct cm_event *e = chan->first, *next; e; e = next) {
        next = e->next;
        if (e->event.event == RDMA_CM_EVENT_CONNECT_REQUEST && chan->generation == cm.generation)
            cm_refuse_child(cm_id(e->event.id));
        if (e->group)
            cm_group_acked(e->group); // nobody will
        cm_event_free(e);
    }
    chan->first = NULL;
    if (chan->generation == cm.generation)
        cm_ids_orphan(chan);
    cm_release();
    close(channel->fd);
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

// ---- delivery, without lock

static struct cm_event *take(struct cm_chan *chan)
{
    struct cm_event *e;

    cm_acquire();
    e = chan->first;
    if (e) {
        chan->first = e->next;
        if (!chan->first)
            chan->last = &chan->first;
        empty_means_quiet(chan);
        e->counted->delivered++;
        if (e->event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            e->counted->pending--;
            e->event.id->channel = &chan->channel;
        }
    }
    cm_release();
    return e;
}

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
        return errno;
    if (flags & O_NONBLOCK)
        return EAGAIN;
    return poll(&p, 1, -1) < 0 ? errno : 0;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    if (!channel || !event)
        return cm_fail(dock_refuse(EINVAL, "rdma_get_cm_event: no channel, or no place for the event"));
    if (cm_chan(channel)->generation != cm.generation)
        return cm_fail(dock_refuse(ENODEV, "rdma_get_cm_event: the channel belongs to the parent process"));
    for (;;) {
        struct cm_event *e = take(cm_chan(channel));
        int err = e ? 0 : wait_readable(channel->fd);

        if (err)
            return cm_fail(err);
        if (e && deliver(e)) {
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
