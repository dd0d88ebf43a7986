// SPDX-License-Identifier: MIT
// URMA, the user interface of the Unified Bus, API version 0.9 (UMDK 26.06). A program includes this header
// alone, as <ub/umdk/urma/urma_api.h> or, with that directory on its include path, as "urma_api.h", and links
// with -lurma. Where the guide (UMDK's URMA API Guide) is silent, docs/urma-errors.md says what drydock does.
//
// For every call, unless it says otherwise:
//   - A function that returns a pointer returns NULL on error and sets errno. urma_status_t is 0 or one of
//     the positive URMA_E* codes, or URMA_FAIL; errno is left alone. A count is negative on error.
//   - A required pointer that is NULL is refused with EINVAL. What a pointer inside a structure of the
//     library leads to is not looked at again.
//   - An object is the library's memory; it ends with the call that its creator names, and nobody may be in
//     another call with it then. Configurations are copied, and can be read back in the object.
//   - Any thread may call, two threads also with the same object. Who sets lock_free on a queue promises that
//     one thread at a time posts to it, polls it or asks for its ring.
//   - Each refusal is explained in one line of the log (DRYDOCK_LOG=info, or urma_register_log_func).
#ifndef URMA_API_H
#define URMA_API_H

#include <stdbool.h>
#include <stdint.h>

#include "urma_types.h"

#include "api/data.h"
#include "api/device.h"
#include "api/event.h"
#include "api/jetty.h"
#include "api/jfc.h"
#include "api/jfr.h"
#include "api/jfs.h"
#include "api/log.h"
#include "api/segment.h"
#include "api/target.h"
#include "api/tp.h"

#endif
