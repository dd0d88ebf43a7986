// SPDX-License-Identifier: MIT
// States of queues, verbs' and URMA's, as one table.
#ifndef DOCK_DEVICE_STATE_H
#define DOCK_DEVICE_STATE_H

#include <stdbool.h>

#include "arena/port.h"

// Which states a program may ask for from which. Any state may be asked for RESET and ERR by verbs (man
// ibv_modify_qp); URMA's SUSPENDED leaves only by ERROR.
bool dock_state_may(enum dock_state from, enum dock_state to, bool urma);
const char *dock_state_name(enum dock_state state);

#endif
