// SPDX-License-Identifier: MIT
// C36, C37: objects are safe for many threads by default; with a thread domain the program serialises and
// the queue takes no lock.
// also: threads
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/ends.h"
#include "lib/beside.h"

enum { THREADS = 4, LISTS = 300, LIST = 4, SLOTS = 64 };

struct shared {
    struct end l, r;
    _Atomic unsigned posted; // lists
    _Atomic unsigned failed;
};

struct poster {
    struct shared *s;
    unsigned number;
    pthread_t thread;
};

// Lists of four SENDs whose contents say who posted them and in which order. Full queue: try the same WR
// again.
static void *post_lists(void *arg)
{
    struct poster *p = arg;
    struct shared *s = p->s;

    for (unsigned n = 0; n < LISTS; n++) {
        struct ibv_send_wr wr[LIST], *bad;
        struct ibv_sge sge[LIST];
        uint32_t text[LIST][2];
        for (unsigned i = 0; i < LIST; i++) {
            text[i][0] = p->number;
            text[i][1] = n * LIST + i;
            sge[i] = (struct ibv_sge){.addr = (uintptr_t)text[i], .length = 8};
            wr[i] = send_wr(p->number, IBV_WR_SEND, &sge[i], 0, 0);
            wr[i].send_flags = IBV_SEND_INLINE | (i == LIST - 1 ? IBV_SEND_SIGNALED : 0);
            wr[i].next = i < LIST - 1 ? &wr[i + 1] : NULL;
        }
        int err;
        while ((err = ibv_post_send(s->l.qp, wr, &bad)) == ENOMEM && bad == wr)
            sched_yield();
        if (err)
            atomic_fetch_add(&s->failed, 1);
        atomic_fetch_add(&s->posted, 1);
    }
    return NULL;
}

// A list is contiguous; lists of one thread keep their order.
struct view {
    unsigned next[THREADS]; // expected of each thread
    unsigned open, left;    // the list that has begun: whose, how many are to come
};

static void see(struct view *v, const uint32_t text[2])
{
    CHECK(text[0] < THREADS);
    CHECK_INT(text[1], v->next[text[0]]);
    if (v->left)
        CHECK_INT(text[0], v->open);
    else
        v->left = LIST;
    v->open = text[0];
    v->left--;
    v->next[text[0]]++;
}

static void lists_of_several_threads_stay_whole(void **state)
{
    // The queue holds a multiple of a list and its slots come back by lists: one is refused whole or not at
    // all.
    struct end_options opt = {.send_wr = 64, .recv_wr = SLOTS, .cqe = 256, .rnr_retry = 7};
    struct poster posters[THREADS];
    static struct shared s;
    struct view view = {0};
    struct ibv_wc wc;
    unsigned sent = 0, received = 0;

    (void)state;
    pair_open(&s.l, &s.r, &opt);
    for (unsigned i = 0; i < SLOTS; i++)
        CHECK_INT(post_recv(&s.r, i, i * 8, 8), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){.s = &s, .number = i};
        CHECK_INT(pthread_create(&posters[i].thread, NULL, post_lists, &posters[i]), 0);
    }
    while (received < THREADS * LISTS * LIST) {
        if (ibv_poll_cq(s.l.cq, 1, &wc) == 1) {
            CHECK_INT(wc.status, IBV_WC_SUCCESS);
            sent++;
        }
        if (ibv_poll_cq(s.r.rcq, 1, &wc) == 1) {
            uint32_t text[2];
            CHECK_INT(wc.status, IBV_WC_SUCCESS);
            memcpy(text, s.r.buf + wc.wr_id * 8, 8);
            see(&view, text);
            CHECK_INT(post_recv(&s.r, wc.wr_id, wc.wr_id * 8, 8), 0);
            received++;
        }
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_INT(pthread_join(posters[i].thread, NULL), 0);
    while (sent < THREADS * LISTS && poll_one(s.l.cq, &wc, 5000))
        sent++;
    CHECK_INT(sent, THREADS * LISTS);
    CHECK_INT(atomic_load(&s.failed), 0);
    pair_close(&s.l, &s.r);
}

// Several threads poll one queue: each completion goes to exactly one of them.
struct poller {
    struct ibv_cq *cq;
    _Atomic unsigned *got; // by wr_id
    _Atomic unsigned *total;
    pthread_t thread;
};

enum { WRITES = 4000 };

static void *poll_all(void *arg)
{
    struct poller *p = arg;
    struct ibv_wc wc[4];

    while (atomic_load(p->total) < WRITES) {
        int n = ibv_poll_cq(p->cq, 4, wc);
        for (int i = 0; i < n; i++) {
            atomic_fetch_add(&p->got[wc[i].wr_id], 1);
            atomic_fetch_add(p->total, 1);
        }
    }
    return NULL;
}

static void each_completion_goes_to_one_poller(void **state)
{
    static _Atomic unsigned got[WRITES];
    _Atomic unsigned total = 0;
    struct poller pollers[THREADS];
    struct end l, r;

    (void)state;
    pair_open(&l, &r, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        pollers[i] = (struct poller){.cq = l.cq, .got = got, .total = &total};
        CHECK_INT(pthread_create(&pollers[i].thread, NULL, poll_all, &pollers[i]), 0);
    }
    for (unsigned i = 0; i < WRITES;) {
        struct ibv_sge sge = end_sge(&l, 0, 8);
        struct ibv_send_wr wr = send_wr(i, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r.buf, r.mr->rkey);
        int err = post(&l, &wr);
        CHECK(err == 0 || err == ENOMEM);
        i += !err;
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_INT(pthread_join(pollers[i].thread, NULL), 0);
    for (unsigned i = 0; i < WRITES; i++)
        CHECK_INT(atomic_load(&got[i]), 1);
    pair_close(&l, &r);
}

// ---- thread domains

static void a_parent_domain_stands_for_its_domain(void **state)
{
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_parent_domain_init_attr attr = {0};
    struct end e;

    (void)state;
    end_open(&e, NULL);
    attr.pd = e.pd;
    attr.td = ibv_alloc_td(e.ctx, &td_attr);
    CHECK(attr.td != NULL);
    struct ibv_pd *parent = ibv_alloc_parent_domain(e.ctx, &attr);
    CHECK(parent != NULL);
    CHECK_INT(ibv_dealloc_td(attr.td), EBUSY);

    struct ibv_cq_init_attr_ex cq_attr = {
        .cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(e.ctx, &cq_attr);
    CHECK(cq != NULL);
    CHECK_INT(ibv_dealloc_pd(parent), EBUSY);
    struct ibv_qp_init_attr init = {.send_cq = ibv_cq_ex_to_cq(cq),
                                    .recv_cq = ibv_cq_ex_to_cq(cq),
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {8, 8, 1, 1, 0}};
    // The queue is made with the parent, its memory with the plain domain: one protection domain.
    struct ibv_qp *own = e.qp;
    e.qp = ibv_create_qp(parent, &init);
    CHECK(e.qp != NULL);
    struct end_address self = end_address(&e);
    end_to_rts(&e, &self);
    memset(e.buf, 0x17, 64);
    struct ibv_sge sge = end_sge(&e, 0, 64);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)e.buf + 512, e.mr->rkey);
    for (unsigned i = 0; i < 100; i++) {
        CHECK_INT(post(&e, &wr), 0);
        expect_wc(ibv_cq_ex_to_cq(cq), 1, IBV_WC_SUCCESS, NULL);
    }
    CHECK_INT(e.buf[512 + 63], 0x17);
    CHECK_INT(ibv_destroy_qp(e.qp), 0);
    e.qp = own;
    CHECK_INT(ibv_dealloc_pd(parent), EBUSY); // the CQ
    CHECK_INT(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    CHECK_INT(ibv_dealloc_pd(parent), 0);
    CHECK_INT(ibv_dealloc_td(attr.td), 0);
    end_close(&e);
}

// ---- what a second thread meets. The program breaks its promise here, with care, to see that nobody waits:
// one thread is between start and complete, or start_poll and end_poll, and another posts and polls.

struct queue {
    struct end e;
    struct ibv_td *td;
    struct ibv_pd *parent; // NULL: no thread domain
    struct ibv_cq_ex *cq;
    struct ibv_qp *own;
    int err;
};

static void queue_open(struct queue *q, bool domain)
{
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16};

    end_open(&q->e, NULL);
    q->td = domain ? ibv_alloc_td(q->e.ctx, &td_attr) : NULL;
    struct ibv_parent_domain_init_attr attr = {.pd = q->e.pd, .td = q->td};
    q->parent = domain ? ibv_alloc_parent_domain(q->e.ctx, &attr) : NULL;
    CHECK(!domain || q->parent);
    if (domain) {
        cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
        cq_attr.parent_domain = q->parent;
    }
    q->cq = ibv_create_cq_ex(q->e.ctx, &cq_attr);
    CHECK(q->cq != NULL);
    struct ibv_qp_init_attr_ex init = {.send_cq = ibv_cq_ex_to_cq(q->cq),
                                       .recv_cq = ibv_cq_ex_to_cq(q->cq),
                                       .qp_type = IBV_QPT_RC,
                                       .cap = {8, 8, 1, 1, 0},
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = domain ? q->parent : q->e.pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
    q->own = q->e.qp;
    q->e.qp = ibv_create_qp_ex(q->e.ctx, &init);
    CHECK(q->e.qp != NULL);
    struct end_address self = end_address(&q->e);
    end_to_rts(&q->e, &self);
}

static void queue_close(struct queue *q)
{
    CHECK_INT(ibv_destroy_qp(q->e.qp), 0);
    q->e.qp = q->own;
    CHECK_INT(ibv_destroy_cq(ibv_cq_ex_to_cq(q->cq)), 0);
    CHECK_INT(q->parent ? ibv_dealloc_pd(q->parent) : 0, 0);
    CHECK_INT(q->td ? ibv_dealloc_td(q->td) : 0, 0);
    end_close(&q->e);
}

static void queue_posts(void *arg)
{
    struct queue *q = arg;
    struct ibv_sge sge = end_sge(&q->e, 0, 8);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)q->e.buf + 512, q->e.mr->rkey);

    q->err = post(&q->e, &wr);
}

static void queue_polls(void *arg)
{
    struct queue *q = arg;
    struct ibv_wc wc;

    q->err = ibv_poll_cq(ibv_cq_ex_to_cq(q->cq), 1, &wc) - 1;
}

static void second_thread(bool domain)
{
    struct ibv_poll_cq_attr none = {0};
    struct beside other;
    struct queue q = {0};

    queue_open(&q, domain);
    queue_posts(&q);
    CHECK_INT(q.err, 0);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(q.e.qp);
    ibv_wr_start(ex);
    beside_start(&other, queue_posts, &q);
    CHECK_INT(beside_done(&other, domain ? BESIDE_GOES_MS : BESIDE_WAITS_MS), domain);
    ibv_wr_abort(ex);
    beside_end(&other);
    CHECK_INT(q.err, 0);

    CHECK_INT(ibv_start_poll(q.cq, &none), 0);
    beside_start(&other, queue_polls, &q);
    CHECK_INT(beside_done(&other, domain ? BESIDE_GOES_MS : BESIDE_WAITS_MS), domain);
    ibv_end_poll(q.cq);
    beside_end(&other);
    CHECK_INT(q.err, 0);
    queue_close(&q);
}

static void a_second_thread_waits_without_a_domain_and_never_with_one(void **state)
{
    (void)state;
    second_thread(false);
    second_thread(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_several_threads_stay_whole),
        cmocka_unit_test(each_completion_goes_to_one_poller),
        cmocka_unit_test(a_parent_domain_stands_for_its_domain),
        cmocka_unit_test(a_second_thread_waits_without_a_domain_and_never_with_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
