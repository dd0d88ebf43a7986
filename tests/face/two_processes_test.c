// SPDX-License-Identifier: MIT
// What matters only when the peer is another process: numbers, wake-ups, waiting, errors and death on the
// other side.
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "face/lib/ends.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void write_to(struct end *e, const struct end_address *peer, uint64_t id, enum ibv_wc_status expected)
{
    struct ibv_sge sge = end_sge(e, 0, 64);
    struct ibv_send_wr wr = send_wr(id, IBV_WR_RDMA_WRITE, &sge, peer->addr, peer->rkey);

    CHECK_INT(post(e, &wr), 0);
    expect_wc(e->cq, id, expected, NULL);
}

// ---- numbers

static void number_left(int sock)
{
    struct end_address peer;
    struct end e;

    end_meet(&e, NULL, sock, &peer);
    CHECK(peer.qpn != e.qp->qp_num);
    CHECK(peer.qpn >> 8 != e.qp->qp_num >> 8); // another block of the id space
    meet(sock);
    end_close(&e);
}

static void queue_numbers_are_unique_on_the_host(void **state)
{
    (void)state;
    two_processes(number_left, number_left);
}

// ---- a target that does not run is served all the same

static void sleeper(int sock)
{
    struct end_address peer;
    struct end e;
    char c;

    end_meet(&e, NULL, sock, &peer);
    hear(sock, &c, 1); // asleep in recv all the time
    CHECK(e.buf[0] == 0x3c && e.buf[63] == 0x3c && e.buf[64] == 0);
    end_close(&e);
}

static void writer(int sock)
{
    struct end_address peer;
    struct end e;

    end_meet(&e, NULL, sock, &peer);
    memset(e.buf, 0x3c, 64);
    for (unsigned i = 0; i < 1000; i++)
        write_to(&e, &peer, i, IBV_WC_SUCCESS);
    tell(sock, "x", 1);
    end_close(&e);
}

static void one_sided_work_needs_no_help_of_the_target(void **state)
{
    (void)state;
    two_processes(writer, sleeper);
}

// ---- wake-ups

enum { ROUNDS = 300 };

static void event_reader(int sock)
{
    struct end_options opt = {.channel = true, .rnr_retry = 7};
    struct end_address peer;
    struct ibv_cq *cq;
    void *context;
    struct end e;

    end_meet(&e, &opt, sock, &peer);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct ibv_wc wc;
        CHECK_INT(post_recv(&e, i, 0, 64), 0);
        CHECK_INT(ibv_req_notify_cq(e.rcq, 0), 0);
        if (!ibv_poll_cq(e.rcq, 1, &wc)) {
            tell(sock, "g", 1);
            CHECK_INT(ibv_get_cq_event(e.channel, &cq, &context), 0);
            ibv_ack_cq_events(cq, 1);
            expect_wc(e.rcq, i, IBV_WC_SUCCESS, &wc);
        }
    }
    meet(sock);
    end_close(&e);
}

static void event_sender(int sock)
{
    struct end_options opt = {.rnr_retry = 7};
    struct end_address peer;
    struct end e;
    char c;

    end_meet(&e, &opt, sock, &peer);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct ibv_sge sge = end_sge(&e, 0, 64);
        struct ibv_send_wr wr = send_wr(i, IBV_WR_SEND, &sge, 0, 0);
        hear(sock, &c, 1);
        CHECK_INT(post(&e, &wr), 0);
        expect_wc(e.cq, i, IBV_WC_SUCCESS, NULL);
    }
    meet(sock);
    end_close(&e);
}

static void a_reader_that_sleeps_is_woken_by_the_other_process(void **state)
{
    (void)state;
    two_processes(event_sender, event_reader);
}

// ---- RNR

static void late_receiver(int sock)
{
    struct end_address peer;
    struct end e;

    end_meet(&e, NULL, sock, &peer);
    usleep(100000);
    CHECK_INT(post_recv(&e, 4, 0, 64), 0);
    expect_wc(e.rcq, 4, IBV_WC_SUCCESS, NULL);
    meet(sock);
    end_close(&e);
}

static void patient_sender(int sock)
{
    struct end_options opt = {.rnr_retry = 7};
    struct end_address peer;
    struct end e;

    end_meet(&e, &opt, sock, &peer);
    struct ibv_sge sge = end_sge(&e, 0, 64);
    struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge, 0, 0);
    CHECK_INT(post(&e, &wr), 0);
    expect_empty(e.cq, 20);
    expect_wc(e.cq, 1, IBV_WC_SUCCESS, NULL);
    meet(sock);
    end_close(&e);
}

static void a_send_waits_for_the_receive_of_the_other_process(void **state)
{
    (void)state;
    two_processes(patient_sender, late_receiver);
}

// ---- errors

static void violated(int sock)
{
    struct ibv_async_event event;
    struct end_address peer;
    struct end e;

    end_meet(&e, NULL, sock, &peer);
    struct pollfd fd = {.fd = e.ctx->async_fd, .events = POLLIN};
    CHECK_INT(poll(&fd, 1, 10000), 1);
    CHECK_INT(ibv_get_async_event(e.ctx, &event), 0);
    CHECK_INT(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    CHECK(event.element.qp == e.qp);
    ibv_ack_async_event(&event);
    CHECK_INT(end_state(&e), IBV_QPS_ERR);
    for (unsigned i = 0; i < e.opt.bytes; i++)
        CHECK_INT(e.buf[i], 0);
    meet(sock);
    end_close(&e);
}

static void violator(int sock)
{
    struct end_address peer;
    struct end e;

    end_meet(&e, NULL, sock, &peer);
    memset(e.buf, 1, 64);
    peer.rkey ^= 0x100;
    write_to(&e, &peer, 1, IBV_WC_REM_ACCESS_ERR);
    CHECK_INT(end_state(&e), IBV_QPS_ERR);
    meet(sock);
    end_close(&e);
}

static void a_bad_key_is_an_event_in_the_other_process(void **state)
{
    (void)state;
    two_processes(violator, violated);
}

// ---- datagrams

static const struct end_options ud = {.type = IBV_QPT_UD};

static void ud_echo(int sock)
{
    struct end_address mine, peer;
    struct ibv_wc wc;
    struct end e;

    end_open(&e, &ud);
    end_to_rts(&e, NULL);
    mine = end_address(&e);
    CHECK_INT(post_recv(&e, 1, 0, 104), 0);
    tell(sock, &mine, sizeof mine);
    hear(sock, &peer, sizeof peer);
    expect_wc(e.rcq, 1, IBV_WC_SUCCESS, &wc);
    CHECK_INT(wc.src_qp, peer.qpn);
    struct ibv_ah *ah = ibv_create_ah_from_wc(e.pd, &wc, (struct ibv_grh *)(void *)e.buf, 1);
    CHECK(ah != NULL);
    struct ibv_sge sge = end_sge(&e, 40, 64);
    struct ibv_send_wr wr = send_wr(2, IBV_WR_SEND, &sge, 0, 0);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = wc.src_qp;
    wr.wr.ud.remote_qkey = 0x11111111;
    CHECK_INT(post(&e, &wr), 0);
    expect_wc(e.cq, 2, IBV_WC_SUCCESS, NULL);
    meet(sock);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    end_close(&e);
}

static void ud_caller(int sock)
{
    struct end_address mine, peer;
    struct end e;

    end_open(&e, &ud);
    end_to_rts(&e, NULL);
    mine = end_address(&e);
    CHECK_INT(post_recv(&e, 1, 1000, 104), 0);
    hear(sock, &peer, sizeof peer);
    tell(sock, &mine, sizeof mine);
    struct ibv_ah_attr a = {
        .is_global = 1, .port_num = 1, .grh = {.dgid = peer.gid, .sgid_index = (uint8_t)e.gid_index}};
    struct ibv_ah *ah = ibv_create_ah(e.pd, &a);
    struct ibv_sge sge = end_sge(&e, 0, 64);
    struct ibv_send_wr wr = send_wr(2, IBV_WR_SEND, &sge, 0, 0);
    memset(e.buf, 0x42, 64);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = peer.qpn;
    wr.wr.ud.remote_qkey = 0x11111111;
    CHECK_INT(post(&e, &wr), 0);
    expect_wc(e.cq, 2, IBV_WC_SUCCESS, NULL);
    expect_wc(e.rcq, 1, IBV_WC_SUCCESS, NULL);
    CHECK(!memcmp(e.buf, e.buf + 1040, 64));
    meet(sock);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    end_close(&e);
}

static void a_datagram_and_its_echo(void **state)
{
    (void)state;
    two_processes(ud_caller, ud_echo);
}

// ---- the peer goes away

static void leaver(int sock)
{
    struct end_address peer;
    struct end e;
    char c;

    end_meet(&e, NULL, sock, &peer);
    CHECK_INT(ibv_destroy_qp(e.qp), 0);
    e.qp = NULL;
    tell(sock, "d", 1);
    hear(sock, &c, 1);
    end_close(&e);
}

static void abandoned(int sock)
{
    struct end_options opt = {.timeout = 10};
    struct end_address peer;
    struct end e;
    char c;

    end_meet(&e, &opt, sock, &peer);
    hear(sock, &c, 1);
    double before = now();
    write_to(&e, &peer, 1, IBV_WC_RETRY_EXC_ERR);
    CHECK(now() - before < 10); // and not the 64 s of another timeout
    CHECK_INT(end_state(&e), IBV_QPS_ERR);
    tell(sock, "x", 1);
    end_close(&e);
}

static void a_destroyed_peer_is_retry_exceeded(void **state)
{
    (void)state;
    two_processes(abandoned, leaver);
}

// C54: a peer that is killed in the middle of a stream: retry exceeded, then flushes, nothing hangs.
static void a_killed_peer_is_retry_exceeded_then_flushes(void **state)
{
    struct end_options opt = {.timeout = 10, .send_wr = 64, .cqe = 128};
    struct end_address mine, peer;
    struct ibv_wc wc;
    struct end e;
    int sv[2];

    (void)state;
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        end_meet(&e, NULL, sv[1], &peer);
        pause();
        _exit(0);
    }
    end_open(&e, &opt);
    mine = end_address(&e);
    tell(sv[0], &mine, sizeof mine);
    hear(sv[0], &peer, sizeof peer);
    end_to_rts(&e, &peer);
    meet(sv[0]);
    double killed = 0;
    unsigned good = 0, flushed = 0, retry = 0;
    for (unsigned i = 0; now() - (killed ? killed : now()) < 10 && !flushed;) { // i: that were posted
        struct ibv_sge sge = end_sge(&e, 0, 64);
        struct ibv_send_wr wr = send_wr(i, IBV_WR_RDMA_WRITE, &sge, peer.addr, peer.rkey);
        if (i == 5000 && !killed) {
            kill(child, SIGKILL);
            killed = now();
        }
        int err = post(&e, &wr);
        CHECK(err == 0 || err == ENOMEM);
        i += err == 0;
        while (ibv_poll_cq(e.cq, 1, &wc) == 1) {
            good += wc.status == IBV_WC_SUCCESS;
            retry += wc.status == IBV_WC_RETRY_EXC_ERR;
            flushed += wc.status == IBV_WC_WR_FLUSH_ERR;
            CHECK(!retry || wc.status != IBV_WC_SUCCESS); // no success after the failure
        }
    }
    CHECK(good >= 4900);
    CHECK_INT(retry, 1);
    CHECK(flushed > 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
    close(sv[0]);
    close(sv[1]);
    end_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_numbers_are_unique_on_the_host),
        cmocka_unit_test(one_sided_work_needs_no_help_of_the_target),
        cmocka_unit_test(a_reader_that_sleeps_is_woken_by_the_other_process),
        cmocka_unit_test(a_send_waits_for_the_receive_of_the_other_process),
        cmocka_unit_test(a_bad_key_is_an_event_in_the_other_process),
        cmocka_unit_test(a_datagram_and_its_echo),
        cmocka_unit_test(a_destroyed_peer_is_retry_exceeded),
        cmocka_unit_test(a_killed_peer_is_retry_exceeded_then_flushes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
