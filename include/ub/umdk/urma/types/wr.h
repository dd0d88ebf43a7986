// SPDX-License-Identifier: MIT
// What a program asks (work requests) and what it is told (completion records).
#ifndef DRYDOCK_URMA_TYPES_WR_H
#define DRYDOCK_URMA_TYPES_WR_H

#include "jetty.h"
#include "segment.h"

typedef struct urma_sge {
    uint64_t addr;
    uint32_t len;
    urma_target_seg_t *tseg;
    urma_user_tseg_t *user_tseg;
} urma_sge_t;

typedef struct urma_sg {
    urma_sge_t *sge;
    uint32_t num_sge;
} urma_sg_t;

typedef union urma_jfs_wr_flag {
    struct {
        uint32_t place_order : 2;
        uint32_t comp_order : 1;
        uint32_t fence : 1;
        uint32_t solicited_enable : 1;
        uint32_t complete_enable : 1;
        uint32_t inline_flag : 1;
        uint32_t db_bypass : 1;
        uint32_t udf : 1;
        uint32_t has_drv_ext : 1;
        uint32_t reserved : 22;
    } bs;
    uint32_t value;
} urma_jfs_wr_flag_t;

typedef union urma_jfr_wr_flag {
    struct {
        uint32_t complete_type : 1;
        uint32_t reserved : 31;
    } bs;
    uint32_t value;
} urma_jfr_wr_flag_t;

typedef struct urma_rw_wr {
    urma_sg_t src;
    urma_sg_t dst;
    uint8_t target_hint;
    uint64_t notify_data;
} urma_rw_wr_t;

typedef struct urma_send_wr {
    urma_sg_t src;
    uint8_t target_hint;
    uint64_t imm_data;
    urma_target_seg_t *tseg;
} urma_send_wr_t;

typedef struct urma_cas_wr {
    urma_sge_t *dst;
    urma_sge_t *src;
    union {
        uint64_t cmp_data;
        uint64_t cmp_addr;
    };
    union {
        uint64_t swap_data;
        uint64_t swap_addr;
    };
} urma_cas_wr_t;

typedef struct urma_faa_wr {
    urma_sge_t *dst;
    urma_sge_t *src;
    union {
        uint64_t operand;
        uint64_t operand_addr;
    };
} urma_faa_wr_t;

typedef struct urma_jfs_wr {
    urma_opcode_t opcode;
    urma_jfs_wr_flag_t flag;
    urma_target_jetty_t *tjetty;
    uint64_t user_ctx;
    union {
        urma_rw_wr_t rw;
        urma_send_wr_t send;
        urma_cas_wr_t cas;
        urma_faa_wr_t faa;
    };
    struct urma_jfs_wr *next;
} urma_jfs_wr_t;

typedef struct urma_jfr_wr {
    urma_sg_t src;
    uint64_t user_ctx;
    struct urma_jfr_wr *next;
} urma_jfr_wr_t;

typedef union urma_cr_flag {
    struct {
        uint8_t s_r : 1;
        uint8_t jetty : 1;
        uint8_t suspend_done : 1;
        uint8_t flush_err_done : 1;
        uint8_t reserved : 4;
    } bs;
    uint8_t value;
} urma_cr_flag_t;

typedef struct urma_cr_token {
    uint32_t token_id;
    urma_token_t token_value;
} urma_cr_token_t;

typedef struct urma_cr {
    urma_cr_status_t status;
    uint64_t user_ctx;
    urma_cr_opcode_t opcode;
    urma_cr_flag_t flag;
    uint32_t completion_len;
    uint32_t local_id;
    urma_jetty_id_t remote_id;
    union {
        uint64_t imm_data;
        urma_cr_token_t invalid_token;
    };
    uint32_t tpn;
    uintptr_t user_data;
} urma_cr_t;

#endif
