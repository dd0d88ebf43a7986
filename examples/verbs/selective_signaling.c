// SPDX-License-Identifier: MIT
// Selective signaling: which of your WRITEs should say that they are done?
//
// A work request that asks for it ("signaled") leaves one completion entry in the completion queue (CQ) when
// it has succeeded. One that does not ask is carried out all the same and leaves nothing. Requests of one
// send queue complete in the order in which they were posted, so the entry of a later one tells that all
// earlier ones are done as well. This program shows it, counts it, and then makes the classic mistake.
//
//     drydock run selective_signaling [DEVICE]       or, with an adapter:       selective_signaling [DEVICE]
//
// It needs nothing but <infiniband/verbs.h>. Both ends of the connection are queue pairs of this process.
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH = 64, REPEAT = 65536, SLOTS = 1024 };

struct world {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *source_mr, *target_mr;
    struct ibv_qp *qp, *peer; // requests go from qp to peer
    uint32_t depth;           // so many requests fit into qp's send queue
    uint64_t source[SLOTS], target[SLOTS];
};

static struct world w;

static void die(const char *what)
{
    fprintf(stderr, "selective_signaling: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void must(int ok, const char *what)
{
    if (!ok)
        die(what);
}

static void open_device(const char *wanted)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);

    must(list != NULL, "ibv_get_device_list");
    for (int i = 0; i < n && !w.ctx; i++)
        if (!wanted || !strcmp(wanted, ibv_get_device_name(list[i])))
            w.ctx = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    must(w.ctx != NULL, "no such device");
    must((w.pd = ibv_alloc_pd(w.ctx)) != NULL, "ibv_alloc_pd");
    must((w.cq = ibv_create_cq(w.ctx, 2 * DEPTH, NULL, NULL, 0)) != NULL, "ibv_create_cq");
    // Registration gives the device its rights: to read the source, to let a peer write the target.
    w.source_mr = ibv_reg_mr(w.pd, w.source, sizeof w.source, IBV_ACCESS_LOCAL_WRITE);
    w.target_mr =
        ibv_reg_mr(w.pd, w.target, sizeof w.target, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    must(w.source_mr && w.target_mr, "ibv_reg_mr");
}

static struct ibv_qp *create_qp(void)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = w.cq,
        .recv_cq = w.cq,
        .qp_type = IBV_QPT_RC,
        // 0: each request says for itself whether it is signaled. 1 would signal all of them.
        .sq_sig_all = 0,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct ibv_qp *qp = ibv_create_qp(w.pd, &attr);

    must(qp != NULL, "ibv_create_qp");
    w.depth = attr.cap.max_send_wr; // an adapter may give more than was asked for, and says how much
    must(w.depth < SLOTS, "the device's send queue is longer than this program expects");
    return qp;
}

// RESET, INIT, RTR (ready to receive), RTS (ready to send): what every reliable connection goes through.
static void connect_qp(struct ibv_qp *qp, uint32_t dest)
{
    struct ibv_port_attr port;
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    must(!ibv_query_port(w.ctx, 1, &port), "ibv_query_port");
    must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "to INIT");

    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = port.active_mtu,
                             .dest_qp_num = dest,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 12};
    a.ah_attr = (struct ibv_ah_attr){.port_num = 1, .dlid = port.lid, .is_global = 1, .grh.hop_limit = 1};
    must(!ibv_query_gid(w.ctx, 1, 0, &a.ah_attr.grh.dgid), "ibv_query_gid");
    must(!ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "to RTR");

    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    must(!ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
         "to RTS");
}

static void open_pair(void)
{
    w.qp = create_qp();
    w.peer = create_qp();
    connect_qp(w.qp, w.peer->qp_num);
    connect_qp(w.peer, w.qp->qp_num);
}

static void close_pair(void)
{
    must(!ibv_destroy_qp(w.qp) && !ibv_destroy_qp(w.peer), "ibv_destroy_qp");
}

// WRITE number `n` carries the 8 bytes of source slot `slot` to the target slot of the same number.
static void fill_write(struct ibv_send_wr *wr, struct ibv_sge *sge, uint64_t n, unsigned slot, int signaled)
{
    *sge = (struct ibv_sge){.addr = (uintptr_t)&w.source[slot], .length = 8, .lkey = w.source_mr->lkey};
    *wr = (struct ibv_send_wr){.wr_id = n, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr->wr.rdma.remote_addr = (uintptr_t)&w.target[slot];
    wr->wr.rdma.rkey = w.target_mr->rkey;
    // The whole of selective signaling is this flag.
    wr->send_flags = signaled ? IBV_SEND_SIGNALED : 0;
}

// The next completion. Only a successful one confirms anything.
static uint64_t wait_for_completion(void)
{
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(w.cq, 1, &wc)) == 0)
        ;
    must(n > 0, "ibv_poll_cq");
    if (wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "selective_signaling: WRITE %llu: %s\n", (unsigned long long)wc.wr_id,
                ibv_wc_status_str(wc.status));
        exit(1);
    }
    return wc.wr_id;
}

static void new_values(unsigned count)
{
    memset(w.target, 0, sizeof w.target);
    for (unsigned i = 0; i < SLOTS; i++)
        w.source[i] = i < count ? 1000 + i : 0;
}

static unsigned landed(unsigned count)
{
    unsigned ok = 0;

    for (unsigned i = 0; i < count; i++)
        ok += __atomic_load_n(&w.target[i], __ATOMIC_ACQUIRE) == w.source[i];
    return ok;
}

// Eight WRITEs, posted by one call as a list; the 4th and the 8th are signaled.
static void eight_writes(void)
{
    struct ibv_send_wr wr[8], *bad = NULL;
    struct ibv_sge sge[8];
    unsigned known = 0, entries = 0;

    puts("1. Eight WRITEs on one queue, the 4th and the 8th signaled");
    new_values(8);
    for (unsigned i = 0; i < 8; i++) {
        fill_write(&wr[i], &sge[i], i + 1, i, (i + 1) % 4 == 0);
        wr[i].next = i < 7 ? &wr[i + 1] : NULL;
    }
    // Posted is not executed and not observed: the call returns when the requests stand in the queue.
    must(!ibv_post_send(w.qp, wr, &bad), "ibv_post_send");
    while (known < 8) {
        unsigned id = (unsigned)wait_for_completion();
        // The entry belongs to WRITE `id` alone. That those before are done as well follows from the order.
        printf("   completion %u belongs to WRITE %u and covers WRITEs %u to %u\n", ++entries, id, known + 1,
               id);
        known = id;
    }
    struct ibv_wc more;
    printf("   further completions: %d\n", ibv_poll_cq(w.cq, 1, &more));
    printf("   %u completions, %u of 8 WRITEs landed\n", entries, landed(8));
}

// The same WRITEs again and again, every interval-th one signaled.
static void interval(unsigned every)
{
    struct timespec begin, end;
    uint64_t known = 0, entries = 0;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint64_t n = 1; n <= REPEAT; n++) {
        struct ibv_send_wr wr, *bad;
        struct ibv_sge sge;
        // A slot of the send queue is free again when a completion that covers it was polled, not earlier.
        for (; n - known > w.depth; entries++)
            known = wait_for_completion();
        fill_write(&wr, &sge, n, n % SLOTS, n % every == 0);
        must(!ibv_post_send(w.qp, &wr, &bad), "ibv_post_send");
    }
    for (; known < REPEAT; entries++)
        known = wait_for_completion();
    clock_gettime(CLOCK_MONOTONIC, &end);
    double s = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
    printf("   %8u %13llu %15.0f   up to %2u WRITEs later\n", every, (unsigned long long)entries, REPEAT / s,
           every - 1);
}

static void intervals(void)
{
    printf("2. %d WRITEs, every n-th signaled: fewer completions, later knowledge\n", REPEAT);
    puts("   interval   completions    WRITEs per s   a WRITE is known to be done");
    for (unsigned every = 1; every <= 16; every *= 2)
        interval(every);
}

// Nothing signaled: nobody ever learns that a slot is free, so the queue fills up and stays full.
static void nothing_signaled(void)
{
    struct ibv_send_wr wr[SLOTS], *bad = NULL;
    struct ibv_sge sge[SLOTS];
    struct ibv_wc wc;
    unsigned count = w.depth + 3;

    printf("3. The classic mistake: %u WRITEs, nothing signaled, a queue of %u\n", count, w.depth);
    new_values(w.depth);
    for (unsigned i = 0; i < count; i++) {
        fill_write(&wr[i], &sge[i], i + 1, i, 0);
        wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
    }
    int err = ibv_post_send(w.qp, wr, &bad);
    // bad_wr is the first request that was not posted; those before it are in the queue and are carried out.
    printf("   ibv_post_send: %s, bad_wr is WRITE %llu: the %u before it are posted\n", strerror(err),
           bad ? (unsigned long long)bad->wr_id : 0, bad ? (unsigned)(bad - wr) : 0);
    while (landed(w.depth) <
           w.depth) // no completion will tell; the target's memory is in reach here, so look
        ;
    printf("   completions: %d, but %u of %u posted WRITEs landed: nothing is lost\n",
           ibv_poll_cq(w.cq, 1, &wc), landed(w.depth), w.depth);
    fill_write(wr, sge, 1, 0, 1);
    printf("   a signaled WRITE now comes too late: %s. Only a reset or a new queue pair helps\n",
           strerror(ibv_post_send(w.qp, wr, &bad)));
}

int main(int argc, char **argv)
{
    open_device(argc > 1 ? argv[1] : NULL);
    open_pair();
    eight_writes();
    intervals();
    close_pair(); // part 3 begins with an empty queue
    open_pair();
    nothing_signaled();
    close_pair();
    must(!ibv_dereg_mr(w.source_mr) && !ibv_dereg_mr(w.target_mr), "ibv_dereg_mr");
    must(!ibv_destroy_cq(w.cq) && !ibv_dealloc_pd(w.pd) && !ibv_close_device(w.ctx), "closing");
    return 0;
}
