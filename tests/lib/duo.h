// SPDX-License-Identifier: MIT
// Two connected ends in one of four places: one device with itself, or two processes with a device each, on
// memory of the arena or on plain memory. A test talks to the far end through functions that run where the
// far end lives.
#ifndef TESTS_LIB_DUO_H
#define TESTS_LIB_DUO_H

#include <sys/types.h>

#include "lib/pair.h"

enum place { SELF_ARENA, SELF_PLAIN, HOST_ARENA, HOST_PLAIN, PLACES };
extern const char *const place_name[PLACES];

static inline bool place_plain(enum place p)
{
    return p == SELF_PLAIN || p == HOST_PLAIN;
}

// Plain memory is reached through the kernel's process_vm calls: emulators and some sandboxes have none.
bool place_reachable(enum place p);
// That, and worth its time here: under an emulator, which proves no order, a process per case takes minutes.
bool place_possible(enum place p);

struct side {
    struct end e;
    struct dock_events *events; // of the queue pair and both CQs, never blocks
    struct dock_mr *extra;      // a second region, when a test has made one
};

struct duo {
    enum place place;
    struct dock_dev *dev;
    struct side near;
    struct side *far; // in self places; else NULL
    // What the near end must know of the far one: the far process's addresses are numbers here.
    struct dock_mr mr;
    uint32_t qpn;
    uintptr_t mem;
    pid_t pid;
    int sock;
};

struct duo_opts {
    struct end_opts near, far;                        // .plain is set by the place
    const struct dock_qp_mod *near_knobs, *far_knobs; // of end_connect
    const struct dock_fabric *fabric;                 // of both devices; NULL: the host's
    uint32_t start_index;
    bool unconnected;
    bool adopted; // plain memory that the device may adopt; else plain memory stays plain
};

// Forks before it opens a device. o may be NULL.
void duo_open(struct duo *d, enum place place, const struct duo_opts *o);
void duo_close(struct duo *d);
// As if just opened, in a hundredth of the time: both queues go through RESET to RTS, what was left in their
// CQs and of their events is taken, a second region is deregistered. The bytes stay as they are. Neither
// queue was destroyed; o is what opened it but for the knobs.
void duo_again(struct duo *d, const struct duo_opts *o);

// Run fn(side, io) at the far end; up to DUO_IO bytes of io go there and come back.
#define DUO_IO 1024
typedef void (*far_fn)(struct side *s, void *io);
void duo_far(struct duo *d, far_fn fn, void *io, size_t n);

// ---- functions for either end, through duo_far or directly

struct io_recv {
    uint64_t id;
    uint32_t off, len, key; // key 0: of the end's region
    int err;
};
void side_recv(struct side *s, void *io_recv);

struct io_wc {
    unsigned ms;
    bool send, got; // send: of the send CQ
    struct dock_wc wc;
};
void side_wait(struct side *s, void *io_wc);

struct io_look {
    uint32_t state; // of the queue pair
    int event;      // kind of the oldest asynchronous event, -1 none within ms
    unsigned ms;
};
void side_state(struct side *s, void *io_look);
void side_event(struct side *s, void *io_look);

struct io_mem {
    uint32_t off, len;
    uint64_t seed, sum; // side_fill: bytes from seed; side_sum: a digest of the bytes
};
void side_fill(struct side *s, void *io_mem);
void side_sum(struct side *s, void *io_mem);
uint64_t bytes_sum(const char *p, size_t n);
void bytes_fill(char *p, size_t n, uint64_t seed);

// A window of the end's region stands in s->extra: made at the first call, bound anew by later ones.
struct io_bind {
    enum dock_seg_kind kind;
    uint8_t variant;
    uint32_t off, len, access;
    uint32_t key, status; // out
    uint32_t windows;     // out: bound to the region
};
void side_bind(struct side *s, void *io_bind);
void side_unbind(struct side *s, void *io_bind); // and destroy it, if there is one; status: 0 or an error

// Wait until the far queue pair is in `state`; false after ms.
bool duo_far_reaches(struct duo *d, uint32_t state, unsigned ms);

// How much longer things take here: scripts/run-one sets DRYDOCK_SLOW.
unsigned slow_down(void);

#endif
