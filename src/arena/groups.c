// SPDX-License-Identifier: MIT
#include "arena/groups.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"

#define FILE_SIZE (DOCK_GROUP_MEMBERS * sizeof(struct dock_group_member))
#define TAKEN UINT64_MAX // by somebody who has not written the group yet

int dock_groups_open(const struct dock_rundir *dir, struct dock_groups *out)
{
    void *map;
    int err = dock_rundir_map(dir, DOCK_GROUPS_NAME, FILE_SIZE, &map);

    if (!err)
        out->member = map;
    return err;
}

void dock_groups_close(struct dock_groups *g)
{
    if (g->member)
        munmap(g->member, FILE_SIZE);
    g->member = NULL;
}

static uint64_t member_of(dock_who who, uint32_t queue)
{
    return (uint64_t)who << 32 | queue;
}

static bool is_group(const struct dock_group_member *m, const uint8_t gid[16])
{
    uint64_t half[2];

    memcpy(half, gid, sizeof half);
    return dock_peek64(&m->gid[0]) == half[0] && dock_peek64(&m->gid[1]) == half[1];
}

static bool gone(const struct dock_idtable *ids, uint64_t member)
{
    return dock_idtable_owner_of(ids, (uint32_t)member) != (dock_who)(member >> 32);
}

// An entry for the taker alone, NULL when all are in use. `dead`: also those whose device is gone.
static struct dock_group_member *take(struct dock_groups *g, const struct dock_idtable *ids, bool dead)
{
    for (uint32_t i = 0; i < DOCK_GROUP_MEMBERS; i++) {
        struct dock_group_member *m = &g->member[i];
        uint64_t seen = dock_peek64(&m->member);
        if ((seen == 0 || (dead && seen != TAKEN && gone(ids, seen))) &&
            dock_claim64(&m->member, &seen, TAKEN))
            return m;
    }
    return NULL;
}

static struct dock_group_member *find(struct dock_groups *g, const uint8_t gid[16], uint64_t member)
{
    for (uint32_t i = 0; i < DOCK_GROUP_MEMBERS; i++)
        if (dock_acquire64(&g->member[i].member) == member && is_group(&g->member[i], gid))
            return &g->member[i];
    return NULL;
}

int dock_group_join(struct dock_groups *g, const struct dock_idtable *ids, const uint8_t gid[16],
                    dock_who who, uint32_t queue)
{
    struct dock_group_member *m;
    uint64_t half[2];

    if (find(g, gid, member_of(who, queue)))
        return 0;
    m = take(g, ids, false);
    if (!m)
        m = take(g, ids, true);
    if (!m)
        return dock_refuse(-ENOSPC, "%u memberships in multicast groups of this host, and no more",
                           DOCK_GROUP_MEMBERS);
    memcpy(half, gid, sizeof half);
    dock_publish64(&m->turn, dock_peek64(&m->turn) + 1); // ours alone until it is published
    dock_fence_store(); // before the group: pairs with the second look in dock_group_next
    dock_set64(&m->gid[0], half[0]);
    dock_set64(&m->gid[1], half[1]);
    dock_publish64(&m->member, member_of(who, queue)); // pairs with the acquire in dock_group_next
    return 0;
}

int dock_group_leave(struct dock_groups *g, const uint8_t gid[16], dock_who who, uint32_t queue)
{
    struct dock_group_member *m = find(g, gid, member_of(who, queue));

    if (!m)
        return dock_refuse(-EINVAL, "queue %u is no member of that multicast group", queue);
    dock_publish64(&m->member, 0); // pairs with the claim of the next taker
    return 0;
}

void dock_group_leave_all(struct dock_groups *g, dock_who who, uint32_t queue)
{
    for (uint32_t i = 0; g->member && i < DOCK_GROUP_MEMBERS; i++)
        if (dock_peek64(&g->member[i].member) == member_of(who, queue))
            dock_publish64(&g->member[i].member, 0); // pairs with the claim of the next taker
}

uint32_t dock_group_next(const struct dock_groups *g, const struct dock_idtable *ids, const uint8_t gid[16],
                         uint32_t *at, dock_who *who)
{
    while (*at < DOCK_GROUP_MEMBERS) {
        const struct dock_group_member *m = &g->member[(*at)++];
        uint64_t turn = dock_acquire64(&m->turn);
        uint64_t member = dock_acquire64(&m->member); // pairs with the publish in dock_group_join
        if (member == 0 || member == TAKEN || !is_group(m, gid) || gone(ids, member))
            continue;
        dock_fence_load();                   // pairs with the turn in dock_group_join
        if (dock_peek64(&m->turn) != turn) { // another's group beside this member's name
            --*at;
            continue;
        }
        *who = (dock_who)(member >> 32);
        return (uint32_t)member;
    }
    return 0;
}
