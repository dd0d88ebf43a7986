// SPDX-License-Identifier: MIT
// Asynchronous events.
#ifndef DRYDOCK_URMA_API_EVENT_H
#define DRYDOCK_URMA_API_EVENT_H

#include "../urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Waits for an asynchronous event (ctx->async_fd non-blocking: does not) and fills *event. event->element
// names the object by event_type. URMA_EINVAL for NULL, URMA_FAIL when there is none or a signal came. Each
// event is to be acknowledged. Any thread. Guide 2.3.1.3.1.
urma_status_t urma_get_async_event(urma_context_t *ctx, urma_async_event_t *event);

// Acknowledges it; deletion of the object waits for that. NULL does nothing. Any thread. Guide 2.3.1.3.2.
void urma_ack_async_event(urma_async_event_t *event);

#ifdef __cplusplus
}
#endif

#endif
