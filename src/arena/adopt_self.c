// SPDX-License-Identifier: MIT
// What a move itself works with has pages of its own, which never move: not for a program either that
// registers all that it finds mapped.
#include "arena/adopt_own.h"
#include "arena/adopt_stop_own.h"
#include "arena/procfile.h"

struct search {
    uint64_t lo, hi, first, end;
};

static void look_at(struct search *s, const void *at, size_t bytes)
{
    uint64_t page = dock_page(), first = (uintptr_t)at & ~(page - 1),
             end = ((uintptr_t)at + bytes + page - 1) & ~(page - 1);

    if (at && first < s->hi && end > s->lo && first < s->first) {
        s->first = first;
        s->end = end;
    }
}

bool dock_self_in(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *end)
{
    struct search s = {.lo = lo, .hi = hi, .first = hi, .end = hi};
    size_t bytes;
    const void *stack = dock_ptrace_stack(&bytes);

    look_at(&s, stack, bytes);
    const void *ranges = dock_fork_room(&bytes);
    look_at(&s, ranges, bytes);
    const void *files = dock_proc_room(&bytes);
    look_at(&s, files, bytes);
    look_at(&s, dock_stopping.thread, DOCK_STOP_THREADS * sizeof *dock_stopping.thread);
    for (const struct dock_adopt *a = dock_adopters; a; a = a->next) {
        look_at(&s, a->user, a->user_bytes);
        for (const struct dock_mirror *m = a->mirrors; m; m = m->next) {
            look_at(&s, m, dock_mirror_bytes(a));
            look_at(&s, m->park.bit, dock_park_bytes(a));
            look_at(&s, m->park.room, dock_park_room(a)); // the program's own wait there
        }
    }
    *first = s.first > lo ? s.first : lo;
    *end = s.end < hi ? s.end : hi;
    return s.first < hi;
}
