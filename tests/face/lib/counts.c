// SPDX-License-Identifier: MIT
#include "face/lib/counts.h"

#include "device/internal.h"
#include "face/verbs/verbs_face.h"

void face_counts(struct ibv_context *context, struct ibv_pd *pd, struct face_counts *out)
{
    out->objects = dock_peek32(&vb_context(context)->objects);
    out->users = dock_peek32(&vb_pd(pd)->users);
}

uint64_t face_executed(struct ibv_qp *qp)
{
    return dock_acquire64(&vb_qp(qp)->dev->rec->executed);
}
