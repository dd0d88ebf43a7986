// SPDX-License-Identifier: MIT
// Teams: strided subsets of the world. Members agree on a slot, whose words in the head of every heap are
// theirs: the parent's members combine their masks of free slots, and take the lowest that all have.
#include <stdlib.h>
#include <string.h>

#include "face/shmem/api.h"
#include "face/shmem/collective.h"
#include "face/shmem/shmem_face.h"

int shmem_team_my_pe(shmem_team_t team)
{
    struct dock_shmem_team *t = osh_team(team);

    return t ? t->g.me : -1;
}
API(shmem_team_my_pe);

int shmem_team_n_pes(shmem_team_t team)
{
    struct dock_shmem_team *t = osh_team(team);

    return t ? t->g.size : -1;
}
API(shmem_team_n_pes);

int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config)
{
    struct dock_shmem_team *t = osh_team(team);

    if (!t)
        return -1;
    if (config_mask & ~SHMEM_TEAM_NUM_CONTEXTS || (config_mask && !config))
        return -1;
    if (config_mask)
        *config = t->config;
    return 0;
}
API(shmem_team_get_config);

int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team)
{
    struct dock_shmem_team *s = osh_team(src_team), *d = osh_team(dest_team);

    if (!s || !d || src_pe < 0 || src_pe >= s->g.size)
        return -1;
    int from_start = osh_member(&s->g, src_pe) - d->g.start, index = from_start / d->g.stride;
    return from_start % d->g.stride || index < 0 || index >= d->g.size ? -1 : index;
}
API(shmem_team_translate_pe);

// Agree on a slot for a team among the members of `parent`; 0: none is free everywhere.
static unsigned agree(struct dock_shmem_team *parent)
{
    struct osh_head *head = osh_head();
    unsigned slot = 0;

    dock_lock(&osh.lock);
    head->mask[0] = osh.free_slots;
    dock_unlock(&osh.lock);
    osh_reduce(&parent->g, &head->mask[1], &head->mask[0], 1, &osh_and_uint64);
    if (head->mask[1])
        slot = (unsigned)__builtin_ctzll(head->mask[1]);
    return slot;
}

struct subset {
    int start, stride, size; // in PEs of the parent
};

static bool sensible(const struct dock_shmem_team *parent, struct subset s)
{
    int64_t last = s.start + (int64_t)(s.size - 1) * s.stride, n = parent->g.size;

    return s.size >= 1 && s.start >= 0 && s.start < n && last >= 0 && last < n && (s.stride || s.size == 1);
}

// Which member this PE is, -1: none.
static int index_of(const struct dock_shmem_team *parent, struct subset s)
{
    for (int i = 0; i < s.size; i++)
        if (s.start + i * s.stride == parent->g.me)
            return i;
    return -1;
}

static struct dock_shmem_team *make(const struct dock_shmem_team *parent, struct subset s, int me,
                                    unsigned slot, const shmem_team_config_t *config)
{
    struct dock_shmem_team *t = calloc(1, sizeof *t);

    if (!t)
        osh_fatal("no memory for a team");
    t->slot = slot;
    t->g = (struct osh_group){.start = osh_member(&parent->g, s.start),
                              .stride = s.stride ? s.stride * parent->g.stride : 1,
                              .size = s.size,
                              .me = me,
                              .word = osh_head()->word[slot],
                              .epoch = &t->epoch};
    if (config)
        t->config = *config;
    memset(t->g.word, 0, OSH_WORDS * sizeof *t->g.word); // what an earlier team of the slot left
    dock_lock(&osh.lock);
    osh.free_slots &= ~(1ull << slot);
    dock_unlock(&osh.lock);
    return t;
}

int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                             const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team)
{
    struct dock_shmem_team *parent = osh_team(parent_team);
    struct subset s = {start, stride, size};

    *new_team = SHMEM_TEAM_INVALID;
    if (!parent)
        return -1;
    bool good = sensible(parent, s) && !(config_mask & ~SHMEM_TEAM_NUM_CONTEXTS) && (!config_mask || config);
    unsigned slot = agree(parent); // all members of the parent come here, whatever they asked for
    if (good && !slot)
        dock_error("PE %d: no more than %u teams at a time", osh.me, OSH_TEAMS - 1);
    int me = good && slot ? index_of(parent, s) : -1;
    if (me >= 0)
        *new_team = make(parent, s, me, slot, config_mask ? config : NULL);
    osh_sync(&parent->g); // the words are cleared before a member writes them
    return good && slot ? 0 : -1;
}
API(shmem_team_split_strided);

int shmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config,
                        long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
                        long yaxis_mask, shmem_team_t *yaxis_team)
{
    struct dock_shmem_team *parent = osh_team(parent_team);
    int err = 0;

    *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
    if (!parent || xrange < 1)
        return -1;
    int n = parent->g.size, width = xrange < n ? xrange : n, rows = (n + width - 1) / width;
    // Each PE is in one row and one column; all take part in the making of all.
    for (int y = 0; y < rows; y++) {
        shmem_team_t t;
        int in_row = y == rows - 1 ? n - y * width : width;
        err |= shmem_team_split_strided(parent_team, y * width, 1, in_row, xaxis_config, xaxis_mask, &t);
        if (t != SHMEM_TEAM_INVALID)
            *xaxis_team = t;
    }
    for (int x = 0; x < width; x++) {
        shmem_team_t t;
        int in_column = (n - x + width - 1) / width;
        err |= shmem_team_split_strided(parent_team, x, width, in_column, yaxis_config, yaxis_mask, &t);
        if (t != SHMEM_TEAM_INVALID)
            *yaxis_team = t;
    }
    return err ? -1 : 0;
}
API(shmem_team_split_2d);

static struct dock_shmem_ctx *context_of(const struct dock_shmem_team *t)
{
    dock_lock(&osh.lock);
    struct dock_shmem_ctx *c = osh.contexts;
    while (c && c->team != t)
        c = c->next;
    dock_unlock(&osh.lock);
    return c;
}

void shmem_team_destroy(shmem_team_t team)
{
    struct dock_shmem_team *t = osh_team(team);
    struct dock_shmem_ctx *c;

    if (!t)
        return;
    if (t == &osh.world)
        osh_fatal("a predefined team cannot be destroyed");
    while ((c = context_of(t)))
        osh_ctx_close(c);
    osh_sync(&t->g); // the slot is free when all have left
    dock_lock(&osh.lock);
    osh.free_slots |= 1ull << t->slot;
    dock_unlock(&osh.lock);
    free(t);
}
API(shmem_team_destroy);
