// SPDX-License-Identifier: MIT
// The hot path: a WR of URMA becomes one of the device, a completion of the device becomes a CR.
// Nothing here may allocate, take a lock of its own or make a system call.
#include "face/urma/perf.h"
#include "face/urma/urma_face.h"

// ---- sends

enum { ARM_RW, ARM_CAS, ARM_FAA, ARM_SEND, ARM_NONE };

struct opcode {
    uint8_t op;   // of the device
    uint8_t arm;  // of the union in the WR
    bool offered; // false: no such opcode
};

static const struct opcode opcode_of[URMA_OPC_LAST] = {
    [URMA_OPC_WRITE] = {DOCK_OP_WRITE, ARM_RW, true},
    [URMA_OPC_WRITE_IMM] = {DOCK_OP_WRITE_IMM, ARM_RW, true},
    [URMA_OPC_WRITE_NOTIFY] = {DOCK_OP_WRITE_NOTIFY, ARM_RW, true},
    [URMA_OPC_READ] = {DOCK_OP_READ, ARM_RW, true},
    [URMA_OPC_CAS] = {DOCK_OP_CAS, ARM_CAS, true},
    [URMA_OPC_SWAP] = {DOCK_OP_SWAP, ARM_CAS, true},
    [URMA_OPC_FADD] = {DOCK_OP_FADD, ARM_FAA, true},
    [URMA_OPC_FSUB] = {DOCK_OP_FSUB, ARM_FAA, true},
    [URMA_OPC_FAND] = {DOCK_OP_FAND, ARM_FAA, true},
    [URMA_OPC_FOR] = {DOCK_OP_FOR, ARM_FAA, true},
    [URMA_OPC_FXOR] = {DOCK_OP_FXOR, ARM_FAA, true},
    [URMA_OPC_SEND] = {DOCK_OP_SEND, ARM_SEND, true},
    [URMA_OPC_SEND_IMM] = {DOCK_OP_SEND_IMM, ARM_SEND, true},
    [URMA_OPC_SEND_INVALIDATE] = {DOCK_OP_SEND_INV, ARM_SEND, true},
    [URMA_OPC_WRITE_ATOMIC] = {DOCK_OP_WRITE_ADD, ARM_RW, true},
    [URMA_OPC_NOP] = {DOCK_OP_NOP, ARM_NONE, true},
};

// The flag word of a WR (urma_jfs_wr_flag_t): its low seven bits are those of the WQE, shifted.
#define W_ORDERS (3u << 0 | 1u << 2 | 1u << 3) // place_order, comp_order, fence
#define W_TAKEN 0x3fu                          // those, solicited, complete; inline depends on the opcode
#define W_REFUSED (1u << 8 | 1u << 9)          // udf, has_drv_ext

static_assert(DOCK_F_FENCE == 1u << (3 + 16) && DOCK_F_SOLICITED == 1u << (4 + 16) &&
                  DOCK_F_COMPLETE == 1u << (5 + 16),
              "flags of a WR and of a WQE");

static __attribute__((noinline, cold)) int refuse(const struct ur_sends *s, const urma_jfs_wr_t *wr)
{
    uint32_t n = dock_qp_number(s->dev);

    if ((unsigned)wr->opcode >= URMA_OPC_LAST || !opcode_of[wr->opcode].offered)
        return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: there is no opcode %#x here", n,
                           (unsigned)wr->opcode);
    if (wr->flag.bs.has_drv_ext)
        return dock_refuse(URMA_EINVAL,
                           "post of a WR: queue %u: this device knows no extension of its own (has_drv_ext)",
                           n);
    if (wr->flag.bs.udf)
        return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: data reduction (udf) is not offered", n);
    if (s->bare && wr->flag.value & W_ORDERS)
        return dock_refuse(URMA_EINVAL,
                           "post of a WR: queue %u: fence and orders do not go with UM or outorder_comp", n);
    return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: no target of the queue's mode given", n);
}

// A local list: pieces of length zero are left out.
static inline int take_sges(struct ur_sends *s, const urma_sg_t *from, bool inlined, struct dock_sge *to,
                            struct dock_wr *w)
{
    uint64_t bytes = 0;
    unsigned n = 0;

    if (__builtin_expect(from->num_sge > s->sge_max || (from->num_sge && !from->sge), 0))
        return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: %u SGEs, it was created for %u",
                           dock_qp_number(s->dev), from->num_sge, s->sge_max);
    for (unsigned i = 0; i < from->num_sge; i++) {
        const urma_sge_t *e = &from->sge[i];
        if (!e->len)
            continue;
        to[n].addr = e->addr;
        to[n].len = e->len;
        to[n++].key = e->tseg ? ur_seg(e->tseg)->lkey : 0;
        bytes += e->len;
    }
    w->sge = to;
    w->nsge = (uint8_t)n;
    if (__builtin_expect(!inlined, 1))
        return 0;
    if (bytes > s->inline_max)
        return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: %llu inline bytes, it was created for %u",
                           dock_qp_number(s->dev), (unsigned long long)bytes, s->inline_max);
    w->flags |= DOCK_F_INLINE;
    w->inline_len = (uint32_t)bytes;
    return 0;
}

// The guide takes an address of the mapping as well. One that is in the remote range too is the remote one.
static __attribute__((noinline)) uint64_t from_mapping(const urma_target_seg_t *t, uint64_t addr)
{
    bool remote = addr - t->seg.ubva.va < t->seg.len;

    return !remote && addr - t->mva < t->seg.len ? addr - t->mva + t->seg.ubva.va : addr;
}

// The remote piece: an imported segment, or one that the WR describes itself.
static inline int take_remote(const struct ur_sends *s, const urma_sge_t *e, uint64_t *addr, uint32_t *key,
                              uint32_t *token)
{
    if (__builtin_expect(!e->tseg && !e->user_tseg, 0))
        return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: no remote segment", dock_qp_number(s->dev));
    *addr = e->addr;
    *key = e->tseg ? ur_seg(e->tseg)->rkey : e->user_tseg->token_id;
    *token = e->tseg ? ur_seg(e->tseg)->token : e->user_tseg->token_value.token;
    if (__builtin_expect(e->tseg && ur_seg(e->tseg)->map, 0))
        *addr = from_mapping(e->tseg, e->addr);
    return 0;
}

static int take_write(struct ur_sends *s, const urma_jfs_wr_t *wr, struct dock_sge *sge, struct dock_wr *w)
{
    const urma_sg_t *dst = &wr->rw.dst;
    bool notifies = wr->opcode == URMA_OPC_WRITE_NOTIFY || wr->opcode == URMA_OPC_WRITE_ATOMIC;
    unsigned remotes = notifies ? 2 : 1;
    int err;

    if (__builtin_expect(dst->num_sge != remotes || !dst->sge, 0))
        return dock_refuse(URMA_EINVAL,
                           "post of a WR: queue %u: a write of this kind has %u remote SGEs, not %u",
                           dock_qp_number(s->dev), remotes, dst->num_sge);
    err = take_remote(s, &dst->sge[0], &w->raddr, &w->rkey, &w->token);
    if (!err && remotes == 2)
        err = take_remote(s, &dst->sge[1], &w->notify_addr, &w->notify_key, &w->notify_token);
    if (err)
        return err;
    w->imm = w->notify_value = wr->rw.notify_data;
    return take_sges(s, &wr->rw.src, wr->flag.bs.inline_flag, sge, w);
}

// Inline data of a READ would be what is read: the flag means nothing.
static int take_read(struct ur_sends *s, const urma_jfs_wr_t *wr, struct dock_sge *sge, struct dock_wr *w)
{
    int err;

    if (__builtin_expect(wr->rw.src.num_sge != 1 || !wr->rw.src.sge, 0))
        return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: a READ has one remote SGE, not %u",
                           dock_qp_number(s->dev), wr->rw.src.num_sge);
    err = take_remote(s, &wr->rw.src.sge[0], &w->raddr, &w->rkey, &w->token);
    return err ? err : take_sges(s, &wr->rw.dst, false, sge, w);
}

static int take_rw(struct ur_sends *s, const urma_jfs_wr_t *wr, struct dock_sge *sge, struct dock_wr *w)
{
    return wr->opcode == URMA_OPC_READ ? take_read(s, wr, sge, w) : take_write(s, wr, sge, w);
}

// What an atomic works on, and where the old value goes.
static int take_atomic(struct ur_sends *s, const urma_sge_t *dst, const urma_sge_t *src, struct dock_sge *sge,
                       struct dock_wr *w)
{
    if (!dst || !src)
        return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: an atomic without its two SGEs",
                           dock_qp_number(s->dev));
    if (src->len != 8 && src->len != 4)
        return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: an atomic of %u bytes: 4 or 8 are offered",
                           dock_qp_number(s->dev), src->len);
    sge->addr = src->addr;
    sge->len = src->len;
    sge->key = src->tseg ? ur_seg(src->tseg)->lkey : 0;
    w->sge = sge;
    w->nsge = 1;
    return take_remote(s, dst, &w->raddr, &w->rkey, &w->token);
}

static int take_cas(struct ur_sends *s, const urma_jfs_wr_t *wr, struct dock_sge *sge, struct dock_wr *w)
{
    w->operand = wr->cas.swap_data;
    w->compare = wr->cas.cmp_data;
    return take_atomic(s, wr->cas.dst, wr->cas.src, sge, w);
}

static int take_faa(struct ur_sends *s, const urma_jfs_wr_t *wr, struct dock_sge *sge, struct dock_wr *w)
{
    w->operand = wr->faa.operand;
    return take_atomic(s, wr->faa.dst, wr->faa.src, sge, w);
}

static int take_send(struct ur_sends *s, const urma_jfs_wr_t *wr, struct dock_sge *sge, struct dock_wr *w)
{
    w->imm = wr->send.imm_data;
    if (wr->opcode == URMA_OPC_SEND_INVALIDATE) {
        if (!wr->send.tseg)
            return dock_refuse(URMA_EINVAL, "post of a WR: queue %u: SEND with invalidate names no segment",
                               dock_qp_number(s->dev));
        w->rkey = ur_seg(wr->send.tseg)->rkey;
        w->token = ur_seg(wr->send.tseg)->token;
    }
    return take_sges(s, &wr->send.src, wr->flag.bs.inline_flag, sge, w);
}

// Which member of a group is meant, where the group goes by hints. Atomics have no field for it.
static uint8_t hint_of(const urma_jfs_wr_t *wr)
{
    switch (opcode_of[wr->opcode].arm) {
    case ARM_RW:
        return wr->rw.target_hint;
    case ARM_SEND:
        return wr->send.target_hint;
    default:
        return 0;
    }
}

// Where it goes: what the queue is bound to, else what the WR names.
static inline int take_target(const struct ur_sends *s, const urma_jfs_wr_t *wr, struct dock_wr *w)
{
    const urma_target_jetty_t *t = wr->tjetty;
    const struct ur_target *peer = ur_peer(s);

    if (peer) {
        w->target_token = peer->token;
        return 0;
    }
    if (wr->opcode == URMA_OPC_NOP)
        return 0;
    if (__builtin_expect(!t || t->trans_mode != s->mode, 0))
        return refuse(s, wr);
    w->remote = t->id.id;
    w->eid = t->id.eid.raw;
    w->target_token = ((const struct ur_target *)t)->token;
    w->bundle = t->type == URMA_JETTY_GROUP;
    if (__builtin_expect(w->bundle, 0))
        w->hint = hint_of(wr);
    return 0;
}

static inline int take_wr(struct ur_sends *s, const urma_jfs_wr_t *wr, struct dock_sge *sge,
                          struct dock_wr *w)
{
    const struct opcode *o;
    int err;

    if (__builtin_expect((unsigned)wr->opcode >= URMA_OPC_LAST || !opcode_of[wr->opcode].offered ||
                             wr->flag.value & W_REFUSED || (s->bare && wr->flag.value & W_ORDERS),
                         0))
        return refuse(s, wr);
    o = &opcode_of[wr->opcode];
    *w = (struct dock_wr){.id = wr->user_ctx, .op = o->op, .flags = (wr->flag.value & W_TAKEN) << 16};
    err = take_target(s, wr, w);
    if (err)
        return err;
    switch (o->arm) {
    case ARM_RW:
        return take_rw(s, wr, sge, w);
    case ARM_CAS:
        return take_cas(s, wr, sge, w);
    case ARM_FAA:
        return take_faa(s, wr, sge, w);
    case ARM_SEND:
        return take_send(s, wr, sge, w);
    default:
        return 0;
    }
}

// An RC queue takes requests when it is bound; all of them in READY, SUSPENDED and ERROR.
static bool takes_sends(const struct ur_sends *s, const struct dock_post *post)
{
    return dock_post_state(post) != DOCK_RESET &&
           (ur_peer(s) || s->mode != URMA_TM_RC || s->kind != UR_JETTY);
}

static inline __attribute__((always_inline)) urma_status_t
post_wrs(struct ur_sends *s, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr, bool keep, struct ur_posted *where)
{
    struct dock_sge sge[UR_SGE];
    struct dock_post post;
    struct dock_wr w;
    int err = 0;

    if (__builtin_expect(keep, 0))
        dock_post_open(s->dev, &post);
    else
        dock_post_begin(s->dev, &post);
    if (__builtin_expect(!takes_sends(s, &post), 0))
        err =
            dock_refuse(URMA_EINVAL, "post of a WR: queue %u is not ready: no peer is bound, or it was reset",
                        dock_qp_number(s->dev));
    for (; wr && !err; wr = wr->next) {
        err = take_wr(s, wr, sge, &w);
        if (where)
            where->last = post.pi;
        if (!err)
            err = ur_status(dock_post_put(&post, &w));
        if (err)
            break;
    }
    if (where)
        where->pi = post.pi;
    if (__builtin_expect(keep, 0))
        dock_post_keep(&post);
    else
        dock_post_end(&post);
    if (err)
        *bad_wr = wr;
    return err;
}

urma_status_t ur_post_wrs(struct ur_sends *s, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr, bool keep,
                          struct ur_posted *where)
{
    return post_wrs(s, wr, bad_wr, keep, where);
}

// Of a list the first WR says for all whether it is rung for, as with UDMA's driver.
urma_status_t ur_post_sends(struct ur_sends *s, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
    return post_wrs(s, wr, bad_wr, wr->flag.bs.db_bypass || dock_peek32(&s->keeps), NULL);
}

// There is no queue, or not all that a call needs: none of the list is posted.
static urma_status_t __attribute__((noinline, cold))
no_sends(urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr, const char *what)
{
    if (wr && bad_wr)
        *bad_wr = wr;
    return dock_refuse(URMA_EINVAL, "%s, no WR, or no place for a bad one", what);
}

urma_status_t urma_post_jfs_wr(urma_jfs_t *jfs, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
    uint64_t began = ur_perf_begin();
    urma_status_t status;

    if (!jfs || !wr || !bad_wr || !ur_jfs(jfs)->s.dev)
        return no_sends(wr, bad_wr, "urma_post_jfs_wr: no active JFS");
    status = ur_post_sends(&ur_jfs(jfs)->s, wr, bad_wr);
    ur_perf_end(UB_JFS_POST_SEND, began);
    return status;
}

urma_status_t urma_post_jetty_send_wr(urma_jetty_t *jetty, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
    uint64_t began = ur_perf_begin();
    urma_status_t status;

    if (!jetty || !wr || !bad_wr || !ur_jetty(jetty)->s.dev)
        return no_sends(wr, bad_wr, "urma_post_jetty_send_wr: no active jetty");
    status = ur_post_sends(&ur_jetty(jetty)->s, wr, bad_wr);
    ur_perf_end(UB_JETTY_POST_SEND, began);
    return status;
}

// ---- receives

static int take_receive(struct dock_rq *rq, const urma_jfr_cfg_t *cfg, const urma_jfr_wr_t *wr)
{
    struct dock_sge sge[16];
    unsigned n = 0;

    if (wr->src.num_sge > (cfg->max_sge ? cfg->max_sge : 1u) || (wr->src.num_sge && !wr->src.sge))
        return dock_refuse(URMA_EINVAL, "post of a receive: %u SGEs, the JFR was created for %u",
                           wr->src.num_sge, cfg->max_sge);
    for (unsigned i = 0; i < wr->src.num_sge; i++) {
        const urma_sge_t *e = &wr->src.sge[i];
        if (!e->len)
            continue;
        sge[n++] =
            (struct dock_sge){.addr = e->addr, .len = e->len, .key = e->tseg ? ur_seg(e->tseg)->lkey : 0};
    }
    return ur_status(dock_recv_put(rq, wr->user_ctx, sge, n));
}

static urma_status_t post_receives(struct ur_jfr *j, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr)
{
    int err = 0;

    dock_recv_begin(j->rq);
    for (; wr; wr = wr->next) {
        err = take_receive(j->rq, &j->jfr.jfr_cfg, wr);
        if (err)
            break;
    }
    dock_recv_end(j->rq);
    if (err)
        *bad_wr = wr;
    return err;
}

static urma_status_t __attribute__((noinline, cold))
no_receives(urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr, const char *what)
{
    if (wr && bad_wr)
        *bad_wr = wr;
    return dock_refuse(URMA_EINVAL, "%s, no WR, or no place for a bad one", what);
}

urma_status_t urma_post_jfr_wr(urma_jfr_t *jfr, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr)
{
    uint64_t began = ur_perf_begin();
    urma_status_t status;

    if (!jfr || !wr || !bad_wr || !ur_jfr(jfr)->rq)
        return no_receives(wr, bad_wr, "urma_post_jfr_wr: no active JFR");
    status = post_receives(ur_jfr(jfr), wr, bad_wr);
    ur_perf_end(UB_POST_JFR_RECV, began);
    return status;
}

urma_status_t urma_post_jetty_recv_wr(urma_jetty_t *jetty, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr)
{
    uint64_t began = ur_perf_begin();
    urma_status_t status;

    if (!jetty || !wr || !bad_wr || !ur_jetty(jetty)->s.dev)
        return no_receives(wr, bad_wr, "urma_post_jetty_recv_wr: no active jetty");
    status = post_receives(ur_jfr(jetty->jetty_cfg.shared.jfr), wr, bad_wr);
    ur_perf_end(UB_JETTY_POST_RECV, began);
    return status;
}

// ---- completions

// Send completions carry an opcode that is none of a receive's: programs look at it before they look at s_r.
#define NO_OPCODE ((urma_cr_opcode_t)0xff)

static inline urma_cr_opcode_t cr_opcode(const struct dock_wc *d)
{
    static const uint8_t of[] = {
        [DOCK_ROP_SEND] = URMA_CR_OPC_SEND,
        [DOCK_ROP_SEND_IMM] = URMA_CR_OPC_SEND_WITH_IMM,
        [DOCK_ROP_SEND_INV] = URMA_CR_OPC_SEND_WITH_INV,
        [DOCK_ROP_WRITE_IMM] = URMA_CR_OPC_WRITE_WITH_IMM,
    };

    return d->recv ? (urma_cr_opcode_t)of[d->op & 3] : NO_OPCODE;
}

static inline const urma_context_t *context_of(const struct ur_sends *s)
{
    return *(urma_context_t *const *)s->object; // the first field of all three
}

static inline void fill_cr(urma_cr_t *cr, const struct dock_wc *d)
{
    const struct ur_sends *s = dock_qp_user(d->qp);

    cr->status = d->status ? ur_cr_status(d) : URMA_CR_SUCCESS;
    cr->user_ctx = d->id;
    cr->opcode = cr_opcode(d);
    cr->flag.value = (uint8_t)(d->recv | (s->kind == UR_JETTY) << 1);
    cr->completion_len = d->bytes;
    cr->local_id = d->qp_num;
    if (d->told_eid)
        memcpy(cr->remote_id.eid.raw, d->eid, sizeof d->eid);
    else
        cr->remote_id.eid = context_of(s)->eid;
    cr->remote_id.uasid = UR_UASID;
    cr->remote_id.id = d->src_qp;
    cr->imm_data = d->imm;
    cr->tpn = cr->remote_id.id;
    cr->user_data = (uintptr_t)s->object;
}

static int __attribute__((noinline)) poll_some(struct dock_cq *cq, int cr_cnt, urma_cr_t *cr)
{
    struct dock_wc d;
    int n = 0, got = 0;

    dock_cq_begin(cq);
    for (; n < cr_cnt; n++) {
        got = dock_cq_next(cq, &d);
        if (got <= 0)
            break;
        fill_cr(&cr[n], &d);
    }
    dock_cq_end(cq);
    return n || got >= 0 ? n : -1;
}

int urma_poll_jfc(urma_jfc_t *jfc, int cr_cnt, urma_cr_t *cr)
{
    struct dock_cq *cq;
    uint64_t began = ur_perf_begin();
    int n;

    if (__builtin_expect(!jfc || cr_cnt < 0 || !cr || !ur_jfc(jfc)->dev, 0)) {
        dock_refuse(EINVAL, "urma_poll_jfc: no active JFC, no place for CRs, or %d of them", cr_cnt);
        return -1;
    }
    cq = ur_jfc(jfc)->dev;
    n = dock_cq_idle(cq) ? 0 : poll_some(cq, cr_cnt, cr);
    ur_perf_end(UB_POLL_JFC, began);
    return n;
}
