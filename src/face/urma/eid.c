// SPDX-License-Identifier: MIT
// EIDs out of text and numbers.
#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include <ub/umdk/urma/urma_api.h>

#include "base/log.h"

enum { SHORTEST = 3 };

void urma_u32_to_eid(uint32_t ipv4, urma_eid_t *eid)
{
    if (!eid)
        return;
    eid->in4.reserved = 0;
    eid->in4.prefix = htobe32(URMA_IPV4_MAP_IPV6_PREFIX);
    eid->in4.addr = htobe32(ipv4);
}

static bool number_of(const char *text, uint32_t *number)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 0);

    *number = (uint32_t)value;
    return *text != '-' && end != text && !*end && value <= UINT32_MAX;
}

int urma_str_to_eid(const char *buf, urma_eid_t *eid)
{
    struct in6_addr in6;
    struct in_addr in4;
    uint32_t number;

    if (!buf || !eid || strlen(buf) < SHORTEST)
        return dock_refuse(-EINVAL, "urma_str_to_eid: no EID, or a text of less than %d characters",
                           SHORTEST);
    if (inet_pton(AF_INET6, buf, &in6) == 1)
        memcpy(eid->raw, &in6, sizeof(eid->raw));
    else if (inet_pton(AF_INET, buf, &in4) == 1)
        urma_u32_to_eid(be32toh(in4.s_addr), eid);
    else if (number_of(buf, &number))
        urma_u32_to_eid(number, eid);
    else
        return dock_refuse(-EINVAL, "urma_str_to_eid: '%s' is neither an address nor a number", buf);
    return 0;
}
