// SPDX-License-Identifier: MIT
// All types of URMA, by object family.
#ifndef URMA_TYPES_H
#define URMA_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "urma_opcode.h"

#include "types/address.h"
#include "types/context.h"
#include "types/device.h"
#include "types/event.h"
#include "types/jetty.h"
#include "types/jfc.h"
#include "types/jfr.h"
#include "types/jfs.h"
#include "types/log.h"
#include "types/region.h"
#include "types/segment.h"
#include "types/tp.h"
#include "types/wr.h"

#define URMA_GET_VERSION(major, minor) (((major) << 16) + ((minor) > UINT16_MAX ? UINT16_MAX : (minor)))
#define URMA_API_VERSION ((0 << 16) + 9)

#endif
