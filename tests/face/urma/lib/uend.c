// SPDX-License-Identifier: MIT
#include "face/urma/lib/uend.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

urma_device_t *the_device(void)
{
    urma_device_t **list, *dev;
    urma_status_t started = urma_init(NULL);
    int n = 0;

    CHECK(started == URMA_SUCCESS || started == URMA_EEXIST);
    list = urma_get_device_list(&n);
    CHECK(list && n == 1);
    dev = list[0];
    urma_free_device_list(list);
    return dev;
}

static struct uend_options defaults(const struct uend_options *opt)
{
    struct uend_options o = opt ? *opt : (struct uend_options){0};

    o.mode = o.mode ? o.mode : URMA_TM_RC;
    o.depth = o.depth ? o.depth : 16;
    o.recv_depth = o.recv_depth ? o.recv_depth : 16;
    o.jfc_depth = o.jfc_depth ? o.jfc_depth : 64;
    o.sge = o.sge ? o.sge : 4;
    o.rnr_retry = o.rnr_retry ? o.rnr_retry : URMA_TYPICAL_RNR_RETRY;
    o.err_timeout = o.err_timeout ? o.err_timeout : URMA_TYPICAL_ERR_TIMEOUT;
    o.access = o.access ? o.access : ALL_ACCESS;
    o.bytes = o.bytes ? o.bytes : 65536;
    return o;
}

static urma_jfc_t *make_jfc(struct uend *e)
{
    urma_jfc_cfg_t cfg = {
        .depth = e->opt.jfc_depth, .flag = e->opt.jfc_flag, .jfce = e->jfce, .user_ctx = (uintptr_t)e};
    urma_jfc_t *jfc = urma_create_jfc(e->ctx, &cfg);

    CHECK(jfc != NULL);
    return jfc;
}

static void make_receives(struct uend *e)
{
    urma_jfr_cfg_t cfg = {.depth = e->opt.recv_depth,
                          .flag = e->opt.jfr_flag,
                          .trans_mode = e->opt.mode,
                          .max_sge = e->opt.sge,
                          .min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER,
                          .jfc = e->rjfc,
                          .token_value = {UEND_TOKEN}};

    cfg.flag.bs.token_policy = e->opt.open ? URMA_TOKEN_NONE : URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.order_type = e->opt.flag.bs.order_type;
    e->jfr = urma_create_jfr(e->ctx, &cfg);
    CHECK(e->jfr != NULL);
}

static void make_sends(struct uend *e)
{
    urma_jfs_cfg_t cfg = {.depth = e->opt.depth,
                          .flag = e->opt.flag,
                          .trans_mode = e->opt.mode,
                          .max_sge = e->opt.sge,
                          .max_rsge = 1,
                          .max_inline_data = e->opt.inline_data,
                          .rnr_retry = e->opt.rnr_retry,
                          .err_timeout = e->opt.err_timeout,
                          .jfc = e->jfc};
    urma_jetty_cfg_t jetty = {.jfs_cfg = cfg, .flag = e->opt.jetty_flag, .shared = {.jfr = e->jfr}};

    jetty.flag.bs.share_jfr = 1;
    if (e->opt.halves) {
        e->jfs = urma_create_jfs(e->ctx, &cfg);
        CHECK(e->jfs != NULL);
    } else {
        e->jetty = urma_create_jetty(e->ctx, &jetty);
        CHECK(e->jetty != NULL);
    }
}

static void make_memory(struct uend *e)
{
    urma_seg_cfg_t cfg = {.len = e->opt.bytes, .token_value = {UEND_TOKEN}};

    e->buf = mmap(NULL, e->opt.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(e->buf != MAP_FAILED);
    cfg.va = (uintptr_t)e->buf;
    cfg.flag.bs.token_policy = e->opt.open ? URMA_TOKEN_NONE : URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.access = e->opt.access;
    e->seg = urma_register_seg(e->ctx, &cfg);
    CHECK(e->seg != NULL);
}

void uend_open(struct uend *e, const struct uend_options *opt)
{
    urma_device_t *dev = the_device();
    urma_eid_info_t *eids;
    uint32_t n = 0;

    memset(e, 0, sizeof *e);
    e->opt = defaults(opt);
    eids = urma_get_eid_list(dev, &n);
    CHECK(eids && n);
    e->ctx = urma_create_context(dev, eids[0].eid_index);
    urma_free_eid_list(eids);
    CHECK(e->ctx != NULL);
    if (e->opt.events) {
        e->jfce = urma_create_jfce(e->ctx);
        CHECK(e->jfce != NULL);
    }
    e->jfc = make_jfc(e);
    e->rjfc = make_jfc(e);
    make_receives(e);
    make_sends(e);
    make_memory(e);
}

static urma_context_t *kept;

int uend_keep_device(void **state)
{
    (void)state;
    kept = urma_create_context(the_device(), 0);
    return kept ? 0 : -1;
}

int uend_let_device_go(void **state)
{
    (void)state;
    return urma_delete_context(kept);
}

void uend_close(struct uend *e)
{
    uend_part(e);
    if (e->jetty)
        CHECK_INT(urma_delete_jetty(e->jetty), 0);
    if (e->jfs)
        CHECK_INT(urma_delete_jfs(e->jfs), 0);
    CHECK_INT(urma_delete_jfr(e->jfr), 0);
    CHECK_INT(urma_delete_jfc(e->rjfc), 0);
    CHECK_INT(urma_delete_jfc(e->jfc), 0);
    CHECK_INT(urma_unregister_seg(e->seg), 0);
    if (e->jfce)
        CHECK_INT(urma_delete_jfce(e->jfce), 0);
    CHECK_INT(urma_delete_context(e->ctx), 0);
    munmap(e->buf, e->opt.bytes);
    memset(e, 0, sizeof *e);
}

// ---- two of them

struct uend_address uend_address(const struct uend *e)
{
    struct uend_address a = {.seg = e->seg->seg};
    urma_rjetty_t *r;
    uint32_t n;

    if (e->jetty) {
        CHECK_INT(urma_get_rjetty(e->jetty, &r, &n), 0);
        a.rjetty = *r;
        urma_put_rjetty(r);
    }
    a.rjfr = (urma_rjfr_t){.jfr_id = e->jfr->jfr_id,
                           .trans_mode = e->opt.mode,
                           .tp_type = e->opt.mode == URMA_TM_UM ? URMA_UTP : URMA_RTP};
    a.rjfr.flag.bs.token_policy = e->jfr->jfr_cfg.flag.bs.token_policy;
    return a;
}

void uend_import(struct uend *e, const struct uend_address *peer)
{
    urma_import_seg_flag_t flag = {.bs = {.access = ALL_ACCESS}};
    urma_token_t token = {UEND_TOKEN};
    struct uend_address a = *peer;

    if (e->opt.halves)
        e->target = urma_import_jfr(e->ctx, &a.rjfr, &token);
    else
        e->target = urma_import_jetty(e->ctx, &a.rjetty, &token);
    CHECK(e->target != NULL);
    e->there = urma_import_seg(e->ctx, &a.seg, &token, 0, flag);
    CHECK(e->there != NULL);
    e->raddr = a.seg.ubva.va;
}

void uend_connect(struct uend *e, const struct uend_address *peer)
{
    uend_import(e, peer);
    if (e->jetty && e->opt.mode == URMA_TM_RC)
        CHECK_INT(urma_bind_jetty(e->jetty, e->target), 0);
}

void uend_part(struct uend *e)
{
    if (e->jetty && e->jetty->remote_jetty)
        CHECK_INT(urma_unbind_jetty(e->jetty), 0);
    if (e->target)
        CHECK_INT(e->opt.halves ? urma_unimport_jfr(e->target) : urma_unimport_jetty(e->target), 0);
    if (e->there)
        CHECK_INT(urma_unimport_seg(e->there), 0);
    e->target = NULL;
    e->there = NULL;
}

void upair_open(struct uend *l, struct uend *r, const struct uend_options *opt)
{
    struct uend_address left, right;

    uend_open(l, opt);
    uend_open(r, opt);
    left = uend_address(l);
    right = uend_address(r);
    uend_connect(l, &right);
    uend_connect(r, &left);
}

void upair_close(struct uend *l, struct uend *r)
{
    uend_close(l);
    uend_close(r);
}

void uend_meet(struct uend *e, const struct uend_options *opt, int sock)
{
    struct uend_address mine, peer;

    uend_open(e, opt);
    mine = uend_address(e);
    tell(sock, &mine, sizeof mine);
    hear(sock, &peer, sizeof peer);
    uend_connect(e, &peer);
    meet(sock);
}

// ---- requests

void uend_wr(struct uend *e, struct uwr *w, urma_opcode_t op, uint64_t id, size_t offset, uint32_t len)
{
    memset(w, 0, sizeof *w);
    w->wr.opcode = op;
    w->wr.user_ctx = id;
    w->wr.tjetty = e->target;
    w->wr.flag.bs.complete_enable = 1;
    w->local[0] = (urma_sge_t){.addr = (uintptr_t)e->buf + offset, .len = len, .tseg = e->seg};
    w->remote[0] = (urma_sge_t){.addr = e->raddr + offset, .len = len, .tseg = e->there};
    w->remote[1] = (urma_sge_t){.addr = e->raddr, .len = 8, .tseg = e->there};
    switch (op) {
    case URMA_OPC_READ:
        w->wr.rw.src = (urma_sg_t){w->remote, 1};
        w->wr.rw.dst = (urma_sg_t){w->local, 1};
        break;
    case URMA_OPC_WRITE:
    case URMA_OPC_WRITE_IMM:
    case URMA_OPC_WRITE_NOTIFY:
    case URMA_OPC_WRITE_ATOMIC:
        w->wr.rw.src = (urma_sg_t){w->local, 1};
        w->wr.rw.dst = (urma_sg_t){w->remote, op == URMA_OPC_WRITE || op == URMA_OPC_WRITE_IMM ? 1 : 2};
        break;
    case URMA_OPC_CAS:
    case URMA_OPC_SWAP:
        w->wr.cas.dst = w->remote;
        w->wr.cas.src = w->local;
        break;
    case URMA_OPC_SEND:
    case URMA_OPC_SEND_IMM:
    case URMA_OPC_SEND_INVALIDATE:
        w->wr.send.src = (urma_sg_t){w->local, 1};
        break;
    default:
        w->wr.faa.dst = w->remote;
        w->wr.faa.src = w->local;
    }
}

urma_status_t uend_post(struct uend *e, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad)
{
    urma_jfs_wr_t *mine;

    if (!bad)
        bad = &mine;
    return e->jfs ? urma_post_jfs_wr(e->jfs, wr, bad) : urma_post_jetty_send_wr(e->jetty, wr, bad);
}

urma_status_t uend_recv(struct uend *e, uint64_t id, size_t offset, uint32_t len)
{
    urma_sge_t sge = {.addr = (uintptr_t)e->buf + offset, .len = len, .tseg = e->seg};
    urma_jfr_wr_t *bad, wr = {.src = {&sge, 1}, .user_ctx = id};

    return e->jetty ? urma_post_jetty_recv_wr(e->jetty, &wr, &bad) : urma_post_jfr_wr(e->jfr, &wr, &bad);
}

// ---- completions

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool ucr_poll(urma_jfc_t *jfc, urma_cr_t *cr, int ms)
{
    double until = now() + ms * 1e-3;
    int n;

    do {
        n = urma_poll_jfc(jfc, 1, cr);
        if (n < 0)
            check_failed(__FILE__, __LINE__, "urma_poll_jfc: expected 0 or 1, got %d", n);
    } while (!n && now() < until);
    return n == 1;
}

void ucr_expect(urma_jfc_t *jfc, uint64_t id, urma_cr_status_t status, urma_cr_t *cr)
{
    urma_cr_t mine;

    if (!cr)
        cr = &mine;
    if (!ucr_poll(jfc, cr, 5000))
        check_failed(__FILE__, __LINE__, "expected CR %llu (status %d), none came in 5 s",
                     (unsigned long long)id, (int)status);
    if (cr->user_ctx != id || cr->status != status)
        check_failed(__FILE__, __LINE__, "expected CR %llu (status %d), got %llu (status %d)",
                     (unsigned long long)id, (int)status, (unsigned long long)cr->user_ctx, (int)cr->status);
}

void ucr_expect_empty(urma_jfc_t *jfc, int ms)
{
    urma_cr_t cr;

    if (ucr_poll(jfc, &cr, ms))
        check_failed(__FILE__, __LINE__, "expected no CR, got %llu (status %d)",
                     (unsigned long long)cr.user_ctx, (int)cr.status);
}
