// SPDX-License-Identifier: MIT
// A raw queue of the device as those see it who drive it: include/drydock/direct.h.
#ifndef DOCK_DEVICE_DIRECT_VIEW_H
#define DOCK_DEVICE_DIRECT_VIEW_H

#include "device/device.h"
#include "drydock/direct.h"

static inline struct drydock_queue dock_direct_view(const struct dock_direct *v, uint32_t id)
{
    return (struct drydock_queue){
        .ring = (unsigned char *)v->ring,
        .cq = (const unsigned char *)v->cq,
        .doorbell = (_Atomic uint32_t *)v->doorbell,
        .cq_doorbell = (_Atomic uint32_t *)v->cq_doorbell,
        .page = v->page,
        .state = (const _Atomic uint32_t *)v->state,
        .blocks = v->blocks,
        .cqes = v->cqes,
        .id = id,
        .head = v->pi,
        .rung = v->pi,
        .tail = v->pi,
        .cq_head = v->ci,
    };
}

#endif
