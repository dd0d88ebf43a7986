// SPDX-License-Identifier: MIT
// How a function of the interface gets its second name, behind its definition.
#ifndef DOCK_SHMEM_API_H
#define DOCK_SHMEM_API_H

#include <pshmem.h>

#define API(name) extern __typeof(name) p##name __attribute__((alias(#name)))

#endif
