// SPDX-License-Identifier: MIT
// The litmus programs over the late fabric: the face's sources are linked with the device's and the tests',
// and the device that they ask for is opened on it. By a seed, each PE's requests are delayed and reordered
// as far as the fabric's promises allow, or, from LATE_ORDER=fenced on, as far as OpenSHMEM's do.
//
// DRYDOCK_SEED: of all PEs. LATE_WITHOUT: rules of tests/lib/late.h that are given up. LATE_ORDER: ordered
// (the default), fenced, unfenced (the face's fences are not told to the fabric: what a test must miss).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/job.h"
#include "base/seed.h"
#include "device/device.h"
#include "lib/late.h"

static uint64_t naps;

// A request that waits between its phases waits long enough for another PE to look.
static void sleep_now_and_then(const struct dock_xfer *x, uint32_t nth, enum late_phase phase)
{
    struct timespec nap = {.tv_nsec = 50000};

    (void)x;
    (void)nth;
    if (phase != LATE_FINISH && dock_rand(&naps) % 8 == 0)
        nanosleep(&nap, NULL);
}

static enum late_order order_wanted(void)
{
    const char *text = getenv("LATE_ORDER");

    if (!text || strcmp(text, "ordered") == 0)
        return LATE_ORDERED;
    if (strcmp(text, "fenced") == 0)
        return LATE_FENCED;
    if (strcmp(text, "unfenced") == 0)
        return LATE_UNFENCED;
    fprintf(stderr, "LATE_ORDER=%s: ordered, fenced or unfenced\n", text);
    abort();
}

int __wrap_dock_dev_get(struct dock_dev **out);
int __wrap_dock_dev_put(struct dock_dev *dev);

int __wrap_dock_dev_get(struct dock_dev **out)
{
    struct dock_config cfg = {.fabric = &late_fabric};
    const char *rank = getenv(DOCK_JOB_RANK), *seed = getenv("DRYDOCK_SEED");
    uint64_t mine = dock_decide(seed ? strtoull(seed, NULL, 0) : 1, rank ? strtoul(rank, NULL, 10) : 0, 0);
    int err;

    naps = mine;
    setenv("DRYDOCK_SHMEM", "queue", 1); // what is not a request meets no fabric
    late_set_order(order_wanted());
    late_set_whole_atomics(true);
    late_watch(sleep_now_and_then);
    late_open(mine, 0);
    err = dock_dev_open(&cfg, out);
    if (!err)
        late_threads_start(1);
    return err;
}

int __wrap_dock_dev_put(struct dock_dev *dev)
{
    late_threads_stop();
    int err = dock_dev_close(dev);
    late_close();
    return err;
}
