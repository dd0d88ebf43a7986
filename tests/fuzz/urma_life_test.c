// SPDX-License-Identifier: MIT
// link: urma
// timeout: 60
// Every public call of liburma in an order out of nothing, on objects that are there: made, used, changed,
// given back in any order, in steps and at once. What is refused changes nothing that would keep the rest
// from being given back: at the end of a round all of it goes, and the context with it. An object that was
// given back is not used again, and what an object in steps was told to use outlives it: else the program
// breaks the guide, not the library.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>

#include "fuzz/lib/urma_objects.h"

// ---- targets

// Mostly a description of something that is there.
static urma_rjetty_t *described(void)
{
    static urma_rjetty_t r;
    urma_jetty_t *j = one(&jettys);
    urma_jetty_grp_t *g = rarely() ? one(&groups) : NULL;
    urma_rjetty_t *got;
    uint32_t bytes;

    if (!j || urma_get_rjetty(j, rarely() ? NULL : &got, &bytes) != URMA_SUCCESS)
        return NULL;
    r = *got;
    urma_put_rjetty(got);
    if (g)
        r = (urma_rjetty_t){.jetty_id = g->jetty_grp_id, .trans_mode = URMA_TM_RM, .type = URMA_JETTY_GROUP};
    r.policy = g ? g->cfg.policy : r.policy;
    r.tp_type = rarely() ? (urma_tp_type_t)(chance() % 4) : r.tp_type;
    r.flag.value = rarely() ? (uint32_t)chance() : r.flag.value;
    return &r;
}

static urma_rjfr_t *described_jfr(void)
{
    static urma_rjfr_t r;
    urma_jfr_t *j = one(&jfrs);

    if (!j)
        return NULL;
    r = (urma_rjfr_t){.jfr_id = j->jfr_id,
                      .trans_mode = j->jfr_cfg.trans_mode,
                      .flag.value = flags(),
                      .tp_type = j->jfr_cfg.trans_mode == URMA_TM_UM ? URMA_UTP : URMA_RTP};
    return &r;
}

static void import_calls(unsigned which)
{
    urma_import_jetty_ex_cfg_t way = {.tp_handle = chance()};
    urma_jfs_t *s = one(&jfss);
    urma_jetty_t *j = one(&jettys);
    urma_target_jetty_t *t = one(&targets);

    switch (which) {
    case 0:
        keep(&targets, urma_import_jetty(room(&targets), described(), token()));
        break;
    case 1:
        keep(&targets, urma_import_jetty_ex(room(&targets), described(), token(), rarely() ? NULL : &way));
        break;
    case 2:
        ENDED(targets, urma_target_jetty_t, urma_unimport_jetty(o));
        break;
    case 3:
        keep(&targets, urma_import_jfr(room(&targets), described_jfr(), token()));
        break;
    case 4:
        keep(&targets, urma_import_jfr_ex(room(&targets), described_jfr(), token(), rarely() ? NULL : &way));
        break;
    case 5:
        ENDED(targets, urma_target_jetty_t, urma_unimport_jfr(o));
        break;
    case 6:
        passed(urma_advise_jfr(s, t));
        passed(urma_unadvise_jfr(s, t));
        break;
    case 7:
        passed(urma_advise_jfr_async(s, t, NULL, rarely() ? NULL : &way));
        break;
    default:
        passed(urma_advise_jetty(j, t));
        passed(urma_unadvise_jetty(j, t));
    }
}

static void binding_calls(unsigned which)
{
    urma_bind_jetty_ex_cfg_t way = {.tp_handle = chance()};
    urma_notifier_t *w = one(&notifiers);
    urma_jetty_t *j = one(&jettys);
    urma_target_jetty_t *t = one(&targets);
    urma_notify_t told[4];
    int n;

    switch (which) {
    case 0:
        passed(urma_bind_jetty(j, t));
        break;
    case 1:
        passed(urma_bind_jetty_ex(j, t, rarely() ? NULL : &way));
        break;
    case 2:
        passed(urma_unbind_jetty(j));
        break;
    case 3:
        keep(&notifiers, urma_create_notifier(room(&notifiers)));
        break;
    case 4:
        ENDED(notifiers, urma_notifier_t, urma_delete_notifier(o));
        break;
    case 5:
        if (targets.n < FULL)
            keep(&targets, urma_import_jetty_async(w, described(), token(), chance(), 100));
        break;
    case 6:
        ENDED(targets, urma_target_jetty_t, urma_unimport_jetty_async(o));
        break;
    case 7:
        passed(urma_bind_jetty_async(w, j, t, chance(), 100));
        break;
    case 8:
        passed(urma_unbind_jetty_async(j));
        break;
    default:
        n = urma_wait_notify(w, (uint32_t)chance() % 5, told, (int)(chance() % 3));
        passed(urma_ack_notify(ctx, n > 0 ? (uint32_t)n : 0, told));
    }
}

// ---- data

static uint64_t somewhere(void)
{
    return (uintptr_t)memory + chance() % (BYTES - 4096);
}

// A list of WRs, most of them right.
static urma_jfs_wr_t *requests(void)
{
    static const urma_opcode_t usual[] = {URMA_OPC_WRITE,          URMA_OPC_READ, URMA_OPC_SEND,
                                          URMA_OPC_FADD,           URMA_OPC_CAS,  URMA_OPC_WRITE_NOTIFY,
                                          URMA_OPC_SEND_INVALIDATE};
    static urma_sge_t piece[3][4];
    static urma_jfs_wr_t wr[3];

    for (unsigned i = 0; i < 3; i++) {
        urma_jfs_wr_t *w = &wr[i];
        for (unsigned k = 0; k < 4; k++)
            piece[i][k] = (urma_sge_t){.addr = k == 3 ? somewhere() & ~7ull : somewhere(),
                                       .len = (uint32_t)chance() % (rarely() ? 4096 : 9),
                                       .tseg = chance() % 2 ? one(&segs) : one(&far_segs)};
        *w = (urma_jfs_wr_t){.opcode = rarely() ? (urma_opcode_t)(chance() % 140) : usual[chance() % 7],
                             .flag.value = rarely() ? (uint32_t)chance() % 1024 : (uint32_t)chance() % 64,
                             .tjetty = one(&targets),
                             .user_ctx = i};
        if (w->opcode >= URMA_OPC_CAS && w->opcode < URMA_OPC_SEND) {
            w->cas.dst = &piece[i][3];
            w->cas.src = &piece[i][0];
        } else if (w->opcode < URMA_OPC_SEND) {
            w->rw.src = (urma_sg_t){.sge = piece[i], .num_sge = 1 + (rarely() ? (uint32_t)chance() % 3 : 0)};
            w->rw.dst =
                (urma_sg_t){.sge = &piece[i][2], .num_sge = w->opcode == URMA_OPC_WRITE_NOTIFY ? 2 : 1};
        } else {
            w->send.src = (urma_sg_t){.sge = piece[i], .num_sge = (uint32_t)chance() % 3};
            w->send.tseg = one(&segs);
        }
        w->next = i < 2 && chance() % 2 ? &wr[i + 1] : NULL;
    }
    return rarely() ? NULL : wr;
}

static void data_calls(unsigned which)
{
    urma_sge_t piece = {.addr = somewhere(), .len = (uint32_t)chance() % 4096, .tseg = one(&segs)};
    urma_jfr_wr_t recv = {.src = {.sge = &piece, .num_sge = (uint32_t)chance() % 2}};
    urma_jfs_wr_flag_t flag = {.value = (uint32_t)chance() % 64};
    urma_jfs_wr_t *bad;
    urma_jfr_wr_t *bad_recv;
    urma_jfs_t *s = one(&jfss);
    urma_jfr_t *r = one(&jfrs);
    urma_jetty_t *j = one(&jettys);
    urma_target_jetty_t *t = one(&targets);
    urma_target_seg_t *here = one(&segs), *there = one(&far_segs);
    uint32_t len = (uint32_t)chance() % 64;

    switch (which) {
    case 0:
        passed(urma_post_jfs_wr(s, requests(), &bad));
        break;
    case 1:
    case 2:
        passed(urma_post_jetty_send_wr(j, requests(), rarely() ? NULL : &bad));
        break;
    case 3:
        passed(urma_post_jfr_wr(r, rarely() ? NULL : &recv, &bad_recv));
        break;
    case 4:
        passed(urma_post_jetty_recv_wr(j, rarely() ? NULL : &recv, &bad_recv));
        break;
    case 5:
        passed(urma_write(s, t, there, here, somewhere(), somewhere(), len, flag, 1));
        break;
    case 6:
        passed(urma_read(s, t, here, there, somewhere(), somewhere(), len, flag, 2));
        break;
    case 7:
        passed(urma_send(s, t, here, somewhere(), len, flag, 3));
        break;
    default:
        passed(urma_recv(r, here, rarely() ? 0 : somewhere(), len, 4));
    }
}

// ---- the rest

static void log_line(int level, char *message)
{
    (void)level;
    (void)message;
}

static void log_line_of(int level, const char *file, const char *function, int line, char *message)
{
    (void)level;
    (void)file;
    (void)function;
    (void)line;
    (void)message;
}

static void other_calls(unsigned which)
{
    urma_user_ctl_in_t in = {.opcode = (uint32_t)chance() % 40};
    urma_user_ctl_out_t out = {0};
    uint32_t n = (uint32_t)chance() % 4096;

    switch (which) {
    case 0:
        passed(urma_user_ctl(ctx, rarely() ? NULL : &in, &out));
        break;
    case 1:
        passed(urma_register_log_func(rarely() ? NULL : log_line));
        passed(urma_register_loc_log_func(rarely() ? NULL : log_line_of));
        passed(urma_unregister_log_func());
        break;
    case 2:
        urma_log_set_level((urma_vlog_level_t)(chance() % 12));
        passed(urma_log_get_level() > URMA_VLOG_LEVEL_DEBUG);
        break;
    case 3:
        urma_log_set_thread_tag(rarely() ? NULL : "tag");
        passed(urma_log_get_thread_tag() == NULL);
        break;
    case 4:
        passed(urma_start_perf());
        break;
    case 5:
        passed(urma_stop_perf());
        break;
    default:
        passed(urma_get_perf_info(rarely() ? NULL : memory, &n));
    }
}

static void transport_calls(unsigned which)
{
    urma_get_tp_cfg_t ask = {
        .flag.value = (uint32_t)chance() % 8, .trans_mode = mode(), .peer_eid = ctx->eid};
    urma_tp_attr_value_t value = {0};
    urma_tp_cfg_t cfg = {0};
    urma_tp_attr_t attr = {0};
    urma_tp_info_t list[2] = {{0}};
    urma_net_addr_info_t *addresses;
    urma_eid_t eid;
    uint32_t n = (uint32_t)chance() % 3, bits;
    uint8_t count, mac[6];

    switch (which) {
    case 0:
        urma_get_tpn(one(&jettys));
        break;
    case 1:
        passed(urma_modify_tp(ctx, n, rarely() ? NULL : &cfg, &attr, (urma_tp_attr_mask_t){.value = n}));
        break;
    case 2:
        passed(urma_get_tp_list(ctx, rarely() ? NULL : &ask, &n, list));
        passed(urma_get_tp_attr(ctx, rarely() ? chance() : list[0].tp_handle, &count, &bits, &value));
        passed(urma_set_tp_attr(ctx, list[0].tp_handle, 1, 1, rarely() ? NULL : &value));
        break;
    default:
        addresses = urma_get_net_addr_list(rarely() ? NULL : ctx, &n);
        if (addresses && n) {
            passed(urma_get_eid_by_ip(ctx, &addresses[n - 1].netaddr, rarely() ? NULL : &eid));
            passed(urma_get_ip_by_eid(ctx, &ctx->eid, &addresses[n - 1].netaddr));
            passed(urma_get_dmac(ctx, &addresses[n - 1].netaddr, rarely() ? NULL : mac));
        }
        passed(urma_get_smac(ctx, rarely() ? NULL : mac));
        urma_free_net_addr_list(addresses);
    }
}

// ---- a round

enum { PASSES = 10 };

static const struct {
    void (*call)(unsigned which);
    unsigned n;
} kinds[] = {{device_calls, 10},  {jfc_calls, 11},     {event_calls, 6}, {jfs_calls, 12},
             {jfr_calls, 11},     {jetty_calls, 13},   {group_calls, 2}, {segment_calls, 9},
             {import_calls, 9},   {binding_calls, 10}, {data_calls, 9},  {other_calls, 7},
             {transport_calls, 4}};

enum { KINDS = sizeof kinds / sizeof kinds[0], CALLS = 128 };

// Each call once, in an order out of nothing.
static void pass(void)
{
    uint8_t kind[CALLS], which[CALLS];
    unsigned n = 0;

    for (unsigned k = 0; k < KINDS; k++)
        for (unsigned i = 0; i < kinds[k].n; i++, n++) {
            unsigned at = (unsigned)(chance() % (n + 1));
            kind[n] = kind[at];
            which[n] = which[at];
            kind[at] = (uint8_t)k;
            which[at] = (uint8_t)i;
        }
    for (unsigned i = 0; i < n; i++)
        kinds[kind[i]].call(which[i]);
}

#define GIVE_BACK(pool, call)                                                                                \
    for (unsigned i = (pool).n; i-- > 0;) {                                                                  \
        void *o = (pool).of[i];                                                                              \
        if (!(call))                                                                                         \
            gone(&(pool), o);                                                                                \
    }

// Whatever goes, goes; again until nothing more does. An object that was made by steps goes by them.
static void give_all_back(void)
{
    for (unsigned turn = 0; turn < 4; turn++) {
        for (unsigned i = 0; i < jettys.n; i++)
            urma_unbind_jetty(jettys.of[i]);
        GIVE_BACK(jettys, urma_delete_jetty(o) && urma_free_jetty(o))
        GIVE_BACK(targets, urma_unimport_jetty(o))
        GIVE_BACK(jfss, urma_delete_jfs(o) && urma_free_jfs(o))
        GIVE_BACK(jfrs, urma_delete_jfr(o) && urma_free_jfr(o))
        GIVE_BACK(groups, urma_delete_jetty_grp(o))
        GIVE_BACK(jfcs, urma_delete_jfc(o) && urma_free_jfc(o))
        GIVE_BACK(jfces, urma_delete_jfce(o))
        GIVE_BACK(far_segs, urma_unimport_seg(o))
        GIVE_BACK(segs, urma_unregister_seg(o))
        GIVE_BACK(tokens, urma_free_token_id(o))
        GIVE_BACK(notifiers, urma_delete_notifier(o))
    }
}

static int left(const char *what, unsigned n)
{
    if (n)
        fprintf(stderr, "%u %s cannot be given back\n", n, what);
    return n != 0;
}

static int round_of(void)
{
    if (urma_init(NULL) != URMA_SUCCESS || !(dev = urma_get_device_by_name((char *)"drydock0")))
        return 2;
    ctx = urma_create_context(dev, 0);
    jfce = urma_create_jfce(ctx);
    jfc = urma_create_jfc(ctx, &(urma_jfc_cfg_t){.depth = 4096});
    jfr = urma_create_jfr(ctx,
                          &(urma_jfr_cfg_t){.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfc});
    group = urma_create_jetty_grp(ctx, &(urma_jetty_grp_cfg_t){.name = "stays"});
    if (!jfce || !jfc || !jfr || !group)
        return 3;
    fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK);
    for (unsigned i = 0; i < PASSES; i++)
        pass();
    give_all_back();
    int bad = left("jettys", jettys.n) + left("targets", targets.n) + left("JFSs", jfss.n) +
              left("JFRs", jfrs.n) + left("groups", groups.n) + left("JFCs", jfcs.n) +
              left("JFCEs", jfces.n) + left("imported segments", far_segs.n) + left("segments", segs.n) +
              left("token ids", tokens.n) + left("notifiers", notifiers.n);
    bad += urma_delete_jetty_grp(group) || urma_delete_jfr(jfr) || urma_delete_jfc(jfc) ||
           urma_delete_jfce(jfce);
    if (bad || urma_delete_context(ctx) != URMA_SUCCESS)
        return 4;
    return successes > 100 ? 0 : 5; // else nothing was tried
}

static void whatever_is_done_everything_can_be_given_back(void **state)
{
    (void)state;
    fuzz_rounds(24, 20, round_of, "fuzz/urma_life_test");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_done_everything_can_be_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
