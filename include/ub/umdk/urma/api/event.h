// SPDX-License-Identifier: MIT
// Asynchronous events.
#ifndef DRYDOCK_URMA_API_EVENT_H
#define DRYDOCK_URMA_API_EVENT_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

urma_status_t urma_get_async_event(urma_context_t *ctx, urma_async_event_t *event);

void urma_ack_async_event(urma_async_event_t *event);

#ifdef __cplusplus
}
#endif

#endif
