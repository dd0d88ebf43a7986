// SPDX-License-Identifier: MIT
// The objects that a round of urma_life_test.c has, and configurations for more of them.
#ifndef DOCK_TESTS_FUZZ_LIB_URMA_WORLD_H
#define DOCK_TESTS_FUZZ_LIB_URMA_WORLD_H

#include <ub/umdk/urma/urma_api.h>
#include <ub/umdk/urma/urma_perf.h>

#include "fuzz/lib/fuzz.h"

enum { FULL = 12, BYTES = 65536 };

// Objects of one kind that are there.
struct pool {
    void *of[FULL];
    unsigned n;
};

static struct pool jfces, jfcs, jfss, jfrs, jettys, groups, tokens, segs, far_segs, targets, notifiers;
static unsigned long successes;
static urma_device_t *dev;
static urma_context_t *ctx;
static char memory[BYTES];
// Never given back during a round: what objects in steps use.
static urma_jfce_t *jfce;
static urma_jfc_t *jfc;
static urma_jfr_t *jfr;
static urma_jetty_grp_t *group;

static bool rarely(void)
{
    return chance() % 8 == 0;
}

static void *one(const struct pool *p)
{
    return !p->n || rarely() ? NULL : p->of[chance() % p->n];
}

static void keep(struct pool *p, void *object)
{
    if (!object)
        return;
    p->of[p->n++] = object;
    successes++;
}

static void gone(struct pool *p, const void *object)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->of[i] == object) {
            p->of[i] = p->of[--p->n];
            return;
        }
}

// The context for something new of a kind; NULL also where there are enough of them.
static urma_context_t *room(const struct pool *p)
{
    return p->n == FULL || rarely() ? NULL : ctx;
}

static uint32_t flags(void)
{
    return chance() % 4 ? 0 : (uint32_t)chance();
}

static uint32_t depth(void)
{
    return rarely() ? (uint32_t)chance() : 1 + (uint32_t)chance() % 64;
}

static urma_transport_mode_t mode(void)
{
    return (urma_transport_mode_t)(rarely() ? chance() % 9 : 1u << chance() % 3);
}

static urma_token_t *token(void)
{
    static urma_token_t t;

    t.token = (uint32_t)chance() % 4;
    return rarely() ? NULL : &t;
}

// ---- configurations. In steps an object uses what stays.

static urma_jfc_cfg_t *jfc_cfg(bool steps)
{
    static urma_jfc_cfg_t c;

    c = (urma_jfc_cfg_t){.depth = depth(), .flag.value = flags(), .jfce = steps ? jfce : one(&jfces)};
    return rarely() ? NULL : &c;
}

static urma_jfs_cfg_t *jfs_cfg(bool steps)
{
    static urma_jfs_cfg_t c;

    c = (urma_jfs_cfg_t){.depth = depth(),
                         .flag.value = flags(),
                         .trans_mode = mode(),
                         .priority = (uint8_t)(chance() % 20),
                         .max_sge = (uint8_t)(chance() % 8),
                         .max_rsge = (uint8_t)(chance() % 4),
                         .max_inline_data = (uint32_t)chance() % 256,
                         .rnr_retry = (uint8_t)(chance() % 9),
                         .err_timeout = (uint8_t)(chance() % 40),
                         .jfc = steps ? jfc : one(&jfcs)};
    return rarely() ? NULL : &c;
}

static urma_jfr_cfg_t *jfr_cfg(bool steps)
{
    static urma_jfr_cfg_t c;

    c = (urma_jfr_cfg_t){.depth = depth(),
                         .flag.value = flags(),
                         .trans_mode = mode(),
                         .max_sge = (uint8_t)(chance() % 4),
                         .min_rnr_timer = (uint8_t)chance(),
                         .token_value = {(uint32_t)chance() % 4},
                         .jfc = steps ? jfc : one(&jfcs)};
    return rarely() ? NULL : &c;
}

static urma_jetty_cfg_t *jetty_cfg(bool steps)
{
    static urma_jetty_cfg_t c;
    urma_jfs_cfg_t *s = jfs_cfg(steps);

    c = (urma_jetty_cfg_t){.flag.value = chance() % 4 ? 1 : (uint32_t)chance() % 16,
                           .shared = {.jfr = steps ? jfr : one(&jfrs), .jfc = steps ? jfc : one(&jfcs)},
                           .jetty_grp = chance() % 4 ? NULL
                                        : steps      ? group
                                                     : one(&groups)};
    if (s)
        c.jfs_cfg = *s;
    if (c.shared.jfr && !rarely()) { // mostly one that fits
        c.jfs_cfg.trans_mode = c.shared.jfr->jfr_cfg.trans_mode;
        c.jfs_cfg.flag.bs.order_type = c.shared.jfr->jfr_cfg.flag.bs.order_type;
    }
    return rarely() ? NULL : &c;
}

// A number of an option with a value that its object may be given: pointers lead to what stays.
static uint64_t option(void *value)
{
    uint64_t opt = chance() % 4 << 12 | chance() % 24, number = chance() >> chance() % 64;

    memcpy(value, &number, sizeof number);
    if (opt == URMA_JFC_BIND_JFCE)
        memcpy(value, &jfce, sizeof jfce);
    else if (opt == URMA_JETTY_BIND_JFR)
        memcpy(value, &jfr, sizeof jfr);
    else if (opt == URMA_JETTY_BIND_JTG)
        memcpy(value, &group, sizeof group);
    else if (opt == URMA_JFS_BIND_JFC || opt == URMA_JFR_BIND_JFC || opt == URMA_JETTY_BIND_RX_JFC)
        memcpy(value, &jfc, sizeof jfc);
    return opt;
}

static uint32_t option_bytes(void)
{
    return rarely() ? (uint32_t)chance() % 300 : 1u << chance() % 4;
}

static void *place(void)
{
    static uint64_t room_of_options[64];

    return rarely() ? NULL : room_of_options;
}

#endif
