// SPDX-License-Identifier: MIT
// Shared by the files of the rdma_cm face. Everything here is private to librdmacm.so.1: the map exports only
// names of the rdma_cm ABI. The device is reached through verbs and nothing else.
//
// What a kernel does for a real librdmacm is done here by one thread per process (node.c): it answers
// connection messages, which travel over Unix sockets in the runtime directory, and puts events on channels.
//
// Conventions of the ABI: 0, or -1 and errno; creators of pointers NULL and errno. Whoever refuses says why
// in one line with the name of the call in front.
//
// One lock, cm.lock, guards every state machine, queue and list of this library; it is all control path. It
// is never held while the program's queue pairs are modified or while anything sleeps.
#ifndef DOCK_FACE_RDMACM_FACE_H
#define DOCK_FACE_RDMACM_FACE_H

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arena/rundir.h"
#include "base/lock.h"
#include "base/log.h"
#include "face/rdmacm/wire.h"

enum {
    CM_PORT = 1,
    CM_MAX_BACKLOG = 1024,
    CM_PACKET_LIFETIME = 18, // as a timeout code: about a second
    CM_TIMEWAIT_MS = 2100,   // twice the packet lifetime
};

// Reasons of a REJECTED event, numbers of the InfiniBand specification.
enum cm_reason {
    CM_REJ_TIMEOUT = 4,
    CM_REJ_INVALID_SERVICE = 8,
    CM_REJ_CONSUMER = 28,
    CM_REJ_VENDOR_OPTION = 35,
};

// Status of an UNREACHABLE event of a datagram id.
enum cm_sidr_status { CM_SIDR_OK, CM_SIDR_UNSUPPORTED, CM_SIDR_REJECT };

enum cm_state {
    CM_IDLE,
    CM_BOUND,
    CM_ADDR,  // destination resolved
    CM_ROUTE, // route resolved
    CM_LISTEN,
    CM_REQ_SENT,
    CM_REQ_RCVD,
    CM_REP_SENT,
    CM_REP_RCVD,
    CM_ESTABLISHED,
    CM_DREQ_SENT,
    CM_DREQ_RCVD,
    CM_TIMEWAIT,
    CM_UD_DONE, // a datagram id: both sides know what they wanted to know
    CM_OVER,    // rejected, unreachable, lost: only to be destroyed
};

struct cm_event;

// Behind struct rdma_event_channel. The descriptor is an eventfd that is readable exactly while the queue
// holds something.
struct cm_chan {
    struct rdma_event_channel channel; // first: the program's view
    struct cm_event *first, **last;
    uint32_t generation;  // of cm.generation: a forked child has no channels
    struct cm_chan *next; // of cm.chans
};

struct cm_group; // mcast.c

struct cm_event {
    struct rdma_cm_event event; // first: the program's view
    struct cm_event *next;
    struct cm_id *counted; // who waits for its acknowledgement when he is destroyed
    struct cm_group *group;
    uint8_t data[CM_PRIVATE_MAX];
};

// A port that an id holds, see ports.c.
struct cm_port {
    uint8_t space; // 0..3
    bool v6, both; // both: a v6 wildcard that takes v4 too
    bool shared;   // may be held by others that say so too
    bool held;
    uint16_t number;
    uint32_t addr; // 0: any
    struct cm_port *next;
};

struct cm_id {
    struct rdma_cm_id id; // first: the program's view
    enum cm_state state;
    uint32_t generation;
    bool sync;          // owns its channel, calls wait
    bool passive;       // made by a request
    bool accepted;      // passive and accepted: from now on events are told
    bool connect_error; // CONNECT_ERROR was told: what follows from it is not
    bool reuse, afonly, has_timeout;
    uint8_t tos, timeout;
    uint32_t delivered, acked; // events
    struct cm_id *next, *prev; // of all ids
    struct cm_port port;
    int backlog, pending; // pending: requests that nobody got yet
    int sock;             // connection, or -1
    int listener[2];      // two for a dual-stack wildcard
    uint64_t deadline_ms; // of the state, 0 none
    uint64_t give_up_ms;
    struct cm_msg *request; // what an active id has sent, or tries to
    uint8_t responder_resources, initiator_depth, retry, rnr_retry;
    uint32_t psn, remote_psn, remote_qpn;
    uint32_t sgid_index;
    struct ibv_ece local_ece, remote_ece;
    struct ibv_qp_init_attr *ep_attr; // of a passive endpoint
    void *connect;                    // private data of rdma_create_ep
    size_t connect_len;
    struct ibv_sa_path_rec path;
    struct cm_group *groups;
    struct cm_event *spare; // of an event that finds no memory; NULL while it is on its way
};

struct cm_node {
    pthread_mutex_t lock;
    pthread_cond_t acked; // an event was acknowledged
    bool running;
    uint32_t generation; // counts forks
    struct dock_rundir dir;
    int ports_fd, epoll_fd, wake_fd;
    struct cm_id *ids;
    struct cm_chan *chans; // a forked child keeps its parent's here, to know them as such
    uint64_t next_ms;      // nearest deadline, 0 none
    uint64_t patience_ms;
};

extern struct cm_node cm;

static inline struct cm_id *cm_id(struct rdma_cm_id *id)
{
    return (struct cm_id *)id;
}

static inline struct cm_chan *cm_chan(struct rdma_event_channel *channel)
{
    return (struct cm_chan *)channel;
}

static inline void cm_acquire(void)
{
    dock_lock(&cm.lock);
}

static inline void cm_release(void)
{
    dock_unlock_of_forks(&cm.lock);
}

// The way every call ends that fails: errno and -1. `error` positive or negative.
static inline int cm_fail(int error)
{
    errno = error < 0 ? -error : error;
    return -1;
}

// What a verbs call of ours returned, as a call of this library.
static inline int cm_verbs(int error)
{
    return error ? cm_fail(error) : 0;
}

static inline bool cm_is_ud(const struct cm_id *id)
{
    return id->id.qp_type == IBV_QPT_UD;
}

// Is `id` an id of this process? Otherwise errno is set and the reason logged.
bool cm_id_ok(const struct rdma_cm_id *id, const char *call);

// ---- node.c

// What a descriptor in the node's epoll set belongs to.
enum cm_source_kind { CM_SRC_NONE, CM_SRC_WAKE, CM_SRC_LISTEN, CM_SRC_NEW, CM_SRC_CONN };

// Start the node of this process, once. 0 or -errno.
int cm_node_start(void);
// Lock held. Watch `fd` for `id`; closing goes through cm_unwatch, which also closes.
int cm_watch(int fd, enum cm_source_kind kind, struct cm_id *id);
void cm_unwatch(int fd);
void cm_listen_to(int fd, bool on);                    // pause and resume what is watched
void cm_unwatch_callers(const struct cm_id *listener); // those that have not said yet what they want
// Lock held. At `deadline` (ms of CLOCK_MONOTONIC, 0 = never) cm_timer is called for the id.
void cm_set_deadline(struct cm_id *id, uint64_t deadline_ms);
uint64_t cm_now_ms(void);

// Lock held, called by the node's thread.
void cm_newcomer(struct cm_id *listener, int fd);      // listen.c: a listening socket is readable
void cm_first_message(struct cm_id *listener, int fd); // listen.c: an accepted socket is readable
void cm_readable(struct cm_id *id);                    // peer.c: a connection is readable
void cm_timer(struct cm_id *id, uint64_t now_ms);      // peer.c

// ---- device.c

// The device of this process, opened at first use: NULL and errno without one.
struct ibv_context *cm_device(void);
// The protection domain that every id which has found its device shows as its own, and who brings none uses:
// one for the process. NULL and errno.
struct ibv_pd *cm_domain(void);
struct ibv_xrcd *cm_xrcd(void); // nameless, made when the first id needs it. NULL and errno
struct cm_limits {
    uint8_t responder_resources, initiator_depth;
    uint32_t max_qp_wr;
};
const struct cm_limits *cm_limits(void);

// ---- addr.c

socklen_t cm_addr_len(const struct sockaddr *addr); // 0: a family that is not ours
bool cm_addr_any(const struct sockaddr *addr);
bool cm_addr_multicast(const struct sockaddr *addr);
bool cm_addr_local(const struct sockaddr *addr);
uint16_t cm_addr_port(const struct sockaddr *addr); // host order
void cm_addr_set_port(struct sockaddr *addr, uint16_t port);
// The GID under which the device is reached at this address of the host, and its index. 0 or -errno.
int cm_addr_gid(const struct sockaddr *addr, union ibv_gid *gid, uint32_t *index);
// Bind `id` to the device that has its source address.
int cm_take_device(struct cm_id *id);
// Lock held: bind to an address; port 0 takes a free one.
int cm_bind(struct cm_id *id, const struct sockaddr *addr, const char *call);
void cm_unbind(struct cm_id *id); // lock held: an id that was bound, and no more
void cm_fill_path(struct cm_id *id);

// ---- ports.c: lock held in all

// Take `port`; number 0: a free one, filled in. -EADDRINUSE.
int cm_port_take(struct cm_port *port);
void cm_port_drop(struct cm_port *port);
void cm_ports_forget(void); // in a child: record locks are not inherited
// A listener shares its port with nobody. -EADDRINUSE.
int cm_port_alone(struct cm_port *port);
// Does anybody, here or in another process, hold a part of it?
bool cm_port_bound(const struct cm_port *port);
void cm_port_of(struct cm_port *port, enum rdma_port_space ps, const struct sockaddr *addr);
// The name of the socket that a listener on this port has; `any`: of a listener on all addresses.
enum { CM_NAME = 16 };
void cm_port_name(const struct cm_port *port, bool any, char name[CM_NAME]);

// ---- chan.c

// Lock held, before a channel that the program names is looked at: is it one of this process? 0, -EBADF where
// it was destroyed, -ENODEV where it is the parent's (logged).
int cm_chan_check(const struct rdma_event_channel *channel, const char *call);
// Lock held. An event for `id`, filled by the caller, then queued. Where memory is short an id has one event
// of its own, so that who waits for an outcome is told; NULL without that (logged).
struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status);
// Lock held, before `counted` may go.
void cm_event_free(struct cm_event *e);
void cm_event_queue(struct cm_event *e);
// Both in one, for events that carry nothing.
void cm_tell(struct cm_id *id, enum rdma_cm_event_type type, int status);
// Lock held. Drop what is queued and counted for `id`; requests among it are refused.
void cm_events_drop(struct cm_id *id);
// Lock held. Drop what is queued for a group; how many that were.
unsigned cm_events_forget(struct cm_id *id, const struct cm_group *group);
// Lock held. Move what is queued for `id` to another channel.
void cm_events_move(struct cm_id *id, struct cm_chan *to);
// Lock held, let go while waiting: until all events of `id` are acknowledged.
void cm_events_wait(struct cm_id *id);
// Without lock: is there anything to get? No system call, and no search: the caller keeps the channel alive.
bool cm_has_event(struct rdma_event_channel *channel);
// Without lock: acknowledge the event that a synchronous id shows as the outcome of its last call.
void cm_let_event_go(struct cm_id *id);
// Lock held, let go: the end of a call that has started something, or failed with `ret`. A synchronous id
// waits for the outcome. Another is not looked at any more: a thread that was told the outcome may destroy
// it.
int cm_end_call(struct cm_id *id, int ret);

// ---- id.c

struct cm_id *cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
                        enum ibv_qp_type type);
// Lock held: take it out of all lists, say goodbye to its peer.
void cm_id_leave(struct cm_id *id);
void cm_id_free(struct cm_id *id);
// Lock held: the ids of a channel that goes before them: they end, and are only to be destroyed.
void cm_ids_orphan(const struct cm_chan *chan);
int cm_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                 enum rdma_port_space ps, enum ibv_qp_type type);

// ---- listen.c

void cm_stop_listening(struct cm_id *id); // lock held
void cm_listen_again(struct cm_id *id);   // lock held: after a pause, when nobody could be let in
// Lock held: an undelivered request of a listener that goes.
void cm_refuse_child(struct cm_id *child);

// ---- peer.c: lock held in all

// The ways an id goes on. over: only to be destroyed.
void cm_over(struct cm_id *id);
void cm_timewait(struct cm_id *id);
void cm_hang_up(struct cm_id *id); // close the connection
void cm_rejected(struct cm_id *id, uint8_t reason, const struct cm_msg *m);
void cm_unreachable(struct cm_id *id, int status);
// A message of which only the type matters, and a status.
void cm_say(struct cm_id *id, enum cm_type type, uint8_t status);
// An event of a connected id; m: what it carries, with `len` bytes of private data, or NULL.
void cm_tell_connection(struct cm_id *id, enum rdma_cm_event_type type, int status, const struct cm_msg *m,
                        uint8_t len);
// What the peer is told when an id is destroyed in its present state; closes the connection.
void cm_goodbye(struct cm_id *id);
// ---- connect.c

// Lock held. Send the request, now or later: a listener that has no room at the moment is asked again until
// patience ends. -errno where this process lacks what asking takes (it is asked again then, too).
int cm_try_request(struct cm_id *id, uint64_t now_ms);
// Delivery of a CONNECT_RESPONSE, without lock: move the queue pair, tell the peer. 0, or -1 and errno.
int cm_finish_response(struct cm_id *id);
// End the connection, though the peer may not have said yet that it has our reply: it finds one that ended.
// Takes the lock.
void cm_part(struct cm_id *id);

// ---- qp.c

int cm_qp_to_rtr(struct cm_id *id, uint8_t responder_resources);
int cm_qp_to_rts(struct cm_id *id, uint8_t initiator_depth);
int cm_qp_to_err(struct cm_id *id);
// The address vector that leads to the peer.
void cm_fill_av(const struct cm_id *id, struct ibv_ah_attr *av);

// ---- mcast.c

int cm_group_joined(struct cm_event *e);     // delivery of MULTICAST_JOIN, without lock: 0 or positive errno
void cm_group_acked(struct cm_group *group); // lock held
void cm_groups_leave(struct cm_id *id);      // at destruction, without lock

#endif
