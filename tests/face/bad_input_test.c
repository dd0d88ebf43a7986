// SPDX-License-Identifier: MIT
// Every wrong argument of every call: the documented error, a reason in words, and nothing has changed. The
// rows are in bad_input_rows.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>

#include "base/log.h"
#include "drydock/verbs.h"
#include "face/lib/counts.h"
#include "face/lib/ends.h"

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t eth_mac[6],
                                uint16_t *vid);

enum kind { POINTER, STATUS, MINUS1, VALUE, NOTHING };

static struct end l, r; // connected
static struct ibv_srq *srq;
static struct ibv_qp *srq_user, *idle_qp, *target;
static struct ibv_qp_ex *bq, *idle; // of l, which has builders; of a queue in RESET
static struct ibv_cq_ex *cq_ex;
static struct ibv_mw *mw1, *mw2;
static struct ibv_dm *dm;
static struct ibv_mr *dm_mr;
static struct ibv_xrcd *xrcd;
static struct ibv_td *td;
static struct ibv_pd *parent;
static struct ibv_mw_bind_info some_bytes;
static struct ibv_sge own_bytes;
static char memory[4096];
static struct ibv_device foreign;
static struct ibv_qp_init_attr usual;
static struct ibv_sge sges[3] = {{.length = 65}, {.length = 1}, {.length = 1}};

static union {
    struct ibv_device_attr dev;
    struct ibv_device_attr_ex dev_ex;
    struct ibv_port_attr port;
    union ibv_gid gid;
    struct ibv_gid_entry entry;
    __be16 pkey;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_srq_attr srq;
    struct ibv_ah_attr av;
    struct ibv_grh grh;
    struct ibv_async_event event;
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;
    struct drydock_queue direct;
} out;

#define create_with(...) ibv_create_qp(l.pd, &(struct ibv_qp_init_attr){USUAL_QP, __VA_ARGS__})
#define USUAL_QP .send_cq = l.cq, .recv_cq = l.cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}
#define modify_with(mask, ...) ibv_modify_qp(l.qp, &(struct ibv_qp_attr){__VA_ARGS__}, mask)
#define send_with(...) post_send_(&(struct ibv_send_wr){.opcode = IBV_WR_SEND, __VA_ARGS__})
#define ah_with(...) ibv_create_ah(l.pd, &(struct ibv_ah_attr){USUAL_AV, __VA_ARGS__})
#define USUAL_AV .is_global = 1, .port_num = 1, .grh = {.dgid = l.gid}

#define direct_with(...) drydock_create_direct_qp(l.pd, &(struct ibv_qp_init_attr){USUAL_QP, __VA_ARGS__})
#define dm_with(...) ibv_alloc_dm(l.ctx, &(struct ibv_alloc_dm_attr){__VA_ARGS__})
#define xrcd_with(...) ibv_open_xrcd(l.ctx, &(struct ibv_xrcd_init_attr){__VA_ARGS__})
#define bind_with(...) ibv_bind_mw(l.qp, mw1, &(struct ibv_mw_bind){.bind_info = {__VA_ARGS__}})
#define advise(advice, flags, list, n)                                                                       \
    ibv_advise_mr(l.pd, (enum ibv_advise_mr_advice)(advice), flags, list, n)
// A section of these calls; one with a flag that does not exist; a call while the object's handle is another.
#define built(...) (ibv_wr_start(bq), __VA_ARGS__, ibv_wr_complete(bq))
#define flagged(call) (bq->wr_flags = 1u << 31, ibv_wr_start(bq), call, bq->wr_flags = 0, ibv_wr_complete(bq))
#define strange(object, call)                                                                                \
    ({                                                                                                       \
        (object)->handle ^= 1u << 20;                                                                        \
        long long answer = (long long)(call);                                                                \
        (object)->handle ^= 1u << 20;                                                                        \
        answer;                                                                                              \
    })

static int overfull(void)
{
    ibv_wr_start(bq);
    for (int i = 0; i < 17; i++)
        ibv_wr_send(bq);
    return ibv_wr_complete(bq);
}

static int post_send_(struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    int err = ibv_post_send(l.qp, wr, &bad);

    CHECK(bad == wr);
    return err;
}

static int recv_with(int n, struct ibv_sge *list)
{
    struct ibv_recv_wr *bad = NULL, wr = {.sg_list = list, .num_sge = n};
    int err = ibv_post_recv(l.qp, &wr, &bad);

    CHECK(bad == &wr);
    return err;
}

static int post_srq(int n, struct ibv_sge *list)
{
    struct ibv_recv_wr *bad = NULL, wr = {.sg_list = list, .num_sge = n};
    int err = ibv_post_srq_recv(srq, &wr, &bad);

    CHECK(bad == &wr);
    return err;
}

// ---- the table, as functions and as rows

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init" // a row says what differs from the usual
#pragma GCC diagnostic ignored "-Wnonnull"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define TOTAL(function)
#define ROW(function, what, kind, expected, call)                                                            \
    static long long CAT(row_, __LINE__)(void)                                                               \
    {                                                                                                        \
        return (long long)(call);                                                                            \
    }
#include "face/bad_input_rows.h"
#undef ROW
#pragma GCC diagnostic pop

static const struct row {
    const char *function, *what;
    enum kind kind;
    long long expected;
    long long (*call)(void);
} rows[] = {
#define ROW(function, what, kind, expected, call) {#function, what, kind, expected, CAT(row_, __LINE__)},
#include "face/bad_input_rows.h"
#undef ROW
};

// ---- what must not change

struct snapshot {
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_srq_attr srq;
    struct ibv_cq cq;
    struct ibv_qp qp;
    struct ibv_mr mr, dm_mr;
    struct ibv_mw mw1, mw2;
    struct ibv_pd pd;
    struct face_counts l, r;
    char memory[64]; // of the device
};

static void take_snapshot(struct snapshot *s)
{
    memset(s, 0, sizeof *s);
    CHECK_INT(ibv_query_qp(l.qp, &s->attr, 0, &s->init), 0);
    CHECK_INT(ibv_query_srq(srq, &s->srq), 0);
    memcpy(&s->cq, l.cq, offsetof(struct ibv_cq, mutex));
    memcpy(&s->qp, l.qp, offsetof(struct ibv_qp, mutex));
    memcpy(&s->mr, l.mr, sizeof s->mr);
    memcpy(&s->dm_mr, dm_mr, sizeof s->dm_mr);
    memcpy(&s->mw1, mw1, sizeof s->mw1);
    memcpy(&s->mw2, mw2, sizeof s->mw2);
    memcpy(&s->pd, l.pd, sizeof s->pd);
    face_counts(l.ctx, l.pd, &s->l);
    face_counts(r.ctx, r.pd, &s->r);
    CHECK_INT(ibv_memcpy_from_dm(s->memory, dm, 0, sizeof s->memory), 0);
}

static bool right_answer(const struct row *row, long long got, int error)
{
    switch (row->kind) {
    case POINTER:
        return got == 0 && error == row->expected;
    case MINUS1:
        return (int)got == -1 && error == row->expected;
    case STATUS: // C22: positive, with a name; the table of GIDs is a count or -errno by its manual
        return (int)got == (int)row->expected &&
               (strerrorname_np((int)got) || !strcmp(row->function, "_ibv_query_gid_table"));
    case VALUE:
        return (int)got == (int)row->expected;
    case NOTHING:
        return true;
    }
    return false;
}

// C22 of all functions: a status is 0 or a positive errno value, a creator gives NULL and errno.
static void each_wrong_argument_is_refused_in_words(void **state)
{
    struct snapshot before, after;
    unsigned wrong = 0;

    (void)state;
    take_snapshot(&before);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        dock_debug("row %zu begins", i);
        char mark[64];
        snprintf(mark, sizeof mark, "%s", dock_log_last());
        errno = 0;
        long long got = row->call();
        int error = errno;
        bool logged = strcmp(dock_log_last(), mark) != 0;
        take_snapshot(&after);
        if (!right_answer(row, got, error)) {
            print_error("%s, %s: expected %lld, got %lld, errno %d\n", row->function, row->what,
                        row->expected, got, error);
            wrong++;
        }
        if (row->kind <= MINUS1 && !logged) {
            print_error("%s, %s: refused without a reason in words\n", row->function, row->what);
            wrong++;
        }
        if (memcmp(&before, &after, sizeof before)) {
            print_error("%s, %s: refused, but something has changed\n", row->function, row->what);
            wrong++;
            before = after;
        }
    }
    print_message("%zu rows\n", sizeof rows / sizeof *rows);
    if (wrong)
        fail_msg("%u rows wrong", wrong);
}

static void everything_still_works_afterwards(void **state)
{
    struct ibv_sge sge = end_sge(&l, 0, 100);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);

    (void)state;
    memset(l.buf, 0x39, 100);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    CHECK_INT(r.buf[99], 0x39);
    expect_empty(l.rcq, 5);
}

static int open_more(void)
{
    struct ibv_qp_init_attr user = {USUAL_QP};
    struct ibv_qp_init_attr_ex with_builders = {.send_cq = l.cq,
                                                .recv_cq = l.cq,
                                                .qp_type = IBV_QPT_RC,
                                                .cap = {1, 1, 1, 1, 0},
                                                .comp_mask =
                                                    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                                .pd = l.pd,
                                                .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp_init_attr_ex of_domain = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD};

    user.srq = srq;
    srq_user = ibv_create_qp(l.pd, &user);
    idle_qp = ibv_create_qp_ex(l.ctx, &with_builders);
    bq = ibv_qp_to_qp_ex(l.qp);
    idle = ibv_qp_to_qp_ex(idle_qp);
    cq_ex = ibv_create_cq_ex(l.ctx, &(struct ibv_cq_init_attr_ex){.cqe = 4});
    mw1 = ibv_alloc_mw(l.pd, IBV_MW_TYPE_1);
    mw2 = ibv_alloc_mw(l.pd, IBV_MW_TYPE_2);
    dm = dm_with(.length = 64);
    dm_mr = dm ? ibv_reg_dm_mr(l.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE) : NULL;
    xrcd = xrcd_with(.comp_mask = 3, .fd = -1, .oflags = O_CREAT);
    of_domain.xrcd = xrcd;
    target = ibv_create_qp_ex(l.ctx, &of_domain);
    td = ibv_alloc_td(l.ctx, &(struct ibv_td_init_attr){0});
    parent = ibv_alloc_parent_domain(l.ctx, &(struct ibv_parent_domain_init_attr){.pd = l.pd, .td = td});
    some_bytes = (struct ibv_mw_bind_info){.mr = l.mr, .addr = (uintptr_t)l.buf, .length = 8};
    own_bytes = end_sge(&l, 0, 8);
    return !srq_user || !bq || !idle || !cq_ex || !mw1 || !mw2 || !dm_mr || !target || !parent;
}

static int open_all(void **state)
{
    struct end_options opt = {.channel = true, .sge = 2, .builders = true};
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 2}};

    (void)state;
    pair_open(&l, &r, &opt);
    usual = (struct ibv_qp_init_attr){USUAL_QP};
    srq = ibv_create_srq(l.pd, &attr);
    return !srq || open_more();
}

static int close_all(void **state)
{
    (void)state;
    if (ibv_dealloc_pd(parent) || ibv_dealloc_td(td) || ibv_destroy_qp(target) || ibv_close_xrcd(xrcd) ||
        ibv_dereg_mr(dm_mr) || ibv_free_dm(dm) || ibv_dealloc_mw(mw1) || ibv_dealloc_mw(mw2) ||
        ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)) || ibv_destroy_qp(idle_qp) || ibv_destroy_qp(srq_user) ||
        ibv_destroy_srq(srq))
        return -1;
    pair_close(&l, &r);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_argument_is_refused_in_words),
        cmocka_unit_test(everything_still_works_afterwards),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
