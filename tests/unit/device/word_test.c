// SPDX-License-Identifier: MIT
// An aligned word of 2, 4 or 8 bytes is never seen half: a thread reads it while WRITEs change all of its
// bytes.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/pair.h"

#define WRITES 100000u

struct watch {
    const dock_a64 *word;
    dock_a32 stop;
    uint64_t mask; // of the bytes that are written
    uint64_t torn;
    dock_a64 seen[2];
};

static void *watcher(void *arg)
{
    struct watch *w = arg;

    while (!dock_acquire32(&w->stop)) {
        uint64_t v = dock_peek64(w->word) & w->mask;
        if (v == 0 || v == w->mask)
            dock_count64(&w->seen[v != 0], 1);
        else
            w->torn = v;
    }
    return NULL;
}

static bool saw_both(const struct watch *w)
{
    return dock_peek64(&w->seen[0]) && dock_peek64(&w->seen[1]);
}

// At least WRITES, and until the watcher, which may get no processor at first, has seen both values.
static void alternate(struct end *a, struct end *b, uint32_t len, const struct watch *w)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, a, &sge, 0, len, b->mr, (uintptr_t)b->mem);
    struct dock_wc wc;

    memset(a->mem, 0, 8);
    memset(a->mem + 64, 0xff, 8);
    for (unsigned i = 0; i < WRITES || (i < 100 * WRITES && !saw_both(w)); i++) {
        sge.addr = (uintptr_t)a->mem + (i & 1) * 64;
        assert_int_equal(end_post(a, &wr), 0);
        assert_true(end_wait(a->scq, &wc, 2000));
        assert_int_equal(wc.status, DOCK_OK);
    }
}

static void never_half(uint32_t len)
{
    struct dock_dev *dev[2];
    struct end_opts o = {0};
    struct end a, b;
    pthread_t t;

    assert_int_equal(dock_dev_open(NULL, &dev[0]), 0);
    assert_int_equal(dock_dev_open(NULL, &dev[1]), 0);
    end_open(&a, dev[0], &o);
    end_open(&b, dev[1], &o);
    pair_connect(&a, &b);
    struct watch w = {.word = (const dock_a64 *)(void *)b.mem, .mask = UINT64_MAX >> (64 - 8 * len)};
    assert_int_equal(pthread_create(&t, NULL, watcher, &w), 0);
    alternate(&a, &b, len, &w);
    dock_publish32(&w.stop, 1);
    pthread_join(t, NULL);
    assert_int_equal(w.torn, 0);
    assert_true(saw_both(&w));
    end_close(&a);
    end_close(&b);
    assert_int_equal(dock_dev_close(dev[0]), 0);
    assert_int_equal(dock_dev_close(dev[1]), 0);
}

static void a_word_of_8_bytes(void **state)
{
    (void)state;
    never_half(8);
}

static void a_word_of_4_bytes(void **state)
{
    (void)state;
    never_half(4);
}

static void a_word_of_2_bytes(void **state)
{
    (void)state;
    never_half(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_of_8_bytes),
        cmocka_unit_test(a_word_of_4_bytes),
        cmocka_unit_test(a_word_of_2_bytes),
    };

    return cmocka_run_group_tests_name("an aligned word is never seen half", tests, NULL, NULL);
}
