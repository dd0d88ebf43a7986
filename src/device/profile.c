// SPDX-License-Identifier: MIT
#include "device/profile.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/log.h"

// A locally administered OUI ("DD" for Drydock): belongs to no vendor, so no program takes us for its
// adapter.
enum { OUR_VENDOR = 0x02dd0c, OUR_PART = 1, MLX_VENDOR = 0x02c9, MLX_PART = 4119 };

// Each row is shown by tests/face/profile_test.c under every profile. `udma` is as HiSilicon's provider of
// UMDK does it: a completion record is the only thing that frees a slot, a full queue is an invalid argument,
// and arming asks nobody for a channel.
static const struct dock_profile profiles[] = {
    {"strict", OUR_VENDOR, OUR_PART, .arm_needs_channel = true},
    {"rxe", OUR_VENDOR, OUR_PART, .wrong_op_refused = true, .slot_free_at_execution = true,
     .inline_in_pieces = true, .overrun_loses = true, .completions_stay = true, .atomics_apart = true},
    {"mlx5", MLX_VENDOR, MLX_PART, .early_post_lost = true, .misfit_is_no_memory = true,
     .depths_rounded = true, .atomics_apart = true},
    {"udma", OUR_VENDOR, OUR_PART, .full_is_invalid = true},
};

#define SWITCH(field)                                                                                        \
    {                                                                                                        \
#field, offsetof(struct dock_profile, field)                                                         \
    }

static const struct {
    const char *name;
    size_t at;
} switches[] = {
    SWITCH(arm_needs_channel),      SWITCH(wrong_op_refused),   SWITCH(early_post_lost),
    SWITCH(early_post_kept),        SWITCH(error_post_refused), SWITCH(error_post_lost),
    SWITCH(slot_free_at_execution), SWITCH(full_is_invalid),    SWITCH(misfit_is_no_memory),
    SWITCH(depths_rounded),         SWITCH(overrun_loses),      SWITCH(completions_stay),
    SWITCH(atomics_apart),          SWITCH(arm_tells_old),      SWITCH(zero_length_checked),
    SWITCH(inline_in_pieces),
};

static struct dock_profile chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose_row(const char *name)
{
    for (unsigned i = 0; i < sizeof profiles / sizeof *profiles; i++)
        if (!strcmp(profiles[i].name, name)) {
            chosen = profiles[i];
            return;
        }
    dock_warn("DRYDOCK_PROFILE: %s is no profile (strict, rxe, mlx5, udma): strict it is", name);
}

static void turn(const char *name)
{
    bool on = *name != '-';

    for (unsigned i = 0; i < sizeof switches / sizeof *switches; i++)
        if (!strcmp(switches[i].name, name + !on)) {
            *(bool *)((char *)&chosen + switches[i].at) = on;
            return;
        }
    dock_warn("DRYDOCK_PROFILE: %s is no switch of a profile: left out", name);
}

// The next word, without the blanks around it. NULL: there is none.
static char *next_word(char **rest)
{
    char *word = strsep(rest, ",");

    if (!word)
        return NULL;
    word += strspn(word, " ");
    for (size_t len = strlen(word); len && word[len - 1] == ' '; len--)
        word[len - 1] = 0;
    return word;
}

static void choose(void)
{
    const char *value = getenv("DRYDOCK_PROFILE");
    char *words, *rest, *word;

    chosen = profiles[0];
    if (!value || !*value)
        return;
    words = rest = strdup(value);
    if (!words) {
        dock_no_memory("the words of DRYDOCK_PROFILE");
        return;
    }
    choose_row(next_word(&rest));
    while ((word = next_word(&rest)))
        turn(word);
    chosen.slot_free_at_execution |= chosen.overrun_loses; // a completion that is lost frees none
    free(words);
}

const struct dock_profile *dock_profile(void)
{
    pthread_once(&once, choose);
    return &chosen;
}

uint32_t dock_profile_depth(uint32_t wanted, uint32_t less, uint32_t most)
{
    uint64_t rounded = wanted;

    if (wanted && wanted < most && dock_profile()->depths_rounded)
        rounded = (uint64_t)dock_power_of_two(wanted + less) - less;
    return rounded < most ? (uint32_t)rounded : wanted > most ? wanted : most;
}
