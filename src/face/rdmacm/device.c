// SPDX-License-Identifier: MIT
// The device under all ids: opened once, kept until the process ends, so that contexts that programs got from
// rdma_get_devices stay what id->verbs is.
#include <fcntl.h>
#include <stdlib.h>

#include "face/rdmacm/rdmacm_face.h"

static struct ibv_context *context;
static struct ibv_pd *domain; // of that context, made when the first id takes it
static struct ibv_xrcd *xrc;  // likewise: of the targets and shared queues that ids make
static struct cm_limits limits;
static uint32_t opened_in; // cm.generation + 1 of the process that opened it
static pthread_mutex_t opening = DOCK_LOCK_OF_FORKS;

// A fork waits for who opens it. Taken before the device's own locks, which are held at a fork by handlers
// that were registered earlier, when the device's library was loaded.
static void hold_opening(void)
{
    dock_lock(&opening);
}

static void let_open(void)
{
    dock_unlock_of_forks(&opening);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(hold_opening, let_open, let_open);
}

static uint8_t depth(int value)
{
    return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value;
}

static struct ibv_context *open_it(void)
{
    struct ibv_device_attr attr;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;

    if (list)
        ibv_free_device_list(list);
    if (!c || ibv_query_device(c, &attr)) {
        if (c)
            ibv_close_device(c);
        errno = dock_refuse(ENODEV, "rdma_cm: there is no verbs device");
        return NULL;
    }
    limits.responder_resources = depth(attr.max_qp_rd_atom);
    limits.initiator_depth = depth(attr.max_qp_init_rd_atom);
    limits.max_qp_wr = (uint32_t)attr.max_qp_wr;
    return c;
}

struct ibv_context *cm_device(void)
{
    struct ibv_context *c;

    dock_lock(&opening);
    if (!context || opened_in != cm.generation + 1) {
        context = open_it();
        domain = NULL;
        xrc = NULL;
        opened_in = cm.generation + 1;
    }
    c = context;
    dock_unlock_of_forks(&opening);
    return c;
}

struct ibv_pd *cm_domain(void)
{
    struct ibv_pd *pd;

    if (!cm_device())
        return NULL;
    dock_lock(&opening);
    if (!domain)
        domain = ibv_alloc_pd(context);
    pd = domain;
    dock_unlock_of_forks(&opening);
    return pd;
}

struct ibv_xrcd *cm_xrcd(void)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_xrcd *x;

    if (!cm_device())
        return NULL;
    dock_lock(&opening);
    if (!xrc)
        xrc = ibv_open_xrcd(context, &attr);
    x = xrc;
    dock_unlock_of_forks(&opening);
    return x;
}

const struct cm_limits *cm_limits(void)
{
    return &limits;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
    struct ibv_context **list;
    struct ibv_context *c = cm_device();

    if (num_devices)
        *num_devices = 0;
    if (!c)
        return NULL;
    list = calloc(2, sizeof *list);
    if (!list) {
        errno = dock_refuse(ENOMEM, "rdma_get_devices: no memory for the list");
        return NULL;
    }
    list[0] = c;
    if (num_devices)
        *num_devices = 1;
    return list;
}

void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}
