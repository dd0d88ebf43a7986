// SPDX-License-Identifier: MIT
// also: threads
// Endpoints: rdma_getaddrinfo, rdma_create_ep, rdma_get_request, calls that wait, and the options of an id.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>

#include "face/lib/cm.h"

// Used by copies: the calls write the queues that they made into it.
static const struct ibv_qp_init_attr usual = {.cap = {4, 4, 1, 1, 0}, .sq_sig_all = 1};

static struct rdma_addrinfo *lookup(const char *node, const char *service, int flags, int ps, int type)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = ps, .ai_qp_type = type}, *res;

    CHECK_INT(rdma_getaddrinfo(node, service, &hints, &res), 0);
    return res;
}

struct client {
    char port[8];
    int result, error;
};

static void *run_client(void *arg)
{
    struct client *c = arg;
    struct rdma_addrinfo *res = lookup("127.0.0.1", c->port, RAI_NUMERICHOST, RDMA_PS_TCP, 0);
    struct ibv_qp_init_attr attr = usual;
    struct rdma_cm_id *id;

    c->result = rdma_create_ep(&id, res, NULL, &attr);
    rdma_freeaddrinfo(res);
    if (c->result)
        return NULL;
    c->result = rdma_connect(id, NULL);
    c->error = errno;
    if (!c->result)
        CHECK_INT(rdma_disconnect(id), 0);
    rdma_destroy_ep(id);
    return NULL;
}

static struct rdma_cm_id *open_listener(struct client *c)
{
    struct rdma_addrinfo *res = lookup("127.0.0.1", NULL, RAI_PASSIVE, RDMA_PS_TCP, 0);
    struct ibv_qp_init_attr attr = usual;
    struct rdma_cm_id *id;

    CHECK_INT(res->ai_qp_type, IBV_QPT_RC);
    CHECK_INT(rdma_create_ep(&id, res, NULL, &attr), 0);
    rdma_freeaddrinfo(res);
    CHECK_INT(rdma_listen(id, 0), 0);
    snprintf(c->port, sizeof c->port, "%u", ntohs(rdma_get_src_port(id)));
    return id;
}

static void calls_wait_for_their_outcome(void **state)
{
    struct client c = {0};
    struct rdma_cm_id *listener = open_listener(&c), *id;
    pthread_t t;

    (void)state;
    CHECK_INT(pthread_create(&t, NULL, run_client, &c), 0);
    CHECK_INT(rdma_get_request(listener, &id), 0);
    CHECK(id->qp != NULL && id->event != NULL);
    CHECK_INT(rdma_accept(id, NULL), 0);
    CHECK_INT(cm_qp_state(id), IBV_QPS_RTS);
    CHECK_INT(rdma_disconnect(id), 0);
    CHECK_INT(pthread_join(t, NULL), 0);
    CHECK_INT(c.result, 0);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
}

static void a_rejected_connect_is_refused(void **state)
{
    struct client c = {0};
    struct rdma_cm_id *listener = open_listener(&c), *id;
    pthread_t t;

    (void)state;
    CHECK_INT(pthread_create(&t, NULL, run_client, &c), 0);
    CHECK_INT(rdma_get_request(listener, &id), 0);
    CHECK_INT(rdma_reject(id, NULL, 0), 0);
    CHECK_INT(pthread_join(t, NULL), 0);
    CHECK_INT(c.result, -1);
    CHECK_INT(c.error, ECONNREFUSED);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
}

static void look_ups_follow_their_hints(void **state)
{
    static const struct {
        int flags, ps, type, got_ps, got_type;
    } rows[] = {
        {0, RDMA_PS_TCP, 0, RDMA_PS_TCP, IBV_QPT_RC},
        {0, RDMA_PS_UDP, 0, RDMA_PS_UDP, IBV_QPT_UD},
        {0, 0, IBV_QPT_UD, RDMA_PS_UDP, IBV_QPT_UD},
        {0, RDMA_PS_IB, IBV_QPT_RC, RDMA_PS_IB, IBV_QPT_RC},
        {RAI_PASSIVE, RDMA_PS_TCP, 0, RDMA_PS_TCP, IBV_QPT_RC},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rdma_addrinfo *r =
            lookup("127.0.0.1", "4711", rows[i].flags | RAI_NUMERICHOST, rows[i].ps, rows[i].type);
        bool passive = rows[i].flags & RAI_PASSIVE;
        struct sockaddr_in *in = (void *)(passive ? r->ai_src_addr : r->ai_dst_addr);

        CHECK_INT(r->ai_port_space, rows[i].got_ps);
        CHECK_INT(r->ai_qp_type, rows[i].got_type);
        CHECK_INT(r->ai_family, AF_INET);
        CHECK_INT(ntohs(in->sin_port), 4711);
        CHECK_INT(passive ? r->ai_dst_len : r->ai_src_len, 0);
        rdma_freeaddrinfo(r);
    }
}

static void a_name_that_is_none_is_an_eai_error(void **state)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *r;

    (void)state;
    CHECK_INT(rdma_getaddrinfo("not.a.number", "1", &hints, &r), EAI_NONAME);
}

static void options_are_checked(void **state)
{
    static const struct {
        int level, name;
        uint64_t value;
        size_t len;
        int expected;
    } rows[] = {
        {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 8, 1, 0},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 8, 4, EINVAL},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 4, 0},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1, 1, EINVAL},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 14, 1, 0},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 32, 1, EINVAL},
        {RDMA_OPTION_ID, 77, 0, 4, ENOSYS},
        {7, 0, 0, 1, ENOSYS},
    };
    struct rdma_event_channel *c = cm_channel();
    struct rdma_cm_id *id = cm_new_id(c, RDMA_PS_TCP);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t value = rows[i].value;
        int err = rdma_set_option(id, rows[i].level, rows[i].name, &value, rows[i].len) ? errno : 0;

        if (err != rows[i].expected)
            fail_msg("row %zu: expected errno %d, got %d", i, rows[i].expected, err);
    }
    CHECK_INT(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(c);
}

static void an_ack_timeout_that_was_set_is_the_queue_pairs(void **state)
{
    struct cm_both b;
    uint8_t timeout = 12;
    struct ibv_qp_attr got;
    struct ibv_qp_init_attr init;

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 1);
    CHECK_INT(rdma_set_option(b.active, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
    cm_both_connect(&b);
    CHECK_INT(ibv_query_qp(b.active->qp, &got, IBV_QP_TIMEOUT, &init), 0);
    CHECK_INT(got.timeout, 12);
    cm_both_close(&b);
}

// ---- XRC: the number of the shared queue comes as private data

static void *send_by_number(void *arg)
{
    struct client *c = arg;
    struct rdma_addrinfo *res = lookup("127.0.0.1", c->port, RAI_NUMERICHOST, RDMA_PS_IB, IBV_QPT_XRC_SEND);
    struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 16}, .sq_sig_all = 1};
    char text[16] = "to a number";
    struct ibv_sge sge = {(uintptr_t)text, sizeof text, 0};
    struct ibv_send_wr *bad, wr = {
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_INLINE,
                             };
    struct rdma_cm_id *id;
    struct ibv_wc wc;

    CHECK_INT(rdma_create_ep(&id, res, NULL, &attr), 0);
    rdma_freeaddrinfo(res);
    CHECK_INT(rdma_connect(id, NULL), 0);
    memcpy(&wr.qp_type.xrc.remote_srqn, id->event->param.conn.private_data, 4);
    CHECK_INT(ibv_post_send(id->qp, &wr, &bad), 0);
    CHECK_INT(rdma_get_send_comp(id, &wc), 1);
    CHECK_INT(wc.status, IBV_WC_SUCCESS);
    CHECK_INT(rdma_disconnect(id), 0);
    rdma_destroy_ep(id);
    return NULL;
}

static void an_xrc_target_takes_messages_by_its_shared_queue(void **state)
{
    struct rdma_addrinfo *res = lookup("127.0.0.1", NULL, RAI_PASSIVE, RDMA_PS_IB, IBV_QPT_XRC_RECV);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}};
    struct rdma_cm_id *listener, *id;
    struct client c = {.result = 0};
    struct ibv_wc wc;
    pthread_t t;
    char buf[16];
    uint32_t number;

    (void)state;
    CHECK_INT(rdma_create_ep(&listener, res, NULL, &attr), 0);
    rdma_freeaddrinfo(res);
    CHECK_INT(rdma_listen(listener, 0), 0);
    snprintf(c.port, sizeof c.port, "%u", ntohs(rdma_get_src_port(listener)));
    CHECK_INT(pthread_create(&t, NULL, send_by_number, &c), 0);
    CHECK_INT(rdma_get_request(listener, &id), 0);
    CHECK_INT(id->qp->qp_type, IBV_QPT_XRC_RECV);
    CHECK(!id->recv_cq && !id->send_cq);
    CHECK_INT(rdma_create_srq(id, NULL, &srq), 0);
    CHECK_INT(ibv_get_srq_num(id->srq, &number), 0);
    struct ibv_mr *mr = rdma_reg_msgs(id, buf, sizeof buf);
    CHECK(mr != NULL);
    CHECK_INT(rdma_post_recv(id, NULL, buf, sizeof buf, mr), 0);
    struct rdma_conn_param p = {.private_data = &number, .private_data_len = sizeof number};
    CHECK_INT(rdma_accept(id, &p), 0);
    CHECK_INT(rdma_get_recv_comp(id, &wc), 1);
    CHECK_INT(wc.status, IBV_WC_SUCCESS);
    CHECK(!strcmp(buf, "to a number"));
    CHECK_INT(rdma_disconnect(id), 0);
    CHECK_INT(pthread_join(t, NULL), 0);
    CHECK_INT(ibv_dereg_mr(mr), 0);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
}

// A queue pair that is made after it takes its receives there.
static void a_shared_queue_of_an_id_is_its_queue_pairs(void **state)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 2, .max_sge = 1}};
    struct cm_both b;
    struct ibv_wc wc;
    char buf[2][16] = {"shared", ""};

    (void)state;
    cm_both_open(&b, RDMA_PS_TCP, 4);
    cm_make_qp(b.active);
    CHECK_INT(rdma_connect(b.active, NULL), 0);
    cm_take_request(&b);
    CHECK_INT(rdma_create_srq(b.passive, NULL, &srq), 0);
    cm_make_qp(b.passive);
    CHECK(b.passive->srq && b.passive->qp->srq == b.passive->srq);
    struct ibv_mr *in = rdma_reg_msgs(b.passive, buf[1], 16), *out = rdma_reg_msgs(b.active, buf[0], 16);
    CHECK_INT(rdma_post_recv(b.passive, NULL, buf[1], 16, in), 0);
    CHECK_INT(rdma_accept(b.passive, NULL), 0);
    cm_expect_ok(b.active_channel, RDMA_CM_EVENT_ESTABLISHED);
    cm_expect_ok(b.passive_channel, RDMA_CM_EVENT_ESTABLISHED);
    CHECK_INT(rdma_post_send(b.active, NULL, buf[0], 16, out, 0), 0);
    CHECK_INT(rdma_get_recv_comp(b.passive, &wc), 1);
    CHECK(!strcmp(buf[1], "shared"));
    CHECK_INT(ibv_dereg_mr(in), 0);
    CHECK_INT(ibv_dereg_mr(out), 0);
    rdma_destroy_qp(b.passive);
    rdma_destroy_srq(b.passive);
    CHECK(!b.passive->srq);
    cm_both_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_wait_for_their_outcome),
        cmocka_unit_test(a_rejected_connect_is_refused),
        cmocka_unit_test(look_ups_follow_their_hints),
        cmocka_unit_test(a_name_that_is_none_is_an_eai_error),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(an_ack_timeout_that_was_set_is_the_queue_pairs),
        cmocka_unit_test(an_xrc_target_takes_messages_by_its_shared_queue),
        cmocka_unit_test(a_shared_queue_of_an_id_is_its_queue_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
