// SPDX-License-Identifier: MIT
// timeout: 60
// Registrations are found by address: all that overlap and no others, and by few steps however many there
// are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "arena/adopt_own.h"
#include "base/seed.h"

#define MANY 40000u
#define SOME 300u

// Steps to the deepest.
static unsigned depth(const struct dock_hold *tree)
{
    unsigned low, high;

    if (!tree)
        return 0;
    low = depth(tree->below[0]);
    high = depth(tree->below[1]);
    return 1 + (low > high ? low : high);
}

static bool count(void *arg, struct dock_hold *h)
{
    (void)h;
    ++*(unsigned *)arg;
    return true;
}

struct seen {
    const struct dock_hold *all;
    bool hit[SOME];
    uint64_t last;
};

static bool note(void *arg, struct dock_hold *h)
{
    struct seen *s = arg;

    assert_true(h->addr >= s->last);
    assert_false(s->hit[h - s->all]);
    s->hit[h - s->all] = true;
    s->last = h->addr;
    return true;
}

// Any come and go; each look is compared with all of them.
static void those_that_overlap_and_no_others(void **state)
{
    struct dock_hold *all = calloc(SOME, sizeof *all), *tree = NULL;
    bool there[SOME] = {false};
    uint64_t random = dock_seed();

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = (unsigned)(dock_rand(&random) % SOME);
        uint64_t lo = dock_rand(&random) % 4096, hi = lo + 1 + dock_rand(&random) % 64;
        struct seen seen = {.all = all};
        if (there[i]) {
            dock_holds_remove(&tree, &all[i]);
        } else {
            all[i].addr = dock_rand(&random) % 4096 & ~7u;
            all[i].len = dock_rand(&random) % (round % 7 ? 128 : 4096);
            dock_holds_add(&tree, &all[i]);
        }
        there[i] = !there[i];
        assert_true(dock_holds_each(tree, lo, hi, note, &seen));
        for (unsigned k = 0; k < SOME; k++)
            assert_int_equal(seen.hit[k], there[k] && all[k].addr < hi && lo < all[k].addr + all[k].len);
    }
    free(all);
}

static bool enough(void *arg, struct dock_hold *h)
{
    ++*(unsigned *)arg;
    return h->addr < 3 * 4096;
}

static void who_has_enough_is_asked_no_more(void **state)
{
    struct dock_hold all[8], *tree = NULL;
    unsigned asked = 0;

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        all[i] = (struct dock_hold){.addr = i * 4096, .len = 4096};
        dock_holds_add(&tree, &all[i]);
    }
    assert_false(dock_holds_each(tree, 4096, UINT64_MAX, enough, &asked));
    assert_int_equal(asked, 3);
}

// One by one upwards, which makes a list of a tree that nothing keeps flat.
static void the_deepest_of_many_is_near(void **state)
{
    struct dock_hold *all = calloc(MANY, sizeof *all), *tree = NULL;
    unsigned found;

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        all[i].addr = i * 8192ull;
        all[i].len = 4096;
        dock_holds_add(&tree, &all[i]);
    }
    assert_true(depth(tree) < 60); // 39 to 45 is usual, 15 the least
    for (unsigned i = 0; i < MANY; i++) {
        found = 0;
        dock_holds_each(tree, all[i].addr, all[i].addr + 4096, count, &found);
        assert_int_equal(found, 1);
    }
    for (unsigned i = 0; i < MANY; i += 2)
        dock_holds_remove(&tree, &all[i]);
    assert_true(depth(tree) < 60);
    for (unsigned i = 1; i < MANY; i += 2)
        dock_holds_remove(&tree, &all[i]);
    assert_null(tree);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_overlap_and_no_others),
        cmocka_unit_test(who_has_enough_is_asked_no_more),
        cmocka_unit_test(the_deepest_of_many_is_near),
    };

    return cmocka_run_group_tests_name("registrations by address", tests, NULL, NULL);
}
