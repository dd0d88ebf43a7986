// SPDX-License-Identifier: MIT
#include "lib/pair.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/identity.h"
#include "device/internal.h"
#include "lib/fork.h"

uint8_t test_eid[16];

static void must(int err, const char *what)
{
    if (!err)
        return;
    fprintf(stderr, "%s: %s (%s)\n", what, strerror(-err), dock_log_last());
    abort();
}

#define ALL_RIGHTS                                                                                           \
    (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |                          \
     DOCK_ACCESS_REMOTE_ATOMIC | DOCK_ACCESS_MW_BIND)

static void learn_address(void)
{
    memcpy(test_eid, dock_identity()->gid[0].raw, 16);
}

static void make_memory(struct end *e, const struct end_opts *o)
{
    e->mem_size = o->mem ? o->mem : 1 << 20;
    e->plain = o->plain;
    if (o->plain)
        e->mem = mmap(NULL, e->mem_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else
        must(dock_mem_alloc(e->dev, e->mem_size, (void **)&e->mem), "dock_mem_alloc");
    must(dock_mr_register(e->dev, e->pd, (uintptr_t)e->mem, e->mem_size, (uintptr_t)e->mem, ALL_RIGHTS,
                          &e->mr),
         "dock_mr_register");
}

void end_open(struct end *e, struct dock_dev *dev, const struct end_opts *o)
{
    uint32_t wr = o->wr ? o->wr : 64, sge = o->sge ? o->sge : 4;
    struct dock_cq_attr ca = {.depth = o->cqe ? o->cqe : 256, .user = e, .chan = o->chan};

    static pthread_once_t once = PTHREAD_ONCE_INIT; // threads open ends beside each other

    pthread_once(&once, learn_address);
    memset(e, 0, sizeof *e);
    e->dev = dev;
    e->shares_pd = o->pd;
    e->pd = o->pd;
    if (!e->shares_pd)
        must(dock_pd_create(dev, &e->pd), "dock_pd_create");
    must(dock_cq_create(dev, &ca, &e->scq), "dock_cq_create");
    must(dock_cq_create(dev, &ca, &e->rcq), "dock_cq_create");
    struct dock_qp_attr qa = {.service = o->service,
                              .pd = e->pd,
                              .send_cq = e->scq,
                              .recv_cq = e->rcq,
                              .srq = o->srq,
                              .max_send_wr = wr,
                              .max_recv_wr = wr,
                              .max_send_sge = sge,
                              .max_recv_sge = sge,
                              .max_inline = o->inline_max ? o->inline_max : 64,
                              .signal_all = o->signal_all,
                              .lock_free = o->lock_free,
                              .raw = o->raw,
                              .on_error = o->on_error,
                              .unordered = o->unordered,
                              .bundle = o->bundle,
                              .tell_eid = o->service >= DOCK_RM,
                              .open = o->open,
                              .short_atomics = o->short_atomics,
                              .user = e};
    memcpy(qa.eid, test_eid, 16);
    must(dock_qp_create(dev, &qa, &e->qp), "dock_qp_create");
    e->service = o->service;
    make_memory(e, o);
}

void end_close(struct end *e)
{
    if (e->qp)
        must(dock_qp_destroy(e->qp), "dock_qp_destroy");
    must(dock_mr_deregister(e->mr), "dock_mr_deregister");
    if (e->plain)
        munmap(e->mem, e->mem_size);
    else
        dock_mem_free(e->dev, e->mem, e->mem_size);
    must(dock_cq_destroy(e->scq), "dock_cq_destroy");
    must(dock_cq_destroy(e->rcq), "dock_cq_destroy");
    if (!e->shares_pd)
        must(dock_pd_destroy(e->dev, e->pd), "dock_pd_destroy");
}

void end_connect(struct end *e, uint32_t dest_qp, const struct dock_qp_mod *knobs)
{
    struct dock_qp_mod m = {.timeout = 14,
                            .retry = 7,
                            .rnr_retry = 7,
                            .rnr_timer = 1,
                            .rd_atomic = 16,
                            .dest_rd_atomic = 16,
                            .access = DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE |
                                      DOCK_ACCESS_REMOTE_ATOMIC,
                            .qkey = 0x1234};

    if (knobs)
        m = *knobs;
    memcpy(m.eid, test_eid, 16);
    m.dest_qp = dest_qp;
    if (e->service >= DOCK_RM) {
        m.mask = DOCK_MOD_STATE | DOCK_MOD_TIMEOUT | DOCK_MOD_RETRY | DOCK_MOD_RNR_RETRY |
                 DOCK_MOD_RNR_TIMER | DOCK_MOD_RD_ATOMIC;
        m.state = DOCK_RTS;
        must(dock_qp_modify(e->qp, &m), "to READY");
        return;
    }
    m.mask = DOCK_MOD_STATE | DOCK_MOD_ACCESS | DOCK_MOD_QKEY;
    m.state = DOCK_INIT;
    must(dock_qp_modify(e->qp, &m), "to INIT");
    m.mask = DOCK_MOD_STATE | DOCK_MOD_DEST | DOCK_MOD_RNR_TIMER | DOCK_MOD_DEST_RD_ATOMIC;
    m.state = DOCK_RTR;
    must(dock_qp_modify(e->qp, &m), "to RTR");
    m.mask = DOCK_MOD_STATE | DOCK_MOD_TIMEOUT | DOCK_MOD_RETRY | DOCK_MOD_RNR_RETRY | DOCK_MOD_RD_ATOMIC;
    m.state = DOCK_RTS;
    must(dock_qp_modify(e->qp, &m), "to RTS");
}

struct stepper {
    struct dock_dev *dev;
    dock_a32 over;
};

static void *step_on(void *arg)
{
    struct stepper *s = arg;

    while (!dock_acquire32(&s->over)) { // pairs with connect_beside
        dock_engine_step(s->dev);
        test_nap_us(200);
    }
    return NULL;
}

static void connect_beside(struct end *e, const struct end *other)
{
    struct stepper s = {.dev = other->dev};
    pthread_t t;

    must(-pthread_create(&t, NULL, step_on, &s), "pthread_create");
    end_connect(e, dock_qp_number(other->qp), NULL);
    dock_publish32(&s.over, 1); // pairs with step_on
    pthread_join(t, NULL);
}

void pair_connect(struct end *a, struct end *b)
{
    end_connect(a, dock_qp_number(b->qp), NULL);
    end_connect(b, dock_qp_number(a->qp), NULL);
}

void pair_connect_stepped(struct end *a, struct end *b)
{
    connect_beside(a, b);
    connect_beside(b, a);
}

int end_post(struct end *e, const struct dock_wr *wr)
{
    struct dock_post p;
    int err;

    dock_post_begin(e->qp, &p);
    err = dock_post_put(&p, wr);
    dock_post_end(&p);
    return err;
}

int end_recv(struct end *e, uint64_t id, void *at, uint32_t len)
{
    struct dock_rq *rq = dock_qp_rq(e->qp);
    struct dock_sge sge = {.addr = (uintptr_t)at, .len = len, .key = e->mr->lkey};
    int err;

    dock_recv_begin(rq);
    err = dock_recv_put(rq, id, &sge, 1);
    dock_recv_end(rq);
    return err;
}

bool end_poll(struct dock_cq *cq, struct dock_wc *wc)
{
    int n;

    dock_cq_begin(cq);
    n = dock_cq_next(cq, wc);
    dock_cq_end(cq);
    return n > 0;
}

bool end_wait(struct dock_cq *cq, struct dock_wc *wc, unsigned ms)
{
    uint64_t until = dock_now_ns() + ms * 1000000ull;

    do
        if (end_poll(cq, wc))
            return true;
    while (dock_now_ns() < until);
    return false;
}

struct dock_wr wr_onesided(uint8_t op, struct end *e, struct dock_sge *sge, size_t off, uint32_t len,
                           const struct dock_mr *remote, uint64_t raddr)
{
    *sge = (struct dock_sge){.addr = (uintptr_t)e->mem + off, .len = len, .key = e->mr->lkey};
    return (struct dock_wr){.op = op,
                            .nsge = 1,
                            .sge = sge,
                            .flags = DOCK_F_COMPLETE,
                            .rkey = remote->rkey,
                            .token = remote->token,
                            .raddr = raddr};
}

void wr_aim(struct dock_wr *wr, uint32_t dest_qp)
{
    wr->eid = test_eid;
    wr->remote = dest_qp;
}
