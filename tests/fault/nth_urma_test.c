// SPDX-License-Identifier: MIT
// link: urma
// timeout: 240
// The n-th allocation or system call of a URMA program's whole life fails, for every n until nothing fails
// any more: start, one object of each kind, a transfer, everything deleted, end. A failing creator returns
// NULL and errno, the others a code; each with a reason; descriptors, mappings and heap blocks are as before.
// One failure: nth_urma_test N
#ifdef DOCK_SANITIZED
int main(void)
{
    return 77; // a sanitizer's runtime needs these functions for itself
}
#else
#include <ub/umdk/urma/urma_api.h>

#include <string.h>

#include "base/clock.h"
#include "fault/nth_life.h"

#define RIGHTS (URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC)

static struct {
    urma_device_t **list;
    urma_eid_info_t *eids;
    urma_context_t *ctx;
    urma_jfce_t *jfce;
    urma_jfc_t *jfc, *stepped;
    urma_jfr_t *jfr;
    urma_jfs_t *jfs;
    urma_jetty_t *jetty;
    urma_jetty_grp_t *group;
    urma_token_id_t *id;
    urma_target_seg_t *seg, *there;
    urma_rjetty_t *name;
    urma_target_jetty_t *target, *noticed, *jfr_target;
    urma_notifier_t *notifier;
} v;

static char memory[8192];
static urma_token_t token = {77};

static int up_init(void)
{
    return urma_init(NULL);
}

static int down_init(void)
{
    return urma_uninit();
}

static int up_list(void)
{
    int n;

    return made(v.list = urma_get_device_list(&n));
}

static int down_list(void)
{
    urma_free_device_list(v.list);
    return 0;
}

static int up_eids(void)
{
    uint32_t n;

    return made(v.eids = urma_get_eid_list(v.list[0], &n));
}

static int down_eids(void)
{
    urma_free_eid_list(v.eids);
    return 0;
}

static int up_context(void)
{
    return made(v.ctx = urma_create_context(v.list[0], v.eids[0].eid_index));
}

static int down_context(void)
{
    return urma_delete_context(v.ctx);
}

static int up_jfce(void)
{
    return made(v.jfce = urma_create_jfce(v.ctx));
}

static int down_jfce(void)
{
    return urma_delete_jfce(v.jfce);
}

static int up_jfc(void)
{
    urma_jfc_cfg_t cfg = {.depth = 64, .jfce = v.jfce};

    return made(v.jfc = urma_create_jfc(v.ctx, &cfg));
}

static int down_jfc(void)
{
    return urma_delete_jfc(v.jfc);
}

static int up_allocated(void)
{
    urma_jfc_cfg_t cfg = {.depth = 64};

    return urma_alloc_jfc(v.ctx, &cfg, &v.stepped);
}

static int down_allocated(void)
{
    return urma_free_jfc(v.stepped);
}

static int up_active(void)
{
    return urma_active_jfc(v.stepped);
}

static int down_active(void)
{
    return urma_deactive_jfc(v.stepped);
}

static int up_jfr(void)
{
    urma_jfr_cfg_t cfg = {
        .depth = 8, .trans_mode = URMA_TM_RC, .max_sge = 1, .jfc = v.jfc, .token_value = token};

    return made(v.jfr = urma_create_jfr(v.ctx, &cfg));
}

static int down_jfr(void)
{
    return urma_delete_jfr(v.jfr);
}

static urma_jfs_cfg_t sends(urma_transport_mode_t mode)
{
    return (urma_jfs_cfg_t){.depth = 8,
                            .trans_mode = mode,
                            .max_sge = 1,
                            .max_rsge = 1,
                            .rnr_retry = URMA_TYPICAL_RNR_RETRY,
                            .err_timeout = URMA_TYPICAL_ERR_TIMEOUT,
                            .jfc = v.jfc};
}

static int up_jfs(void)
{
    urma_jfs_cfg_t cfg = sends(URMA_TM_UM);

    return made(v.jfs = urma_create_jfs(v.ctx, &cfg));
}

static int down_jfs(void)
{
    return urma_delete_jfs(v.jfs);
}

static int up_jetty(void)
{
    urma_jetty_cfg_t cfg = {
        .jfs_cfg = sends(URMA_TM_RC), .flag = {.bs = {.share_jfr = 1}}, .shared = {.jfr = v.jfr}};

    return made(v.jetty = urma_create_jetty(v.ctx, &cfg));
}

static int down_jetty(void)
{
    return urma_delete_jetty(v.jetty);
}

static int up_group(void)
{
    urma_jetty_grp_cfg_t cfg = {.name = "nth"};

    return made(v.group = urma_create_jetty_grp(v.ctx, &cfg));
}

static int down_group(void)
{
    return urma_delete_jetty_grp(v.group);
}

static int up_id(void)
{
    return made(v.id = urma_alloc_token_id(v.ctx));
}

static int down_id(void)
{
    return urma_free_token_id(v.id);
}

static int up_seg(void)
{
    urma_seg_cfg_t cfg = {
        .va = (uintptr_t)memory, .len = sizeof memory, .token_id = v.id, .token_value = token};

    cfg.flag.bs.token_id_valid = URMA_TOKEN_ID_VALID;
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.access = RIGHTS;
    return made(v.seg = urma_register_seg(v.ctx, &cfg));
}

static int down_seg(void)
{
    return urma_unregister_seg(v.seg);
}

static int up_import_seg(void)
{
    urma_import_seg_flag_t flag = {.bs = {.access = RIGHTS}};

    return made(v.there = urma_import_seg(v.ctx, &v.seg->seg, &token, 0, flag));
}

static int down_import_seg(void)
{
    return urma_unimport_seg(v.there);
}

static int up_name(void)
{
    uint32_t size;

    return urma_get_rjetty(v.jetty, &v.name, &size);
}

static int down_name(void)
{
    urma_put_rjetty(v.name);
    return 0;
}

static int up_import(void)
{
    return made(v.target = urma_import_jetty(v.ctx, v.name, &token));
}

static int down_import(void)
{
    return urma_unimport_jetty(v.target);
}

static int up_import_jfr(void)
{
    urma_rjfr_t r = {.jfr_id = v.jfr->jfr_id, .trans_mode = URMA_TM_RC};

    return made(v.jfr_target = urma_import_jfr(v.ctx, &r, &token));
}

static int down_import_jfr(void)
{
    return urma_unimport_jfr(v.jfr_target);
}

static int up_notifier(void)
{
    return made(v.notifier = urma_create_notifier(v.ctx));
}

static int down_notifier(void)
{
    return urma_delete_notifier(v.notifier);
}

static int up_noticed(void)
{
    urma_notify_t got;

    v.noticed = urma_import_jetty_async(v.notifier, v.name, &token, 1, 10000);
    if (!v.noticed)
        return made(NULL);
    int n = urma_wait_notify(v.notifier, 1, &got, 10000), waited = errno;
    if (n == 1 && got.tjetty == v.noticed && !got.status)
        return 0;
    urma_unimport_jetty_async(v.noticed);
    return n < 0 ? waited : EBADMSG;
}

static int down_noticed(void)
{
    return urma_unimport_jetty_async(v.noticed);
}

static int up_bind(void)
{
    return urma_bind_jetty(v.jetty, v.target);
}

static int down_bind(void)
{
    return urma_unbind_jetty(v.jetty);
}

// A failed request is no failed call: its CR says so, and only of a copy that failed.
static int up_move(void)
{
    urma_sge_t from = {.addr = (uintptr_t)memory, .len = 64, .tseg = v.seg},
               to = {.addr = (uintptr_t)memory + 4096, .len = 64, .tseg = v.there};
    urma_jfs_wr_t *bad, wr = {.opcode = URMA_OPC_WRITE,
                              .flag = {.bs = {.complete_enable = 1}},
                              .tjetty = v.target,
                              .rw = {.src = {&from, 1}, .dst = {&to, 1}}};
    uint64_t end = dock_now_ns() + 10000000000ull;
    int err = urma_rearm_jfc(v.jfc, false), n = 0;
    urma_cr_t cr;

    memset(memory, 0x2d, 64);
    memset(memory + 4096, 0, 64);
    if (!err)
        err = urma_post_jetty_send_wr(v.jetty, &wr, &bad);
    while (!err && !n && dock_now_ns() < end)
        n = urma_poll_jfc(v.jfc, 1, &cr);
    if (err || n != 1)
        return err ? err : ETIMEDOUT;
    if (cr.status)
        return (cr.status == URMA_CR_REM_OPERATION_ERR || cr.status == URMA_CR_LOC_ACCESS_ERR) &&
                       copy_failed()
                   ? 0
                   : EBADMSG;
    return memory[4096 + 63] == 0x2d ? 0 : EBADMSG;
}

static const struct step urma_steps[] = {
    {"init", up_init, down_init},
    {"list", up_list, down_list},
    {"EIDs", up_eids, down_eids},
    {"context", up_context, down_context},
    {"JFCE", up_jfce, down_jfce},
    {"JFC", up_jfc, down_jfc},
    {"JFC allocated", up_allocated, down_allocated},
    {"JFC active", up_active, down_active},
    {"JFR", up_jfr, down_jfr},
    {"JFS", up_jfs, down_jfs},
    {"jetty", up_jetty, down_jetty},
    {"group", up_group, down_group},
    {"token id", up_id, down_id},
    {"segment", up_seg, down_seg},
    {"imported segment", up_import_seg, down_import_seg},
    {"name", up_name, down_name},
    {"imported jetty", up_import, down_import},
    {"imported JFR", up_import_jfr, down_import_jfr},
    {"notifier", up_notifier, down_notifier},
    {"import by notice", up_noticed, down_noticed},
    {"bind", up_bind, down_bind},
    {"move", up_move, nothing},
};

int main(int argc, char **argv)
{
    program = "fault/nth_urma_test";
    fault = URMA_FAIL; // it has no number of its own
    steps = urma_steps;
    nsteps = sizeof urma_steps / sizeof *urma_steps;
    return nth_main(argc, argv, 60);
}
#endif
