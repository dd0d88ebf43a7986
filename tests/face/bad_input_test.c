// SPDX-License-Identifier: MIT
// Every wrong argument of every call: the documented error, a reason in words, and nothing has changed. The
// rows are in bad_input_rows.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/log.h"
#include "face/lib/ends.h"

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t eth_mac[6],
                                uint16_t *vid);

enum kind { POINTER, STATUS, MINUS1, VALUE, NOTHING };

static struct end l, r; // connected
static struct ibv_srq *srq;
static struct ibv_qp *srq_user;
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
} out;

#define create_with(...) ibv_create_qp(l.pd, &(struct ibv_qp_init_attr){USUAL_QP, __VA_ARGS__})
#define USUAL_QP .send_cq = l.cq, .recv_cq = l.cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}
#define modify_with(mask, ...) ibv_modify_qp(l.qp, &(struct ibv_qp_attr){__VA_ARGS__}, mask)
#define send_with(...) post_send_(&(struct ibv_send_wr){.opcode = IBV_WR_SEND, __VA_ARGS__})
#define ah_with(...) ibv_create_ah(l.pd, &(struct ibv_ah_attr){USUAL_AV, __VA_ARGS__})
#define USUAL_AV .is_global = 1, .port_num = 1, .grh = {.dgid = l.gid}

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
};

static void take_snapshot(struct snapshot *s)
{
    memset(s, 0, sizeof *s);
    CHECK_INT(ibv_query_qp(l.qp, &s->attr, 0, &s->init), 0);
    CHECK_INT(ibv_query_srq(srq, &s->srq), 0);
    memcpy(&s->cq, l.cq, offsetof(struct ibv_cq, mutex));
    memcpy(&s->qp, l.qp, offsetof(struct ibv_qp, mutex));
}

static bool right_answer(const struct row *row, long long got, int error)
{
    switch (row->kind) {
    case POINTER:
        return got == 0 && error == row->expected;
    case MINUS1:
        return (int)got == -1 && error == row->expected;
    case STATUS:
    case VALUE:
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

static int open_all(void **state)
{
    struct end_options opt = {.channel = true, .sge = 2};
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 2}};

    (void)state;
    pair_open(&l, &r, &opt);
    usual = (struct ibv_qp_init_attr){USUAL_QP};
    srq = ibv_create_srq(l.pd, &attr);
    struct ibv_qp_init_attr user = {USUAL_QP};
    user.srq = srq;
    srq_user = ibv_create_qp(l.pd, &user);
    return !srq || !srq_user;
}

static int close_all(void **state)
{
    (void)state;
    if (ibv_destroy_qp(srq_user) || ibv_destroy_srq(srq))
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
