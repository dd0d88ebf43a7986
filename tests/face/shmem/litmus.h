// SPDX-License-Identifier: MIT
// Litmus programs over several PEs: a case runs many rounds from zeros; observers name an outcome, a small
// number, and a case says which outcomes are allowed.
#ifndef TESTS_SHMEM_LITMUS_H
#define TESTS_SHMEM_LITMUS_H

#include <shmem.h>
#include <stdint.h>

enum { OUTCOMES = 8, NOTHING = -1, BIG = 200000 };

#define ONLY(r) (1u << (r))
#define EITHER(a, b) (ONLY(a) | ONLY(b))

// The symmetric objects of a case, all zero at the start of a round; in the heap or static.
struct objects {
    long x, y, f, g, c;
    uint64_t sig;
    char big[BIG];
};

extern struct objects *o;
extern int me, n;

// What this PE saw, or NOTHING.
typedef int (*round_fn)(void);

// Run a case and judge it on PE 0, which prints the outcomes; all must call it.
void litmus(const char *id, round_fn round, unsigned rounds, unsigned allowed);
// A check outside of rounds.
void must(const char *id, int good, const char *what);
int failures(void);

void set_flag(int pe); // f = 1 there
void wait_flag(void);  // f == 1 here
double seconds(void);

void litmus_order(void);
void litmus_signal(void);
void litmus_rest(void);
void litmus_edges(void);
void litmus_threads(void);
void litmus_teams(void);

#endif
