// SPDX-License-Identifier: MIT
// Shared by the files of the verbs face. Everything here is private to libibverbs.so.1: the map exports only
// names of the verbs ABI.
//
// Conventions of the ABI that every function keeps: creators return NULL and set errno, the others return 0 or a
// positive errno value; ibv_poll_cq returns a count or a negative number. Whoever refuses says why in one line
// (dock_refuse) with the name of the call in front.
#ifndef DOCK_FACE_VERBS_FACE_H
#define DOCK_FACE_VERBS_FACE_H

#include <infiniband/verbs.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/log.h"

// The header turns these names into macros around the exported functions, which we define.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define VB_PORT 1
#define VB_FW_VERSION "0.1.0"

// The one device of this process's list. Never NULL.
struct ibv_device *vb_device(void);

// True when `device` is ours; otherwise errno is ENODEV and the reason is logged under the name `call`.
bool vb_is_our_device(const struct ibv_device *device, const char *call);

// Where `drydock run` laid the private /sys and /dev, "" without it. A static string.
const char *vb_private_root(void);

#endif
