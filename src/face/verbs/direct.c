// SPDX-License-Identifier: MIT
// Queue pairs that the program drives itself: include/drydock/verbs.h.
#include "device/direct_view.h"
#include "drydock/verbs.h"
#include "face/verbs/verbs_face.h"

struct ibv_qp *drydock_create_direct_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex a = {0};
    struct dock_direct view;
    struct ibv_qp *qp;

    if (!pd || !attr)
        return vb_none(dock_refuse(-EINVAL, "drydock_create_direct_qp: no domain or no attributes given"));
    if (!attr->cap.max_send_wr)
        return vb_none(dock_refuse(-EINVAL, "drydock_create_direct_qp: a ring of no blocks"));
    memcpy(&a, attr, sizeof *attr); // the long form begins with the short one
    qp = vb_create_direct_qp(pd, &a);
    if (!qp)
        return NULL;
    if (dock_qp_direct(vb_qp(qp)->dev, &view)) { // says why: the CQ is too short
        ibv_destroy_qp(qp);
        return vb_none(-EINVAL);
    }
    attr->cap = a.cap;
    attr->cap.max_send_wr = view.blocks;
    return qp;
}

int drydock_direct_queue(struct ibv_qp *qp, struct drydock_queue *out)
{
    struct dock_direct view;

    if (!qp || !out)
        return dock_refuse(EINVAL, "drydock_direct_queue: no queue pair or nowhere to put the view");
    if (dock_qp_direct(vb_qp(qp)->dev, &view))
        return EINVAL;
    *out = dock_direct_view(&view, qp->qp_num);
    return 0;
}
