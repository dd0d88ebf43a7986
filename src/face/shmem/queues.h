// SPDX-License-Identifier: MIT
#ifndef DOCK_SHMEM_QUEUES_H
#define DOCK_SHMEM_QUEUES_H

#include "face/shmem/shmem_face.h"

// To RTS, towards `dest` (0: towards nobody).
int osh_bring_up(struct dock_qp *qp, uint32_t dest, uint32_t access);
int osh_target_open(void);
void osh_target_close(void);

#endif
