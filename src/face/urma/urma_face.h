// SPDX-License-Identifier: MIT
// Shared by the files of the URMA face. Everything here is private to liburma.so.0.
//
// Conventions of the ABI that every function keeps: creators return NULL and set errno; functions of type
// urma_status_t return 0 or a positive code and leave errno alone; functions of type int return a count, or
// what their manual page says. Whoever refuses says why in one line (dock_refuse) with the name of the call
// in front.
#ifndef DOCK_FACE_URMA_FACE_H
#define DOCK_FACE_URMA_FACE_H

#include <ub/umdk/urma/urma_api.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "device/cq.h"
#include "device/device.h"
#include "device/identity.h"
#include "device/limits.h"
#include "device/rq.h"
#include "device/sq.h"

// What one WQE holds: WRITE with notify has the longest control part.
enum { UR_SGE = DOCK_UB_SGE, UR_INLINE = DOCK_UB_INLINE };

#define UR_UASID 0u // there is one address space per process, and it has no number

// ---- objects. The public structure comes first, so that a pointer to it is a pointer to ours.

struct ur_context {
    urma_context_t ctx;
    struct dock_dev *dev;
    struct dock_events *events;
};

struct ur_jfce {
    urma_jfce_t jfce;
    struct dock_chan *dev;
};

// Which public object a queue of the device stands for.
enum ur_kind { UR_JFS, UR_JFR, UR_JETTY };

#define UR_PAGE 4096u // what is adopted comes in these, or in larger ones where the kernel has such

// A ring that peers write, in the program's memory (ring.c).
struct ur_ring {
    void *at;           // where the program wants it; NULL: the device's memory
    uint32_t room;      // bytes there where that was told, else 0
    struct dock_mr *mr; // what holds the memory in the arena while the ring is there
};

struct ur_jfc {
    urma_jfc_t jfc;
    struct dock_cq *dev; // NULL while it is not active
    struct ur_ring ring;
    uint32_t count, period; // of moderation
    uint32_t number;        // chosen by the program; 0: the device's choice
};

// A queue pair of the device: what JFS, jetty and the front of a JFR share. The device's user pointer of the
// queue leads here.
struct ur_sends {
    enum ur_kind kind;
    void *object;        // the urma_jfs_t, urma_jfr_t or urma_jetty_t
    struct dock_qp *dev; // NULL while it is not active
    urma_transport_mode_t mode;
    uint32_t sge_max, inline_max;
    uint8_t err_timeout, rnr_retry;
    uint32_t number;    // chosen by the program; 0: the device's choice
    void *ring;         // the program's memory for the ring; NULL: the device's
    uint32_t ring_room; // its size where that was told, else 0
    dock_a32 keeps;     // URMA_JFS_DB_STATUS: posts do not ring
    bool bare;          // UM, or completions out of order: requests are in no order that a flag could ask for
    // RC: where everything goes. It changes under the queue's lock; who posts on a lock_free queue has none.
    _Atomic(struct ur_target *) bound;
};

struct ur_jfs {
    urma_jfs_t jfs;
    struct ur_sends s;
};

struct ur_jfr {
    urma_jfr_t jfr;
    struct ur_sends front; // has the number that senders name; it never sends
    struct dock_rq *rq;    // the receives; NULL while it is not active
    struct ur_ring ring;
};

struct ur_jetty {
    urma_jetty_t jetty;
    struct ur_sends s;
};

struct ur_group {
    urma_jetty_grp_t g;
    struct dock_bundle *dev;
    uint32_t users; // creations not yet deleted
    struct ur_group *next;
};

struct ur_target {
    urma_target_jetty_t t;
    dock_a32 binds; // jettys that are bound to it
    uint32_t token;
};

// The tid is reserved from the allocation of the id to its end, also between two segments.
struct ur_token {
    urma_token_id_t id;
    uint32_t tid;
};

// A registered or imported segment; what the data path needs stands together.
struct ur_seg {
    urma_target_seg_t t;
    uint32_t lkey; // 0 of an imported one: it names no local memory
    uint32_t rkey, token;
    struct dock_map *map; // of an imported one that is in our address space, at t.mva
    struct dock_mr *mr;
    bool own_token; // its token id was made with it, and goes with it
};

#define UR_OF(type, field, p) ((struct type *)((char *)(p)-offsetof(struct type, field)))

static inline struct ur_context *ur_context(const urma_context_t *ctx)
{
    return (struct ur_context *)(uintptr_t)ctx;
}

static inline struct dock_dev *ur_dev(const urma_context_t *ctx)
{
    return ur_context(ctx)->dev;
}

static inline struct ur_jfc *ur_jfc(urma_jfc_t *jfc)
{
    return (struct ur_jfc *)jfc;
}

static inline struct ur_jfs *ur_jfs(urma_jfs_t *jfs)
{
    return (struct ur_jfs *)jfs;
}

static inline struct ur_jfr *ur_jfr(urma_jfr_t *jfr)
{
    return (struct ur_jfr *)jfr;
}

static inline struct ur_jetty *ur_jetty(urma_jetty_t *jetty)
{
    return (struct ur_jetty *)jetty;
}

static inline struct ur_target *ur_target(urma_target_jetty_t *t)
{
    return (struct ur_target *)t;
}

static inline struct ur_seg *ur_seg(urma_target_seg_t *seg)
{
    return (struct ur_seg *)seg;
}

static inline struct ur_target *ur_peer(const struct ur_sends *s)
{
    return atomic_load_explicit(&s->bound, memory_order_acquire); // pairs with set_peer in target.c
}

// ---- counts that nobody orders anything by

static inline void ur_use(urma_ref_t *ref)
{
    atomic_fetch_add_explicit(&ref->atomic_cnt, 1, memory_order_relaxed);
}

static inline void ur_drop(urma_ref_t *ref)
{
    atomic_fetch_sub_explicit(&ref->atomic_cnt, 1, memory_order_release); // pairs with ur_users
}

static inline unsigned long ur_users(urma_ref_t *ref)
{
    return atomic_load_explicit(&ref->atomic_cnt, memory_order_acquire);
}

// For creators: errno and the NULL to return. `error` as the device gives it (-errno).
static inline void *ur_none(int error)
{
    errno = -error;
    return NULL;
}

// What the device refused, as a status: its reasons are logged where they are known.
urma_status_t ur_status(int error);

// ---- device.c

// Is the library started, and is this our device? Says why not.
bool ur_started(const char *call);
bool ur_is_our_device(const urma_device_t *dev, const char *call);
const urma_device_cap_t *ur_caps(void);
bool ur_mode_offered(urma_transport_mode_t mode);
extern struct urma_ops ur_ops; // ops.c

// ---- context.c

uint32_t ur_pd(void); // the one protection domain of the process, made with its first context

// ---- urma_rules.c: what a configuration may say. 0 or -EINVAL, said in words.

int ur_check_mode(urma_transport_mode_t mode, const char *call);
// 0 becomes the mode's own order. `strict`: an order that the mode does not have is refused.
int ur_settle_order(urma_transport_mode_t mode, uint32_t order, bool strict, const char *call, uint32_t *out);
int ur_check_jfs(const urma_jfs_cfg_t *cfg, const char *call);
int ur_check_jfr(const urma_jfr_cfg_t *cfg, const char *call);
int ur_check_jetty(const urma_jetty_cfg_t *cfg, const char *call);
int ur_check_tp(urma_transport_mode_t mode, urma_tp_type_t tp, const char *call);

// ---- jfc.c, jfs.c, jfr.c, jetty.c: the steps of a life that creation and the two-step calls share

// Make and free are for the structure, open and close for the queue of the device behind it.

// ---- ring.c

// Registers the memory for a ring of `bytes` and finds where it is in the arena; *off is 0 if none was
// chosen. -EINVAL: too small, or the device's own. Else as dock_mr_register, and -EOPNOTSUPP: peers cannot
// reach it.
int ur_ring_place(struct ur_ring *r, urma_context_t *ctx, uint64_t bytes, uint64_t *off, const char *call);
// The queue is gone, or was not made.
void ur_ring_leave(struct ur_ring *r);
// The same, and the memory is the program's again: a further ring is wherever is said anew.
void ur_ring_end(struct ur_ring *r);

struct ur_jfc *ur_jfc_make(urma_context_t *ctx, const urma_jfc_cfg_t *cfg);
int ur_jfc_open(struct ur_jfc *jfc);
int ur_jfc_close(struct ur_jfc *jfc, const char *call);
void ur_jfc_free(struct ur_jfc *jfc);

struct ur_jfs *ur_jfs_make(urma_context_t *ctx, const urma_jfs_cfg_t *cfg);
int ur_jfs_open(struct ur_jfs *jfs);
int ur_jfs_close(struct ur_jfs *jfs, const char *call);
void ur_jfs_free(struct ur_jfs *jfs);

struct ur_jfr *ur_jfr_make(urma_context_t *ctx, const urma_jfr_cfg_t *cfg);
int ur_jfr_open(struct ur_jfr *jfr);
int ur_jfr_close(struct ur_jfr *jfr, const char *call);
void ur_jfr_free(struct ur_jfr *jfr);

struct ur_jetty *ur_jetty_make(urma_context_t *ctx, const urma_jetty_cfg_t *cfg);
int ur_jetty_open(struct ur_jetty *jetty);
int ur_jetty_close(struct ur_jetty *jetty, const char *call);
void ur_jetty_free(struct ur_jetty *jetty);

// ---- sends.c: the send side of JFS and jetty

// `jfr` NULL: a JFS, nothing is received.
int ur_sends_open(struct ur_sends *s, urma_context_t *ctx, urma_jfs_cfg_t *cfg, struct ur_jfr *jfr,
                  urma_jfc_t *rx, struct dock_bundle *group);
int ur_sends_close(struct ur_sends *s, bool non_blocking, const char *call);
// RC: to the peer in s->bound, and away from it.
int ur_connect(struct ur_sends *s);
int ur_disconnect(struct ur_sends *s);
bool ur_needs_peer(const struct ur_sends *s);
urma_jetty_state_t ur_sends_state(const struct ur_sends *s);
urma_status_t ur_sends_modify(struct ur_sends *s, urma_jetty_state_t to, const char *call);
void ur_fill_id(urma_jetty_id_t *id, const urma_context_t *ctx, uint32_t number);

// ---- target.c

// A handle, without looking for the peer.
urma_target_jetty_t *ur_import_named(urma_context_t *ctx, const urma_rjetty_t *r, const urma_token_t *token,
                                     const char *call);
urma_status_t ur_check_bind(const urma_jetty_t *jetty, const urma_target_jetty_t *t, const char *call);

// ---- async.c

// No import or bind by notice works with `target` or on `jetty` (either may be NULL) between the two. With
// `dropped` those under way end there, and no notice of one will come; else they go on.
void ur_hold_jobs(const urma_target_jetty_t *target, const urma_jetty_t *jetty);
void ur_let_jobs_go(const urma_target_jetty_t *target, const urma_jetty_t *jetty, bool dropped);

// ---- group.c

int ur_check_member(const urma_jetty_cfg_t *cfg, const char *call);
void ur_group_join(urma_jetty_grp_t *group, urma_jetty_t *jetty);
void ur_group_leave(urma_jetty_grp_t *group, urma_jetty_t *jetty);

// ---- events.c

// Something may be readable: 1; the time is over: 0; interrupted: -1. `end` is when a positive time_out is
// over.
int ur_wait_readable(int fd, int time_out, uint64_t end);

// ---- urma_error.c

urma_cr_status_t ur_cr_status(const struct dock_wc *failed);
urma_jetty_state_t ur_state(enum dock_state state);
// The event in URMA's words; false: URMA has none for it.
bool ur_event_type(enum dock_event_kind kind, enum ur_kind of, urma_async_event_type_t *out);

// ---- urma_data.c

// Blocks of the ring, free-running: where the last WR of a list begins, and what is behind it.
struct ur_posted {
    uint32_t last, pi;
};

// WRs before *bad_wr are posted, those from it on are not. `keep`: somebody else rings for them.
urma_status_t ur_post_wrs(struct ur_sends *s, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr, bool keep,
                          struct ur_posted *where);
urma_status_t ur_post_sends(struct ur_sends *s, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr);

// ---- doorbell.c

// UDMA_U_USER_CTL_POST_WR: posts, and tells where the doorbell is and what to store there.
urma_status_t ur_ctl_post_wr(urma_context_t *ctx, const void *in, void *out);

#endif
