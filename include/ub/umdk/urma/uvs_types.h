// SPDX-License-Identifier: MIT
// The address type of libtpsa.
#ifndef UVS_TYPES_H
#define UVS_TYPES_H

#include <stdint.h>

#define UVS_EID_SIZE 16

typedef union uvs_eid {
    uint8_t raw[UVS_EID_SIZE];
    struct {
        uint64_t resv;
        uint32_t prefix;
        uint32_t addr;
    } in4;
    struct {
        uint64_t subnet_prefix;
        uint64_t interface_id;
    } in6;
} uvs_eid_t;

#endif
