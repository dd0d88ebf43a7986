// SPDX-License-Identifier: MIT
// What the ring tests share: an arena, an id table, a waiter, and children that see the same arena as another
// device does.
#ifndef TESTS_UNIT_RING_FIXTURE_H
#define TESTS_UNIT_RING_FIXTURE_H

#include "arena/arena.h"
#include "arena/lockword.h"
#include "unit/arena/child.h"

struct fixture {
    char *path;
    struct dock_rundir dir;
    struct dock_idtable ids;
    struct dock_waiter me;
    struct dock_arena arena;
};

static struct fixture fix;

static inline int fixture_setup(void **state)
{
    (void)state;
    fix.path = fresh_dir();
    if (dock_rundir_open(fix.path, &fix.dir) || dock_idtable_open(&fix.dir, &fix.ids))
        return -1;
    fix.me = (struct dock_waiter){.ids = &fix.ids, .stopped_limit_ns = 5000000000u};
    return dock_idtable_join(&fix.ids, &fix.me.me) || dock_arena_create(&fix.arena, 20, 4096);
}

static inline int fixture_teardown(void **state)
{
    (void)state;
    dock_arena_destroy(&fix.arena);
    dock_idtable_leave(&fix.ids, fix.me.me);
    dock_idtable_close(&fix.ids);
    dock_rundir_close(&fix.dir);
    fresh_dir_end(fix.path);
    return 0;
}

// In a child: a device of its own, and the parent's arena as a peer sees it.
static inline void fixture_as_peer(struct dock_waiter *w, struct dock_view *view)
{
    *w = (struct dock_waiter){.ids = &fix.ids, .stopped_limit_ns = 5000000000u};
    child_check(dock_idtable_join(&fix.ids, &w->me) == 0);
    child_check(dock_view_open(view, dup(fix.arena.view.fd), fix.arena.view.shift) == 0);
}

#endif
