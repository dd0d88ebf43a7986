// SPDX-License-Identifier: MIT
#include "cli/look.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena/idtable.h"
#include "arena/peer.h"
#include "base/clock.h"
#include "base/log.h"
#include "ring/cqring.h"

static_assert(DOCK_MOMENT_COUNT <= DOCK_MOMENTS, "every moment has a counter in the port record");

enum { ANSWER_MS = 500, BLOCK_QUEUES = 1 << DOCK_BLOCK_SHIFT };

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
    return offset <= INT64_MAX - size && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static const char *name_of(const char *const *names, size_t count, unsigned value)
{
    return value < count && names[value] ? names[value] : "?";
}

const char *look_service_name(unsigned service)
{
    static const char *const names[DOCK_SERVICES] = {
        [DOCK_RC] = "RC", [DOCK_UC] = "UC", [DOCK_UD] = "UD", [DOCK_RM] = "RM", [DOCK_UM] = "UM",
    };

    return name_of(names, DOCK_SERVICES, service);
}

const char *look_state_name(unsigned state)
{
    static const char *const names[DOCK_GONE + 1] = {
        [DOCK_RESET] = "RESET", [DOCK_INIT] = "INIT", [DOCK_RTR] = "RTR",
        [DOCK_RTS] = "RTS",     [DOCK_SQD] = "SQD",   [DOCK_SQE] = "SQE",
        [DOCK_ERR] = "ERR",     [DOCK_GONE] = "GONE", [DOCK_SUSPENDED] = "SUSPENDED",
    };

    return name_of(names, DOCK_GONE + 1, state);
}

const char *look_kind_name(unsigned kind)
{
    static const char *const names[DOCK_QUEUE_XRC_SRQ + 1] = {
        [DOCK_QUEUE_PAIR] = "pair",       [DOCK_QUEUE_SHARED_RQ] = "srq", [DOCK_QUEUE_GROUP] = "group",
        [DOCK_QUEUE_SENDS] = "sends",     [DOCK_QUEUE_RELAY] = "relay",   [DOCK_QUEUE_XRC_TGT] = "xrc-tgt",
        [DOCK_QUEUE_XRC_SRQ] = "xrc-srq",
    };

    return name_of(names, DOCK_QUEUE_XRC_SRQ + 1, kind);
}

static struct look_queue queue_of(const struct dock_qrec *rec)
{
    return (struct look_queue){
        .id = rec->id & DOCK_ID_MASK,
        .kind = rec->kind_service >> 8,
        .service = rec->kind_service & 255,
        .state = dock_peek32(&rec->state),
        .peer_id = dock_peek32(&rec->peer_id) & DOCK_ID_MASK,
        .peer_who = dock_peek32(&rec->peer_who),
        .depth = rec->sq_depth,
        .posted = dock_peek64(&rec->posted),
        .rings = dock_peek64(&rec->rings),
        .executed = dock_peek64(&rec->executed),
        .bytes_out = dock_peek64(&rec->bytes_out),
        .cqes = dock_peek64(&rec->cqes),
        .rnr = dock_peek64(&rec->rnr),
        .by_poster = dock_peek64(&rec->by_poster),
        .by_poller = dock_peek64(&rec->by_poller),
        .by_engine = dock_peek64(&rec->by_engine),
        .messages_in = dock_peek64(&rec->messages_in),
        .bytes_in = dock_peek64(&rec->bytes_in),
        .visits = dock_peek64(&rec->visits),
        .pieces = dock_peek64(&rec->pieces),
        .under_way = dock_peek32(&rec->under_way),
        .cq = {rec->send_cq, rec->cq},
        .damaged = dock_qrec_sum(rec) != rec->sum,
    };
}

bool look_counted(enum dock_moment at)
{
    return at != DOCK_AT_ENTER && at != DOCK_AT_CLAIM && at != DOCK_AT_TAKEN && at != DOCK_AT_CQE_LOCK &&
           at != DOCK_AT_CQE_WRITE;
}

static void count_moments(struct look_device *device, const struct look_queue *q)
{
    uint64_t placed = q->executed + q->pieces; // the two are told one after the other

    device->moment[DOCK_AT_POST] += q->posted;
    device->moment[DOCK_AT_PUBLISH] += q->rings;
    device->moment[DOCK_AT_RING] += q->rings + q->visits;
    device->moment[DOCK_AT_FETCH] += q->executed + q->under_way;
    device->moment[DOCK_AT_PLACE] += placed <= INT64_MAX ? placed : 0;
    device->moment[DOCK_AT_EXECUTE] += q->executed;
    device->moment[DOCK_AT_COMPLETE] += q->cqes;
}

static int add_queue(struct look_device *device, const struct dock_qrec *rec)
{
    struct look_queue *grown = realloc(device->queue, (device->nqueues + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    device->queue = grown;
    grown[device->nqueues] = queue_of(rec);
    count_moments(device, &grown[device->nqueues++]);
    return 0;
}

static bool in_use(const struct dock_qrec *rec)
{
    return rec->kind_service >> 8 != DOCK_QUEUE_FREE && dock_peek32(&rec->state) != DOCK_GONE;
}

static int read_block(struct look_device *device, int fd, uint64_t offset, struct dock_qrec *room)
{
    int rc = 0;

    if (!read_at(fd, room, BLOCK_QUEUES * sizeof(*room), offset))
        return 0;
    for (int i = 0; rc == 0 && i < BLOCK_QUEUES; i++) {
        if (in_use(&room[i]))
            rc = add_queue(device, &room[i]);
    }
    return rc;
}

static int read_queues(struct look_device *device, int fd, const struct dock_port *port)
{
    struct dock_qrec *room = aligned_alloc(64, BLOCK_QUEUES * sizeof(*room));
    int rc = room ? 0 : -ENOMEM;

    for (unsigned b = 0; rc == 0 && b < DOCK_SLOTS; b++) {
        uint64_t offset = dock_peek64(&port->block[b]);

        if (offset)
            rc = read_block(device, fd, offset, room);
    }
    free(room);
    return rc;
}

// Is this one of the CQs of the queues before `q`?
static bool seen_before(const struct look_device *device, size_t q, uint64_t offset)
{
    while (q--)
        if (device->queue[q].cq[0] == offset || device->queue[q].cq[1] == offset)
            return true;
    return false;
}

static void read_cq(struct look_device *device, int fd, uint64_t offset)
{
    _Alignas(64) struct dock_cqrec rec;
    struct dock_cqshape shape;

    if (!read_at(fd, &rec, sizeof(rec), offset))
        return;
    shape = dock_cqrec_shape(&rec);
    if (dock_cqshape_sum(&shape) != dock_peek32(&rec.sum))
        return;
    device->moment[DOCK_AT_POLL] += dock_peek64(&rec.polled);
    device->moment[DOCK_AT_FREE] += dock_peek64(&rec.freed);
}

// Each CQ once, however many queues complete into it.
static void read_cqs(struct look_device *device, int fd)
{
    for (size_t q = 0; q < device->nqueues; q++) {
        const uint64_t *cq = device->queue[q].cq;

        if (!seen_before(device, q, cq[0]))
            read_cq(device, fd, cq[0]);
        if (cq[1] != cq[0] && !seen_before(device, q, cq[1]))
            read_cq(device, fd, cq[1]);
    }
}

static void read_port(struct look_device *device, const struct dock_port *port)
{
    memcpy(device->program, port->program, sizeof(port->program));
    device->up_ns = dock_now_ns() - port->started_ns;
    device->fatal = dock_peek32(&port->fatal) != 0;
    device->ncqs = dock_peek32(&port->ncqs);
    device->arena_bytes = dock_peek64(&port->arena_bytes);
    device->fallback_bytes = dock_peek64(&port->fallback_bytes);
    device->fallback_calls = dock_peek64(&port->fallback_calls);
    device->dropped = dock_peek64(&port->dropped);
    device->adopted_bytes = dock_peek64(&port->adopt.bytes);
    device->adopted_huge = dock_peek64(&port->adopt.huge);
    device->adopted_ever = dock_peek64(&port->adopt.moved_in);
    device->stops = dock_peek64(&port->adopt.stops);
    device->stopped_ns = dock_peek64(&port->adopt.stopped_ns);
    device->forked_bytes = dock_peek64(&port->adopt.forked_bytes);
    for (int i = 0; i < DOCK_WHYS; i++)
        device->not_adopted[i] = dock_peek64(&port->adopt.refused[i]);
    for (int i = 0; i < DOCK_MOMENT_COUNT; i++)
        device->moment[i] = dock_peek64(&port->moment[i]);
    for (int i = 0; i < DOCK_STORE_KINDS; i++)
        device->stores[i] = dock_peek64(&port->stores[i]);
}

static int read_arena(struct look_device *device, int fd)
{
    struct dock_port *port = aligned_alloc(64, sizeof(*port));
    int rc = port ? 0 : -ENOMEM;

    device->answer = LOOK_REFUSED;
    if (rc == 0 && read_at(fd, port, sizeof(*port), 0) && dock_peek64(&port->magic) == DOCK_PORT_MAGIC &&
        port->version == DOCK_PORT_VERSION && port->who == device->who) {
        device->answer = LOOK_READ;
        read_port(device, port);
        rc = read_queues(device, fd, port);
        read_cqs(device, fd);
    }
    free(port);
    return rc;
}

// The device's arena, or -errno. A process that is stopped accepts the connection and says nothing.
static int ask_for_arena(const struct dock_rundir *dir, dock_who who, struct dock_gift *gift)
{
    uint64_t end = dock_now_ns() + (uint64_t)ANSWER_MS * 1000000;
    int sock = -1;
    int rc = dock_gift_begin(dir, who, &sock);

    if (rc)
        return rc;
    do {
        struct pollfd ready = {.fd = sock, .events = POLLIN};
        uint64_t now = dock_now_ns();

        if (poll(&ready, 1, now < end ? (int)((end - now) / 1000000) : 0) == 0) {
            close(sock);
            return -ETIMEDOUT;
        }
        rc = dock_gift_take(sock, who, gift);
    } while (rc == -EAGAIN);
    return rc;
}

static int look_at(const struct dock_rundir *dir, struct look_device *device)
{
    struct dock_gift gift;
    int rc = ask_for_arena(dir, device->who, &gift);

    device->answer = rc == -EPROTO ? LOOK_REFUSED : LOOK_SILENT;
    if (rc)
        return 0;
    rc = read_arena(device, gift.arena_fd);
    dock_gift_drop(&gift);
    return rc;
}

static int add_device(struct look *look, const struct dock_rundir *dir, const struct dock_owner *owner)
{
    struct look_device *grown = realloc(look->device, (look->ndevices + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    look->device = grown;
    grown[look->ndevices] = (struct look_device){.who = owner->who, .pid = owner->pid};
    return look_at(dir, &grown[look->ndevices++]);
}

int look_all(const struct dock_rundir *dir, struct look *look)
{
    struct dock_idtable table;
    int rc = dock_idtable_open(dir, &table);

    *look = (struct look){0};
    if (rc)
        return rc;
    for (uint32_t block = 1; rc == 0 && block < DOCK_SLOTS; block++) {
        dock_who who = dock_idtable_owner(&table, block);
        struct dock_owner owner;

        // A device is named by its first block; its further blocks lead to the same record.
        if (!who || dock_who_slot(who) != block || dock_idtable_lookup(&table, who, &owner) ||
            dock_idtable_life(&table, who) == DOCK_LIFE_DEAD)
            continue;
        rc = add_device(look, dir, &owner);
    }
    dock_idtable_close(&table);
    if (rc)
        dock_error("cannot list the devices of %s: %s", dir->path, strerror(-rc));
    return rc;
}

void look_free(struct look *look)
{
    for (size_t i = 0; i < look->ndevices; i++)
        free(look->device[i].queue);
    free(look->device);
}
