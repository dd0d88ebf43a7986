// SPDX-License-Identifier: MIT
// The queue pair behind a JFS, a jetty, and the front of a JFR: creation, states, what is common to their
// lives.
#include "face/urma/urma_face.h"

#define ALL_RIGHTS (DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE | DOCK_ACCESS_REMOTE_ATOMIC)

void ur_fill_id(urma_jetty_id_t *id, const urma_context_t *ctx, uint32_t number)
{
    id->eid = ctx->eid;
    id->uasid = UR_UASID;
    id->id = number;
}

// A connection needs both ends of a jetty. The halves reach each other by naming the target in each request,
// as reliable messages do; a mode RC of theirs says only which kind of queue may talk to them.
static enum dock_service service_of(const struct ur_sends *s)
{
    if (s->mode == URMA_TM_UM)
        return DOCK_UM;
    return s->mode == URMA_TM_RC && s->kind == UR_JETTY ? DOCK_RC : DOCK_RM;
}

bool ur_needs_peer(const struct ur_sends *s)
{
    return s->mode == URMA_TM_RC && s->kind == UR_JETTY;
}

// Times below this cannot be kept by a process that shares its processor: a healthy peer would be given up.
enum { LEAST_TIMEOUT = 14, RETRIES = 7, RD_ATOMIC = 16 };

static const urma_jfr_cfg_t *receives_of(const struct ur_sends *s)
{
    switch (s->kind) {
    case UR_JFR:
        return &((const urma_jfr_t *)s->object)->jfr_cfg;
    case UR_JETTY:
        return &((const urma_jetty_t *)s->object)->jetty_cfg.shared.jfr->jfr_cfg;
    default:
        return NULL;
    }
}

// What a queue is given when it becomes READY. Who sends to it must show the token of its receives.
static struct dock_qp_mod attributes(const struct ur_sends *s)
{
    const urma_jfr_cfg_t *r = receives_of(s);
    struct dock_qp_mod m = {
        .mask = DOCK_MOD_ACCESS | DOCK_MOD_QKEY | DOCK_MOD_TIMEOUT | DOCK_MOD_RETRY | DOCK_MOD_RNR_RETRY |
                DOCK_MOD_RNR_TIMER | DOCK_MOD_RD_ATOMIC | DOCK_MOD_DEST_RD_ATOMIC,
        .access = ALL_RIGHTS,
        .timeout = s->err_timeout < LEAST_TIMEOUT ? LEAST_TIMEOUT
                   : s->err_timeout > 31          ? 31
                                                  : s->err_timeout,
        .retry = RETRIES,
        .rnr_retry = s->rnr_retry > 7 ? 7 : s->rnr_retry,
        .rnr_timer = r ? r->min_rnr_timer & 31 : 0,
        .rd_atomic = RD_ATOMIC,
        .dest_rd_atomic = RD_ATOMIC,
    };

    if (r && r->flag.bs.token_policy != URMA_TOKEN_NONE) {
        m.access |= DOCK_ACCESS_TOKEN;
        m.qkey = r->token_value.token;
    }
    return m;
}

static void name_peer(const struct ur_sends *s, struct dock_qp_mod *m)
{
    const urma_jetty_id_t *id = &ur_peer(s)->t.id;

    m->mask |= DOCK_MOD_DEST;
    m->dest_qp = id->id;
    memcpy(m->eid, id->eid.raw, sizeof m->eid);
}

static int make_ready(struct ur_sends *s)
{
    struct dock_qp_mod m = attributes(s);

    m.mask |= DOCK_MOD_STATE;
    m.state = DOCK_RTS;
    if (ur_peer(s))
        name_peer(s, &m);
    return dock_qp_modify(s->dev, &m);
}

static enum dock_role role_of(const struct ur_sends *s)
{
    return s->kind == UR_JFS ? DOCK_SENDS : s->kind == UR_JFR ? DOCK_RECEIVES : DOCK_BOTH;
}

// The guide: a queue that is not to be suspended goes on after an error, but a connection is lost by one.
static enum dock_on_error on_error_of(const struct ur_sends *s, const urma_jfs_cfg_t *cfg)
{
    if (cfg->flag.bs.error_suspend)
        return DOCK_ON_ERROR_SUSPEND;
    return ur_needs_peer(s) ? DOCK_ON_ERROR_STOP : DOCK_ON_ERROR_CONTINUE;
}

static void fill_attr(struct ur_sends *s, const urma_context_t *ctx, const urma_jfs_cfg_t *cfg,
                      struct dock_qp_attr *a)
{
    *a = (struct dock_qp_attr){
        .service = service_of(s),
        .pd = ur_pd(),
        .send_cq = ur_jfc(cfg->jfc)->dev,
        .max_send_wr = cfg->depth,
        .max_send_sge = cfg->max_sge,
        .max_inline = cfg->max_inline_data,
        .lock_free = cfg->flag.bs.lock_free,
        .raw = dock_peek32(&s->keeps) != 0, // the program rings, and may write the WQEs as well
        .urma = true,
        .tell_eid = true,
        .on_error = on_error_of(s, cfg),
        .role = role_of(s),
        .unordered = cfg->flag.bs.outorder_comp,
        .short_atomics = true,
        .cookie = (uintptr_t)s->object,
        .number = s->number,
        .ring = s->ring,
        .user = s,
    };
    memcpy(a->eid, ctx->eid.raw, sizeof a->eid);
}

int ur_sends_open(struct ur_sends *s, urma_context_t *ctx, urma_jfs_cfg_t *cfg, struct ur_jfr *jfr,
                  urma_jfc_t *rx, struct dock_bundle *group)
{
    struct dock_qp_attr attr;
    int err;

    s->mode = cfg->trans_mode;
    if (s->kind != UR_JFR && !cfg->max_inline_data) // the guide: 0 asks for what the device has
        cfg->max_inline_data = ur_caps()->max_jfs_inline_len;
    s->sge_max = cfg->max_sge;
    s->inline_max = cfg->max_inline_data;
    s->bare = s->mode == URMA_TM_UM || cfg->flag.bs.outorder_comp;
    s->err_timeout = cfg->err_timeout;
    s->rnr_retry = cfg->rnr_retry;
    fill_attr(s, ctx, cfg, &attr);
    attr.recv_cq = rx ? ur_jfc(rx)->dev : attr.send_cq;
    attr.srq = jfr ? jfr->rq : NULL;
    attr.bundle = group;
    if (s->ring_room && s->ring_room < dock_qp_ring_bytes(&attr))
        return dock_refuse(-EINVAL, "a send ring in %u bytes: these requests need %llu", s->ring_room,
                           (unsigned long long)dock_qp_ring_bytes(&attr));
    err = dock_qp_create(ur_dev(ctx), &attr, &s->dev);
    if (err)
        return err;
    dock_qp_set_events(s->dev, ur_context(ctx)->events);
    err = make_ready(s);
    if (err) {
        dock_qp_destroy(s->dev);
        s->dev = NULL;
    }
    return err;
}

int ur_sends_close(struct ur_sends *s, bool non_blocking, const char *call)
{
    if (non_blocking && dock_qp_owes_acks(s->dev))
        return dock_refuse(-EAGAIN, "%s: events of queue %u are not acknowledged", call,
                           dock_qp_number(s->dev));
    dock_qp_destroy(s->dev);
    s->dev = NULL;
    s->ring = NULL; // it is the program's again
    s->ring_room = 0;
    return 0;
}

// ---- states

urma_jetty_state_t ur_sends_state(const struct ur_sends *s)
{
    return s->dev ? ur_state(dock_qp_state(s->dev)) : URMA_JETTY_STATE_RESET;
}

// Which changes are allowed the device knows.
urma_status_t ur_sends_modify(struct ur_sends *s, urma_jetty_state_t to, const char *call)
{
    static const enum dock_state of[] = {
        [URMA_JETTY_STATE_RESET] = DOCK_RESET,
        [URMA_JETTY_STATE_READY] = DOCK_RTS,
        [URMA_JETTY_STATE_SUSPENDED] = DOCK_SUSPENDED,
        [URMA_JETTY_STATE_ERROR] = DOCK_ERR,
    };
    urma_jetty_state_t from = ur_sends_state(s);
    struct dock_qp_mod m = {.mask = DOCK_MOD_STATE};
    int err;

    if ((unsigned)to > URMA_JETTY_STATE_ERROR)
        return dock_refuse(URMA_FAIL, "%s: queue %u: there is no state %d", call, dock_qp_number(s->dev),
                           (int)to);
    if (from == to)
        return URMA_SUCCESS;
    m.state = of[to];
    err = from == URMA_JETTY_STATE_RESET && to == URMA_JETTY_STATE_READY ? make_ready(s)
                                                                         : dock_qp_modify(s->dev, &m);
    return err ? URMA_FAIL : URMA_SUCCESS;
}

// ---- RC: to a peer and away from it

int ur_connect(struct ur_sends *s)
{
    struct dock_qp_mod m = {0};

    name_peer(s, &m);
    return dock_qp_modify(s->dev, &m);
}

int ur_disconnect(struct ur_sends *s)
{
    struct dock_qp_mod m = {.mask = DOCK_MOD_DEST};

    return dock_qp_modify(s->dev, &m);
}
