// SPDX-License-Identifier: MIT
// timeout: 120
// Programs that register all that they find: every writable private mapping, with the device's own among
// them, which never moves; and a region that lies in thousands of pieces, each of which peers reach where it
// is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arena/adopt_own.h"
#include "arena/procfile.h"
#include "arena/xcopy.h"
#include "device/internal.h"
#include "lib/adopting.h"
#include "lib/duo.h"
#include "lib/fork.h"
#include "lib/maps.h"

#define PAGE 4096u
#define LEN (64 * PAGE)
#define RIGHTS (DOCK_ACCESS_LOCAL_WRITE | DOCK_ACCESS_REMOTE_READ | DOCK_ACCESS_REMOTE_WRITE)

// ---- every mapping

#define MOST 256u
#define LARGEST (64ul << 20) // of a mapping: a table that is reserved is longer, and tells nothing more

static struct {
    uint64_t at, len;
    struct dock_mr *mr;
} all[MOST];

static unsigned list_mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    uint64_t lo, hi;
    unsigned n = 0;
    char line[512], prot[8];

    while (f && n < MOST && fgets(line, sizeof line, f))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &lo, &hi, prot) == 3 && !strcmp(prot, "rw-p") &&
            hi - lo <= LARGEST) {
            all[n].at = lo;
            all[n++].len = hi - lo;
        }
    if (f)
        fclose(f);
    return n;
}

static int register_all(void *arg)
{
    struct dock_dev *dev;
    struct dock_mr *first;
    uint32_t pd;
    size_t bytes;
    const void *known = dock_proc_room(&bytes);
    char *mine = maps_in_one(LEN);

    (void)arg;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    if (mine == MAP_FAILED || dock_dev_open(NULL, &dev) || dock_pd_create(dev, &pd))
        return 1;
    if (dev->adopt.mode == DOCK_ADOPT_OFF)
        return 77;
    memset(mine, 5, LEN);
    // So that there is all that a move needs.
    if (dock_mr_register(dev, pd, (uintptr_t)mine, LEN, (uintptr_t)mine, RIGHTS, &first))
        return 2;
    unsigned n = list_mappings();
    for (unsigned i = 0; i < n; i++)
        if (dock_mr_register(dev, pd, all[i].at, all[i].len, all[i].at, RIGHTS, &all[i].mr))
            all[i].mr = NULL;
    if (dock_peek64(&dev->port->adopt.bytes) <= LEN)
        return 3;
    if (maps_look(dev, sizeof *dev).adopted)
        return 4;
    if (maps_look(known, bytes).adopted)
        return 10;
    for (const struct dock_mirror *m = dev->adopt.mirrors; m; m = m->next)
        if (maps_look(m, PAGE).adopted ||
            (m->park.base && maps_look(m->park.room, dock_park_room(&dev->adopt)).adopted))
            return 5;
    for (unsigned i = 0; i < n; i++)
        if (all[i].mr && dock_mr_deregister(all[i].mr))
            return 6;
    if (dock_mr_deregister(first) || dock_peek64(&dev->port->adopt.bytes))
        return 7;
    for (unsigned i = 0; i < LEN; i++)
        if (mine[i] != 5)
            return 8;
    return dock_pd_destroy(dev, pd) || dock_dev_close(dev) ? 9 : 0;
}

static void the_devices_own_pages_stay(void **state)
{
    int status;

    (void)state;
#ifdef DOCK_SANITIZED // its own memory is among the mappings, and must not move
    skip();
#endif
    pid_t child = test_fork(register_all, NULL);

    assert_int_equal(test_await(child, &status, 30000 * slow_down()), TEST_EXITED);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

// ---- in pieces

#define PIECES 1500u // every other page, the others are of another kind

// Of the adopted pages and of what lies between them, in one request.
static void all_at_once(struct end *a, const struct dock_mr *mr, char *p, size_t len)
{
    struct dock_sge sge;
    struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, a, &sge, 0, (uint32_t)len, mr, (uintptr_t)p);

    bytes_fill(a->mem, len, 77);
    carry_out(a, &wr);
    assert_memory_equal(p, a->mem, len);
    memset(a->mem, 0, len);
    wr = wr_onesided(DOCK_OP_READ, a, &sge, 0, (uint32_t)len, mr, (uintptr_t)p);
    carry_out(a, &wr);
    assert_memory_equal(p, a->mem, len);
}

static void each_of_many_pieces_is_reached_where_it_is(void **state)
{
    struct dock_dev *near, *dev;
    struct end_opts o = {.mem = 2ul * PIECES * PAGE};
    struct end a, b;
    struct dock_mr *mr;

    (void)state;
    setenv("DRYDOCK_ADOPT", "inner", 1);
    assert_int_equal(dock_dev_open(NULL, &near), 0);
    open_adopting(&dev);
    end_open(&a, near, &o);
    end_open(&b, dev, &o);
    pair_connect(&a, &b);
    char *p = maps_in_one(2ul * PIECES * PAGE);
    assert_ptr_not_equal(p, MAP_FAILED);
    for (unsigned i = 0; i < PIECES; i++)
        assert_ptr_not_equal(mmap(p + (2 * i + 1) * PAGE, PAGE, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                             MAP_FAILED);
    assert_int_equal(
        dock_mr_register(dev, b.pd, (uintptr_t)p, 2ul * PIECES * PAGE, (uintptr_t)p, RIGHTS, &mr), 0);
    assert_int_equal(dock_peek64(&dev->port->adopt.bytes), PIECES * PAGE);
    uint64_t calls = dock_peek64(&dev->port->fallback_calls) + dock_peek64(&near->port->fallback_calls);
    for (unsigned i = 0; i < PIECES; i += i < 2 ? 1 : (PIECES - 3) / 4) {
        char *at = p + 2ul * i * PAGE + 64;
        struct dock_sge sge;
        struct dock_wr wr = wr_onesided(DOCK_OP_WRITE, &a, &sge, 0, 100, mr, (uintptr_t)at);
        bytes_fill(a.mem, 100, i + 1);
        carry_out(&a, &wr);
        assert_memory_equal(at, a.mem, 100);
        assert_int_equal(dock_peek64(&dev->port->fallback_calls) + dock_peek64(&near->port->fallback_calls),
                         calls);
    }
    if (dock_xcopy_works())
        all_at_once(&a, mr, p, 2ul * PIECES * PAGE);
    assert_int_equal(dock_mr_deregister(mr), 0);
    munmap(p, 2ul * PIECES * PAGE);
    end_close(&a);
    end_close(&b);
    assert_int_equal(dock_dev_close(near), 0);
    assert_int_equal(dock_dev_close(dev), 0);
}

int main(void)
{
    if (getenv("DRYDOCK_EMULATED")) // an emulator has mappings of its own, which do not stand
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_devices_own_pages_stay),
        cmocka_unit_test(each_of_many_pieces_is_reached_where_it_is),
    };

    return cmocka_run_group_tests_name("all that there is", tests, NULL, NULL);
}
