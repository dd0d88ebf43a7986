// SPDX-License-Identifier: MIT
#include "device/state.h"

#define TO(s) (1u << (s))
#define ALWAYS (TO(DOCK_RESET) | TO(DOCK_ERR))

// IBTA vol 1, figure 124, and URMA's table; a row per present state.
static const uint16_t verbs_to[] = {
    [DOCK_RESET] = ALWAYS | TO(DOCK_INIT),
    [DOCK_INIT] = ALWAYS | TO(DOCK_INIT) | TO(DOCK_RTR),
    [DOCK_RTR] = ALWAYS | TO(DOCK_RTS),
    [DOCK_RTS] = ALWAYS | TO(DOCK_RTS) | TO(DOCK_SQD),
    [DOCK_SQD] = ALWAYS | TO(DOCK_RTS) | TO(DOCK_SQD),
    [DOCK_SQE] = ALWAYS | TO(DOCK_RTS),
    [DOCK_ERR] = ALWAYS,
    [DOCK_SUSPENDED] = 0,
    [DOCK_GONE] = 0,
};

static const uint16_t urma_to[] = {
    [DOCK_RESET] = TO(DOCK_RESET) | TO(DOCK_RTS),
    [DOCK_INIT] = 0,
    [DOCK_RTR] = 0,
    [DOCK_RTS] = TO(DOCK_RTS) | TO(DOCK_ERR) | TO(DOCK_SUSPENDED),
    [DOCK_SQD] = 0,
    [DOCK_SQE] = 0,
    [DOCK_ERR] = TO(DOCK_ERR) | TO(DOCK_RESET),
    [DOCK_SUSPENDED] = TO(DOCK_SUSPENDED) | TO(DOCK_ERR),
    [DOCK_GONE] = 0,
};

bool dock_state_may(enum dock_state from, enum dock_state to, bool urma)
{
    const uint16_t *table = urma ? urma_to : verbs_to;

    return from <= DOCK_GONE && to < DOCK_GONE && table[from] & TO(to);
}

const char *dock_state_name(enum dock_state state)
{
    static const char *const name[] = {"RESET", "INIT", "RTR",       "RTS", "SQD",
                                       "SQE",   "ERR",  "SUSPENDED", "GONE"};

    return state <= DOCK_GONE ? name[state] : "?";
}
