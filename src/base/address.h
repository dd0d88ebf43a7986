// SPDX-License-Identifier: MIT
// Addresses of 16 bytes: GIDs and EIDs. An IPv4 address stands in them in the mapped form, ::ffff:a.b.c.d.
#ifndef DOCK_BASE_ADDRESS_H
#define DOCK_BASE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// The bytes before those of an IPv4 address.
#define DOCK_MAPPED_BYTES 12

static inline bool dock_address_is_zero(const uint8_t raw[16])
{
    static const uint8_t zero[16];

    return !memcmp(raw, zero, sizeof zero);
}

static inline bool dock_address_is_ipv4(const uint8_t raw[16])
{
    static const uint8_t mapped[DOCK_MAPPED_BYTES] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(raw, mapped, sizeof mapped);
}

// `ipv4`: four bytes in network order.
static inline void dock_address_of_ipv4(uint8_t raw[16], const void *ipv4)
{
    memset(raw, 0, 10);
    memset(raw + 10, 0xff, 2);
    memcpy(raw + DOCK_MAPPED_BYTES, ipv4, 4);
}

#endif
