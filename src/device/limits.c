// SPDX-License-Identifier: MIT
// What the device announces, and so enforces.
#include "device/limits.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/log.h"
#include "device/device.h"
#include "ring/cqring.h"

static const struct {
    const char *name;
    size_t at;
    uint32_t usual, ceiling;
} knob[] = {
    {"DRYDOCK_MAX_QP", offsetof(struct dock_limits, max_qp), 16384, 262144},
    {"DRYDOCK_MAX_CQ", offsetof(struct dock_limits, max_cq), 16384, 262144},
    {"DRYDOCK_MAX_SRQ", offsetof(struct dock_limits, max_srq), 4096, 65536},
    {"DRYDOCK_MAX_MR", offsetof(struct dock_limits, max_mr), 49152, 49152},
    {"DRYDOCK_MAX_MW", offsetof(struct dock_limits, max_mw), 16383, 16383},
    {"DRYDOCK_MAX_PD", offsetof(struct dock_limits, max_pd), 16384, 65536},
    {"DRYDOCK_MAX_AH", offsetof(struct dock_limits, max_ah), 65536, 1048576},
    {"DRYDOCK_MAX_CQE", offsetof(struct dock_limits, max_cqe), 1048576, DOCK_CI_MASK},
    {"DRYDOCK_MAX_QP_WR", offsetof(struct dock_limits, max_qp_wr), 16384, 16384},
    {"DRYDOCK_MAX_SRQ_WR", offsetof(struct dock_limits, max_srq_wr), 16384, 32768},
};

static uint32_t chosen(const char *name, uint32_t usual, uint32_t ceiling)
{
    const char *text = getenv(name);
    char *end;
    unsigned long v;

    if (!text || !*text)
        return usual;
    v = strtoul(text, &end, 0);
    if (*end || v == 0 || v > ceiling) {
        dock_warn("%s=%s: 1 to %u are possible, %u it stays", name, text, ceiling, usual);
        return usual;
    }
    return (uint32_t)v;
}

void dock_limits_read(struct dock_limits *out)
{
    *out = (struct dock_limits){.max_sge = 12,
                                .max_inline = 192,
                                .max_rd_atomic = 16,
                                .max_msg = 1ull << 31,
                                .max_mr_size = 1ull << 47};
    for (unsigned i = 0; i < sizeof knob / sizeof *knob; i++)
        *(uint32_t *)((char *)out + knob[i].at) = chosen(knob[i].name, knob[i].usual, knob[i].ceiling);
}

void dock_limits_fit(struct dock_limits *out, unsigned shift)
{
    uint64_t room = ((uint64_t)1 << shift) - sizeof(struct dock_cqrec);
    uint64_t ring = ((uint64_t)1 << shift) / sizeof(struct dock_cqe);

    if (ring * sizeof(struct dock_cqe) > room) // rings are powers of two
        ring /= 2;
    if (out->max_cqe >= ring)
        out->max_cqe = (uint32_t)ring - 1; // one that may be overrun has an entry more than its depth
}
