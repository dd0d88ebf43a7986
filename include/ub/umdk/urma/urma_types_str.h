// SPDX-License-Identifier: MIT
// Words for numbers. A number that is not in the table is "Invalid Value"; the words are constants.
#ifndef URMA_TYPES_STR_H
#define URMA_TYPES_STR_H

#include <stddef.h>
#include <stdint.h>

#include "urma_types.h"

#define URMA_DEVICE_FEAT_NUM 9
#define URMA_ATOMIC_FEAT_NUM 7

static inline const char *drydock_urma_word(const char *const *words, size_t count, size_t number)
{
    return number < count && words[number] ? words[number] : "Invalid Value";
}

static inline const char *urma_mtu_to_string(urma_mtu_t mtu)
{
    static const char *const words[] = {NULL,       "MTU_256",  "MTU_512", "MTU_1024",
                                        "MTU_2048", "MTU_4096", "MTU_8192"};

    return drydock_urma_word(words, sizeof(words) / sizeof(words[0]), (size_t)mtu);
}

static inline const char *urma_port_state_to_string(urma_port_state_t state)
{
    static const char *const words[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};

    return drydock_urma_word(words, sizeof(words) / sizeof(words[0]), (size_t)state);
}

static inline const char *urma_speed_to_string(urma_speed_t speed)
{
    static const char *const words[] = {"SP_10M",  "SP_100M", "SP_1G",   "SP_2.5G", "SP_5G",
                                        "SP_10G",  "SP_14G",  "SP_25G",  "SP_40G",  "SP_50G",
                                        "SP_100G", "SP_200G", "SP_400G", "SP_800G"};

    return drydock_urma_word(words, sizeof(words) / sizeof(words[0]), (size_t)speed);
}

static inline const char *urma_link_width_to_string(urma_link_width_t width)
{
    switch ((int)width) {
    case 0:
        return "unknow"; // as UMDK spells it: somebody may compare
    case URMA_LINK_X1:
        return "LINK_X1";
    case URMA_LINK_X2:
        return "LINK_X2";
    case URMA_LINK_X4:
        return "LINK_X4";
    case URMA_LINK_X8:
        return "LINK_X8";
    case URMA_LINK_X16:
        return "LINK_X16";
    case URMA_LINK_X32:
        return "LINK_X32";
    default:
        return "Invalid Value";
    }
}

// Exactly one of RTP, CTP and UTP must be set.
static inline const char *urma_tp_type_en_to_string(union urma_tp_type_en tp_type)
{
    switch (tp_type.bs.rtp | tp_type.bs.ctp << 1 | tp_type.bs.utp << 2) {
    case 1:
        return "RTP";
    case 2:
        return "CTP";
    case 4:
        return "UTP";
    default:
        return "Invalid Value";
    }
}

// BIT is the place of the bit in urma_device_feature_t, 0 to URMA_DEVICE_FEAT_NUM - 1.
static inline const char *urma_device_feat_to_string(uint8_t bit)
{
    static const char *const words[URMA_DEVICE_FEAT_NUM] = {
        "OUT_OF_ORDER",    "JFC_PER_WR", "STRIDE_OP",    "LOAD_STORE_OP",     "NON_PIN",
        "PERSISTENCE_MEM", "JFC_INLINE", "SPRAY_ENABLE", "SELECTIVE_RETRANS",
    };

    return drydock_urma_word(words, URMA_DEVICE_FEAT_NUM, bit);
}

// BIT is the place of the bit in urma_atomic_feature_t, 0 to URMA_ATOMIC_FEAT_NUM - 1.
static inline const char *urma_atomic_feat_to_string(uint8_t bit)
{
    static const char *const words[URMA_ATOMIC_FEAT_NUM] = {
        "compare_and_swap", "swap",         "fetch_and_add", "fetch_and_sub",
        "fetch_and_and",    "fetch_and_or", "fetch_and_xor",
    };

    return drydock_urma_word(words, URMA_ATOMIC_FEAT_NUM, bit);
}

static inline const char *urma_trans_mode_to_string(urma_transport_mode_t mode)
{
    static const char *const words[] = {NULL, "RM(Reliable message)", "RC(Reliable connection)", NULL,
                                        "UM(Unreliable message)"};

    return drydock_urma_word(words, sizeof(words) / sizeof(words[0]), (size_t)mode);
}

static inline const char *urma_tp_type_to_string(urma_transport_type_t type)
{
    static const char *const words[] = {"UB", "IB", "IP", "SOFTUB", NULL, "HNS_UB"};

    return drydock_urma_word(words, sizeof(words) / sizeof(words[0]), (size_t)(unsigned)type);
}

// BIT is one of urma_tp_cc_alg_t.
static inline const char *urma_congestion_ctrl_alg_to_string(uint8_t bit)
{
    static const char *const words[] = {"NONE",           "DCQCN", "CAQM", "LDCP",     "LDCP_L2_HEADER",
                                        "LDCP_TP_HEADER", "DIP",   "ACC",  "CUSTOM_1", "CUSTOM_2"};

    return drydock_urma_word(words, sizeof(words) / sizeof(words[0]), bit);
}

static inline const char *urma_jfc_state_to_string(uint8_t bit)
{
    static const char *const words[] = {"INVALID", "VALID", "ERROR"};

    return drydock_urma_word(words, sizeof(words) / sizeof(words[0]), bit);
}

static inline const char *urma_jetty_state_to_string(uint8_t bit)
{
    static const char *const words[] = {"RESET", "READY", "SUSPENDED", "ERROR"};

    return drydock_urma_word(words, sizeof(words) / sizeof(words[0]), bit);
}

static inline const char *urma_jfr_state_to_string(uint8_t bit)
{
    static const char *const words[] = {"RESET", "READY", "ERROR"};

    return drydock_urma_word(words, sizeof(words) / sizeof(words[0]), bit);
}

#endif
