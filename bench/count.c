// SPDX-License-Identifier: MIT
// What bench/counts counts the instructions of: the function `counted`, called over and over in one mode,
// with everything that is not meant (draining, receives) outside of it. Two queue pairs of one process.
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "device/rq.h"

#define ROUNDS 64u
#define OPS 16u // a round

enum mode { WRITE_ONE, WRITE_LIST, WRITE_TOLD, SEND, RECEIVE, POLL_SEND, POLL_RECEIVE, POLL_EMPTY, MODES };

static const char *const names[MODES] = {
    [WRITE_ONE] = "write-one",       [WRITE_LIST] = "write-list",
    [WRITE_TOLD] = "write-told",     [SEND] = "send",
    [RECEIVE] = "receive",           [POLL_SEND] = "poll-send",
    [POLL_RECEIVE] = "poll-receive", [POLL_EMPTY] = "poll-empty",
};

struct job {
    struct bench_end me;
    struct bench_name peer;
    struct dock_sge sge;
    struct dock_wr write, send;
};

static void post(struct job *j, const struct dock_wr *wr, unsigned n)
{
    struct dock_post p;

    dock_post_begin(j->me.qp, &p);
    for (unsigned i = 0; i < n; i++)
        bench_must(dock_post_put(&p, wr), "dock_post_put");
    dock_post_end(&p);
}

static void receive(struct job *j)
{
    struct dock_sge sge = {.addr = (uintptr_t)j->me.mem, .len = 8, .key = j->me.mr->lkey};

    dock_recv_begin(dock_qp_rq(j->me.qp));
    bench_must(dock_recv_put(dock_qp_rq(j->me.qp), 0, &sge, 1), "dock_recv_put");
    dock_recv_end(dock_qp_rq(j->me.qp));
}

static void poll(struct job *j, int want)
{
    struct dock_wc wc;

    if (dock_cq_idle(j->me.cq)) {
        bench_must(want, "a poll");
        return;
    }
    dock_cq_begin(j->me.cq);
    bench_must(dock_cq_next(j->me.cq, &wc) != want, "a poll");
    dock_cq_end(j->me.cq);
}

void counted(struct job *j, enum mode mode);

void __attribute__((noinline)) counted(struct job *j, enum mode mode)
{
    if (mode == WRITE_LIST) {
        post(j, &j->write, OPS);
        return;
    }
    for (unsigned i = 0; i < OPS; i++) {
        switch (mode) {
        case WRITE_ONE:
        case WRITE_TOLD:
            post(j, &j->write, 1);
            break;
        case SEND:
            post(j, &j->send, 1);
            break;
        case RECEIVE:
            receive(j);
            break;
        default:
            poll(j, mode != POLL_EMPTY);
        }
    }
}

static void before(struct job *j, enum mode mode)
{
    for (unsigned i = 0; i < OPS; i++) {
        if (mode == SEND || mode == POLL_RECEIVE)
            receive(j);
        if (mode == POLL_RECEIVE)
            post(j, &j->send, 1);
        if (mode == POLL_SEND)
            post(j, &j->write, 1);
    }
}

// All slots and receives are free again.
static void after(struct job *j, enum mode mode)
{
    struct dock_wr told = j->write;

    if (mode == RECEIVE)
        for (unsigned i = 0; i < OPS; i++)
            post(j, &j->send, 1);
    if (mode == SEND || mode == RECEIVE)
        bench_drain(&j->me, OPS);
    if (mode == WRITE_TOLD)
        bench_drain(&j->me, OPS);
    told.flags = DOCK_F_COMPLETE;
    post(j, &told, 1);
    bench_drain(&j->me, 1);
}

int main(int argc, char **argv)
{
    struct job j;
    unsigned mode = 0;

    while (mode < MODES && (argc < 2 || strcmp(argv[1], names[mode])))
        mode++;
    if (mode == MODES) {
        fprintf(stderr,
                "count: which of: write-one write-list write-told send receive poll-send poll-receive "
                "poll-empty\n");
        return 2;
    }
    bench_pair(&j.me, &j.peer, 4096, false, NULL);
    // To itself: sender and receiver poll one CQ.
    bench_must(dock_qp_modify(j.me.qp, &(struct dock_qp_mod){.mask = DOCK_MOD_STATE, .state = DOCK_RESET}),
               "to RESET");
    bench_connect(&j.me, dock_qp_number(j.me.qp));
    j.peer = bench_name_of(&j.me);
    j.write = bench_write(&j.me, &j.peer, &j.sge, 8);
    j.write.flags = mode == WRITE_TOLD || mode == POLL_SEND ? DOCK_F_COMPLETE : 0;
    j.send = j.write;
    j.send.op = DOCK_OP_SEND;
    for (unsigned i = 0; i < ROUNDS; i++) {
        before(&j, mode);
        counted(&j, mode);
        after(&j, mode);
    }
    return 0;
}
