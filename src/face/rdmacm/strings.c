// SPDX-License-Identifier: MIT
#include "face/rdmacm/rdmacm_face.h"

#define NAME(event) [RDMA_CM_EVENT_##event] = "RDMA_CM_EVENT_" #event

const char *rdma_event_str(enum rdma_cm_event_type event)
{
    static const char *const names[] = {
        NAME(ADDR_RESOLVED),   NAME(ADDR_ERROR),       NAME(ROUTE_RESOLVED), NAME(ROUTE_ERROR),
        NAME(CONNECT_REQUEST), NAME(CONNECT_RESPONSE), NAME(CONNECT_ERROR),  NAME(UNREACHABLE),
        NAME(REJECTED),        NAME(ESTABLISHED),      NAME(DISCONNECTED),   NAME(DEVICE_REMOVAL),
        NAME(MULTICAST_JOIN),  NAME(MULTICAST_ERROR),  NAME(ADDR_CHANGE),    NAME(TIMEWAIT_EXIT),
    };

    return (unsigned)event < sizeof names / sizeof *names ? names[event] : "UNKNOWN EVENT";
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return id ? htons(cm_addr_port(&id->route.addr.src_addr)) : 0;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return id ? htons(cm_addr_port(&id->route.addr.dst_addr)) : 0;
}
