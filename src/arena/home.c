// SPDX-License-Identifier: MIT
#include "arena/home.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define TRIES 8u

static uint64_t draw(void)
{
    uint64_t r;

    // Without a random number the time will do: the two images must differ, nobody has to be kept from
    // guessing.
    return getrandom(&r, sizeof r, GRND_NONBLOCK) == sizeof r ? r
                                                              : dock_mix(dock_now_ns() ^ (uint64_t)getpid());
}

// Between a quarter and three quarters of the address space, far from where programs, heaps, libraries and
// stacks are put. A wish only: tools that divide the space otherwise put it elsewhere.
static void *choose(uint64_t page)
{
    uint64_t quarter = (uintptr_t)&page / 4;

    return (void *)(uintptr_t)((quarter + draw() % (2 * quarter)) & ~(page - 1));
}

uint64_t dock_home_own(void)
{
    static uint64_t own;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t *at = NULL;

    for (unsigned i = 0; i < TRIES && !own; i++) {
        void *wish = choose(page);
        if (at)
            munmap(at, page);
        at = mmap(wish, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            dock_info("no page for a home: an exec of this program is seen late by others");
            return 0;
        }
        if (at != wish && i + 1 < TRIES)
            continue;
        own = (uintptr_t)at;
        *at = dock_home_word(own);
    }
    return own;
}

bool dock_home_left(pid_t pid, uint64_t home)
{
    uint64_t word = 0;
    struct iovec here = {&word, sizeof word}, there = {(void *)(uintptr_t)home, sizeof word};
    ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

    return n < 0 ? errno == EFAULT : word != dock_home_word(home);
}
