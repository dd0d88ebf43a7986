// SPDX-License-Identifier: MIT
// rsockets: byte streams over one connected queue pair each, and datagrams over one that is not (rs_dgram.c).
// What the two kinds do differently stands in their tables; the public calls find the socket and go through
// its table (rs_control.c, rs_data.c).
//
// Of a stream each end owns a ring that its peer writes into (WRITE with immediate); the immediate says how
// many bytes came. The reader gives bytes back by an immediate of its own, so a writer never passes the
// reader's ring. Where the reader has posted too few receives the writer waits as the device has it (receiver
// not ready), which its send queue bounds.
//
// Nothing of it runs in the background: calls on the socket, rpoll among them, take what has come.
// A socket's number is the descriptor of its event channel. rs->lock is taken before cm.lock.
#ifndef DOCK_FACE_RDMACM_RS_H
#define DOCK_FACE_RDMACM_RS_H

#include <rdma/rsocket.h>

#include "face/rdmacm/rdmacm_face.h"

enum rs_state {
    RS_NEW,
    RS_LISTENING,
    RS_CONNECTING,
    RS_UP,
    RS_DOWN, // was up, or never came up
};

enum {
    RS_MIN_BUFFER = 4096,
    RS_MAX_BUFFER = 1 << 22,
    RS_DEFAULT_BUFFER = 1 << 17,
    RS_DEPTH = 256, // of both queues
    RS_SPARE = 8,   // requests of the send queue that data may not use
    RS_MAPS = 128,
};

// A mapped buffer as the peer's riowrite sees it.
struct rs_map {
    uint64_t offset, addr, len;
    uint32_t rkey, unused;
};

// What the ends tell each other in the connection's private data.
struct rs_hello {
    uint32_t magic, maps;
    uint64_t ring, table;
    uint32_t rkey, size;
};

// Memory of one end that its peer writes, and memory that its own requests read.
struct rs_memory {
    uint8_t *ring;
    struct rs_map *table;
    size_t size; // of both
    struct ibv_mr *mr;
};

struct rs_mapped {
    void *buf;
    struct ibv_mr *mr; // NULL: the place is free
    bool telling;      // the peer is being told of it, with the socket's lock let go: nobody else's meanwhile
};

struct iovec;
struct rs;

// What a call of sending or receiving was given, and how many bytes came of it.
struct rs_out {
    const struct iovec *iov;
    size_t n;
    int flags;
    const struct sockaddr *addr; // NULL: the peer
    socklen_t addr_len;
    bool message; // rsendmsg and rrecvmsg: a stream looks at no name in them, and tells none
    size_t done;
};
struct rs_in {
    const struct iovec *iov;
    size_t n;
    int flags;
    struct sockaddr *addr; // as recvfrom has it
    socklen_t *addr_len;
    bool message;
    size_t done;
    int told; // MSG_TRUNC
};

// Lock held in all. Those that return an int return 0 or a positive errno value.
struct rs_kind {
    int type;
    enum rdma_port_space space;
    int (*make)(struct rs *rs);
    void (*end)(struct rs *rs); // what was made, and all that came later but the id
    int (*bind)(struct rs *rs, const struct sockaddr *addr, socklen_t len);
    int (*listen)(struct rs *rs, int backlog);
    int (*accept)(struct rs *rs, struct rs **out);
    int (*connect)(struct rs *rs, const struct sockaddr *addr, socklen_t len);
    int (*shut)(struct rs *rs, int how);
    void (*part)(struct rs *rs);                           // from its peer, before it is closed
    bool (*peer)(const struct rs *rs, union cm_addr *out); // false: it has none
    int (*send)(struct rs *rs, struct rs_out *out);
    int (*receive)(struct rs *rs, struct rs_in *in);
    void (*progress)(struct rs *rs); // take completions
    bool (*can_send)(const struct rs *rs);
    bool (*can_receive)(const struct rs *rs); // or it is known that nothing will come
    bool (*drained)(const struct rs *rs);     // nothing stands there to be read
    int (*map)(struct rs *rs, void *buf, size_t len, int prot, off_t *offset);
    int (*unmap)(struct rs *rs, void *buf, size_t len);
    int (*write_mapped)(struct rs *rs, struct rs_out *out, off_t offset);
};

extern const struct rs_kind rs_streams, rs_datagrams;

struct rs {
    pthread_mutex_t lock;
    const struct rs_kind *kind;
    int fd, domain;
    enum rs_state state;
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    bool nonblock, passive;
    bool read_off, write_off, peer_done; // shut down here, shut down here, shut down there
    bool closed;                         // who still waits in it is told EBADF
    int error;                           // to be told once
    unsigned refs;                       // of the table and of each call inside; under the table's lock
    unsigned waiters;
    // options
    uint32_t in_size, out_size;
    int maps, reuse, v6only, keepalive, nodelay, oobinline, sq_size, rq_size, inline_size;
    int keepidle, keepintvl, keepcnt;
    struct linger linger;
    // what moves
    struct ibv_comp_channel *comp;
    struct ibv_cq *cq;
    struct rs_memory in, out;
    struct rs_hello peer;
    uint64_t sent, granted;   // bytes written into the peer's ring, bytes it has given back
    uint64_t staged, drained; // bytes of ours that went through `out`, and are free again
    uint32_t in_flight[RS_DEPTH];
    uint32_t posted, finished; // requests
    uint64_t arrived, taken, told;
    struct rs_dgram *dg; // of a datagram socket
    struct rs_mapped mapped[RS_MAPS];
    bool table_valid[RS_MAPS]; // entries that the peer has announced
};

// ---- rs_table.c

// The socket behind a number, which lives until rs_drop; or NULL and EBADF.
struct rs *rs_get(int fd);
void rs_drop(struct rs *rs);
bool rs_is(int fd);
// A new one with an id, or around the id of a request. NULL and errno.
struct rs *rs_new(int domain, const struct rs_kind *kind, struct rdma_cm_id *id);
// Its number leads nowhere any more; the last call that is inside destroys it. The caller is not inside.
void rs_free(struct rs *rs);
// rs_get and its lock; NULL and errno.
struct rs *rs_enter(int fd);
// 0, or -1 and errno.
int rs_leave(struct rs *rs, int err);

// ---- rs_control.c

// Of both kinds: bind the id. 0 or a positive errno value.
int rs_bind_id(struct rs *rs, const struct sockaddr *addr, socklen_t len);
void rs_set_id_options(struct rs *rs);
// As calls that name somebody do: as much of it as there is room for, and its whole length.
void rs_tell_address(const struct sockaddr *from, struct sockaddr *to, socklen_t *len);

// ---- rs_link.c: lock held in all

// Take what the connection manager has for it. Outcomes show in state and error.
void rs_step(struct rs *rs);
// Queues and memory on an id that knows its device. 0 or -errno.
int rs_build(struct rs *rs);
void rs_hello_fill(const struct rs *rs, struct rs_hello *hello);
bool rs_hello_take(struct rs *rs, const void *data, unsigned len);
// Destroy queues and memory.
void rs_tear_down(struct rs *rs);
int rs_make_channel(struct rs *rs); // 0 or -errno, as the next
int rs_take_memory(struct rs_memory *m, struct ibv_pd *pd, size_t ring, int access);

// ---- rs_flow.c: bytes of streams; lock held in all

// Take completions, give receives and bytes back.
void rs_flow_progress(struct rs *rs);
bool rs_flow_can_send(const struct rs *rs);
bool rs_flow_can_receive(const struct rs *rs);
bool rs_flow_drained(const struct rs *rs);
// As much as there is room for; 0 none.
size_t rs_put(struct rs *rs, const uint8_t *buf, size_t len);
size_t rs_take(struct rs *rs, uint8_t *buf, size_t len, bool peek);
// A WRITE into mapped memory of the peer; how much was taken.
size_t rs_put_mapped(struct rs *rs, const uint8_t *buf, size_t len, uint64_t addr, uint32_t rkey);
// Announce entry `index` of the peer's table. False: no room now.
bool rs_put_map(struct rs *rs, unsigned index);
bool rs_put_end(struct rs *rs);
int rs_post_receives(struct rs *rs, unsigned n); // 0 or -errno

// ---- rs_bytes.c, rs_map.c: calls of streams as their table has them

int rs_bytes_send(struct rs *rs, struct rs_out *out);
int rs_bytes_receive(struct rs *rs, struct rs_in *in);
// Connected or over; `wait` for it. Calls that send nothing of the program's wait in any case.
int rs_await_peer(struct rs *rs, bool wait);
int rs_send_error(struct rs *rs); // why nothing can be sent any more; 0: something can
int rs_map(struct rs *rs, void *buf, size_t len, int prot, off_t *offset);
int rs_unmap(struct rs *rs, void *buf, size_t len);
int rs_write_mapped(struct rs *rs, struct rs_out *out, off_t offset);

// ---- rs_refused.c: what datagrams have not, as their table has it

int rs_no_listen(struct rs *rs, int backlog);
int rs_no_accept(struct rs *rs, struct rs **out);
int rs_no_map(struct rs *rs, void *buf, size_t len, int prot, off_t *offset);
int rs_no_unmap(struct rs *rs, void *buf, size_t len);
int rs_no_write(struct rs *rs, struct rs_out *out, off_t offset);

// ---- rs_names.c

// cm.lock held: the id is bound and has its queue pair. 0 or -errno; what is in `names` is to be withdrawn.
int rs_name_publish(struct rdma_cm_id *id, char names[2][CM_NAME]);
void rs_name_withdraw(char names[2][CM_NAME]);
uint32_t rs_name_find(const struct sockaddr *to);

// ---- rs_wait.c

// Lock held, let go while waiting: until ready(rs). 0, or a positive errno value (EAGAIN at once without
// `wait`).
int rs_wait(struct rs *rs, bool (*ready)(const struct rs *), bool wait);
bool rs_waits(const struct rs *rs, int flags); // does a call with these flags?
bool rs_connected(const struct rs *rs);        // or failed
void rs_arm(struct rs *rs);
void rs_disarm(struct rs *rs); // the events that woke us

#endif
