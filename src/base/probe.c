// SPDX-License-Identifier: MIT
#include "base/probe.h"

dock_probe_fn dock_probe_hook;
bool dock_probe_straight;

const char *const dock_moment_name[DOCK_MOMENT_COUNT] = {
    [DOCK_AT_POST] = "post",
    [DOCK_AT_PUBLISH] = "publish",
    [DOCK_AT_RING] = "ring",
    [DOCK_AT_FETCH] = "fetch",
    [DOCK_AT_ENTER] = "enter",
    [DOCK_AT_CLAIM] = "claim",
    [DOCK_AT_TAKEN] = "taken",
    [DOCK_AT_PLACE] = "place",
    [DOCK_AT_EXECUTE] = "execute",
    [DOCK_AT_CQE_LOCK] = "cqe-lock",
    [DOCK_AT_CQE_WRITE] = "cqe-write",
    [DOCK_AT_COMPLETE] = "complete",
    [DOCK_AT_POLL] = "poll",
    [DOCK_AT_FREE] = "free",
    [DOCK_AT_STATE] = "state",
    [DOCK_AT_REGISTER] = "register",
    [DOCK_AT_DEREGISTER] = "deregister",
    [DOCK_AT_CONNECT] = "connect",
};
