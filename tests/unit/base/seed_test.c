// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/seed.h"

static void the_mix_is_splitmix64(void **state)
{
    // The first outputs of the published generator for the seeds 0 and 1234567.
    uint64_t zero = 0;

    (void)state;
    assert_true(dock_mix(zero) == 0xe220a8397b1dcdafull);
    assert_true(dock_mix(0x9e3779b97f4a7c15ull) == 0x6e789e6aa1b965f4ull);
    assert_true(dock_mix(1234567) == 6457827717110365317ull);
}

static void a_given_seed_replays(void **state)
{
    char *old = getenv("DRYDOCK_SEED") ? strdup(getenv("DRYDOCK_SEED")) : NULL;

    (void)state;
    setenv("DRYDOCK_SEED", "0x1234", 1);
    assert_int_equal(dock_seed(), 0x1234);
    assert_string_equal(dock_log_last(), "seed 0x1234");
    setenv("DRYDOCK_SEED", "99", 1);
    assert_int_equal(dock_seed(), 99);
    unsetenv("DRYDOCK_SEED");
    assert_int_not_equal(dock_seed(), dock_seed());
    if (old)
        setenv("DRYDOCK_SEED", old, 1);
    free(old);
}

static void a_decision_depends_on_seed_object_and_sequence_alone(void **state)
{
    (void)state;
    assert_true(dock_decide(1, 2, 3) == dock_decide(1, 2, 3));
    assert_true(dock_decide(1, 2, 3) != dock_decide(2, 2, 3));
    assert_true(dock_decide(1, 2, 3) != dock_decide(1, 3, 3));
    assert_true(dock_decide(1, 2, 3) != dock_decide(1, 2, 4));
    assert_true(dock_decide(1, 2, 3) != dock_decide(2, 1, 3));
}

static void every_input_bit_reaches_about_half_of_the_output_bits(void **state)
{
    (void)state;
    for (int bit = 0; bit < 64; bit++) {
        int flips = 0;
        for (uint64_t x = 0; x < 64; x++)
            flips += __builtin_popcountll(dock_mix(x * 0x12345) ^ dock_mix(x * 0x12345 ^ 1ull << bit));
        assert_in_range(flips / 64, 26, 38);
    }
}

static void a_stream_moves_on(void **state)
{
    uint64_t s = 5, again = 5, first = dock_rand(&s);

    (void)state;
    assert_true(dock_rand(&s) != first);
    assert_true(dock_rand(&again) == first);
}

static void the_clock_does_not_go_back(void **state)
{
    uint64_t last = dock_now_ns();

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t now = dock_now_ns();
        assert_true(now >= last);
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mix_is_splitmix64),
        cmocka_unit_test(a_given_seed_replays),
        cmocka_unit_test(a_decision_depends_on_seed_object_and_sequence_alone),
        cmocka_unit_test(every_input_bit_reaches_about_half_of_the_output_bits),
        cmocka_unit_test(a_stream_moves_on),
        cmocka_unit_test(the_clock_does_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
