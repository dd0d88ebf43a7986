// SPDX-License-Identifier: MIT
// An XRC domain that two processes share by a file: who may open it and how long it lives, and targets and
// shared queues of it in either process.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "face/lib/xrc.h"

enum { BYTES = 4096 };

static int file; // names the domain in both processes

static void open_file(void)
{
    char name[] = "/tmp/drydock-xrc-XXXXXX";

    file = mkstemp(name);
    CHECK(file >= 0);
    CHECK_INT(unlink(name), 0);
}

static void refused(struct ibv_context *ctx, int oflags, int error)
{
    CHECK(xrc_domain(ctx, file, oflags) == NULL);
    CHECK_INT(errno, error);
}

// ---- the domain

static void maker(int sock)
{
    struct ibv_context *ctx = open_device();
    struct ibv_xrcd *xrcd;

    refused(ctx, 0, ENOENT);
    xrcd = xrc_domain(ctx, file, O_CREAT | O_EXCL);
    CHECK(xrcd != NULL);
    meet(sock); // it is there
    meet(sock); // the other has opened it
    CHECK_INT(ibv_close_xrcd(xrcd), 0);
    refused(ctx, O_CREAT | O_EXCL, EEXIST);
    meet(sock); // the other closes it, the last
    meet(sock);
    refused(ctx, 0, ENOENT);
    CHECK_INT(ibv_close_device(ctx), 0);
}

static void guest(int sock)
{
    struct ibv_context *ctx = open_device();
    struct ibv_xrcd *xrcd;

    meet(sock);
    refused(ctx, O_CREAT | O_EXCL, EEXIST);
    xrcd = xrc_domain(ctx, file, O_CREAT);
    CHECK(xrcd != NULL);
    meet(sock);
    meet(sock);
    CHECK_INT(ibv_close_xrcd(xrcd), 0);
    meet(sock);
    CHECK_INT(ibv_close_device(ctx), 0);
}

static void a_file_names_one_domain_until_the_last_close(void **state)
{
    (void)state;
    open_file();
    two_processes(maker, guest);
    close(file);
}

// A queue of another process can be sent to, and not opened.
static void has_a_target(int sock)
{
    struct ibv_context *ctx = open_device();
    struct ibv_xrcd *xrcd = xrc_domain(ctx, file, O_CREAT);
    struct ibv_qp *tgt;

    CHECK(xrcd != NULL);
    tgt = xrc_target(xrcd);
    tell(sock, &tgt->qp_num, sizeof tgt->qp_num);
    meet(sock); // the other has tried
    CHECK_INT(ibv_destroy_qp(tgt), 0);
    CHECK_INT(ibv_close_xrcd(xrcd), 0);
    CHECK_INT(ibv_close_device(ctx), 0);
}

static void cannot_open_it(int sock)
{
    struct ibv_context *ctx = open_device();
    struct ibv_xrcd *xrcd;
    uint32_t number;

    hear(sock, &number, sizeof number);
    xrcd = xrc_domain(ctx, file, 0);
    CHECK(xrcd != NULL);
    CHECK(xrc_open_qp(xrcd, number, IBV_QPT_XRC_RECV, NULL) == NULL);
    CHECK_INT(errno, EINVAL);
    meet(sock);
    CHECK_INT(ibv_close_xrcd(xrcd), 0);
    CHECK_INT(ibv_close_device(ctx), 0);
}

static void a_target_is_opened_in_its_process_only(void **state)
{
    (void)state;
    open_file();
    two_processes(has_a_target, cannot_open_it);
    close(file);
}

static void dies_inside(int sock)
{
    CHECK(xrc_domain(open_device(), file, O_CREAT) != NULL);
    meet(sock);
}

static void outlives_it(int sock)
{
    struct ibv_context *ctx = open_device();
    struct ibv_xrcd *xrcd;
    char c;

    meet(sock);
    CHECK_INT(read(sock, &c, 1), 0); // it has ended
    for (unsigned i = 0; (xrcd = xrc_domain(ctx, file, O_CREAT | O_EXCL)) == NULL && i < 5000; i++)
        usleep(1000); // its end is told by its socket, which goes before its locks do
    CHECK(xrcd != NULL);
    CHECK_INT(ibv_close_xrcd(xrcd), 0);
    CHECK_INT(ibv_close_device(ctx), 0);
}

static void who_dies_inside_holds_nothing(void **state)
{
    (void)state;
    open_file();
    two_processes(outlives_it, dies_inside);
    close(file);
}

// A forked child has no device: what it closes of what it inherited stays its parent's.
static void has_a_child(int sock)
{
    struct ibv_context *ctx = open_device();
    struct ibv_xrcd *xrcd = xrc_domain(ctx, file, O_CREAT);
    int status;
    pid_t child;

    CHECK(xrcd != NULL);
    child = fork();
    CHECK(child >= 0);
    if (!child) {
        ibv_close_xrcd(xrcd);
        _exit(xrc_domain(ctx, file, O_CREAT) != NULL); // and it opens none, which nobody would close
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    meet(sock); // the child has closed it
    meet(sock); // the other has looked
    CHECK_INT(ibv_close_xrcd(xrcd), 0);
    CHECK_INT(ibv_close_device(ctx), 0);
}

static void finds_it_held(int sock)
{
    struct ibv_context *ctx = open_device();

    meet(sock);
    refused(ctx, O_CREAT | O_EXCL, EEXIST);
    meet(sock);
    CHECK_INT(ibv_close_device(ctx), 0);
}

static void a_forked_child_closes_nothing_of_its_parent(void **state)
{
    (void)state;
    open_file();
    two_processes(has_a_child, finds_it_held);
    close(file);
}

// ---- queues: the initiator is on the left, its target and the shared queue where `far` says

struct place {
    bool target, shared;
} far;

struct half {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_xrcd *xrcd;
    struct ibv_srq *srq; // every half has one
    struct ibv_qp *tgt;  // where it belongs, else NULL
    char *buf;
    uint32_t number;
};

struct told {
    uint32_t tgt, srq, rkey;
    uint64_t addr;
};

static void half_open(struct half *h, bool has_target)
{
    h->ctx = open_device();
    h->pd = ibv_alloc_pd(h->ctx);
    h->cq = ibv_create_cq(h->ctx, 16, NULL, NULL, 0);
    h->buf = calloc(1, BYTES);
    h->mr = ibv_reg_mr(h->pd, h->buf, BYTES, FULL_ACCESS);
    h->xrcd = xrc_domain(h->ctx, file, O_CREAT);
    CHECK(h->pd && h->cq && h->mr && h->xrcd);
    h->srq = xrc_srq(h->pd, h->xrcd, h->cq, &h->number);
    h->tgt = has_target ? xrc_target(h->xrcd) : NULL;
}

static void half_close(struct half *h)
{
    if (h->tgt)
        CHECK_INT(ibv_destroy_qp(h->tgt), 0);
    CHECK_INT(ibv_destroy_srq(h->srq), 0);
    CHECK_INT(ibv_close_xrcd(h->xrcd), 0);
    CHECK_INT(ibv_dereg_mr(h->mr), 0);
    CHECK_INT(ibv_destroy_cq(h->cq), 0);
    CHECK_INT(ibv_dealloc_pd(h->pd), 0);
    free(h->buf);
    CHECK_INT(ibv_close_device(h->ctx), 0);
}

static struct told tell_of(const struct half *h)
{
    return (struct told){
        .tgt = h->tgt ? h->tgt->qp_num : 0, .srq = h->number, .rkey = h->mr->rkey, .addr = (uintptr_t)h->buf};
}

static void post_shared(struct half *h, uint64_t id)
{
    struct ibv_sge sge = {.addr = (uintptr_t)h->buf, .length = 64, .lkey = h->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

    CHECK_INT(ibv_post_srq_recv(h->srq, &wr, &bad), 0);
}

static void request(struct ibv_qp *ini, struct ibv_sge *sge, uint64_t id, enum ibv_wr_opcode op,
                    const struct told *to)
{
    struct ibv_send_wr *bad, wr = send_wr(id, op, sge, to->addr, to->rkey);

    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = to->addr;
        wr.wr.atomic.rkey = to->rkey;
        wr.wr.atomic.compare_add = 5;
    }
    wr.qp_type.xrc.remote_srqn = to->srq;
    CHECK_INT(ibv_post_send(ini, &wr, &bad), 0);
}

// A half with an initiator beside it, whose requests take the memory behind those of the half.
struct left {
    struct half h;
    struct ibv_cq *cq;
    struct ibv_qp *ini;
    struct ibv_sge sge;
    struct told there;
};

static void left_open(struct left *l, int sock)
{
    uint32_t tgt;

    half_open(&l->h, !far.target);
    l->cq = ibv_create_cq(l->h.ctx, 16, NULL, NULL, 0);
    CHECK(l->cq != NULL);
    l->ini = xrc_initiator(l->h.pd, l->cq);
    l->sge = (struct ibv_sge){.addr = (uintptr_t)l->h.buf + BYTES / 2, .length = 8, .lkey = l->h.mr->lkey};
    tell(sock, &l->ini->qp_num, sizeof l->ini->qp_num);
    hear(sock, &l->there, sizeof l->there);
    tgt = far.target ? l->there.tgt : l->h.tgt->qp_num;
    if (!far.target)
        xrc_connect(l->h.tgt, l->ini->qp_num);
    xrc_connect(l->ini, tgt);
    if (!far.shared)
        l->there = tell_of(&l->h);
}

static void left_close(struct left *l)
{
    CHECK_INT(ibv_destroy_qp(l->ini), 0);
    CHECK_INT(ibv_destroy_cq(l->cq), 0);
    half_close(&l->h);
}

static void right_open(struct half *h, int sock)
{
    uint32_t ini;
    struct told t;

    half_open(h, far.target);
    hear(sock, &ini, sizeof ini);
    if (h->tgt)
        xrc_connect(h->tgt, ini);
    t = tell_of(h);
    tell(sock, &t, sizeof t);
}

static void message_arrives(struct half *h, uint64_t id)
{
    struct ibv_wc wc;

    expect_wc(h->cq, id, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.byte_len, 8);
    CHECK_INT(h->buf[7], 0x31);
    if (h->tgt)
        CHECK_INT(wc.qp_num, h->tgt->qp_num);
}

static void asks(int sock)
{
    struct left l;
    uint64_t five = 5;

    left_open(&l, sock);
    memset((void *)(uintptr_t)l.sge.addr, 0x31, 8);
    request(l.ini, &l.sge, 1, IBV_WR_SEND, &l.there); // nothing is posted yet: it waits
    expect_empty(l.cq, 20);
    meet(sock);
    if (!far.shared)
        post_shared(&l.h, 11);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    if (!far.shared)
        message_arrives(&l.h, 11);
    meet(sock); // it was looked at
    memset((void *)(uintptr_t)l.sge.addr, 0, 8);
    request(l.ini, &l.sge, 2, IBV_WR_RDMA_WRITE, &l.there);
    request(l.ini, &l.sge, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, &l.there);
    request(l.ini, &l.sge, 4, IBV_WR_RDMA_READ, &l.there);
    for (uint64_t i = 2; i <= 4; i++)
        expect_wc(l.cq, i, IBV_WC_SUCCESS, NULL);
    CHECK(!memcmp((void *)(uintptr_t)l.sge.addr, &five, 8));
    l.there.srq = l.ini->qp_num; // none of the domain
    request(l.ini, &l.sge, 5, IBV_WR_SEND, &l.there);
    expect_wc(l.cq, 5, IBV_WC_REM_INV_REQ_ERR, NULL);
    meet(sock);
    if (l.h.tgt)
        CHECK(xrc_becomes(l.h.tgt, IBV_QPS_ERR));
    left_close(&l);
}

static void answers(int sock)
{
    struct half h;

    right_open(&h, sock);
    meet(sock); // the request waits for a receive
    if (far.shared)
        post_shared(&h, 21);
    if (far.shared)
        message_arrives(&h, 21);
    meet(sock);
    meet(sock);
    if (h.tgt)
        CHECK(xrc_becomes(h.tgt, IBV_QPS_ERR));
    half_close(&h);
}

static void targets_and_shared_queues_are_found_in_either_process(void **state)
{
    (void)state;
    open_file();
    for (unsigned i = 0; i < 4; i++) {
        far = (struct place){.target = i & 1, .shared = i & 2};
        two_processes(asks, answers);
    }
    close(file);
}

// The process with the shared queue ends. Its queue is gone with it: the target says that the request is
// invalid, unless it had begun.
static void ends(int sock)
{
    struct half h;

    right_open(&h, sock);
    meet(sock);
}

static void meets_nobody(int sock)
{
    struct left l;
    char c;

    left_open(&l, sock);
    request(l.ini, &l.sge, 1, IBV_WR_RDMA_WRITE, &l.there); // the way is known
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    meet(sock);
    CHECK_INT(read(sock, &c, 1), 0); // it has ended
    request(l.ini, &l.sge, 2, IBV_WR_SEND, &l.there);
    expect_wc(l.cq, 2, IBV_WC_REM_INV_REQ_ERR, NULL);
    CHECK(xrc_becomes(l.h.tgt, IBV_QPS_ERR));
    left_close(&l);
}

static void a_shared_queue_ends_with_its_process(void **state)
{
    (void)state;
    open_file();
    far = (struct place){.shared = true};
    two_processes(meets_nobody, ends);
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_names_one_domain_until_the_last_close),
        cmocka_unit_test(a_target_is_opened_in_its_process_only),
        cmocka_unit_test(who_dies_inside_holds_nothing),
        cmocka_unit_test(a_forked_child_closes_nothing_of_its_parent),
        cmocka_unit_test(targets_and_shared_queues_are_found_in_either_process),
        cmocka_unit_test(a_shared_queue_ends_with_its_process),
    };

    return cmocka_run_group_tests_name("XRC between processes", tests, NULL, NULL);
}
