// SPDX-License-Identifier: MIT
#ifndef DOCK_SHMEM_QUEUES_H
#define DOCK_SHMEM_QUEUES_H

#include "face/shmem/shmem_face.h"

int osh_target_open(void);
void osh_target_close(void);

#endif
