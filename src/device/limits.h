// SPDX-License-Identifier: MIT
#ifndef DOCK_DEVICE_LIMITS_H
#define DOCK_DEVICE_LIMITS_H

struct dock_limits;

// What the device announces to programs of URMA beside its queues: by urma_query_device, and below
// /sys/class/ubcore of the private tree.
enum {
    DOCK_UB_FEATURES = 0x53848, // load_store_op, jfc_inline, jetty_grp, error_suspend, outorder_comp,
                                // muti_seg_per_token_id, ctp_en
    DOCK_UB_MODES = 0x7,        // RM, RC, UM
    DOCK_UB_ATOMICS = 0x7f,     // all of urma_atomic_feature
    DOCK_UB_ATOMIC = 8,         // bytes of one
    DOCK_UB_SGE = 11,           // of a JFS, local and remote
    DOCK_UB_INLINE = 176,       // bytes
    DOCK_UB_GROUPS = 1024,      // of jettys,
    DOCK_UB_IN_GROUP = 32,      // and jettys in one
    DOCK_UB_PAGES = 0x1000,     // sizes of pages, a bit each
};
#define DOCK_UB_ONE_SIDED (1u << 31) // bytes of a READ or WRITE

// The limits in force: built in, or as DRYDOCK_MAX_* says. Opens nothing.
void dock_limits_read(struct dock_limits *out);
// No more than can be made where an arena has windows of 1 << shift bytes: a ring lies inside one.
void dock_limits_fit(struct dock_limits *out, unsigned shift);

#endif
