// SPDX-License-Identifier: MIT
#include <linux/mman.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/order.h"
#include "face/urma_common/common.h"

enum { SAMPLE_NS = 50 * 1000 * 1000 };
static const double CORES_MAY_DIFFER = 0.01;

// Both clocks are read at both ends, so what the scheduler takes in between changes nothing but the length.
static double counter_mhz(void)
{
    struct timespec pause = {.tv_nsec = SAMPLE_NS};
    uint64_t ns = dock_now_ns();
    uint64_t ticks = dock_ticks();

    nanosleep(&pause, NULL);
    ticks = dock_ticks() - ticks;
    ns = dock_now_ns() - ns;
    return ns ? (double)ticks * 1000 / (double)ns : 0;
}

static void compare_cores(void)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    double least = 0, most = 0, mhz;

    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "cpu MHz : %lf", &mhz) != 1)
            continue;
        least = least == 0 || mhz < least ? mhz : least;
        most = mhz > most ? mhz : most;
    }
    if (most - least > CORES_MAY_DIFFER * most)
        fprintf(stderr, "cores run at %.0f to %.0f MHz: times that were counted in ticks may be off\n", least,
                most);
    if (file)
        fclose(file);
}

double get_cpu_mhz(bool warn)
{
    if (warn)
        compare_cores();
    return counter_mhz();
}

void *ub_hugemalloc(size_t length, enum ub_huge_page page, void *hint)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
    void *address;

    if (length == 0)
        return NULL;
    if (page == UB_HUGE_2MB)
        flags |= (int)MAP_HUGE_2MB;
    else if (page == UB_HUGE_1GB)
        flags |= (int)MAP_HUGE_1GB;
    address = mmap(hint, length, PROT_READ | PROT_WRITE, flags, -1, 0);
    return address == MAP_FAILED ? NULL : address;
}

int ub_hugefree(void *address, size_t length)
{
    return munmap(address, length);
}
