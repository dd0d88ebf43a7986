// SPDX-License-Identifier: MIT
// The registrations of the process by address: a tree ordered by it, kept flat by a random rank for each (a
// parent's is the highest of what is below it), where each knows how far those below it reach. So who is
// concerned when a page moves is found in the logarithm of their number.
#include "arena/adopt_own.h"
#include "base/seed.h"

static uint64_t end_of(const struct dock_hold *h)
{
    return h->addr + h->len;
}

static void note_reach(struct dock_hold *h)
{
    h->reach = end_of(h);
    for (unsigned i = 0; i < 2; i++)
        if (h->below[i] && h->below[i]->reach > h->reach)
            h->reach = h->below[i]->reach;
}

// Of two of one address the one that lies lower in memory.
static bool is_before(const struct dock_hold *a, const struct dock_hold *b)
{
    return a->addr != b->addr ? a->addr < b->addr : (uintptr_t)a < (uintptr_t)b;
}

// What is before `at`, and the rest.
static void split(struct dock_hold *tree, const struct dock_hold *at, struct dock_hold **low,
                  struct dock_hold **high)
{
    if (!tree) {
        *low = *high = NULL;
    } else if (is_before(tree, at)) {
        split(tree->below[1], at, &tree->below[1], high);
        note_reach(tree);
        *low = tree;
    } else {
        split(tree->below[0], at, low, &tree->below[0]);
        note_reach(tree);
        *high = tree;
    }
}

static struct dock_hold *join(struct dock_hold *low, struct dock_hold *high)
{
    struct dock_hold *top = !high || (low && low->rank > high->rank) ? low : high;

    if (!low || !high)
        return top;
    if (top == low)
        low->below[1] = join(low->below[1], high);
    else
        high->below[0] = join(low, high->below[0]);
    note_reach(top);
    return top;
}

void dock_holds_add(struct dock_hold **tree, struct dock_hold *h)
{
    static uint64_t ranks; // the same in each run

    h->rank = dock_rand(&ranks);
    struct dock_hold **at = tree;
    while (*at && (*at)->rank > h->rank) {
        if ((*at)->reach < end_of(h))
            (*at)->reach = end_of(h);
        at = &(*at)->below[is_before(*at, h)];
    }
    split(*at, h, &h->below[0], &h->below[1]);
    note_reach(h);
    *at = h;
}

static struct dock_hold *without(struct dock_hold *tree, const struct dock_hold *h)
{
    bool above;

    if (tree == h)
        return join(h->below[0], h->below[1]);
    above = is_before(tree, h);
    tree->below[above] = without(tree->below[above], h);
    note_reach(tree);
    return tree;
}

void dock_holds_remove(struct dock_hold **tree, const struct dock_hold *h)
{
    *tree = without(*tree, h);
}

// Recursion goes as deep as the tree: some three times the logarithm.
bool dock_holds_each(struct dock_hold *tree, uint64_t lo, uint64_t hi, dock_holds_see *see, void *arg)
{
    if (!tree || tree->reach <= lo)
        return true;
    if (!dock_holds_each(tree->below[0], lo, hi, see, arg))
        return false;
    if (tree->addr >= hi)
        return true;
    return (lo >= end_of(tree) || see(arg, tree)) && dock_holds_each(tree->below[1], lo, hi, see, arg);
}
