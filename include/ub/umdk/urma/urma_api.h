// SPDX-License-Identifier: MIT
// URMA, the user interface of the Unified Bus, API version 0.9 (UMDK 26.06). A program includes this header
// alone, as <ub/umdk/urma/urma_api.h> or, with that directory on its include path, as "urma_api.h", and links
// with -lurma.
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
