// SPDX-License-Identifier: MIT
// rdma_getaddrinfo: the host's own getaddrinfo, and what an endpoint needs beside it.
#include <netdb.h>
#include <stdlib.h>

#include "face/rdmacm/rdmacm_face.h"

static void to_hints(const struct rdma_addrinfo *r, struct addrinfo *a)
{
    bool ud =
        r->ai_qp_type == IBV_QPT_UD || r->ai_port_space == RDMA_PS_UDP || r->ai_port_space == RDMA_PS_IPOIB;

    memset(a, 0, sizeof *a);
    a->ai_flags =
        (r->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) | (r->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
    a->ai_family = r->ai_family;
    if (!r->ai_qp_type && !r->ai_port_space)
        return;
    a->ai_socktype = ud ? SOCK_DGRAM : SOCK_STREAM;
    a->ai_protocol = ud ? IPPROTO_UDP : IPPROTO_TCP;
}

static int copy(struct sockaddr **to, socklen_t *to_len, const struct sockaddr *from, socklen_t len)
{
    *to = malloc(len);
    if (!*to)
        return cm_fail(dock_refuse(ENOMEM, "rdma_getaddrinfo: no memory"));
    memcpy(*to, from, len);
    *to_len = len;
    return 0;
}

static int copy_name(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return from && !*to ? cm_fail(dock_refuse(ENOMEM, "rdma_getaddrinfo: no memory")) : 0;
}

static int from_answer(struct rdma_addrinfo *r, const struct rdma_addrinfo *hints, const struct addrinfo *a)
{
    bool ud = a->ai_socktype == SOCK_DGRAM;

    r->ai_qp_type = hints->ai_qp_type ? hints->ai_qp_type : ud ? IBV_QPT_UD : IBV_QPT_RC;
    r->ai_port_space = hints->ai_port_space ? hints->ai_port_space : ud ? RDMA_PS_UDP : RDMA_PS_TCP;
    r->ai_family = a->ai_family;
    if (!(hints->ai_flags & RAI_PASSIVE))
        return copy_name(&r->ai_dst_canonname, a->ai_canonname)
                   ? -1
                   : copy(&r->ai_dst_addr, &r->ai_dst_len, a->ai_addr, a->ai_addrlen);
    r->ai_flags = RAI_PASSIVE;
    return copy_name(&r->ai_src_canonname, a->ai_canonname)
               ? -1
               : copy(&r->ai_src_addr, &r->ai_src_len, a->ai_addr, a->ai_addrlen);
}

static int ask(const char *node, const char *service, const struct rdma_addrinfo *hints, bool given,
               struct rdma_addrinfo *r)
{
    struct addrinfo plain, *answer;
    int ret;

    to_hints(hints, &plain);
    ret = getaddrinfo(node, service, given ? &plain : NULL, &answer);
    if (ret)
        return ret;
    ret = from_answer(r, hints, answer);
    freeaddrinfo(answer);
    return ret;
}

static int from_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *r)
{
    r->ai_flags = hints->ai_flags;
    r->ai_family = hints->ai_family;
    r->ai_qp_type = hints->ai_qp_type;
    r->ai_port_space = hints->ai_port_space;
    return hints->ai_dst_len ? copy(&r->ai_dst_addr, &r->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len)
                             : 0;
}

static void free_one(struct rdma_addrinfo *r)
{
    free(r->ai_connect);
    free(r->ai_route);
    free(r->ai_src_canonname);
    free(r->ai_dst_canonname);
    free(r->ai_src_addr);
    free(r->ai_dst_addr);
    free(r);
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **res)
{
    static const struct rdma_addrinfo none;
    const struct rdma_addrinfo *h = hints ? hints : &none;
    struct rdma_addrinfo *r;
    int ret;

    if (!res || (!node && !service && !hints))
        return cm_fail(dock_refuse(EINVAL, "rdma_getaddrinfo: neither node, service nor hints given"));
    r = calloc(1, sizeof *r);
    if (!r)
        return cm_fail(dock_refuse(ENOMEM, "rdma_getaddrinfo: no memory"));
    ret = node || service ? ask(node, service, h, hints != NULL, r) : from_hints(h, r);
    if (!ret && !r->ai_src_len && h->ai_src_len)
        ret = copy(&r->ai_src_addr, &r->ai_src_len, h->ai_src_addr, h->ai_src_len);
    if (ret) {
        free_one(r);
        return ret;
    }
    *res = r;
    return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
    while (res) {
        struct rdma_addrinfo *next = res->ai_next;

        free_one(res);
        res = next;
    }
}
