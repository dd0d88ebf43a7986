// SPDX-License-Identifier: MIT
// Options of the two-step life: which there are, how long each is, and where its value comes from.
#ifndef DOCK_FACE_URMA_OPTIONS_H
#define DOCK_FACE_URMA_OPTIONS_H

#include "face/urma/urma_face.h"

// Values that the device knows. A number, the place of a ring and what a PI is may be chosen before.
enum ur_live { UR_CONFIG, UR_BASE, UR_DOORBELL, UR_NUMBER, UR_PI, UR_CI, UR_PI_TYPE, UR_STATUS };

struct ur_option {
    uint64_t opt;
    uint32_t size;
    enum ur_live live;
    size_t offset; // UR_CONFIG: of the value in the object
};

// What the live options of an object are read from.
struct ur_live_values {
    struct dock_ring_look ring;
    uint32_t number;
    uint16_t pi_type;  // 0: index into the ring, 1: as it counts
    uint8_t db_status; // 1: posts do not ring
    bool active;
};

// Where the choices of an object stand.
struct ur_choices {
    uint16_t *pi_type;
    uint32_t *number;
    void **ring;
    uint32_t ring_align;
};

const struct ur_option *ur_option_find(const struct ur_option *table, size_t n, uint64_t opt);
urma_status_t ur_option_set(const struct ur_option *o, void *object, const struct ur_choices *c,
                            const void *buf, uint32_t len, const char *call);
urma_status_t ur_option_get(const struct ur_option *o, const void *object, const struct ur_live_values *v,
                            void *buf, uint32_t len, const char *call);

// URMA_JFS_DB_STATUS: 1, posts do not ring, and the doorbell has a page (asked for before activation); 0, at
// any time: they do, and what stands there unrung is rung for.
urma_status_t ur_set_doorbell(struct ur_sends *s, const void *buf, uint32_t len, const char *call);

// JFS and jetty: the send ring, into the public structure as well.
void ur_look_at_sends(const struct ur_sends *s, uint32_t number, urma_jfs_opt_t *o, struct ur_live_values *v);

#endif
