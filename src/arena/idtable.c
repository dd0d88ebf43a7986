// SPDX-License-Identifier: MIT
#include "arena/idtable.h"

#include <errno.h>
#include <string.h>

#include "arena/home.h"
#include "arena/idfile.h"
#include "base/log.h"

int dock_idtable_open(const struct dock_rundir *dir, struct dock_idtable *out)
{
    struct dock_idfile *f = NULL;
    int ret = dock_idfile_open(dir, &f);

    if (ret)
        return ret;
    out->file = f;
    out->rec = f->rec;
    return 0;
}

void dock_idtable_close(struct dock_idtable *t)
{
    dock_idfile_close(t->file);
    *t = (struct dock_idtable){0};
}

static struct dock_process owner_of(const struct dock_idrec *r)
{
    return (struct dock_process){.pid = (int)dock_peek32(&r->pid),
                                 .start_time = dock_peek64(&r->start_time),
                                 .pid_namespace = dock_peek64(&r->pid_namespace)};
}

#define HOME_TAG 0xfffu // below a page: a record of another incarnation has not this home

static uint64_t home_of(const struct dock_idrec *r)
{
    uint64_t home = dock_acquire64(&r->home);

    return ((home ^ dock_peek32(&r->incarnation)) & HOME_TAG) == 0 ? home & ~(uint64_t)HOME_TAG : 0;
}

// Is the process alive that joined with this slot?
static enum dock_life slot_life(const struct dock_idtable *t, uint32_t slot)
{
    struct dock_process owner = owner_of(&t->rec[slot]), self;
    int held, alive;

    if (dock_idfile_joined(t->file, slot))
        return DOCK_LIFE_ALIVE;
    held = dock_idfile_held(t->file, slot);
    if (held > 0)
        return DOCK_LIFE_ALIVE;
    dock_process_self(&self);
    // It says it is ours, but we never joined with it: that was before an exec.
    if (dock_process_equal(&owner, &self))
        return DOCK_LIFE_DEAD;
    alive = self.pid_namespace && owner.pid_namespace == self.pid_namespace ? dock_process_alive(&owner)
                                                                            : -ENOSYS;
    if (alive < 0)
        return held == 0 ? DOCK_LIFE_DEAD : DOCK_LIFE_UNKNOWN;
    // Alive without its lock: it has closed all descriptors and still uses the table, or it is an exec's
    // successor, which may use the table too.
    uint64_t home = home_of(&t->rec[slot]);
    if (alive && home && dock_home_left(owner.pid, home))
        return DOCK_LIFE_DEAD;
    if (alive && dock_process_maps(owner.pid, DOCK_IDFILE_NAME) != 0)
        return DOCK_LIFE_ALIVE;
    return DOCK_LIFE_DEAD;
}

static void free_block(struct dock_idtable *t, uint32_t block, dock_who who)
{
    dock_set64(&t->rec[block].freed,
               1 + atomic_fetch_add(&t->file->head->frees, 1)); // read under the table's lock
    dock_claim32(&t->rec[block].who, &who, 0);
}

// Free the blocks of processes that are no more. An evicted device whose process lives keeps its slot.
static void reap(struct dock_idtable *t)
{
    for (uint32_t slot = 1; slot < DOCK_SLOTS; slot++) {
        dock_who who = dock_acquire32(&t->rec[slot].who);
        if (who && dock_who_slot(who) == slot && slot_life(t, slot) == DOCK_LIFE_DEAD) {
            dock_info("id block %u: its owner, process %d, is dead", slot,
                      (int)dock_peek32(&t->rec[slot].pid));
            free_block(t, slot, who);
        }
    }
    for (uint32_t block = 1; block < DOCK_SLOTS; block++) {
        dock_who who = dock_acquire32(&t->rec[block].who);
        if (who && dock_who_slot(who) != block && dock_acquire32(&t->rec[dock_who_slot(who)].who) != who)
            free_block(t, block, who);
    }
    for (uint32_t id = 1; id <= DOCK_CHOSEN_MAX; id++) {
        dock_who who = dock_acquire32(&t->rec[id].named);
        if (who && dock_acquire32(&t->rec[dock_who_slot(who)].who) != who)
            dock_claim32(&t->rec[id].named, &who, 0);
    }
}

// Of [first, end) the free block that was freed longest ago, 0 if there is none.
static uint32_t oldest_of(const struct dock_idtable *t, uint32_t first, uint32_t end)
{
    uint32_t best = 0;

    for (uint32_t block = first; block < end; block++)
        if (dock_acquire32(&t->rec[block].who) == 0 &&
            (!best || dock_peek64(&t->rec[block].freed) < dock_peek64(&t->rec[best].freed)))
            best = block;
    return best;
}

// There are programs that take an id for wrong which is not below the number of queues that a device
// announces, rounded up to 65,536 (UMDK's umq). So ids stay below that as long as there are any.
static uint32_t oldest_free(const struct dock_idtable *t)
{
    uint32_t low = oldest_of(t, 1, DOCK_LOW_BLOCKS);

    return low ? low : oldest_of(t, DOCK_LOW_BLOCKS, DOCK_SLOTS);
}

static int no_block(void)
{
    dock_error("all %u id blocks are taken by live devices", DOCK_SLOTS - 1);
    return -ENOSPC;
}

// A free slot with its lock. One whose lock is held although its record is free is passed over: its owner
// lives.
static int take_slot(struct dock_idtable *t, uint32_t *slot)
{
    for (unsigned tries = 0; tries < DOCK_SLOTS; tries++) {
        // Low ones that are all locked must not hide the others.
        uint32_t s = tries < DOCK_LOW_BLOCKS ? oldest_free(t) : oldest_of(t, 1, DOCK_SLOTS);
        int ret = s ? dock_idfile_hold(t->file, s) : no_block();

        if (!ret)
            *slot = s;
        else if (s && ret != -EAGAIN)
            dock_error("locking slot %u of the id table failed: %s", s, strerror(-ret));
        if (ret != -EAGAIN)
            return ret;
        dock_set64(&t->rec[s].freed,
                   1 + atomic_fetch_add(&t->file->head->frees, 1)); // to the end of the queue
    }
    return no_block();
}

// Fill the record of a new owner.
static dock_who settle(struct dock_idtable *t, uint32_t slot)
{
    struct dock_idrec *r = &t->rec[slot];
    const struct dock_process *self = &t->file->self;
    uint32_t incarnation = (dock_peek32(&r->incarnation) + 1) & DOCK_ID_MASK;
    dock_who who = dock_who_make(slot, incarnation ? incarnation : 1);
    uint64_t home = dock_home_own();

    dock_set32(&r->incarnation, dock_who_incarnation(who));
    // Each pairs with its acquire in dock_idtable_lookup: who reads a new one finds the old `who` gone.
    dock_publish32(&r->pid, (uint32_t)self->pid);
    dock_publish64(&r->start_time, self->start_time);
    dock_publish64(&r->pid_namespace, self->pid_namespace);
    dock_publish64(&r->home, home ? home | (dock_who_incarnation(who) & HOME_TAG) : 0);
    dock_publish32(&r->who, who); // pairs with the acquire in dock_idtable_owner
    return who;
}

int dock_idtable_join(struct dock_idtable *t, dock_who *who)
{
    uint32_t slot = 0;
    int ret = dock_idfile_lock(t->file);

    if (ret)
        return ret;
    reap(t);
    ret = take_slot(t, &slot);
    if (!ret)
        *who = settle(t, slot);
    dock_idfile_unlock(t->file);
    return ret;
}

bool dock_idtable_mine(const struct dock_idtable *t, dock_who who)
{
    uint32_t slot = dock_who_slot(who);

    return slot && dock_acquire32(&t->rec[slot].who) == who && dock_idfile_joined(t->file, slot);
}

int dock_idtable_more(struct dock_idtable *t, dock_who who, uint32_t *block)
{
    uint32_t b;
    int ret;

    if (!dock_idtable_mine(t, who))
        return dock_refuse(-ESRCH, "device %u is not of this process", dock_who_slot(who));
    ret = dock_idfile_lock(t->file);
    if (ret)
        return ret;
    b = oldest_free(t);
    if (!b) {
        reap(t);
        b = oldest_free(t);
    }
    if (b) {
        dock_publish32(&t->rec[b].who, who); // pairs with the acquire in dock_idtable_owner
        *block = b;
    } else {
        ret = no_block();
    }
    dock_idfile_unlock(t->file);
    return ret;
}

void dock_idtable_less(struct dock_idtable *t, dock_who who, uint32_t block)
{
    if (block < DOCK_SLOTS && block != dock_who_slot(who) && dock_idtable_mine(t, who) &&
        dock_peek32(&t->rec[block].who) == who)
        free_block(t, block, who);
}

int dock_idtable_choose(struct dock_idtable *t, dock_who who, uint32_t id)
{
    int ret;

    if (!id || id > DOCK_CHOSEN_MAX)
        return dock_refuse(-EINVAL, "id %u: 1 to %u can be chosen, 0 leaves it to the device", id,
                           DOCK_CHOSEN_MAX);
    if (!dock_idtable_mine(t, who))
        return dock_refuse(-ESRCH, "device %u is not of this process", dock_who_slot(who));
    ret = dock_idfile_lock(t->file);
    if (ret)
        return ret;
    if (dock_peek32(&t->rec[id].named))
        reap(t);
    if (dock_peek32(&t->rec[id].named))
        ret = dock_refuse(-EEXIST, "id %u is taken on this host", id);
    else
        dock_publish32(&t->rec[id].named, who); // pairs with the acquire in dock_idtable_owner_of
    dock_idfile_unlock(t->file);
    return ret;
}

void dock_idtable_unchoose(struct dock_idtable *t, dock_who who, uint32_t id)
{
    dock_who owner = who;

    if (id <= DOCK_CHOSEN_MAX && dock_idtable_mine(t, who))
        dock_claim32(&t->rec[id].named, &owner, 0);
}

void dock_idtable_leave(struct dock_idtable *t, dock_who who)
{
    uint32_t slot = dock_who_slot(who);

    if (!dock_idtable_mine(t, who))
        return;
    for (uint32_t block = 1; block < DOCK_SLOTS; block++)
        if (block != slot && dock_peek32(&t->rec[block].who) == who)
            free_block(t, block, who);
    for (uint32_t id = 1; id <= DOCK_CHOSEN_MAX; id++)
        dock_idtable_unchoose(t, who, id);
    // First the lock: another device of this process may take the slot as soon as it is free.
    dock_idfile_release(t->file, slot);
    free_block(t, slot, who);
}

int dock_idtable_lock(struct dock_idtable *t)
{
    return dock_idfile_lock(t->file);
}

void dock_idtable_unlock(struct dock_idtable *t)
{
    dock_idfile_unlock(t->file);
}

dock_who dock_idtable_owner(const struct dock_idtable *t, uint32_t block)
{
    return block < DOCK_SLOTS ? dock_acquire32(&t->rec[block].who) : 0;
}

dock_who dock_idtable_owner_of(const struct dock_idtable *t, uint32_t id)
{
    id &= DOCK_ID_MASK;
    return id > DOCK_CHOSEN_MAX ? dock_idtable_owner(t, id >> DOCK_BLOCK_SHIFT)
                                : dock_acquire32(&t->rec[id].named);
}

static bool is_current(const struct dock_idtable *t, dock_who who)
{
    return dock_who_slot(who) && dock_acquire32(&t->rec[dock_who_slot(who)].who) == who;
}

int dock_idtable_lookup(const struct dock_idtable *t, dock_who who, struct dock_owner *out)
{
    struct dock_idrec *r = &t->rec[dock_who_slot(who)];
    struct dock_owner o = {.who = who};

    if (!is_current(t, who))
        return -ESRCH;
    o.pid = (int)dock_acquire32(&r->pid);
    o.start_time = dock_acquire64(&r->start_time);
    o.pid_namespace = dock_acquire64(&r->pid_namespace);
    o.home = home_of(r);
    // A new owner writes these after the old `who` is cleared: if that still stands there, they are its own.
    if (!is_current(t, who))
        return -ESRCH;
    *out = o;
    return 0;
}

enum dock_life dock_idtable_life(const struct dock_idtable *t, dock_who who)
{
    if (dock_idtable_evicted(t, who))
        return DOCK_LIFE_DEAD;
    enum dock_life life = slot_life(t, dock_who_slot(who));
    return is_current(t, who) ? life : DOCK_LIFE_DEAD;
}

void dock_idtable_evict(struct dock_idtable *t, dock_who who)
{
    if (is_current(t, who))
        dock_publish32(&t->rec[dock_who_slot(who)].evicted,
                       who); // pairs with the acquire in dock_idtable_evicted
}

bool dock_idtable_gone(const struct dock_idtable *t, dock_who who)
{
    enum dock_life life = slot_life(t, dock_who_slot(who));

    return !is_current(t, who) || life == DOCK_LIFE_DEAD;
}

dock_a64 *dock_idtable_turns(const struct dock_idtable *t, uint64_t addr)
{
    return &t->file->head->turns[addr / 8 % DOCK_IDTURNS];
}

void dock_idtable_beat(struct dock_idtable *t, dock_who who)
{
    atomic_fetch_add_explicit(&t->rec[dock_who_slot(who)].beats, 1, memory_order_relaxed);
}

uint32_t dock_idtable_beats(const struct dock_idtable *t, dock_who who)
{
    return dock_peek32(&t->rec[dock_who_slot(who)].beats);
}

void dock_idtable_doubt(struct dock_idtable *t, dock_who who)
{
    atomic_fetch_add_explicit(&t->rec[dock_who_slot(who)].doubts, 1, memory_order_relaxed);
}

uint32_t dock_idtable_doubts(const struct dock_idtable *t, dock_who who)
{
    return dock_peek32(&t->rec[dock_who_slot(who)].doubts);
}
