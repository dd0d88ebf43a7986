// SPDX-License-Identifier: MIT
// C36, C37: objects are safe for many threads by default; with a thread domain the program serialises and
// no lock is taken.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "face/lib/ends.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_several_threads_stay_whole),
        cmocka_unit_test(each_completion_goes_to_one_poller),
        cmocka_unit_test(a_parent_domain_stands_for_its_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
