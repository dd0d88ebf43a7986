// SPDX-License-Identifier: MIT
// `drydock ctl`, as a running program meets it: events of the port and of the GID table, what queries say,
// and what becomes of requests while the port is down.
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "arena/rundir.h"
#include "device/link.h"
#include "face/lib/ends.h"
#include "lib/own_dir.h"

static struct dock_link now;

static void write_link(void)
{
    struct dock_rundir dir;

    CHECK_INT(dock_rundir_open(NULL, &dir), 0);
    CHECK_INT(dock_link_write(dir.fd, &now), 0);
    dock_rundir_close(&dir);
}

// The next event of the port, within a time that no engine needs.
static void expect_event(struct ibv_context *ctx, enum ibv_event_type type)
{
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
    struct ibv_async_event event;

    CHECK_INT(poll(&p, 1, 20000), 1);
    CHECK_INT(ibv_get_async_event(ctx, &event), 0);
    CHECK_INT(event.event_type, type);
    CHECK_INT(event.element.port_num, 1);
    ibv_ack_async_event(&event);
}

static void set_port(struct ibv_context *ctx, bool down)
{
    struct ibv_port_attr attr;

    now.down = down;
    write_link();
    expect_event(ctx, down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
    CHECK_INT(ibv_query_port(ctx, 1, &attr), 0);
    CHECK_INT(attr.state, down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
}

static void write_one(struct end *l, struct end *r, uint64_t id)
{
    struct ibv_sge sge = end_sge(l, 0, 8);
    struct ibv_send_wr wr = send_wr(id, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)r->buf, r->mr->rkey);

    CHECK_INT(post(l, &wr), 0);
}

static void a_port_that_is_down_answers_nobody(void **state)
{
    struct ibv_async_event event;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &(struct end_options){.timeout = 8});
    write_one(&l, &r, 1);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    set_port(l.ctx, true);
    CHECK_INT(ibv_get_async_event(r.ctx, &event), 0); // each context is told
    CHECK_INT(event.event_type, IBV_EVENT_PORT_ERR);
    memset(l.buf, 0x77, 8);
    write_one(&l, &r, 2);
    expect_wc(l.cq, 2, IBV_WC_RETRY_EXC_ERR, NULL);
    CHECK(r.buf[0] != 0x77);
    CHECK_INT(end_state(&l), IBV_QPS_ERR);
    CHECK_INT(end_state(&r), IBV_QPS_RTS); // it saw nothing
    set_port(l.ctx, false);
    pair_close(&l, &r);
}

static void a_request_that_is_patient_outlives_it(void **state)
{
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &(struct end_options){.timeout = 19}); // two seconds, and the retries
    set_port(l.ctx, true);
    write_one(&l, &r, 1);
    expect_empty(l.cq, 20);
    set_port(l.ctx, false);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    pair_close(&l, &r);
}

// What is sent to a group meanwhile is lost like every datagram.
static void a_port_that_is_down_reaches_no_group(void **state)
{
    struct ibv_ah_attr attr = {.is_global = 1,
                               .port_num = 1,
                               .grh = {.dgid.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 9},
                                       .sgid_index = 1,
                                       .hop_limit = 1}};
    struct end_options ud = {.type = IBV_QPT_UD};
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct ibv_ah *ah;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &ud);
    ah = ibv_create_ah(l.pd, &attr);
    CHECK(ah != NULL);
    CHECK_INT(ibv_attach_mcast(r.qp, &attr.grh.dgid, 0), 0);
    CHECK_INT(post_recv(&r, 9, 0, 128), 0);
    sge = end_sge(&l, 0, 8);
    wr = send_wr(1, IBV_WR_SEND, &sge, 0, 0);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = 0xffffff;
    wr.wr.ud.remote_qkey = 0x11111111;
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_wc(r.rcq, 9, IBV_WC_SUCCESS, NULL);
    CHECK_INT(post_recv(&r, 9, 0, 128), 0);
    set_port(l.ctx, true);
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 1, IBV_WC_SUCCESS, NULL);
    expect_empty(r.rcq, 5);
    set_port(l.ctx, false);
    CHECK_INT(ibv_detach_mcast(r.qp, &attr.grh.dgid, 0), 0);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    pair_close(&l, &r);
}

static unsigned filled(struct ibv_context *ctx)
{
    struct ibv_gid_entry entry[32];
    ssize_t n = ibv_query_gid_table(ctx, entry, 32, 0);

    CHECK(n > 0);
    return (unsigned)n;
}

static void an_address_comes_and_goes(void **state)
{
    struct ibv_context *ctx = open_device();
    unsigned before = filled(ctx);
    struct ibv_gid_entry entry;
    union ibv_gid gid;

    (void)state;
    CHECK_INT(dock_link_address("192.0.2.77", now.gid[0]), 0);
    CHECK_INT(dock_link_address("2001:db8::5", now.gid[1]), 0);
    now.gids = 2;
    write_link();
    expect_event(ctx, IBV_EVENT_GID_CHANGE);
    CHECK_INT(filled(ctx), before + 2);
    CHECK_INT(ibv_query_gid(ctx, 1, (int)before, &gid), 0);
    CHECK(memcmp(gid.raw, now.gid[0], 16) == 0);
    memset(now.gid[0], 0, 16); // the other one stays where it is
    write_link();
    expect_event(ctx, IBV_EVENT_GID_CHANGE);
    CHECK_INT(filled(ctx), before + 1);
    CHECK_INT(ibv_query_gid_ex(ctx, 1, before, &entry, 0), ENODATA);
    CHECK_INT(ibv_query_gid(ctx, 1, (int)before + 1, &gid), 0);
    CHECK(memcmp(gid.raw, now.gid[1], 16) == 0);
    now.gids = 0;
    write_link();
    expect_event(ctx, IBV_EVENT_GID_CHANGE);
    CHECK_INT(ibv_close_device(ctx), 0);
}

// A datagram to an address that is nobody's is lost, though the number is that of a queue of ours.
static void an_address_that_is_nobodys_reaches_no_queue(void **state)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}};
    struct end_options ud = {.type = IBV_QPT_UD};
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct ibv_ah *ah;
    struct end l, r;

    (void)state;
    pair_open(&l, &r, &ud);
    CHECK_INT(dock_link_address("203.0.113.9", attr.grh.dgid.raw), 0);
    ah = ibv_create_ah(l.pd, &attr);
    CHECK(ah != NULL);
    CHECK_INT(post_recv(&r, 1, 0, 128), 0);
    sge = end_sge(&l, 0, 8);
    wr = send_wr(2, IBV_WR_SEND, &sge, 0, 0);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = r.qp->qp_num;
    wr.wr.ud.remote_qkey = 0x11111111;
    CHECK_INT(post(&l, &wr), 0);
    expect_wc(l.cq, 2, IBV_WC_SUCCESS, NULL);
    expect_empty(r.rcq, 50);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    pair_close(&l, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_that_is_down_answers_nobody),
        cmocka_unit_test(a_request_that_is_patient_outlives_it),
        cmocka_unit_test(a_port_that_is_down_reaches_no_group),
        cmocka_unit_test(an_address_comes_and_goes),
        cmocka_unit_test(an_address_that_is_nobodys_reaches_no_queue),
    };

    return cmocka_run_group_tests(tests, own_dir_make, own_dir_remove);
}
