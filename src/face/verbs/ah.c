// SPDX-License-Identifier: MIT
// Address handles and what the manual calls address vectors.
#include <stdlib.h>

#include "base/address.h"
#include "device/identity.h"
#include "face/verbs/verbs_face.h"

static dock_a32 handles_in_use; // of all contexts: the limit is the device's
static dock_a32 handles_given;

int vb_check_av(const struct ibv_ah_attr *av, const char *call)
{
    if (av->port_num != VB_PORT)
        return dock_refuse(EINVAL, "%s: port %u in the address vector: the only port is 1", call,
                           av->port_num);
    if (!av->is_global)
        return dock_refuse(EINVAL, "%s: the address vector has no GRH (is_global = 0): RoCE needs a GID",
                           call);
    if (!dock_gid_filled(av->grh.sgid_index))
        return dock_refuse(EINVAL, "%s: source GID index %u is an empty entry", call, av->grh.sgid_index);
    if (dock_address_is_zero(av->grh.dgid.raw))
        return dock_refuse(EINVAL, "%s: the destination GID is all zeros", call);
    // Of the flow label 20 bits count. Adapters drop the others, and programs give all ones.
    if (av->sl > 15)
        return dock_refuse(EINVAL, "%s: service level %u is above 15", call, av->sl);
    return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct vb_ah *ah;
    int err;

    if (!pd || !attr)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_ah: no domain or no address given"));
    if (!vb_pd_known(pd))
        return vb_none(dock_refuse(-ENOENT, "ibv_create_ah: no domain has handle %#x", pd->handle));
    err = vb_check_av(attr, "ibv_create_ah");
    if (err)
        return vb_none(-err);
    ah = calloc(1, sizeof *ah);
    if (!ah)
        return vb_none(dock_refuse(-ENOMEM, "ibv_create_ah: no memory"));
    if (vb_count(&handles_in_use, 1) >= dock_dev_limits(vb_dev(pd->context))->max_ah) {
        vb_count(&handles_in_use, -1);
        free(ah);
        return vb_none(dock_refuse(-ENOMEM, "ibv_create_ah: all address handles of the device are in use"));
    }
    ah->ah.context = pd->context;
    ah->ah.pd = pd;
    ah->ah.handle = ah->handle = vb_count(&handles_given, 1) + 1;
    memcpy(ah->eid, attr->grh.dgid.raw, sizeof ah->eid);
    ah->header = DOCK_UD_HEADER(attr->grh.traffic_class, attr->grh.hop_limit, attr->grh.sgid_index);
    vb_pd_use(pd);
    vb_object_made(pd->context);
    return &ah->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    if (!ah)
        return vb_status(dock_refuse(EINVAL, "ibv_destroy_ah: no handle given"));
    if (ah->handle != vb_ah(ah)->handle)
        return vb_status(dock_refuse(ENOENT, "ibv_destroy_ah: nothing has handle %#x", ah->handle));
    vb_pd_drop(ah->pd);
    vb_count(&handles_in_use, -1);
    vb_object_gone(ah->context);
    free(ah);
    return 0;
}

// The header of a RoCE v2 datagram over IPv4 lies in the last 20 of the 40 bytes before the data; bytes 0
// to 19 mean nothing then. Returns false when it is an IPv6 header.
static bool ipv4_header(const struct ibv_grh *grh, union ibv_gid *source, union ibv_gid *destination)
{
    const uint8_t *byte = (const uint8_t *)grh;

    if (byte[0] >> 4 == 6 || byte[20] != 0x45)
        return false;
    dock_address_of_ipv4(source->raw, byte + 32);
    dock_address_of_ipv4(destination->raw, byte + 36);
    return true;
}

static int gid_index(const union ibv_gid *gid)
{
    const struct dock_identity *id = dock_identity();

    for (uint32_t i = 0; i < id->gids; i++)
        if (!memcmp(id->gid[i].raw, gid->raw, sizeof gid->raw))
            return (int)i;
    return -1;
}

// What came by multicast is answered from the first address of its family.
static int index_like(const union ibv_gid *source)
{
    const struct dock_identity *id = dock_identity();

    for (uint32_t i = 0; i < id->gids; i++)
        if ((id->gid[i].raw[0] == 0) == (source->raw[0] == 0))
            return (int)i;
    return -1;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc, struct ibv_grh *grh,
                        struct ibv_ah_attr *ah_attr)
{
    union ibv_gid source, destination;
    int index;

    if (!context || !wc || !grh || !ah_attr || port_num != VB_PORT || !(wc->wc_flags & IBV_WC_GRH)) {
        errno = dock_refuse(EINVAL, "ibv_init_ah_from_wc: port %u, or a completion without GRH", port_num);
        return -1;
    }
    if (!ipv4_header(grh, &source, &destination)) {
        source = grh->sgid;
        destination = grh->dgid;
    }
    index = dock_eid_is_group(destination.raw) ? index_like(&source) : gid_index(&destination);
    if (index < 0) {
        errno = dock_refuse(EINVAL, "ibv_init_ah_from_wc: the message was sent to a GID that is not ours");
        return -1;
    }
    *ah_attr = (struct ibv_ah_attr){
        .grh.dgid = source,
        .grh.sgid_index = (uint8_t)index,
        .grh.hop_limit = 64,
        .is_global = 1,
        .port_num = port_num,
    };
    return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
                                     uint8_t port_num)
{
    struct ibv_ah_attr attr;

    if (!pd)
        return vb_none(dock_refuse(-EINVAL, "ibv_create_ah_from_wc: no domain given"));
    if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
        return NULL;
    return ibv_create_ah(pd, &attr);
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t eth_mac[6],
                                uint16_t *vid)
{
    (void)context;
    (void)attr;
    (void)eth_mac;
    (void)vid;
    return dock_refuse(EOPNOTSUPP,
                       "ibv_resolve_eth_l2_from_gid: no Ethernet frames are sent, so there is no MAC");
}

// `lid` names a group on InfiniBand links only.
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    if (!qp || !gid)
        return dock_refuse(EINVAL, "ibv_attach_mcast: no queue or no group given");
    return -dock_qp_join(vb_qp(qp)->dev, gid->raw);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    if (!qp || !gid)
        return dock_refuse(EINVAL, "ibv_detach_mcast: no queue or no group given");
    return -dock_qp_leave(vb_qp(qp)->dev, gid->raw);
}
