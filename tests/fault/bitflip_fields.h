// SPDX-License-Identifier: MIT
// Every field that a peer shows, with its place: what tests/fault/bitflip_test.c flips bits of. That none is
// left out is held by tests/fault/bitflip_fields_test.py.
#ifndef TESTS_FAULT_BITFLIP_FIELDS_H
#define TESTS_FAULT_BITFLIP_FIELDS_H

#include "arena/groups.h"
#include "device/internal.h"

struct field {
    const char *name;
    uint64_t at; // in the peer's arena, or in the host's list of groups
    uint32_t bytes;
};

// Where the peer has what not every connection has; 0: it has none.
struct extras {
    uint64_t table, list; // the pieces of its region, and the members of its group
    uint64_t entry;       // of its queue in a multicast group
};

#define FIELD(base, type, member)                                                                            \
    {                                                                                                        \
#type "." #member, (base) + offsetof(struct type, member), sizeof(((struct type *)0)->member)        \
    }

#define TABLE_PIECES 2u // of a region that is in the arena in part

// One of those that few connections have.
static struct field choose_extra(const struct extras *x, uint64_t r)
{
    uint64_t t = x->table, piece = t + sizeof(struct dock_segpieces), l = x->list, e = x->entry;
    const struct field pieces[] = {
        FIELD(t, dock_segpieces, count),
        FIELD(t, dock_segpieces, sum),
        {"dock_segpieces.piece", piece, TABLE_PIECES * sizeof(struct dock_segpiece)},
        {"dock_segpieces.piece", piece, TABLE_PIECES * sizeof(struct dock_segpiece)},
    };
    const struct field group[] = {
        FIELD(l, dock_grprec, policy),
        FIELD(l, dock_grprec, count),
        FIELD(l, dock_grprec, turn),
        {"dock_grprec.member", l + offsetof(struct dock_grprec, member), 8},
        {"dock_grprec.member", l + offsetof(struct dock_grprec, member), 8},
    };
    const struct field multicast[] = {
        {"dock_group_member.member", e + offsetof(struct dock_group_member, member), 8},
        {"dock_group_member.gid", e + offsetof(struct dock_group_member, gid), 16},
        {"dock_group_member.turn", e + offsetof(struct dock_group_member, turn), 8},
    };

    if (t)
        return pieces[r % (sizeof pieces / sizeof *pieces)];
    return l ? group[r % (sizeof group / sizeof *group)]
             : multicast[r % (sizeof multicast / sizeof *multicast)];
}

// One of all the fields that the peer shows us.
static struct field choose(const struct dock_conn *c, uint32_t tid, uint64_t r)
{
    struct dock_port *p = c->peer->port;
    char *base = (char *)p;
    uint64_t q = (uint64_t)((char *)c->queue - base), cq = c->queue->cq, rq = c->queue->rq, sq = c->queue->sq;
    uint64_t h = (uint64_t)((char *)c->hazard - base), seg = p->segments + tid * sizeof(struct dock_segrec);
    const struct field all[] = {
        FIELD(0, dock_port, magic),
        FIELD(0, dock_port, version),
        FIELD(0, dock_port, who),
        FIELD(0, dock_port, pid),
        FIELD(0, dock_port, nsegments),
        FIELD(0, dock_port, segments),
        FIELD(0, dock_port, hazards),
        FIELD(0, dock_port, asleep),
        FIELD(0, dock_port, attention),
        FIELD(0, dock_port, nqueues),
        FIELD(0, dock_port, ncqs),
        FIELD(0, dock_port, hazard_high),
        FIELD(0, dock_port, full_fences),
        FIELD(0, dock_port, started_ns),
        FIELD(0, dock_port, program),
        FIELD(0, dock_port, moving),
        FIELD(0, dock_port, fatal),
        FIELD(0, dock_port, moment),
        FIELD(0, dock_port, fallback_bytes),
        FIELD(0, dock_port, fallback_calls),
        FIELD(0, dock_port, arena_bytes),
        FIELD(0, dock_port, dropped),
        FIELD(0, dock_port, adopt),
        FIELD(0, dock_port, stores),
        {"dock_port.block", offsetof(struct dock_port, block) + (c->dest_qp >> 8) * 8ull, 8},
        FIELD(h, dock_hazard, owner),
        FIELD(h, dock_hazard, busy),
        FIELD(h, dock_hazard, mapped),
        FIELD(seg, dock_segrec, generation),
        FIELD(seg, dock_segrec, va),
        FIELD(seg, dock_segrec, len),
        FIELD(seg, dock_segrec, off),
        FIELD(seg, dock_segrec, addr),
        FIELD(seg, dock_segrec, token),
        FIELD(seg, dock_segrec, pd),
        FIELD(seg, dock_segrec, access),
        FIELD(seg, dock_segrec, kind_qpn),
        FIELD(seg, dock_segrec, lkey),
        FIELD(seg, dock_segrec, sum),
        FIELD(q, dock_qrec, state),
        FIELD(q, dock_qrec, serial),
        FIELD(q, dock_qrec, kind_service),
        FIELD(q, dock_qrec, id),
        FIELD(q, dock_qrec, peer_id),
        FIELD(q, dock_qrec, peer_who),
        FIELD(q, dock_qrec, pd),
        FIELD(q, dock_qrec, access),
        FIELD(q, dock_qrec, rq),
        FIELD(q, dock_qrec, cq),
        FIELD(q, dock_qrec, qkey),
        FIELD(q, dock_qrec, rnr_timer),
        FIELD(q, dock_qrec, rd_atomic),
        FIELD(q, dock_qrec, sum),
        FIELD(q, dock_qrec, attention),
        FIELD(q, dock_qrec, first_cause),
        FIELD(q, dock_qrec, messages_in),
        FIELD(q, dock_qrec, bytes_in),
        FIELD(q, dock_qrec, cookie),
        FIELD(q, dock_qrec, page),
        FIELD(q, dock_qrec, posted),
        FIELD(q, dock_qrec, rings),
        FIELD(q, dock_qrec, bytes_out),
        FIELD(q, dock_qrec, cqes),
        FIELD(q, dock_qrec, rnr),
        FIELD(q, dock_qrec, by_poster),
        FIELD(q, dock_qrec, by_poller),
        FIELD(q, dock_qrec, by_engine),
        FIELD(q, dock_qrec, visits),
        FIELD(q, dock_qrec, pieces),
        FIELD(q, dock_qrec, under_way),
        FIELD(q, dock_qrec, send_cq),
        FIELD(q, dock_qrec, doorbell),
        FIELD(q, dock_qrec, sq_blocks),
        FIELD(q, dock_qrec, sq_depth),
        FIELD(q, dock_qrec, sq),
        FIELD(q, dock_qrec, executed),
        FIELD(cq, dock_cqrec, ring),
        FIELD(cq, dock_cqrec, size),
        FIELD(cq, dock_cqrec, depth),
        FIELD(cq, dock_cqrec, id),
        FIELD(cq, dock_cqrec, flags),
        FIELD(cq, dock_cqrec, epoch),
        FIELD(cq, dock_cqrec, polled),
        FIELD(cq, dock_cqrec, freed),
        FIELD(cq, dock_cqrec, sum),
        FIELD(cq, dock_cqrec, tail),
        FIELD(cq, dock_cqrec, ci_seen),
        FIELD(cq, dock_cqrec, overrun),
        FIELD(cq, dock_cqrec, ci),
        FIELD(cq, dock_cqrec, armed),
        FIELD(cq, dock_cqrec, attention),
        {"completion ring", cq + sizeof(struct dock_cqrec), 16 * 64},
        {"completion ring", cq + sizeof(struct dock_cqrec), 16 * 64},
        FIELD(rq, dock_rqrec, sges),
        FIELD(rq, dock_rqrec, index),
        FIELD(rq, dock_rqrec, claims),
        FIELD(rq, dock_rqrec, size),
        FIELD(rq, dock_rqrec, stride),
        FIELD(rq, dock_rqrec, id),
        FIELD(rq, dock_rqrec, pd),
        FIELD(rq, dock_rqrec, sum),
        FIELD(rq, dock_rqrec, pi),
        FIELD(rq, dock_rqrec, posted),
        FIELD(rq, dock_rqrec, ci),
        FIELD(rq, dock_rqrec, limit),
        {"receive ring", rq + sizeof(struct dock_rqrec), (uint32_t)dock_rqring_bytes(8, 4)},
        {"receive ring", rq + sizeof(struct dock_rqrec), (uint32_t)dock_rqring_bytes(8, 4)},
        {"send ring", sq, 16 * 64},
        {"send ring", sq, 16 * 64},
    };

    return all[r % (sizeof all / sizeof *all)];
}

#endif
