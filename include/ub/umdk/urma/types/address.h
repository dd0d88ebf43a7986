// SPDX-License-Identifier: MIT
// Who is addressed: a function of a device (EID), a queue there (jetty id), and the secret that opens it
// (token).
#ifndef DRYDOCK_URMA_TYPES_ADDRESS_H
#define DRYDOCK_URMA_TYPES_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../urma_opcode.h"

#ifdef __cplusplus
// A C++ program may include us inside its own extern "C", where templates cannot stand.
extern "C++" {
#include <atomic>
}
#else
#include <stdatomic.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define URMA_MAX_NAME 64
#define URMA_EID_SIZE 16
#define URMA_EID_STR_LEN 39
#define URMA_IPV4_MAP_IPV6_PREFIX 0x0000ffff

typedef enum urma_transport_type {
    URMA_TRANSPORT_INVALID = -1,
    URMA_TRANSPORT_UB = 0,
    URMA_TRANSPORT_IB = 1,
    URMA_TRANSPORT_IP = 2,
    URMA_TRANSPORT_SOFTUB = 3,
    URMA_TRANSPORT_HNS_UB = 5,
    URMA_TRANSPORT_MAX = 6,
} urma_transport_type_t;

typedef enum urma_transport_mode {
    URMA_TM_RM = 1 << 0,
    URMA_TM_RC = 1 << 1,
    URMA_TM_UM = 1 << 2,
} urma_transport_mode_t;

typedef struct urma_init_attr {
    uint64_t token;
    uint32_t uasid;
} urma_init_attr_t;

typedef union urma_eid {
    uint8_t raw[URMA_EID_SIZE];
    struct {
        uint64_t reserved;
        uint32_t prefix;
        uint32_t addr;
    } in4;
    struct {
        uint64_t subnet_prefix;
        uint64_t interface_id;
    } in6;
} urma_eid_t;

typedef struct urma_ref {
#ifdef __cplusplus
    std::atomic_ulong atomic_cnt;
#else
    atomic_ulong atomic_cnt;
#endif
} urma_ref_t;

typedef struct urma_token {
    uint32_t token;
} urma_token_t;

typedef struct urma_jetty_id {
    urma_eid_t eid;
    uint32_t uasid;
    uint32_t id;
} urma_jetty_id_t, urma_jfs_id_t, urma_jfr_id_t, urma_jfc_id_t;

// For printf: EID_FMT in the format, EID_ARGS(eid) (or EID_RAW_ARGS of the 16 bytes) among the arguments.
#define EID_FMT "%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x"
#define EID_RAW_ARGS(eid)                                                                                    \
    (eid)[0], (eid)[1], (eid)[2], (eid)[3], (eid)[4], (eid)[5], (eid)[6], (eid)[7], (eid)[8], (eid)[9],      \
        (eid)[10], (eid)[11], (eid)[12], (eid)[13], (eid)[14], (eid)[15]
#define EID_ARGS(eid) EID_RAW_ARGS((eid).raw)

// The IPv4-mapped EID of an IPv4 address in host order. NULL does nothing.
void urma_u32_to_eid(uint32_t ipv4, urma_eid_t *eid);

// Text to EID: an IPv6 address, a dotted IPv4 address, or a number (an IPv4 address in host order). 0;
// -EINVAL for NULL, less than 3 characters or anything else, and then *eid is left alone.
int urma_str_to_eid(const char *buf, urma_eid_t *eid);

#ifdef __cplusplus
}
#endif

#endif
