// SPDX-License-Identifier: MIT
// Calls past the common interface, by number. The numbers are UDMA's (ub/umdk/urma/udma/udma_u_ctl.h). Those
// that make and end queues, or ask what a device without a chip can answer, are done; those that want a
// doorbell in the caller's memory, a kind of queue that only a chip has, or its registers are refused, each
// in words.
#include <ub/umdk/urma/udma/udma_u_ctl.h>

#include "face/urma/urma_face.h"

struct ctl {
    urma_status_t (*run)(urma_context_t *ctx, const void *in, void *out); // NULL: refused
    uint32_t in, out;                                                     // bytes that it reads and writes
    const char *why_not;
};

static urma_status_t no_chip(const char *what, const char *why)
{
    return dock_refuse(URMA_ENOPERM, "urma_user_ctl: %s: %s", what, why);
}

// What the drivers answer for whatever went wrong; why is logged where it is known.
static urma_status_t done(urma_status_t status)
{
    return status ? URMA_FAIL : URMA_SUCCESS;
}

// The object that a deletion is given, as a pointer in the caller's buffer.
static void *named(const void *in)
{
    void *object;

    memcpy(&object, in, sizeof object);
    return object;
}

static const char *const not_the_callers =
    "this ring, and doorbells, lie in the device's memory, not in the caller's";

// ---- JFC

static urma_status_t create_jfc(urma_context_t *ctx, const void *in, void *out)
{
    struct udma_u_jfc_cfg_ex c;
    urma_jfc_t *jfc;

    memcpy(&c, in, sizeof c);
    if (c.jfc_mode != UDMA_U_NORMAL_JFC_TYPE && c.jfc_mode != UDMA_U_STARS_JFC_TYPE)
        return no_chip("a JFC of that kind", "there is no collective unit");
    jfc = urma_create_jfc(ctx, &c.base_cfg);
    if (!jfc)
        return URMA_FAIL;
    memcpy(out, &jfc, sizeof jfc);
    return URMA_SUCCESS;
}

static urma_status_t delete_jfc(urma_context_t *ctx, const void *in, void *out)
{
    (void)ctx;
    (void)out;
    return done(urma_delete_jfc(named(in)));
}

// ---- JFR

// One piece of memory for all: the receives, and behind them what says which is next and who took which.
static urma_status_t place_receives(struct ur_ring *r, const struct udma_u_jfr_cstm_cfg *c)
{
    if (!c->flag.bs.rq_cstm)
        return URMA_SUCCESS;
    if (!c->rq.buff || (uintptr_t)c->rq.buff % UR_PAGE || !c->rq.buff_size)
        return dock_refuse(URMA_FAIL, "urma_user_ctl: receives in %u bytes at %p: no whole pages",
                           c->rq.buff_size, c->rq.buff);
    r->at = c->rq.buff;
    r->room = c->rq.buff_size;
    return URMA_SUCCESS;
}

static urma_status_t create_jfr(urma_context_t *ctx, const void *in, void *out)
{
    struct udma_u_jfr_cfg_ex c;
    union udma_jfr_flag others;
    urma_jfr_t *jfr;

    memcpy(&c, in, sizeof c);
    others = c.cstm_cfg.flag;
    others.bs.rq_cstm = 0;
    if (others.value)
        return no_chip("a JFR", not_the_callers);
    if (urma_alloc_jfr(ctx, &c.base_cfg, &jfr))
        return URMA_FAIL;
    if (place_receives(&ur_jfr(jfr)->ring, &c.cstm_cfg) || urma_active_jfr(jfr)) {
        urma_free_jfr(jfr);
        return URMA_FAIL;
    }
    memcpy(out, &jfr, sizeof jfr);
    return URMA_SUCCESS;
}

static urma_status_t delete_jfr(urma_context_t *ctx, const void *in, void *out)
{
    (void)ctx;
    (void)out;
    return done(urma_delete_jfr(named(in)));
}

// ---- JFS and jetty: `sqebb_num` blocks hold as many requests of one block

static urma_status_t check_sends(const char *what, enum udma_u_jetty_type type,
                                 const struct udma_u_jfs_cstm_cfg *c)
{
    union udma_jfs_flag others = c->flag;

    others.bs.sq_cstm = 0;
    if (type != UDMA_U_NORMAL_JETTY_TYPE)
        return no_chip(what, "of that kind only a chip has them");
    return others.value ? no_chip(what, not_the_callers) : URMA_SUCCESS;
}

static urma_status_t place_ring(struct ur_sends *s, const struct udma_u_jfs_cstm_cfg *c)
{
    if (!c->flag.bs.sq_cstm)
        return URMA_SUCCESS;
    if (!c->sq.buff || (uintptr_t)c->sq.buff % DOCK_BLOCK || !c->sq.buff_size)
        return dock_refuse(URMA_FAIL, "urma_user_ctl: a send ring in %u bytes at %p: no ring",
                           c->sq.buff_size, c->sq.buff);
    s->ring = c->sq.buff;
    s->ring_room = c->sq.buff_size;
    return URMA_SUCCESS;
}

static void *doorbell_of(const struct ur_sends *s)
{
    struct dock_ring_look look;

    dock_qp_ring(s->dev, &look);
    return look.doorbell;
}

static urma_status_t create_jfs(urma_context_t *ctx, const void *in, void *out)
{
    struct udma_u_jfs_info info = {0};
    struct udma_u_jfs_cfg_ex c;
    urma_status_t status;

    memcpy(&c, in, sizeof c);
    status = check_sends("a JFS", c.jetty_type, &c.cstm_cfg);
    if (status)
        return status;
    if (c.sqebb_num)
        c.base_cfg.depth = c.sqebb_num;
    if (urma_alloc_jfs(ctx, &c.base_cfg, &info.jfs))
        return URMA_FAIL;
    ur_jfs(info.jfs)->s.number = c.id;
    if (place_ring(&ur_jfs(info.jfs)->s, &c.cstm_cfg) || urma_active_jfs(info.jfs)) {
        urma_free_jfs(info.jfs);
        return URMA_FAIL;
    }
    info.jfs->urma_jfs_opt.urma_jfs_pi_type = c.pi_type;
    info.db_addr = doorbell_of(&ur_jfs(info.jfs)->s);
    memcpy(out, &info, sizeof info);
    return URMA_SUCCESS;
}

static urma_status_t delete_jfs(urma_context_t *ctx, const void *in, void *out)
{
    (void)ctx;
    (void)out;
    return done(urma_delete_jfs(named(in)));
}

static urma_status_t create_jetty(urma_context_t *ctx, const void *in, void *out)
{
    struct udma_u_jetty_info info = {0};
    struct udma_u_jetty_cfg_ex c;
    urma_status_t status;

    memcpy(&c, in, sizeof c);
    status = check_sends("a jetty", c.jetty_type, &c.jfs_cstm);
    if (!status && c.jfr_cstm.flag.value)
        status = no_chip("a jetty", not_the_callers);
    if (status)
        return status;
    if (c.sqebb_num)
        c.base_cfg.jfs_cfg.depth = c.sqebb_num;
    if (urma_alloc_jetty(ctx, &c.base_cfg, &info.jetty))
        return URMA_FAIL;
    if (place_ring(&ur_jetty(info.jetty)->s, &c.jfs_cstm) || urma_active_jetty(info.jetty)) {
        urma_free_jetty(info.jetty);
        return URMA_FAIL;
    }
    info.jetty->urma_jetty_opt.jfs_opt.urma_jfs_pi_type = c.pi_type;
    info.db_addr = doorbell_of(&ur_jetty(info.jetty)->s);
    memcpy(out, &info, sizeof info);
    return URMA_SUCCESS;
}

static urma_status_t delete_jetty(urma_context_t *ctx, const void *in, void *out)
{
    (void)ctx;
    (void)out;
    return done(urma_delete_jetty(named(in)));
}

// Polling moves the consumer index: what a polled completion has covered may be told once more, and a place
// that still holds a request is not given away.
static urma_status_t update_ci(urma_context_t *ctx, const void *in, void *out)
{
    struct udma_u_update_ci u;
    struct dock_ring_look look;
    const struct ur_sends *s;

    (void)ctx;
    (void)out;
    memcpy(&u, in, sizeof u);
    if (u.is_jetty ? !u.jetty : !u.jfs)
        return dock_refuse(URMA_FAIL, "urma_user_ctl: UPDATE_CI of no queue");
    s = u.is_jetty ? &ur_jetty(u.jetty)->s : &ur_jfs(u.jfs)->s;
    if (!s->dev)
        return dock_refuse(URMA_FAIL, "urma_user_ctl: UPDATE_CI of a queue that is not active");
    dock_qp_ring(s->dev, &look);
    if (((u.ci - look.ci) & (look.entries - 1)) < look.pi - look.ci)
        return dock_refuse(URMA_FAIL,
                           "urma_user_ctl: UPDATE_CI of queue %u to %u: no completion of it was polled",
                           dock_qp_number(s->dev), u.ci);
    return URMA_SUCCESS;
}

// The device's number on this host; there is one chip, and one die of it.
static urma_status_t query_ue_info(urma_context_t *ctx, const void *in, void *out)
{
    struct udma_u_ue_info info = {.ue_id = dock_who_slot(dock_dev_who(ur_dev(ctx)))};

    (void)in;
    memcpy(out, &info, sizeof info);
    return URMA_SUCCESS;
}

#define POINTER ((uint32_t)sizeof(void *))

static const struct ctl ctls[UDMA_U_USER_CTL_MAX] = {
    [UDMA_U_USER_CTL_CREATE_JFR_EX] = {create_jfr, sizeof(struct udma_u_jfr_cfg_ex), POINTER, NULL},
    [UDMA_U_USER_CTL_DELETE_JFR_EX] = {delete_jfr, POINTER, 0, NULL},
    [UDMA_U_USER_CTL_CREATE_JFS_EX] = {create_jfs, sizeof(struct udma_u_jfs_cfg_ex),
                                       sizeof(struct udma_u_jfs_info), NULL},
    [UDMA_U_USER_CTL_DELETE_JFS_EX] = {delete_jfs, POINTER, 0, NULL},
    [UDMA_U_USER_CTL_CREATE_JFC_EX] = {create_jfc, sizeof(struct udma_u_jfc_cfg_ex), POINTER, NULL},
    [UDMA_U_USER_CTL_DELETE_JFC_EX] = {delete_jfc, POINTER, 0, NULL},
    [UDMA_U_USER_CTL_CREATE_JETTY_EX] = {create_jetty, sizeof(struct udma_u_jetty_cfg_ex),
                                         sizeof(struct udma_u_jetty_info), NULL},
    [UDMA_U_USER_CTL_DELETE_JETTY_EX] = {delete_jetty, POINTER, 0, NULL},
    [UDMA_U_USER_CTL_POST_WR] = {ur_ctl_post_wr, sizeof(struct udma_u_wr_ex), sizeof(struct udma_u_post_info),
                                 NULL},
    [UDMA_U_USER_CTL_UPDATE_CI] = {update_ci, sizeof(struct udma_u_update_ci), 0, NULL},
    [UDMA_U_USER_CTL_QUERY_UE_INFO] = {query_ue_info, 0, sizeof(struct udma_u_ue_info), NULL},
    [UDMA_U_USER_CTL_QUERY_TP_SPORT] = {.why_not = "memory has no UDP ports"},
    [UDMA_U_USER_CTL_QUERY_CQE_AUX_INFO] = {.why_not = "there are no registers of a chip to be read"},
    [UDMA_U_USER_CTL_QUERY_AE_AUX_INFO] = {.why_not = "there are no registers of a chip to be read"},
    [UDMA_U_USER_CTL_CREATE_LOCK_BUFFER_JETTY_EX] = {.why_not = "there is no cache to be locked"},
    [UDMA_U_USER_CTL_DELETE_LOCK_BUFFER_JETTY_EX] = {.why_not = "no jetty was made by this call"},
    [UDMA_U_USER_CTL_CREATE_CCU_JFC_EX] = {.why_not = "there is no collective unit"},
    [UDMA_U_USER_CTL_DELETE_CCU_JFC_EX] = {.why_not = "no JFC was made by this call"},
};

urma_status_t urma_user_ctl(urma_context_t *ctx, urma_user_ctl_in_t *in, urma_user_ctl_out_t *out)
{
    const struct ctl *c;

    if (!ctx || !in || !out)
        return dock_refuse(URMA_EINVAL, "urma_user_ctl: no context, no input, or no output");
    if (in->opcode >= UDMA_U_USER_CTL_MAX)
        return dock_refuse(URMA_FAIL, "urma_user_ctl: there is no opcode %u", in->opcode);
    c = &ctls[in->opcode];
    if (!c->run)
        return dock_refuse(URMA_ENOPERM, "urma_user_ctl: opcode %u: %s", in->opcode, c->why_not);
    if ((c->in && (!in->addr || in->len != c->in)) || (c->out && (!out->addr || out->len != c->out)))
        return dock_refuse(URMA_FAIL, "urma_user_ctl: opcode %u reads %u bytes and writes %u", in->opcode,
                           c->in, c->out);
    return c->run(ctx, (const void *)(uintptr_t)in->addr, (void *)(uintptr_t)out->addr);
}
