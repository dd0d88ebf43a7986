// SPDX-License-Identifier: MIT
// Multicast groups while their entries change hands: a reader takes no lock, and must not pair one member
// with another's group. The change comes between two loads of the reader: each page of the entry is shut
// until it is touched, and who touches it for the last time before the second look finds the entry with its
// next owner.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena/groups.h"
#include "device/internal.h"
#include "lib/pair.h"

static const uint8_t ours[16] = {0xff, 0x0e, [15] = 1}, others[16] = {0xff, 0x0e, [15] = 2};

static char *pages; // two: the entry's member is the last word of the first
static size_t page;
static struct dock_groups table;
static struct dock_group_member *entry;
static uint64_t heir;
static volatile sig_atomic_t faults;

static void shut(unsigned which)
{
    mprotect(pages, 2 * page, PROT_READ | PROT_WRITE);
    mprotect(pages + which * page, page, PROT_NONE);
}

// The reader is at: 1, the turn; 2, the member; 3, the group, which is another's by now.
static void touched(int signal)
{
    (void)signal;
    if (++faults < 3) {
        shut(faults == 1 ? 0 : 1);
        return;
    }
    mprotect(pages, 2 * page, PROT_READ | PROT_WRITE);
    dock_set64(&entry->turn, dock_peek64(&entry->turn) + 1);
    memcpy((void *)entry->gid, ours, sizeof ours);
    dock_set64(&entry->member, heir);
}

static void a_member_is_not_taken_for_one_of_the_next_ones_group(void **state)
{
    struct sigaction old, a = {.sa_handler = touched};
    size_t bytes = DOCK_GROUP_MEMBERS * sizeof *entry;
    struct dock_dev *dev;
    uint32_t at = 0, queue;
    dock_who who = 0;

    (void)state;
    assert_int_equal(dock_dev_open(NULL, &dev), 0);
    page = (size_t)sysconf(_SC_PAGESIZE);
    pages = mmap(NULL, 2 * page + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    entry = (struct dock_group_member *)(void *)(pages + page - sizeof entry->member);
    table.member = entry;

    uint32_t first = dock_who_slot(dev->waiter.me) << DOCK_BLOCK_SHIFT;
    dock_set64(&entry->member, (uint64_t)dev->waiter.me << 32 | (first + 1));
    memcpy((void *)entry->gid, others, sizeof others);
    heir = (uint64_t)dev->waiter.me << 32 | (first + 2);
    sigaction(SIGSEGV, &a, &old);
    shut(1);
    queue = dock_group_next(&table, &dev->ids_table, ours, &at, &who);
    sigaction(SIGSEGV, &old, NULL);
    assert_int_equal(faults, 3);
    assert_int_equal(queue, first + 2); // and never first + 1, which is in the other group
    munmap(pages, 2 * page + bytes);
    assert_int_equal(dock_dev_close(dev), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_is_not_taken_for_one_of_the_next_ones_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
