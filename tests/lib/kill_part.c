// SPDX-License-Identifier: MIT
// What the processes of a kill test have in common.
#include "lib/kill.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/probe.h"
#include "base/seed.h"

const char *const kill_role_name[KILL_ROLES] = {"initiator", "target", "third"};
const char *const kill_how_name[KILL_HOWS] = {"kill", "stop-cont", "stop-kill"};

static struct {
    int moment, signal;
    dock_a32 left; // 0: not armed
    unsigned occurrence;
    bool abroad, straight, atomic;
    uint32_t block; // of our own ids
} strike;

static _Thread_local bool on_straight_way; // completing is told by what both ways call

void kill_wrong(const struct kill_part *p, const char *fmt, ...)
{
    char *words = p->board->words[p->role];
    int n = snprintf(words, sizeof p->board->words[0], "%s: ", kill_role_name[p->role]);
    va_list args;

    va_start(args, fmt);
    vsnprintf(words + n, sizeof p->board->words[0] - (size_t)n, fmt, args);
    va_end(args);
    _exit(1);
}

static void at_moment(enum dock_moment at, uint32_t object, uint64_t sequence)
{
    uint32_t left = dock_peek32(&strike.left);
    bool straight = on_straight_way, own = object >> DOCK_BLOCK_SHIFT == strike.block;

    if (sequence & DOCK_PROBE_STRAIGHT) {
        straight = true;
        on_straight_way = at != DOCK_AT_COMPLETE;
    } else if (at == DOCK_AT_ENTER) { // the long way, after a message that failed and was not completed
        straight = on_straight_way = false;
    }
    if ((int)at != strike.moment || left == 0 || (strike.straight && (!straight || own == strike.abroad)) ||
        (strike.abroad && own) || (strike.atomic && !(sequence & DOCK_PROBE_ATOMIC)))
        return;
    while (left && !dock_claim32(&strike.left, &left, left - 1))
        ;
    // To this very thread: it goes no further than here, whichever thread would else have taken the signal.
    if (left == 1)
        syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), strike.signal);
}

void kill_prepare(const struct kill_part *p)
{
    const struct kill_cell *c = &p->board->cell;

    if (p->role != c->side || p->first != 0 || c->moment < 0)
        return;
    strike.moment = c->moment;
    strike.occurrence = c->occurrence;
    strike.abroad = c->abroad;
    strike.straight = dock_probe_straight = c->straight;
    strike.atomic = c->atomic;
    strike.signal = c->how == KILL_NOW ? SIGKILL : SIGSTOP;
    dock_probe_hook = at_moment;
}

void kill_arm(struct dock_dev *dev)
{
    strike.block = dock_who_slot(dock_dev_who(dev));
    dock_publish32(&strike.left, strike.occurrence);
}

bool kill_await(const struct kill_part *p, dock_a32 *word, uint32_t value, enum kill_role role,
                const char *what)
{
    uint64_t until = dock_now_ns() + KILL_WAIT_MS * test_slow() * 1000000ull;

    while (dock_acquire32(word) < value) {
        if (kill_is_dead(p, role))
            return dock_acquire32(word) >= value;
        if (dock_now_ns() > until)
            kill_wrong(p, "hung: waited %u s for %s", KILL_WAIT_MS * test_slow() / 1000, what);
        test_nap_us(50);
    }
    return true;
}

void kill_noticed(const struct kill_part *p)
{
    dock_set64(&p->board->noticed_ns, dock_now_ns());
}

uint32_t kill_length(const struct kill_cell *cell, enum kill_role role, uint32_t n)
{
    uint64_t r = dock_decide(cell->seed, role, n);

    switch (r % 8) {
    case 0:
        return 0;
    case 1: // several pieces, the last of them odd
        return 131072 + (uint32_t)(r >> 8 & 0x3fff);
    default:
        return 1 + (uint32_t)(r >> 8) % 500;
    }
}

static uint64_t word_of(enum kill_role role, unsigned life, uint32_t n, uint32_t at)
{
    return dock_mix((uint64_t)n << 32 | role << 8 | life) + at * 0x9e3779b97f4a7c15u;
}

void kill_fill(char *at, uint32_t len, enum kill_role role, unsigned life, uint32_t n)
{
    for (uint32_t i = 0; i < len; i += 8) {
        uint64_t w = word_of(role, life, n, i);
        memcpy(at + i, &w, len - i < 8 ? len - i : 8);
    }
}

bool kill_matches(const char *at, uint32_t len, enum kill_role role, unsigned life, uint32_t n)
{
    for (uint32_t i = 0; i < len; i += 8) {
        uint64_t w = word_of(role, life, n, i);
        if (memcmp(at + i, &w, len - i < 8 ? len - i : 8))
            return false;
    }
    return true;
}
