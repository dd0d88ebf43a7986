// SPDX-License-Identifier: MIT
// A fabric that finishes late, out of order and from other threads. Each request is taken apart into phases
// (source read, remote effect, result written, finish), and whatever the rules below do not forbid may be
// next: a seed chooses. A rule can be given up, to see that a test misses it. One such fabric per process at
// a time.
#ifndef TESTS_LIB_LATE_H
#define TESTS_LIB_LATE_H

#include "fabric/fabric.h"

// The orders that fabric/fabric.h promises within one queue. A-B: the effect of A, started before B, is
// first.
enum late_rule {
    LATE_WRITE_WRITE,
    LATE_WRITE_SEND,
    LATE_WRITE_ATOMIC,
    LATE_WRITE_READ,
    LATE_SEND_WRITE,
    LATE_SEND_SEND,
    LATE_SEND_ATOMIC,
    LATE_SEND_READ,
    LATE_ATOMIC_WRITE,
    LATE_ATOMIC_SEND,
    LATE_ATOMIC_ATOMIC,
    LATE_ATOMIC_READ,
    LATE_SOURCE_ORDER,  // sources of WRITEs and SENDs are read in the order of starting
    LATE_FINISH_SOURCE, // a WRITE or SEND is finished after its source was read
    LATE_FINISH_RESULT, // a READ or atomic is finished after its result stands in local memory
    LATE_FINISH_PLACED, // a WRITE or SEND is finished after its effect (RC promises less: see litmus)
    LATE_ATOMIC_UNIT,   // no atomic reads its word while another has read but not written
    LATE_STOP,          // what was started behind a failed request, and is not placed yet, never is
    LATE_RULES,
};

extern const char *const late_rule_name[LATE_RULES];

// Phases of a request. A WRITE or SEND has no result, a READ or atomic no source.
enum late_phase { LATE_SOURCE, LATE_EFFECT, LATE_RESULT, LATE_FINISH, LATE_PHASES };

extern const struct dock_fabric late_fabric;

// Before the device is opened. `without`: bits 1 << rule that are given up; those that the environment
// variable LATE_WITHOUT names (comma between) are too.
void late_open(uint64_t seed, uint32_t without);
// After the device is closed: nothing may be under way.
void late_close(void);
// Another seed and other rules; nothing is under way.
void late_again(uint64_t seed, uint32_t without);
// Bits of the rules named in LATE_WITHOUT. Aborts on an unknown name.
uint32_t late_without_env(void);

// ---- step by step

unsigned late_enabled(void); // phases that may be next and that the seed does not keep for the end
bool late_step(void);  // do one of them, or else one that was kept, chosen by the seed. false: there is none
void late_drain(void); // steps until nothing is under way
// Requests are numbered as they are started, from 0 since late_open. Carry number `nth` through `phase`, and
// those before it only as far as the rules demand; the caller's thread does it. false: no such request, or it
// is blocked.
bool late_bring(uint32_t nth, enum late_phase phase);

// ---- by threads of its own

void late_threads_start(unsigned n);
void late_threads_stop(void); // what is under way then stays so

// ---- trouble

// Number `nth` fails with `status` instead of having its effect.
void late_fail(uint32_t nth, uint32_t status);
// Requests run through all phases and are finished inside start, before it answers PENDING.
void late_hasty(bool on);

struct late_count {
    uint32_t started, finished;
    uint32_t reads_high;    // most READs and atomics of one queue that were started and not finished
    uint32_t fences_broken; // started while a READ or atomic before them was not finished
    uint32_t after_stop;    // effects behind a failure
};

struct late_count late_count(void);

// How much order there is between requests of one queue: all that the rules say; only across a request that
// carries a fence (what OpenSHMEM promises); not even there.
enum late_order { LATE_ORDERED, LATE_FENCED, LATE_UNFENCED };
void late_set_order(enum late_order order);
// Atomics in one step: others than this process count on the same words.
void late_set_whole_atomics(bool on);

// Called at each phase, for traces; NULL: off.
typedef void (*late_watch_fn)(const struct dock_xfer *x, uint32_t nth, enum late_phase phase);
void late_watch(late_watch_fn fn);

#endif
