// SPDX-License-Identifier: MIT
// The name that programs of SGI's and Cray's time include.
#include "../shmem.h"
