// SPDX-License-Identifier: MIT
#include "arena/domains.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/log.h"

#define FILE_SIZE ((DOCK_DOMAIN_ENTRIES + 1) * sizeof(struct dock_domain_entry))

int dock_domains_open(const struct dock_rundir *dir, struct dock_domains *out)
{
    void *map;
    int err = dock_rundir_map(dir, DOCK_DOMAINS_NAME, FILE_SIZE, &map);

    if (!err)
        out->entry = map;
    return err;
}

void dock_domains_close(struct dock_domains *d)
{
    if (d->entry)
        munmap(d->entry, FILE_SIZE);
    d->entry = NULL;
}

// The lock is held.
static bool held(struct dock_domain_entry *e, const struct dock_idtable *ids)
{
    dock_who who = (dock_who)dock_peek64(&e->holder);

    if (who && dock_idtable_life(ids, who) != DOCK_LIFE_DEAD)
        return true;
    if (who)
        dock_publish64(&e->holder, 0); // pairs with the acquire in dock_domain_drop
    return false;
}

static bool is_named(const struct dock_domain_entry *e, const struct dock_domain_name *name)
{
    return dock_peek64(&e->device) == name->device && dock_peek64(&e->inode) == name->inode;
}

// The number of the domain, 0 if there is none, and a free entry, NULL if there is none.
static uint64_t look(struct dock_domains *d, const struct dock_idtable *ids,
                     const struct dock_domain_name *name, struct dock_domain_entry **room)
{
    uint64_t number = 0;

    *room = NULL;
    for (uint32_t i = 1; i <= DOCK_DOMAIN_ENTRIES; i++) {
        struct dock_domain_entry *e = &d->entry[i];
        if (dock_peek64(&e->holder) && (is_named(e, name) || !*room) && held(e, ids)) {
            if (is_named(e, name))
                number = dock_peek64(&e->number);
        } else if (!*room && !dock_peek64(&e->holder)) {
            *room = e;
        }
    }
    return number;
}

static int hold(struct dock_domains *d, const struct dock_idtable *ids, dock_who who,
                const struct dock_domain_name *name, uint64_t *number)
{
    struct dock_domain_entry *e;
    uint64_t found = look(d, ids, name, &e);

    if (!found && !name->create)
        return dock_refuse(-ENOENT, "no XRC domain belongs to this file");
    if (found && name->exclusive)
        return dock_refuse(-EEXIST, "the file has an XRC domain already");
    if (!e)
        return dock_refuse(-ENOSPC, "%u openings of XRC domains on this host, and no more",
                           DOCK_DOMAIN_ENTRIES);
    if (!found) {
        found = (dock_peek64(&d->entry[0].number) + 1) & UINT32_MAX;
        found += !found;
        dock_set64(&d->entry[0].number, found);
    }
    dock_set64(&e->device, name->device);
    dock_set64(&e->inode, name->inode);
    dock_set64(&e->number, found);
    dock_publish64(&e->holder, who); // behind what it says: who dies in between holds nothing
    *number = found;
    return 0;
}

int dock_domain_hold(struct dock_domains *d, struct dock_idtable *ids, dock_who who,
                     const struct dock_domain_name *name, uint64_t *number)
{
    int err = dock_idtable_lock(ids);

    if (err)
        return err;
    err = hold(d, ids, who, name, number);
    dock_idtable_unlock(ids);
    return err;
}

// No lock: an entry of a living holder is its own.
void dock_domain_drop(struct dock_domains *d, dock_who who, uint64_t number)
{
    for (uint32_t i = 1; i <= DOCK_DOMAIN_ENTRIES; i++) {
        uint64_t mine = who;
        // two threads of the holder may be here: each takes one
        if (dock_acquire64(&d->entry[i].holder) == mine && dock_peek64(&d->entry[i].number) == number &&
            dock_claim64(&d->entry[i].holder, &mine, 0))
            return;
    }
}
