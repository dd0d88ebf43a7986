// SPDX-License-Identifier: MIT
// Posting receives, to a queue pair's own receive queue or to a shared one. As in device/sq.h:
// begin, put for each WR, end.
#ifndef DOCK_DEVICE_RQ_H
#define DOCK_DEVICE_RQ_H

#include "device/sq.h"

struct dock_rq *dock_qp_rq(struct dock_qp *qp); // NULL when it uses a shared one

void dock_recv_begin(struct dock_rq *rq);
// 0; -ENOMEM: `depth` receives are posted and not yet polled; -EINVAL: too many SGEs.
int dock_recv_put(struct dock_rq *rq, uint64_t id, const struct dock_sge *sge, unsigned nsge);
// Publish. A queue pair in ERR flushes them at once; one in RESET must not come here (the face refuses).
void dock_recv_end(struct dock_rq *rq);

#endif
