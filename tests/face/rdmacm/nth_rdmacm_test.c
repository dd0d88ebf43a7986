// SPDX-License-Identifier: MIT
// link: rdmacm
// timeout: 240
// The n-th allocation or system call in the life of a program that connects fails, for every n until nothing
// fails any more: a connection of ids whose both ends are here, endpoints, a datagram id in a group, a stream
// and a datagram of rsockets. A failing call returns -1 or NULL and errno, or its outcome is an event that
// says so; nobody waits for ever; descriptors, mappings and heap blocks are as before. Once more with a
// process that has never asked for anything: what is done once per process may fail, too, and is done by the
// next call. One failure: nth_rdmacm_test N
#ifdef DOCK_SANITIZED
int main(void)
{
    return 77; // a sanitizer's runtime needs these functions for itself
}
#else
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>

#include "fault/nth_life.h"

enum { WAIT_MS = 10000 };

static struct {
    struct rdma_event_channel *active_channel, *passive_channel, *group_channel;
    struct rdma_cm_id *listener, *active, *passive, *endpoint, *datagrams;
    struct rdma_addrinfo *found;
    int listening, stream, accepted, reader, writer;
} v;

static struct sockaddr_in here(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

// The answer of a call that says -1 and errno.
static int said(int ret)
{
    return ret ? made(NULL) : 0;
}

// The next event of the channel: 0 if it is of this type, its reason otherwise. `request`: where a new id
// goes.
static int outcome(struct rdma_event_channel *c, enum rdma_cm_event_type type, struct rdma_cm_id **request)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    struct rdma_cm_event *e;
    int ret;

    if (poll(&p, 1, WAIT_MS) != 1)
        return ETIMEDOUT;
    if (rdma_get_cm_event(c, &e))
        return made(NULL);
    ret = e->event == type ? 0 : e->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : abs(e->status);
    if (request && !ret)
        *request = e->id;
    rdma_ack_cm_event(e);
    return ret;
}

static int make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 0}, .qp_type = id->qp_type};

    return said(rdma_create_qp(id, NULL, &attr));
}

static int end(struct rdma_cm_id **id)
{
    int ret = 0;

    if (*id) {
        rdma_destroy_qp(*id);
        ret = rdma_destroy_id(*id);
    }
    *id = NULL;
    return ret;
}

// ---- a connection

static int up_active_channel(void)
{
    return made(v.active_channel = rdma_create_event_channel());
}

static int down_active_channel(void)
{
    rdma_destroy_event_channel(v.active_channel);
    return 0;
}

static int up_passive_channel(void)
{
    return made(v.passive_channel = rdma_create_event_channel());
}

static int down_passive_channel(void)
{
    rdma_destroy_event_channel(v.passive_channel);
    return 0;
}

static int up_listener(void)
{
    return said(rdma_create_id(v.passive_channel, &v.listener, NULL, RDMA_PS_TCP));
}

static int down_listener(void)
{
    return end(&v.listener);
}

static int up_listen(void)
{
    struct sockaddr_in a = here(0);

    return said(rdma_bind_addr(v.listener, (struct sockaddr *)&a)) ?: said(rdma_listen(v.listener, 4));
}

static int up_active(void)
{
    return said(rdma_create_id(v.active_channel, &v.active, NULL, RDMA_PS_TCP));
}

static int down_active(void)
{
    return end(&v.active);
}

static int up_address(void)
{
    struct sockaddr_in a = here(ntohs(rdma_get_src_port(v.listener)));

    return said(rdma_resolve_addr(v.active, NULL, (struct sockaddr *)&a, 1000))
               ?: outcome(v.active_channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
}

static int up_route(void)
{
    return said(rdma_resolve_route(v.active, 1000))
               ?: outcome(v.active_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

static int up_active_qp(void)
{
    return make_qp(v.active);
}

// The request, or what the one who asked is told instead.
static int up_request(void)
{
    struct pollfd p[2] = {{.fd = v.active_channel->fd, .events = POLLIN},
                          {.fd = v.passive_channel->fd, .events = POLLIN}};
    struct rdma_conn_param ask = {.retry_count = 7, .rnr_retry_count = 7};

    if (rdma_connect(v.active, &ask))
        return made(NULL);
    if (poll(p, 2, WAIT_MS) < 1)
        return ETIMEDOUT;
    return p[1].revents ? outcome(v.passive_channel, RDMA_CM_EVENT_CONNECT_REQUEST, &v.passive)
                        : outcome(v.active_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL);
}

static int down_request(void)
{
    return end(&v.passive);
}

static int up_passive_qp(void)
{
    return make_qp(v.passive);
}

static int up_accept(void)
{
    return said(rdma_accept(v.passive, NULL))
               ?: outcome(v.active_channel, RDMA_CM_EVENT_ESTABLISHED, NULL)
               ?: outcome(v.passive_channel, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static int up_disconnect(void)
{
    return said(rdma_disconnect(v.active))
               ?: outcome(v.passive_channel, RDMA_CM_EVENT_DISCONNECTED, NULL)
               ?: said(rdma_disconnect(v.passive))
               ?: outcome(v.active_channel, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

// ---- an endpoint that listens, a datagram id in a group

static int up_look_up(void)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP};
    int ret = rdma_getaddrinfo("127.0.0.1", NULL, &hints, &v.found);

    return ret < 0 ? ENOMEM : ret; // an EAI number
}

static int down_look_up(void)
{
    rdma_freeaddrinfo(v.found);
    return 0;
}

static int up_endpoint(void)
{
    struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 0}};

    return said(rdma_create_ep(&v.endpoint, v.found, NULL, &attr));
}

static int down_endpoint(void)
{
    rdma_destroy_ep(v.endpoint);
    return 0;
}

static int up_group_channel(void)
{
    return made(v.group_channel = rdma_create_event_channel());
}

static int down_group_channel(void)
{
    rdma_destroy_event_channel(v.group_channel);
    return 0;
}

static int up_datagrams(void)
{
    return said(rdma_create_id(v.group_channel, &v.datagrams, NULL, RDMA_PS_UDP));
}

static int down_datagrams(void)
{
    return end(&v.datagrams);
}

static int up_join(void)
{
    struct sockaddr_in a = here(0), group = a;

    group.sin_addr.s_addr = htonl(0xe0010203);
    return said(rdma_bind_addr(v.datagrams, (struct sockaddr *)&a))
               ?: make_qp(v.datagrams)
               ?: said(rdma_join_multicast(v.datagrams, (struct sockaddr *)&group, NULL))
               ?: outcome(v.group_channel, RDMA_CM_EVENT_MULTICAST_JOIN, NULL);
}

static int down_join(void)
{
    struct sockaddr_in group = here(0);

    group.sin_addr.s_addr = htonl(0xe0010203);
    return rdma_leave_multicast(v.datagrams, (struct sockaddr *)&group);
}

// ---- a stream

static int up_listening(void)
{
    struct sockaddr_in a = here(0);
    int ret;

    v.listening = rsocket(AF_INET, SOCK_STREAM, 0);
    if (v.listening < 0)
        return made(NULL);
    ret = said(rbind(v.listening, (struct sockaddr *)&a, sizeof a));
    if (!ret)
        ret = said(rlisten(v.listening, 4));
    if (!ret)
        ret = said(rfcntl(v.listening, F_SETFL, O_NONBLOCK));
    if (ret)
        rclose(v.listening);
    return ret;
}

static int down_listening(void)
{
    return rclose(v.listening);
}

static int up_stream(void)
{
    v.stream = rsocket(AF_INET, SOCK_STREAM, 0);
    if (v.stream < 0)
        return made(NULL);
    return said(rfcntl(v.stream, F_SETFL, O_NONBLOCK)) ? rclose(v.stream), errno : 0;
}

static int down_stream(void)
{
    return rclose(v.stream);
}

// The socket at the other end, or what the one who asked is told instead.
static int up_accepted(void)
{
    struct sockaddr_in a;
    socklen_t len = sizeof a;

    if (rgetsockname(v.listening, (struct sockaddr *)&a, &len))
        return made(NULL);
    if (rconnect(v.stream, (struct sockaddr *)&a, sizeof a) && errno != EINPROGRESS)
        return made(NULL);
    for (int i = 0; i < WAIT_MS / 10; i++) {
        struct pollfd p[2] = {{.fd = v.listening, .events = POLLIN}, {.fd = v.stream, .events = POLLOUT}};
        int err = 0;

        if (rpoll(p, 2, 10) < 0)
            return made(NULL);
        v.accepted = p[0].revents ? raccept(v.listening, NULL, NULL) : -1;
        if (v.accepted >= 0)
            return 0;
        if (p[0].revents && errno != EAGAIN)
            return made(NULL);
        len = sizeof err;
        if (p[1].revents && (rgetsockopt(v.stream, SOL_SOCKET, SO_ERROR, &err, &len) || err))
            return err ? err : made(NULL);
    }
    return ETIMEDOUT;
}

static int down_accepted(void)
{
    return rclose(v.accepted);
}

static int up_bytes(void)
{
    char got[4] = "";
    struct pollfd out = {.fd = v.stream, .events = POLLOUT};
    struct pollfd in[2] = {{.fd = v.accepted, .events = POLLIN}, {.fd = v.stream, .events = POLLIN}};
    int n = rpoll(&out, 1, WAIT_MS);

    if (n != 1)
        return n ? made(NULL) : ETIMEDOUT;
    if (rsend(v.stream, "byte", 4, 0) != 4)
        return made(NULL);
    n = rpoll(in, 2, WAIT_MS);
    if (n < 1)
        return n ? made(NULL) : ETIMEDOUT;
    if (!in[0].revents) // what was sent could not be carried: who sent it is told
        return rrecv(v.stream, got, 4, 0) ? made(NULL) : ECONNRESET;
    if (rrecv(v.accepted, got, 4, 0) != 4)
        return made(NULL);
    return memcmp(got, "byte", 4) ? EBADMSG : 0;
}

// ---- a datagram

static int up_reader(void)
{
    struct sockaddr_in a = here(0);

    v.reader = rsocket(AF_INET, SOCK_DGRAM, 0);
    if (v.reader < 0)
        return made(NULL);
    return said(rbind(v.reader, (struct sockaddr *)&a, sizeof a)) ? rclose(v.reader), errno : 0;
}

static int down_reader(void)
{
    return rclose(v.reader);
}

static int up_writer(void)
{
    v.writer = rsocket(AF_INET, SOCK_DGRAM, 0);
    return v.writer < 0 ? made(NULL) : 0;
}

static int down_writer(void)
{
    return rclose(v.writer);
}

// What is lost on its way is lost without a word, and sent again.
static int up_datagram(void)
{
    struct pollfd p = {.fd = v.reader, .events = POLLIN};
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    char got[4] = "";
    int n = 0;

    if (rgetsockname(v.reader, (struct sockaddr *)&a, &len))
        return made(NULL);
    for (int i = 0; i < 2 && !n; i++) {
        if (rsendto(v.writer, "gram", 4, 0, (struct sockaddr *)&a, sizeof a) != 4)
            return made(NULL);
        n = rpoll(&p, 1, WAIT_MS);
    }
    if (n != 1)
        return n ? made(NULL) : ETIMEDOUT;
    if (rrecv(v.reader, got, 4, 0) != 4)
        return made(NULL);
    return memcmp(got, "gram", 4) ? EBADMSG : 0;
}

static const struct step rdmacm_steps[] = {
    {"active channel", up_active_channel, down_active_channel},
    {"passive channel", up_passive_channel, down_passive_channel},
    {"listener", up_listener, down_listener},
    {"listen", up_listen, nothing},
    {"active id", up_active, down_active},
    {"address", up_address, nothing},
    {"route", up_route, nothing},
    {"active queue pair", up_active_qp, nothing},
    {"request", up_request, down_request},
    {"passive queue pair", up_passive_qp, nothing},
    {"accept", up_accept, nothing},
    {"disconnect", up_disconnect, nothing},
    {"look-up", up_look_up, down_look_up},
    {"endpoint", up_endpoint, down_endpoint},
    {"channel of a group", up_group_channel, down_group_channel},
    {"datagram id", up_datagrams, down_datagrams},
    {"group", up_join, down_join},
    {"listening rsocket", up_listening, down_listening},
    {"rsocket", up_stream, down_stream},
    {"accepted rsocket", up_accepted, down_accepted},
    {"bytes", up_bytes, nothing},
    {"reader of datagrams", up_reader, down_reader},
    {"writer of datagrams", up_writer, down_writer},
    {"datagram", up_datagram, nothing},
};

int main(int argc, char **argv)
{
    setenv("DRYDOCK_STOPPED_MS", "2000", 0); // other tests run beside it: it may have to wait for a processor
    waits_succeed = true;                    // the program polls its channels and reads them itself
    program = "face/rdmacm/nth_rdmacm_test";
    steps = rdmacm_steps;
    nsteps = sizeof rdmacm_steps / sizeof *rdmacm_steps;
    refusals[0] = ECONNREFUSED;
    refusals[1] = ECONNRESET;
    if (argc < 2 && first_main())
        return 1;
    return nth_main(argc, argv, 60);
}
#endif
