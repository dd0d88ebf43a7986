// SPDX-License-Identifier: MIT
// Asynchronous events.
#ifndef DRYDOCK_URMA_TYPES_EVENT_H
#define DRYDOCK_URMA_TYPES_EVENT_H

#include "jetty.h"

typedef struct urma_async_event {
    const urma_context_t *urma_ctx;
    union {
        urma_jfc_t *jfc;
        urma_jfs_t *jfs;
        urma_jfr_t *jfr;
        urma_jetty_t *jetty;
        urma_jetty_grp_t *jetty_grp;
        uint32_t port_id;
        uint32_t eid_idx;
    } element;
    urma_async_event_type_t event_type;
    void *priv;
} urma_async_event_t;

typedef void (*urma_async_event_cb)(urma_async_event_t *event, void *cb_arg);

#endif
