// SPDX-License-Identifier: MIT
// timeout: 60
// What a registration asks of the kernel does not grow with what is adopted already: all threads stand still
// meanwhile. Calls are counted in an arena that is compiled with a hook (cmake/tests.cmake).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/order.h"
#include "device/internal.h"
#include "lib/maps.h"

#define PAGE 4096u
#define REGIONS 300u
#define BESIDE 8u // of them are registered beside a thread
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

long dock_rawcall_fails(long number);

static dock_a64 questions; // about mappings

long dock_rawcall_fails(long number)
{
    if (number == SYS_ioctl)
        atomic_fetch_add(&questions, 1);
    return 0;
}

static void *sleeper(void *arg)
{
    char byte;

    return read(*(int *)arg, &byte, 1) ? arg : NULL;
}

static void it_does_not_grow_with_what_is_adopted(void **state)
{
    char *p = mmap(NULL, 2 * REGIONS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static struct dock_mr *mr[REGIONS];
    uint64_t before, asked, least = UINT64_MAX;
    struct dock_dev *dev;
    pthread_t t;
    uint32_t pd;
    int ends[2];

    (void)state;
    memset(p, 1, 2 * REGIONS * PAGE);
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    assert_int_equal(dock_pd_create(dev, &pd), 0);
    assert_int_equal(pipe(ends), 0);
    for (unsigned i = 0; i < REGIONS; i++) {
        if (i == REGIONS - BESIDE)
            assert_int_equal(pthread_create(&t, NULL, sleeper, &ends[0]), 0);
        uint64_t at = (uintptr_t)p + (uint64_t)2 * i * PAGE;
        before = dock_peek64(&questions);
        assert_int_equal(dock_mr_register(dev, pd, at, PAGE, at, RIGHTS, &mr[i]), 0);
        asked = dock_peek64(&questions) - before;
        // The first beside a thread looks at all; one that moved nothing, on a busy machine, tells nothing.
        bool moved = maps_look((char *)(uintptr_t)at, PAGE).adopted == PAGE;
        least = i > REGIONS - BESIDE && moved && asked < least ? asked : least;
    }
    close(ends[1]);
    pthread_join(t, NULL);
    close(ends[0]);
    for (unsigned i = 0; i < REGIONS; i++)
        assert_int_equal(dock_mr_deregister(mr[i]), 0);
    munmap(p, 2 * REGIONS * PAGE);
    assert_int_equal(dock_pd_destroy(dev, pd), 0);
    assert_int_equal(dock_dev_close(dev), 0);
    print_message("%" PRIu64 " questions beside %u regions\n", least, REGIONS);
    if (least == UINT64_MAX)
        skip(); // threads cannot be stopped here, or are too slow
    assert_in_range(least, 1, 20);
}

int main(void)
{
#ifndef DOCK_RAWCALL_FAILS
    return 77; // a sanitizer's build has no such arena
#endif
    if (getenv("DRYDOCK_EMULATED"))
        return 77;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_does_not_grow_with_what_is_adopted)};

    return cmocka_run_group_tests_name("questions of a registration", tests, NULL, NULL);
}
