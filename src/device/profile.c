// SPDX-License-Identifier: MIT
#include "device/profile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

// A locally administered OUI ("DD" for Drydock): belongs to no vendor, so no program takes us for its
// adapter.
enum { OUR_VENDOR = 0x02dd0c, OUR_PART = 1, MLX_VENDOR = 0x02c9, MLX_PART = 4119 };

// Each row is shown by tests/face/profile_test.c under every profile. `udma` says so far no more than
// `strict`.
static const struct dock_profile profiles[] = {
    {"strict", OUR_VENDOR, OUR_PART, .arm_needs_channel = true},
    {"rxe", OUR_VENDOR, OUR_PART, .wrong_op_refused = true, .slot_free_at_execution = true},
    {"mlx5", MLX_VENDOR, MLX_PART, .early_post_lost = true},
    {"udma", OUR_VENDOR, OUR_PART, .arm_needs_channel = true},
};

static const struct dock_profile *chosen = profiles;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    const char *name = getenv("DRYDOCK_PROFILE");

    if (!name || !*name)
        return;
    for (unsigned i = 0; i < sizeof profiles / sizeof *profiles; i++)
        if (!strcmp(profiles[i].name, name)) {
            chosen = &profiles[i];
            return;
        }
    dock_warn("DRYDOCK_PROFILE=%s is no profile (strict, rxe, mlx5, udma): strict it is", name);
}

const struct dock_profile *dock_profile(void)
{
    pthread_once(&once, choose);
    return chosen;
}
