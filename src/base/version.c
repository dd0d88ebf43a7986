// SPDX-License-Identifier: MIT
#include "base/version.h"

const char *dock_version(void)
{
    return DOCK_VERSION;
}
