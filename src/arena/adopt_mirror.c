// SPDX-License-Identifier: MIT
// Offsets mirror addresses: a window of the arena stands for an aligned part of the address space of its
// size, so that neighbours that were adopted apart merge into one mapping, and alignment is kept. When the
// place of an address is still taken (the program unmapped memory that is registered, and got the address
// again), the page goes to another window of the same address.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "arena/adopt_own.h"
#include "base/log.h"

uint64_t dock_mirror_size(const struct dock_adopt *a)
{
    return (uint64_t)1 << a->arena->view.shift;
}

static uint64_t page_count(const struct dock_adopt *a)
{
    return dock_mirror_size(a) / dock_page();
}

size_t dock_mirror_bytes(const struct dock_adopt *a)
{
    return sizeof(struct dock_mirror) + page_count(a) * sizeof(uint32_t) +
           (dock_mirror_size(a) >> DOCK_HUGE_SHIFT) + 1;
}

static unsigned beside(const struct dock_adopt *a, const struct dock_mirror *m, uint64_t first, uint64_t end)
{
    return (first && m->refs[first - 1]) + (end < page_count(a) && m->refs[end]);
}

bool dock_mirror_crowded(const struct dock_adopt *a, const struct dock_mirror *m, uint64_t lo, uint64_t hi)
{
    uint64_t page = dock_page();

    return 2 * (dock_adopted_runs + dock_park_pieces) >= dock_fit_mappings() &&
           !beside(a, m, (lo - m->va) / page, (hi - m->va) / page);
}

static bool is_free(const struct dock_mirror *m, uint64_t lo, uint64_t hi)
{
    for (uint64_t page = dock_page(), i = (lo - m->va) / page; i < (hi - m->va) / page; i++)
        if (m->refs[i])
            return false;
    return true;
}

// A move looks at it while pages of the program are not in their place, so it does not lie among those.
static struct dock_mirror *make(struct dock_adopt *a, uint64_t va)
{
    struct dock_mirror *m = mmap(NULL, dock_mirror_bytes(a), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (m == MAP_FAILED)
        return NULL;
    if (dock_arena_window(a->arena, &m->off)) {
        munmap(m, dock_mirror_bytes(a));
        return NULL;
    }
    m->va = va;
    m->refs = (uint32_t *)(m + 1);
    m->huge = (uint8_t *)(m->refs + page_count(a));
    m->next = a->mirrors;
    dock_views_lock();
    a->mirrors = m;
    dock_views_unlock();
    return m;
}

struct dock_mirror *dock_mirror_for(struct dock_adopt *a, uint64_t lo, uint64_t hi)
{
    uint64_t va = lo & ~(dock_mirror_size(a) - 1);
    struct dock_mirror *empty = NULL;

    for (struct dock_mirror *m = a->mirrors; m; m = m->next) {
        if (m->va == va && is_free(m, lo, hi))
            return m;
        if (!m->live)
            empty = m;
    }
    if (!empty)
        return make(a, va);
    dock_views_lock();
    empty->va = va;
    dock_views_unlock();
    return empty;
}

bool dock_mirror_held(const struct dock_adopt *a, uint64_t addr)
{
    for (const struct dock_mirror *m = a->mirrors; m; m = m->next)
        if (addr - m->va < dock_mirror_size(a) && m->refs[(addr - m->va) / dock_page()])
            return true;
    return false;
}

struct dock_mirror *dock_mirror_at(const struct dock_adopt *a, uint64_t off)
{
    for (struct dock_mirror *m = a->mirrors; m; m = m->next)
        if (off - m->off < dock_mirror_size(a))
            return m;
    return NULL;
}

void dock_mirror_ref(struct dock_adopt *a, uint64_t off, uint64_t len)
{
    struct dock_mirror *m = dock_mirror_at(a, off);
    uint64_t page = dock_page();

    if (!m) // memory of the arena's own: a program that registers it keeps it
        return;
    for (uint64_t i = (off - m->off) / page; i * page < off + len - m->off; i++) {
        if (!m->refs[i]) {
            dock_adopted_runs += 1 - beside(a, m, i, i + 1);
            m->live++;
            dock_count64(&a->counts->bytes, page);
            dock_count64(&dock_adopted_bytes, page);
        }
        if (m->refs[i] & DOCK_REF_LINGERS) {
            m->refs[i] &= ~DOCK_REF_LINGERS;
            a->lingering--;
        }
        m->refs[i]++;
    }
}

// Tell about the run of lingering pages that begins at page *i and ends before `end`; *i moves behind it.
static void tell_run(struct dock_adopt *a, struct dock_mirror *m, uint64_t *i, uint64_t end,
                     dock_mirror_free *each)
{
    uint64_t first = *i, page = dock_page();

    while (*i < end && m->refs[*i] == DOCK_REF_LINGERS && (*i - first) * page < DOCK_ADOPT_CHUNK)
        ++*i;
    each(a, m, m->off + first * page, (*i - first) * page);
}

static void tell(struct dock_adopt *a, struct dock_mirror *m, uint64_t i, uint64_t end,
                 dock_mirror_free *each)
{
    while (i < end) {
        if (m->refs[i] == DOCK_REF_LINGERS)
            tell_run(a, m, &i, end, each);
        else
            i++;
    }
}

void dock_mirror_unref(struct dock_adopt *a, uint64_t off, uint64_t len, dock_mirror_free *freed)
{
    struct dock_mirror *m = dock_mirror_at(a, off);
    uint64_t page = dock_page(), first, end;

    if (!m)
        return;
    first = (off - m->off) / page;
    end = (off + len - m->off + page - 1) / page;
    for (uint64_t i = first; i < end; i++)
        if (--m->refs[i] == 0) {
            m->refs[i] = DOCK_REF_LINGERS;
            a->lingering++;
        }
    tell(a, m, first, end, freed);
}

void dock_mirror_clear(struct dock_adopt *a, struct dock_mirror *m, uint64_t off, uint64_t len)
{
    uint64_t page = dock_page();

    dock_huge_forget(a, m, off, len);
    for (uint64_t i = (off - m->off) / page; i * page < off + len - m->off; i++) {
        dock_adopted_runs += beside(a, m, i, i + 1) - 1;
        m->refs[i] = 0;
        m->live--;
        a->lingering--;
        dock_count64(&a->counts->bytes, -page);
        dock_count64(&dock_adopted_bytes, -page);
    }
}

// ---- pages that are kept for a while, with what they hold: who maps the arena may read it as long
// (status.md)

// Those that nobody has taken since return to the system.
static void give_kept(struct dock_adopt *a, const struct dock_run *r)
{
    const struct dock_mirror *m = dock_mirror_at(a, r->off);
    uint64_t page = dock_page(), i = (r->off - m->off) / page, end = i + r->len / page;

    for (uint64_t first = i; first < end; first = ++i) {
        while (i < end && !m->refs[i])
            i++;
        if (i > first)
            dock_arena_punch(a->arena, m->off + first * page, (i - first) * page);
    }
}

static bool covers(const struct dock_run *r, const struct dock_run *other)
{
    return r->off <= other->off && other->off + other->len <= r->off + r->len;
}

// No run of the list lies inside of another: one that comes back takes the place of what it covers, or makes
// what covers it the newest.
void dock_mirror_retire(struct dock_adopt *a, uint64_t off, uint64_t len)
{
    struct dock_run fresh = {off, len};
    unsigned left = 0;

    for (unsigned i = 0; i < a->keeps; i++)
        if (covers(&a->kept[i], &fresh))
            fresh = a->kept[i];
    for (unsigned i = 0; i < a->keeps; i++)
        if (!covers(&fresh, &a->kept[i]))
            a->kept[left++] = a->kept[i];
    if (fresh.len >= DOCK_HOLES_BACK_FROM) {
        dock_arena_punch(a->arena, off, len);
        a->keeps = left;
        return;
    }
    if (left == DOCK_ADOPT_KEPT) {
        give_kept(a, &a->kept[0]);
        memmove(&a->kept[0], &a->kept[1], --left * sizeof *a->kept);
    }
    a->kept[left] = fresh;
    a->keeps = left + 1;
}

void dock_mirror_lingering(struct dock_adopt *a, dock_mirror_free *each)
{
    for (struct dock_mirror *m = a->mirrors; m && a->lingering; m = m->next)
        tell(a, m, 0, page_count(a), each);
}

void dock_mirrors_close(struct dock_adopt *a)
{
    while (a->mirrors) {
        struct dock_mirror *m = a->mirrors;
        dock_views_lock();
        a->mirrors = m->next;
        dock_views_unlock();
        dock_park_close(a, m);
        munmap(m, dock_mirror_bytes(a));
    }
}
