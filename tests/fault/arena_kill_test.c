// SPDX-License-Identifier: MIT
// Devices are killed at random instants while they hold a lock word, or while they change the id table. The
// others go on, and what the word guards is never seen half done.
// timeout: 120
// long-timeout: 600
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena/idtable.h"
#include "arena/lockword.h"
#include "base/clock.h"
#include "base/seed.h"
#include "unit/arena/child.h"

#define WORKERS 3
#define STALL_NS (20000000000ull * slow_factor()) // without any progress: hung

struct shared {
    dock_a64 word;
    uint64_t a, b; // both are the word's value whenever the word is free
    dock_a64 progress, inherited, torn;
};

static struct shared *shared;
static struct dock_rundir dir;
static struct dock_idtable ids;
static uint64_t seed;

static int wrong(const char *what, uint64_t expected, uint64_t got)
{
    printf("%s: expected %llu, got %llu\nagain: DRYDOCK_SEED=%#llx scripts/run-one "
           "build/dev/tests/fault/arena_kill_test\n",
           what, (unsigned long long)expected, (unsigned long long)got, (unsigned long long)seed);
    return 1;
}

static void work_under_the_word(void *arg, struct child *parent)
{
    struct dock_waiter w = {.ids = &ids, .stopped_limit_ns = 60000000000u};
    bool inherited;

    (void)arg;
    (void)parent;
    child_check(dock_idtable_join(&ids, &w.me) == 0);
    for (;;) {
        uint32_t value = dock_word_lock(&shared->word, &w, &inherited);
        if (inherited) { // undo what the dead one had begun
            shared->a = shared->b = value;
            atomic_fetch_add(&shared->inherited, 1);
        } else if (shared->a != value || shared->b != value) {
            atomic_fetch_add(&shared->torn, 1);
        }
        shared->a++;
        for (volatile int i = 0; i < 200; i++)
            ; // most of the time somebody is in here
        shared->b++;
        dock_word_unlock(&shared->word, &w, value + 1);
        atomic_fetch_add(&shared->progress, 1);
    }
}

static void come_and_go(void *arg, struct child *parent)
{
    dock_who who;
    uint32_t block;

    (void)arg;
    (void)parent;
    for (;;) {
        child_check(dock_idtable_join(&ids, &who) == 0);
        for (int i = 0; i < 3; i++)
            child_check(dock_idtable_more(&ids, who, &block) == 0);
        dock_idtable_leave(&ids, who);
        atomic_fetch_add(&shared->progress, 1);
    }
}

// Kill and replace workers, each after some progress and a random while.
static int storm(void (*body)(void *, struct child *), int kills, uint64_t *rng)
{
    struct child c[WORKERS];
    int bad = 0;

    for (int i = 0; i < WORKERS; i++)
        c[i] = child_start(body, NULL);
    for (int k = 0; k < kills && !bad; k++) {
        uint64_t before = dock_peek64(&shared->progress), start = dock_now_ns();
        unsigned victim = (unsigned)(dock_rand(rng) % WORKERS);
        while (!bad && dock_peek64(&shared->progress) < before + 5) {
            usleep(100);
            if (dock_now_ns() - start > STALL_NS)
                bad = wrong("progress after a kill", 1, 0);
        }
        usleep((unsigned)(dock_rand(rng) % 3000));
        child_kill(&c[victim]);
        c[victim] = child_start(body, NULL);
    }
    for (int i = 0; i < WORKERS; i++)
        child_kill(&c[i]);
    return bad;
}

static int check_word(void)
{
    struct dock_waiter w = {.ids = &ids, .stopped_limit_ns = 60000000000u};
    bool inherited;

    if (dock_idtable_join(&ids, &w.me))
        return wrong("joining after the storm", 0, 1);
    uint32_t value = dock_word_lock(&shared->word, &w, &inherited);
    printf("%u turns, %llu words inherited\n", value, (unsigned long long)dock_peek64(&shared->inherited));
    if (!inherited && (shared->a != value || shared->b != value))
        return wrong("what the word guards", value, shared->a);
    dock_idtable_leave(&ids, w.me);
    if (dock_peek64(&shared->torn))
        return wrong("times that a half-done change was seen", 0, dock_peek64(&shared->torn));
    return dock_peek64(&shared->inherited) ? 0 : wrong("words inherited, at least", 1, 0);
}

static int check_table(void)
{
    dock_who who;

    if (dock_idtable_join(&ids, &who)) // frees what the dead have left
        return wrong("joining after the storm", 0, 1);
    for (uint32_t block = 1; block < DOCK_SLOTS; block++)
        if (dock_idtable_owner(&ids, block) && dock_idtable_owner(&ids, block) != who)
            return wrong("owner of a block, nobody", 0, dock_idtable_owner(&ids, block));
    dock_idtable_leave(&ids, who);
    return 0;
}

int main(void)
{
    const char *wants_long = getenv("DRYDOCK_LONG");
    int kills = wants_long && strcmp(wants_long, "0") ? 1000 : 150, bad;
    char *path = fresh_dir();
    uint64_t rng = seed = dock_seed();

    printf("seed %#llx, %d kills\n", (unsigned long long)seed, kills);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (dock_rundir_open(path, &dir) || dock_idtable_open(&dir, &ids))
        return 1;
    bad = storm(work_under_the_word, kills, &rng) || check_word();
    bad = bad || storm(come_and_go, kills, &rng) || check_table();
    dock_idtable_close(&ids);
    dock_rundir_close(&dir);
    fresh_dir_end(path);
    return bad;
}
