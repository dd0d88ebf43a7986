// SPDX-License-Identifier: MIT
// The profiling interface (OpenSHMEM 1.5, 9.12): every function under a second name with a p in front. A tool
// defines shmem_x and calls pshmem_x.
#ifndef PSHMEM_H
#define PSHMEM_H

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DOCK_SHMEM_NAME(name) p##name
#include "shmem/names.h"
#undef DOCK_SHMEM_NAME

#ifdef __cplusplus
}
#endif

#endif
