// SPDX-License-Identifier: MIT
// Every wrong argument of every call: the documented code, a reason in words, and nothing has changed. The
// rows are in bad_input_rows.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <ub/umdk/urma/udma/udma_u_ctl.h>
#include <ub/umdk/urma/urma_perf.h>

#include "base/log.h"
#include "face/urma/lib/uend.h"

enum kind { POINTER, STATUS, COUNT, REFUSED, NOTHING, GOOD };

static struct uend l, r, h, hr, rc, rcr; // connected: jettys, halves, and a bound pair
static struct uend_address peer;         // of r
static urma_device_t *dev;
static urma_device_cap_t cap;
static urma_notifier_t *notifier;
static urma_jfc_cfg_t jfc_cfg;
static urma_jfs_cfg_t jfs_cfg;
static urma_jfr_cfg_t jfr_cfg;
static urma_jetty_cfg_t jetty_cfg;
static urma_jetty_grp_cfg_t grp_cfg, endless_grp;
static urma_seg_cfg_t seg_cfg;
static urma_get_tp_cfg_t tp_cfg;
static urma_token_t token = {UEND_TOKEN};
static urma_context_aggr_mode_t mode;
static urma_user_ctl_in_t ctl_in = {.opcode = 0xffffff};
static urma_user_ctl_in_t ctl_chip = {.opcode = 12}; // QUERY_CQE_AUX_INFO
static urma_user_ctl_out_t ctl_out;
static urma_tp_cfg_t tp_way;
static urma_tp_attr_t tp_change;
static urma_import_seg_flag_t no_flag;
static urma_jfs_wr_flag_t no_wr_flag;
static struct uwr a_send;
static urma_jfr_wr_t recv_wr;
static urma_sge_t long_piece;
static uint32_t depth = 8;
static char long_name[] = "0123456789012345678901234567890123456789012345678901234567890123";

static struct {
    urma_jfc_t *jfc;
    urma_jfs_t *jfs;
    urma_jfr_t *jfr;
    urma_jetty_t *jetty;
} step; // allocated, never activated

static union {
    urma_device_attr_t dev;
    uint32_t u32;
    uint64_t u64;
    urma_eid_t eid;
    urma_cr_t cr;
    urma_jfs_cfg_t jfs;
    urma_jfs_attr_t jfs_attr;
    urma_jfr_cfg_t jfr;
    urma_jfr_attr_t jfr_attr;
    urma_jetty_cfg_t jetty;
    urma_jetty_attr_t jetty_attr;
    urma_notify_t notify;
    urma_async_event_t event;
    urma_tp_info_t tp;
    urma_tp_attr_value_t tp_attr;
    urma_net_addr_t net;
    uint8_t mac[6];
    char text[64];
} out;

static union {
    urma_jfc_t *jfc;
    urma_jfs_t *jfs;
    urma_jfr_t *jfr;
    urma_jetty_t *jetty;
    urma_rjetty_t *rjetty;
    urma_seg_t *seg;
    urma_jfs_wr_t *jfs_wr;
    urma_jfr_wr_t *jfr_wr;
} none;

#define JFC_USUAL .depth = 16
#define JFS_USUAL .depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .max_rsge = 1, .jfc = l.jfc
#define JFR_USUAL .depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = l.jfc
#define JETTY_USUAL .flag.bs.share_jfr = 1, .jfs_cfg = {JFS_USUAL}, .shared = {.jfr = l.jfr, .jfc = l.jfc}
#define SEG_USUAL                                                                                            \
    .va = (uintptr_t)l.buf, .len = 4096, .token_value = {UEND_TOKEN}, .flag.bs.access = ALL_ACCESS
#define RJETTY_USUAL .jetty_id = peer.rjetty.jetty_id, .trans_mode = URMA_TM_RM, .type = URMA_JETTY
#define jfc_with(...) urma_create_jfc(l.ctx, &(urma_jfc_cfg_t){JFC_USUAL, __VA_ARGS__})
#define jfs_with(...) urma_create_jfs(l.ctx, &(urma_jfs_cfg_t){JFS_USUAL, __VA_ARGS__})
#define alloc_jfs_with(...) urma_alloc_jfs(l.ctx, &(urma_jfs_cfg_t){JFS_USUAL, __VA_ARGS__}, &none.jfs)
#define jfr_with(...) urma_create_jfr(l.ctx, &(urma_jfr_cfg_t){JFR_USUAL, __VA_ARGS__})
#define jetty_with(...) urma_create_jetty(l.ctx, &(urma_jetty_cfg_t){JETTY_USUAL, __VA_ARGS__})
#define seg_with(...) urma_register_seg(l.ctx, &(urma_seg_cfg_t){SEG_USUAL, __VA_ARGS__})
#define import_with(...) urma_import_jetty(l.ctx, &(urma_rjetty_t){RJETTY_USUAL, __VA_ARGS__}, &token)
#define post_with(...) post_(&(urma_jfs_wr_t){SEND_USUAL, __VA_ARGS__})
#define SEND_USUAL .opcode = URMA_OPC_SEND, .tjetty = l.target, .send.src = a_send.wr.send.src

static urma_status_t post_(urma_jfs_wr_t *wr)
{
    urma_jfs_wr_t *bad = NULL;
    urma_status_t status = urma_post_jetty_send_wr(l.jetty, wr, &bad);

    CHECK(bad == wr);
    return status;
}

// ---- what is accepted is undone at once: 0, or what the refusal said

static int gone_jfc(urma_jfc_t *o)
{
    return o ? (int)urma_delete_jfc(o) : errno;
}

static int gone_jfs(urma_jfs_t *o)
{
    return o ? (int)urma_delete_jfs(o) : errno;
}

static int gone_jfr_(urma_jfr_t *o)
{
    return o ? (int)urma_delete_jfr(o) : errno;
}

static int gone_jetty_(urma_jetty_t *o)
{
    return o ? (int)urma_delete_jetty(o) : errno;
}

static int gone_jetty(urma_target_jetty_t *o)
{
    return o ? (int)urma_unimport_jetty(o) : errno;
}

static int gone_jfr(urma_target_jetty_t *o)
{
    return o ? (int)urma_unimport_jfr(o) : errno;
}

static int gone_own_seg(urma_target_seg_t *o)
{
    return o ? (int)urma_unregister_seg(o) : errno;
}

static int gone_seg(urma_target_seg_t *o)
{
    return o ? (int)urma_unimport_seg(o) : errno;
}

#define made_jfc(...) gone_jfc(jfc_with(__VA_ARGS__))
#define made_jfs(...) gone_jfs(jfs_with(__VA_ARGS__))
#define made_jfr(...) gone_jfr_(jfr_with(__VA_ARGS__))
#define made_jetty(...) gone_jetty_(jetty_with(__VA_ARGS__))
#define made_seg(...) gone_own_seg(seg_with(__VA_ARGS__))
#define imported(...) gone_jetty(import_with(__VA_ARGS__))
#define imported_jfr(token, ...)                                                                             \
    gone_jfr(urma_import_jfr(l.ctx, &(urma_rjfr_t){.jfr_id = peer.rjfr.jfr_id, __VA_ARGS__}, token))
#define imported_seg(...)                                                                                    \
    gone_seg(urma_import_seg(                                                                                \
        l.ctx, &(urma_seg_t){.ubva = peer.seg.ubva, .token_id = peer.seg.token_id, __VA_ARGS__}, NULL, 0,    \
        no_flag))

static int made_group(uint32_t id, const char *name)
{
    urma_jetty_grp_cfg_t cfg = {.id = id};
    urma_jetty_grp_t *g;

    snprintf(cfg.name, sizeof cfg.name, "%s", name);
    g = urma_create_jetty_grp(l.ctx, &cfg);
    return g ? (int)urma_delete_jetty_grp(g) : errno;
}

// A life in steps up to the call that is looked at, and back.
#define STEP_TO(kind)                                                                                        \
    static int life_of_##kind(urma_##kind##_t *o, urma_status_t (*last)(urma_##kind##_t *))                  \
    {                                                                                                        \
        int status = 0;                                                                                      \
                                                                                                             \
        if (last != urma_free_##kind)                                                                        \
            status = (int)urma_active_##kind(o);                                                             \
        if (!status && last != urma_free_##kind)                                                             \
            status = (int)urma_deactive_##kind(o);                                                           \
        return status + (int)urma_free_##kind(o);                                                            \
    }

STEP_TO(jfc)
STEP_TO(jfs)
STEP_TO(jfr)
STEP_TO(jetty)

static int step_jfc(uint32_t of_depth, urma_status_t (*last)(urma_jfc_t *))
{
    urma_jfc_t *o;
    urma_status_t status = urma_alloc_jfc(l.ctx, &(urma_jfc_cfg_t){.depth = of_depth}, &o);

    return status ? (int)status : life_of_jfc(o, last);
}

static int step_jfs(urma_jfc_t *jfc, uint32_t of_depth, urma_status_t (*last)(urma_jfs_t *))
{
    urma_jfs_cfg_t cfg = jfs_cfg;
    urma_status_t status;
    urma_jfs_t *o;

    cfg.jfc = jfc;
    cfg.depth = of_depth;
    status = urma_alloc_jfs(l.ctx, &cfg, &o);
    return status ? (int)status : life_of_jfs(o, last);
}

static int step_jfr(urma_jfc_t *jfc, urma_status_t (*last)(urma_jfr_t *))
{
    urma_jfr_cfg_t cfg = jfr_cfg;
    urma_status_t status;
    urma_jfr_t *o;

    cfg.jfc = jfc;
    status = urma_alloc_jfr(l.ctx, &cfg, &o);
    return status ? (int)status : life_of_jfr(o, last);
}

static int step_jetty(urma_jfr_t *jfr, urma_jfc_t *jfc, urma_status_t (*last)(urma_jetty_t *))
{
    urma_jetty_cfg_t cfg = jetty_cfg;
    urma_status_t status;
    urma_jetty_t *o;

    cfg.shared.jfr = jfr;
    cfg.shared.jfc = jfc;
    status = urma_alloc_jetty(l.ctx, &cfg, &o);
    return status ? (int)status : life_of_jetty(o, last);
}

// Order 0 becomes the mode's own, in the caller's configuration.
static int told_order(urma_transport_mode_t of_mode)
{
    urma_jfs_cfg_t cfg = jfs_cfg;
    int gone;

    cfg.trans_mode = of_mode;
    gone = gone_jfs(urma_create_jfs(l.ctx, &cfg));
    return gone ? -gone : (int)cfg.flag.bs.order_type;
}

static int unbound_rc(urma_status_t (*call)(urma_jetty_t *))
{
    urma_jetty_cfg_t cfg = rc.jetty->jetty_cfg;
    urma_jetty_t *o = urma_create_jetty(rc.ctx, &cfg);
    int status = o ? (int)call(o) : -1;

    return gone_jetty_(o) ? -1 : status;
}

// An RC jetty and a target that are of two orders.
static int bound_of_another_order(void)
{
    urma_rjetty_t at = uend_address(&rcr).rjetty;
    urma_jetty_cfg_t cfg = rc.jetty->jetty_cfg;
    urma_target_jetty_t *t;
    urma_jetty_t *o = urma_create_jetty(rc.ctx, &cfg);
    int status = -1;

    at.flag.bs.order_type = URMA_OT;
    t = urma_import_jetty(rc.ctx, &at, &token);
    if (o && t)
        status = (int)urma_bind_jetty(o, t);
    return gone_jetty(t) || gone_jetty_(o) ? -1 : status;
}

// Members until one is refused: errno, when there were as many as are announced.
static int filled_group(void)
{
    urma_jetty_grp_cfg_t cfg = {.token_value = {UEND_TOKEN}, .name = "full"};
    urma_jetty_cfg_t jcfg = l.jetty->jetty_cfg;
    urma_jetty_t *member[64] = {NULL};
    uint32_t n = 0;
    int error;

    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    jcfg.jetty_grp = urma_create_jetty_grp(l.ctx, &cfg);
    while (n < 64 && (member[n] = urma_create_jetty(l.ctx, &jcfg)))
        n++;
    error = n == cap.max_jetty_in_jetty_grp ? errno : -(int)n;
    for (uint32_t i = 0; i < n; i++)
        urma_delete_jetty(member[i]);
    return urma_delete_jetty_grp(jcfg.jetty_grp) ? -1 : error;
}

// Fields of a description that are not the jetty's.
static int wrong_fields(void)
{
    const urma_jetty_cfg_t *c = &l.jetty->jetty_cfg;
    urma_rjetty_t *d;
    uint32_t bytes;
    int wrong;

    if (urma_get_rjetty(l.jetty, &d, &bytes))
        return -1;
    wrong = (bytes != sizeof *d) + (d->type != URMA_JETTY) + (d->trans_mode != URMA_TM_RM) +
            (d->tp_type != URMA_RTP) + (d->policy != 0) + (d->flag.bs.order_type != URMA_OI) +
            (d->flag.bs.token_policy != c->shared.jfr->jfr_cfg.flag.bs.token_policy) +
            (memcmp(&d->jetty_id, &l.jetty->jetty_id, sizeof d->jetty_id) != 0);
    urma_put_rjetty(d);
    return wrong;
}

static int seg_of_own_token(void)
{
    urma_token_id_t *id = urma_alloc_token_id(l.ctx);
    urma_seg_cfg_t cfg = seg_cfg;
    int gone;

    cfg.flag.bs.token_id_valid = 1;
    cfg.token_id = id;
    gone = gone_own_seg(urma_register_seg(l.ctx, &cfg));
    return gone + (int)urma_free_token_id(id);
}

#define AT ((uintptr_t)h.buf)
#define write_(to, here, bytes, from)                                                                        \
    urma_write(h.jfs, h.target, h.there, from, to, here, bytes, no_wr_flag, 0)
#define read_(here, at, bytes) urma_read(h.jfs, h.target, h.seg, h.there, here, at, bytes, no_wr_flag, 0)
#define send_(here, bytes, from, flag) urma_send(h.jfs, h.target, from, here, bytes, flag, 0)

static int level_after(urma_vlog_level_t level)
{
    int got;

    urma_log_set_level(level);
    got = (int)urma_log_get_level();
    urma_log_set_level(URMA_VLOG_LEVEL_INFO);
    return got;
}

// ---- the table, as functions and as rows

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init" // a row says what differs from the usual

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define ROW(function, what, kind, expected, call)                                                            \
    static long long CAT(row_, __LINE__)(void)                                                               \
    {                                                                                                        \
        return (long long)(call);                                                                            \
    }
#include "face/urma/bad_input_rows.h"
#undef ROW
#define ROW(function, what, kind, expected, call)                                                            \
    static long long CAT(more_, __LINE__)(void)                                                              \
    {                                                                                                        \
        return (long long)(call);                                                                            \
    }
#include "face/urma/accepted_rows.h"
#undef ROW
#pragma GCC diagnostic pop

static const struct row {
    const char *function, *what;
    enum kind kind;
    long long expected;
    long long (*call)(void);
} rows[] = {
#define ROW(function, what, kind, expected, call) {#function, what, kind, expected, CAT(row_, __LINE__)},
#include "face/urma/bad_input_rows.h"
#undef ROW
#define ROW(function, what, kind, expected, call) {#function, what, kind, expected, CAT(more_, __LINE__)},
#include "face/urma/accepted_rows.h"
#undef ROW
};

// ---- what must not change

struct snapshot {
    urma_jetty_cfg_t jetty_cfg;
    urma_jetty_attr_t jetty_attr;
    urma_jfs_cfg_t jfs_cfg;
    urma_jfs_attr_t jfs_attr;
    urma_jfr_cfg_t jfr_cfg;
    urma_jfr_attr_t jfr_attr;
    urma_jfc_cfg_t jfc_cfg;
    unsigned long objects;
};

static void take_snapshot(struct snapshot *s)
{
    memset(s, 0, sizeof(*s));
    CHECK_INT(urma_query_jetty(l.jetty, &s->jetty_cfg, &s->jetty_attr), URMA_SUCCESS);
    CHECK_INT(urma_query_jfs(h.jfs, &s->jfs_cfg, &s->jfs_attr), URMA_SUCCESS);
    CHECK_INT(urma_query_jfr(h.jfr, &s->jfr_cfg, &s->jfr_attr), URMA_SUCCESS);
    s->jfc_cfg = l.jfc->jfc_cfg;
    s->objects = l.ctx->ref.atomic_cnt;
}

static bool right_answer(const struct row *row, long long got, int error)
{
    switch (row->kind) {
    case POINTER:
        return got == 0 && error == row->expected;
    case STATUS:
    case COUNT:
    case REFUSED:
    case GOOD:
        return (int)got == (int)row->expected;
    case NOTHING:
        return true;
    }
    return false;
}

static void each_wrong_argument_is_refused_in_words(void **state)
{
    struct snapshot before, after;
    unsigned wrong = 0;

    (void)state;
    take_snapshot(&before);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        char mark[64];
        long long got;
        int error;
        bool logged;

        dock_debug("row %zu begins", i);
        snprintf(mark, sizeof(mark), "%s", dock_log_last());
        errno = 0;
        got = row->call();
        error = errno;
        logged = strcmp(dock_log_last(), mark) != 0;
        take_snapshot(&after);
        if (!right_answer(row, got, error)) {
            print_error("%s, %s: expected %lld, got %lld, errno %d\n", row->function, row->what,
                        row->expected, got, error);
            wrong++;
        }
        if (row->kind <= REFUSED && !logged) {
            print_error("%s, %s: refused without a reason in words\n", row->function, row->what);
            wrong++;
        }
        if (memcmp(&before, &after, sizeof(before))) {
            print_error("%s, %s: something has changed\n", row->function, row->what);
            wrong++;
            before = after;
        }
    }
    print_message("%zu rows\n", sizeof(rows) / sizeof(rows[0]));
    if (wrong)
        fail_msg("%u rows wrong", wrong);
}

static int open_all(void **state)
{
    struct uend_options jettys = {.mode = URMA_TM_RM, .events = true};
    struct uend_options halves = {.mode = URMA_TM_RM, .halves = true};
    urma_device_attr_t attr;

    (void)state;
    dev = the_device();
    CHECK_INT(urma_query_device(dev, &attr), URMA_SUCCESS);
    cap = attr.dev_cap;
    upair_open(&l, &r, &jettys);
    upair_open(&h, &hr, &halves);
    upair_open(&rc, &rcr, &(struct uend_options){.mode = URMA_TM_RC});
    peer = uend_address(&r);
    peer.rjfr = uend_address(&hr).rjfr;
    jfc_cfg = (urma_jfc_cfg_t){JFC_USUAL};
    jfs_cfg = (urma_jfs_cfg_t){JFS_USUAL};
    jfr_cfg = (urma_jfr_cfg_t){JFR_USUAL};
    jetty_cfg = (urma_jetty_cfg_t){JETTY_USUAL};
    seg_cfg = (urma_seg_cfg_t){SEG_USUAL};
    tp_cfg = (urma_get_tp_cfg_t){
        .flag.bs.rtp = 1, .trans_mode = URMA_TM_RM, .local_eid = l.ctx->eid, .peer_eid = r.ctx->eid};
    memset(endless_grp.name, 'n', sizeof endless_grp.name);
    uend_wr(&l, &a_send, URMA_OPC_SEND, 1, 0, 8);
    long_piece = (urma_sge_t){.addr = (uintptr_t)l.buf, .len = cap.max_jfs_inline_len + 1, .tseg = l.seg};
    recv_wr = (urma_jfr_wr_t){.src = {.sge = a_send.local, .num_sge = 1}};
    notifier = urma_create_notifier(l.ctx);
    CHECK(notifier != NULL);
    CHECK_INT(urma_alloc_jfc(l.ctx, &jfc_cfg, &step.jfc), URMA_SUCCESS);
    jfs_cfg.jfc = step.jfc;
    jfr_cfg.jfc = step.jfc;
    CHECK_INT(urma_alloc_jfs(l.ctx, &jfs_cfg, &step.jfs), URMA_SUCCESS);
    CHECK_INT(urma_alloc_jfr(l.ctx, &jfr_cfg, &step.jfr), URMA_SUCCESS);
    CHECK_INT(urma_alloc_jetty(l.ctx, &jetty_cfg, &step.jetty), URMA_SUCCESS);
    jfs_cfg.jfc = l.jfc;
    jfr_cfg.jfc = l.jfc;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    CHECK_INT(urma_free_jetty(step.jetty), URMA_SUCCESS);
    CHECK_INT(urma_free_jfr(step.jfr), URMA_SUCCESS);
    CHECK_INT(urma_free_jfs(step.jfs), URMA_SUCCESS);
    CHECK_INT(urma_free_jfc(step.jfc), URMA_SUCCESS);
    CHECK_INT(urma_delete_notifier(notifier), URMA_SUCCESS);
    upair_close(&rc, &rcr);
    upair_close(&h, &hr);
    upair_close(&l, &r);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_argument_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
