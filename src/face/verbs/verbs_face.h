// SPDX-License-Identifier: MIT
// Shared by the files of the verbs face. Everything here is private to libibverbs.so.1: the map exports only
// names of the verbs ABI.
//
// Conventions of the ABI that every function keeps: creators return NULL and set errno, the others return 0
// or a positive errno value; where the manual says -1, -1 and errno. Whoever refuses says why in one line
// (dock_refuse) with the name of the call in front.
#ifndef DOCK_FACE_VERBS_FACE_H
#define DOCK_FACE_VERBS_FACE_H

#include <infiniband/verbs.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/lock.h"
#include "base/log.h"
#include "device/cq.h"
#include "device/device.h"
#include "device/profile.h"
#include "device/rq.h"
#include "device/sq.h"

// The header turns these names into macros around the exported functions, which we define.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define VB_PORT 1
#define VB_FW_VERSION "0.1.0"

// ---- objects. The public structure comes first, so that a pointer to it is a pointer to ours.

struct vb_context {
    struct dock_dev *dev;
    struct dock_events *events;
    struct vb_context *next; // of the process
    dock_a32 objects;        // that were made from this context and still live
    struct verbs_context v;  // last: the ABI lets it end with its ibv_context
};

struct vb_td {
    struct ibv_td td;
    dock_a32 users; // parent domains
};

struct vb_pd {
    struct ibv_pd pd;
    struct ibv_context *owner; // as at creation: a caller may have overwritten pd.context
    uint32_t number;
    dock_a32 users;       // objects that were made with this very pd, parent domains over it included
    struct vb_pd *parent; // of a parent domain: the domain that it extends, else NULL
    struct vb_td *td;     // of a parent domain: objects made with it take no locks
    struct ibv_parent_domain_init_attr custom; // of a parent domain: its allocators and their context
    bool imported;
};

#define VB_MAX_DM (1u << 20) // bytes of device memory, of all contexts

struct vb_dm {
    struct ibv_dm dm;
    char *at;
    size_t length;
    dock_a32 users;     // regions, and imports
    struct vb_dm *of;   // what it is an import of, or NULL
    struct vb_dm *next; // of the process
};

struct vb_mr {
    struct ibv_mr mr;
    struct dock_mr *seg;
    struct vb_dm *dm; // it lies in this device memory, or NULL
    bool special;     // not made by ibv_reg_mr and its kind: cannot be changed
    bool imported;
};

struct vb_mw {
    struct ibv_mw mw;
    struct dock_mr *seg;
    _Atomic(struct vb_build *) section; // the open one it is bound in (qp_builders.c), which has in its list
    struct vb_mw *bound_before;         // the next, with
    uint32_t rkey_before;               // the key to go back to
};

struct vb_chan {
    struct ibv_comp_channel chan;
    struct dock_chan *dev;
};

struct vb_cq {
    struct ibv_cq_ex ex; // begins like ibv_cq
    struct dock_cq *dev;
    struct ibv_pd *parent; // the parent domain it was made with, or NULL
    struct dock_wc wc;     // current completion between start_poll and end_poll
};

// What a target must have and never uses: it reaches memory by the domain of the shared queue, and completes
// nothing itself. Of an XRC domain, and of the targets made with it, which may outlive it.
struct vb_xrc_parts {
    struct dock_dev *dev;
    uint32_t pd;
    struct dock_cq *cq;
    uint32_t users; // under the lock of xrc.c
};

struct vb_xrcd {
    struct ibv_xrcd xrcd;
    uint64_t number;
    struct vb_xrc_parts *parts;
    dock_a32 users;
    uint32_t handles;       // one per ibv_open_xrcd
    uint64_t device, inode; // of the file that names it; inode 0: no file does
    int file;               // keeps the inode, or -1
    struct vb_xrcd *next;
};

struct vb_srq {
    struct ibv_srq srq;
    struct dock_rq *dev;
    uint32_t max_wr, max_sge;
    struct ibv_xrcd *xrcd; // of an XRC queue, else NULL
    struct ibv_cq *cq;
};

struct vb_ah {
    struct ibv_ah ah;
    uint32_t handle;
    uint32_t header; // DOCK_UD_HEADER
    uint8_t eid[16];
};

struct vb_build;  // qp_builders.c
struct vb_target; // xrc_target.c

struct vb_qp_now {
    pthread_mutex_t modify;  // one modify at a time; protects attr
    struct ibv_qp_attr attr; // as last modified
};

struct vb_qp {
    struct ibv_qp_ex ex;
    struct dock_qp *dev;
    struct dock_rq *rq; // its own, NULL with a shared one
    uint32_t ops;       // bit (1 << ibv_wr_opcode) when the service has that opcode
    uint32_t send_sge, inline_max;
    struct vb_qp_now own, *now; // its own, or that of its target
    struct ibv_qp_cap cap;
    int sq_sig_all;
    // A handle of an XRC target, which has no protection domain; else NULL.
    struct vb_target *target;
    struct ibv_xrcd *xrcd;
    struct dock_listener *listener;
    bool xrcini;            // each of its requests names a shared queue
    bool custom;            // its memory came from the domain's allocators
    struct vb_build *build; // of queues with ibv_wr_* functions, else NULL
};

static inline struct vb_context *vb_context(struct ibv_context *context)
{
    return (struct vb_context *)((char *)context - offsetof(struct vb_context, v.context));
}

static inline struct dock_dev *vb_dev(struct ibv_context *context)
{
    return vb_context(context)->dev;
}

static inline struct vb_pd *vb_pd(struct ibv_pd *pd)
{
    return (struct vb_pd *)pd;
}

static inline struct vb_mr *vb_mr(struct ibv_mr *mr)
{
    return (struct vb_mr *)mr;
}

static inline struct vb_mw *vb_mw(struct ibv_mw *mw)
{
    return (struct vb_mw *)mw;
}

static inline struct vb_chan *vb_chan(struct ibv_comp_channel *chan)
{
    return (struct vb_chan *)chan;
}

static inline struct vb_cq *vb_cq(struct ibv_cq *cq)
{
    return (struct vb_cq *)cq;
}

static inline struct vb_cq *vb_cq_ex(struct ibv_cq_ex *cq)
{
    return (struct vb_cq *)cq;
}

static inline struct vb_srq *vb_srq(struct ibv_srq *srq)
{
    return (struct vb_srq *)srq;
}

static inline struct vb_ah *vb_ah(struct ibv_ah *ah)
{
    return (struct vb_ah *)ah;
}

static inline struct vb_qp *vb_qp(struct ibv_qp *qp)
{
    return (struct vb_qp *)qp;
}

static inline struct vb_qp *vb_qp_ex(struct ibv_qp_ex *qp)
{
    return (struct vb_qp *)qp;
}

// A count that nobody orders anything by.
static inline uint32_t vb_count(dock_a32 *word, int by)
{
    return atomic_fetch_add_explicit(word, (uint32_t)by, memory_order_relaxed);
}

// Objects of a context are counted, so that closing it can tell what was left open.
static inline void vb_object_made(struct ibv_context *context)
{
    vb_count(&vb_context(context)->objects, 1);
}

static inline void vb_object_gone(struct ibv_context *context)
{
    vb_count(&vb_context(context)->objects, -1);
}

static inline void vb_pd_use(struct ibv_pd *pd)
{
    vb_count(&((struct vb_pd *)pd)->users, 1);
}

static inline void vb_pd_drop(struct ibv_pd *pd)
{
    vb_count(&((struct vb_pd *)pd)->users, -1);
}

// An object whose handle is not what we gave it is none of ours any more: ENOENT, as the kernel says.
static inline bool vb_pd_known(const struct ibv_pd *pd)
{
    return pd->handle == ((const struct vb_pd *)pd)->number;
}

static inline bool vb_mr_known(const struct ibv_mr *mr)
{
    return mr->handle == ((const struct vb_mr *)mr)->seg->tid;
}

static inline bool vb_mw_known(const struct ibv_mw *mw)
{
    return mw->handle == ((const struct vb_mw *)mw)->seg->tid;
}

static inline bool vb_cq_known(const struct ibv_cq *cq)
{
    return cq->handle == dock_cq_number(((const struct vb_cq *)cq)->dev);
}

static inline bool vb_srq_known(const struct ibv_srq *srq)
{
    return srq->handle == dock_srq_number(((const struct vb_srq *)srq)->dev);
}

static inline bool vb_qp_known(const struct ibv_qp *qp)
{
    return qp->handle == dock_qp_number(((const struct vb_qp *)qp)->dev);
}

// For those that return a status: errno beside it, as programs find it after the kernel's refusals.
static inline int vb_status(int error)
{
    if (error)
        errno = error;
    return error;
}

// For creators: errno and the NULL to return. `error` as the device gives it (-errno).
static inline void *vb_none(int error)
{
    errno = -error;
    return NULL;
}

// Outside RTS, SQD and SQE, where each send queue takes requests: does the profile have it taken and kept?
bool vb_takes_nevertheless(enum dock_state state);
// EINVAL, or 0 where the profile takes such requests and loses them.
int vb_refuse_state(const struct vb_qp *qp, enum dock_state state, const char *call);

// Between dock_post_begin and dock_post_end, so that no change of state comes between.
static inline bool vb_takes_sends(const struct dock_post *post)
{
    enum dock_state state = dock_post_state(post);

    return (unsigned)state - DOCK_RTS <= DOCK_SQE - DOCK_RTS || vb_takes_nevertheless(state);
}

// More of something than a queue was created for.
int vb_misfit(void);
// errno of what dock_post_put returned, as the profile has it.
int vb_put_status(int err);

// ---- device.c, sysfs.c

// The one device of this process's list. Never NULL.
struct ibv_device *vb_device(void);

// True when `device` is ours; otherwise errno is ENODEV and the reason is logged under the name `call`.
bool vb_is_our_device(const struct ibv_device *device, const char *call);

// Where `drydock run` laid the private /sys and /dev, "" without it. A static string.
const char *vb_private_root(void);

// ---- ops.c, refused.c

// Fill what header inlines reach through a context. No entry stays empty: what is not offered is a function
// that says so.
void vb_fill_ops(struct verbs_context *v);
void vb_fill_refusals(struct verbs_context *v);

// ---- verbs_error.c

enum ibv_wc_status vb_wc_status(uint32_t device_status);
enum ibv_event_type vb_event_type(enum dock_event_kind kind);
// What the public structs of queues count: events that were acknowledged, told by their condition.
void vb_events_completed(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *count, unsigned n);
enum dock_event_kind vb_device_event(enum ibv_event_type type);
enum ibv_qp_state vb_qp_state(enum dock_state state);
enum dock_state vb_device_state(enum ibv_qp_state state);

// ---- verbs_query.c

int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                       struct ibv_device_attr_ex *attr, size_t attr_size);
int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                  size_t attr_size);
int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

// ---- mr.c

struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_dealloc_mw(struct ibv_mw *mw);

// ---- memory.c

struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd);
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list,
                 uint32_t num_sge);
struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int vb_free_dm(struct ibv_dm *dm);
// The memory that has this handle, with one user more, or NULL.
struct vb_dm *vb_dm_hold(struct ibv_context *context, uint32_t handle);
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
                            unsigned int access);

// ---- context.c

// Is `fd` the command descriptor of a context of this process?
bool vb_context_of(int fd, bool (*same)(int, int));

// ---- td.c

struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
void vb_free_parent_domain(struct vb_pd *pd); // nothing uses it any more

// Memory for an object of this domain, zeroed: from the allocators of a parent domain that has some, else
// from calloc; *custom tells which, for the way back.
void *vb_pd_calloc(struct ibv_pd *pd, size_t size, bool *custom);
void vb_pd_free(struct ibv_pd *pd, void *p, bool custom);

// The same for a region: remote WRITE and atomics need local write.
int vb_region_access(unsigned int flags, const char *call, uint32_t *out);

// DOCK_ACCESS_* of verbs access flags, or -EINVAL where rights contradict each other or are unknown.
int vb_access(unsigned int flags, const char *call, uint32_t *out);

// ---- cq.c, cq_ex.c

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
void vb_fill_cq_readers(struct vb_cq *cq, uint64_t wc_flags);

// ---- srq.c

struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *number);

// ---- xrc.c

struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int vb_close_xrcd(struct ibv_xrcd *xrcd);
void vb_xrcd_use(struct ibv_xrcd *xrcd, int by);
struct vb_xrc_parts *vb_xrc_parts_hold(struct ibv_xrcd *xrcd);
void vb_xrc_parts_drop(struct vb_xrc_parts *parts);

// ---- xrc_target.c

struct ibv_qp *vb_create_target(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
// The handle goes, and with the last one the target.
void vb_target_close(struct vb_qp *qp);

// ---- qp.c, qp_rules.c, qp_builders.c

// What a program sees of a queue that the device has.
void vb_qp_fill(struct vb_qp *qp, struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vb_create_direct_qp(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *attr);

// Is this change of attributes allowed to a queue of `type` in state `now`? 0 or EINVAL, said in words.
int vb_qp_rules(enum ibv_qp_type type, enum ibv_qp_state now, const struct ibv_qp_attr *attr, int mask,
                const struct dock_limits *limits);

// Set the ibv_wr_* functions of the operations in `send_ops`; EOPNOTSUPP when one of them is not offered to
// `qp`.
int vb_fill_builders(struct vb_qp *qp, uint64_t send_ops);
void vb_free_builders(struct vb_qp *qp);

// ---- ah.c

// The rules of an address vector, common to address handles and connected queues: 0 or EINVAL.
int vb_check_av(const struct ibv_ah_attr *av, const char *call);

// ---- verbs_data.c

int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int vb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);

// The part of a bind that both ways of posting share: 0 or a positive errno value.
int vb_take_bind(struct vb_qp *qp, struct ibv_mw *mw, uint32_t new_rkey, const struct ibv_mw_bind_info *info,
                 struct dock_wr *w);

// The same for the destination of a datagram.
int vb_take_ud(struct vb_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey,
               struct dock_wr *w);

// wc of the ABI from the device's; all fields of a failed one but wr_id, status, qp_num, vendor_err are
// undefined.
enum ibv_wc_opcode vb_wc_opcode(const struct dock_wc *wc);
unsigned int vb_wc_flags(const struct dock_wc *wc);
uint8_t vb_wc_sl(const struct dock_wc *wc);

#endif
