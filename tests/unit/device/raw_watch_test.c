// SPDX-License-Identifier: MIT
// How often the engine looks at doorbells that nobody rings by a call: it backs off to a millisecond, and to
// four when none moved for a second, so that an idle queue costs less than a hundredth of a processor.
// Counted are the times that its thread went to sleep: a busy machine has fewer of them, never more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/direct_view.h"
#include "lib/pair.h"

#define WINDOW_MS 200

struct driven {
    struct dock_dev *dev;
    struct end a, b;
    struct drydock_queue q;
    struct drydock_target t;
};

static void open_driven(struct driven *d)
{
    const struct end_opts raw = {.raw = true, .wr = 16, .cqe = 32}, plain = {0};
    struct dock_direct view;

    assert_int_equal(dock_dev_open(NULL, &d->dev), 0);
    end_open(&d->a, d->dev, &raw);
    end_open(&d->b, d->dev, &plain);
    pair_connect(&d->a, &d->b);
    assert_int_equal(dock_qp_direct(d->a.qp, &view), 0);
    d->q = dock_direct_view(&view, dock_qp_number(d->a.qp));
    d->t = (struct drydock_target){
        .address = (uintptr_t)d->b.mem, .length = 8, .segment = d->b.mr->rkey >> 8, .token = d->b.mr->rkey};
}

static void close_driven(struct driven *d)
{
    end_close(&d->a);
    end_close(&d->b);
    assert_int_equal(dock_dev_close(d->dev), 0);
}

// A line of a file of a thread of this process, or its first one.
static void read_line(const char *thread, const char *file, const char *begins, char line[static 256])
{
    char path[300];
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%s/%s", thread, file);
    f = fopen(path, "r");
    line[0] = '\0';
    while (f && fgets(line, 256, f) && strncmp(line, begins, strlen(begins)) != 0)
        line[0] = '\0';
    if (f)
        fclose(f);
}

// How often the engine went to sleep so far.
static unsigned long sleeps(void)
{
    static const char count[] = "voluntary_ctxt_switches:";
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *t;
    unsigned long n = 0;
    char line[256];

    assert_non_null(threads);
    while ((t = readdir(threads))) {
        read_line(t->d_name, "comm", "drydock", line);
        if (strcmp(line, "drydock\n") != 0)
            continue;
        read_line(t->d_name, "status", count, line);
        n += strtoul(line + (line[0] ? sizeof count - 1 : 0), NULL, 10);
    }
    closedir(threads);
    return n;
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void nap(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

// In a window of WINDOW_MS at least, and as long as it takes an engine that gets no processor to sleep as
// often as `least`; counted as it was long.
static void expect_sleeps(const char *when, uint64_t every_ms, unsigned long least)
{
    uint64_t began = now_ms();
    unsigned long before = sleeps(), most, got;

    do
        nap(WINDOW_MS);
    while ((got = sleeps() - before) < least && now_ms() - began < 600); // who sleeps for good has one
    most = (now_ms() - began + 1) / every_ms +
           16; // and what else wakes it: a look after itself ten times a second
    print_message("%s: %lu sleeps, at most %lu\n", when, got, most);
    if (got < least || got > most)
        fail_msg("%s: expected %lu to %lu sleeps, got %lu", when, least, most, got);
}

static void write_one(struct driven *d)
{
    assert_int_equal(drydock_post_write(&d->q, &d->t, d->t.address, d->a.mem, 8, DRYDOCK_COMPLETE), 0);
    drydock_ring(&d->q);
    assert_int_equal(drydock_quiet(&d->q), 0); // whatever the stage, it is seen
}

static void an_idle_doorbell_is_looked_at_every_millisecond_and_later_every_four(void **state)
{
    struct driven d;

    (void)state;
    open_driven(&d);
    nap(30); // what the making of it left the engine to tick for
    write_one(&d);
    expect_sleeps("after one moved", 1, 1);
    nap(1000);
    expect_sleeps("a second later", 4, 2); // an engine that sleeps for good would have one at most
    write_one(&d);
    expect_sleeps("after one moved again", 1, 1);
    close_driven(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_doorbell_is_looked_at_every_millisecond_and_later_every_four),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
