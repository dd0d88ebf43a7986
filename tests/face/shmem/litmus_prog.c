// SPDX-License-Identifier: MIT
// litmus_prog: the cases for as many PEs as there are (2, 3, 4 or 6). Prints a line for each case, and FAILED
// for what is forbidden.
// also: threads
#include "face/shmem/litmus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct objects *o;
int me, n;

static int bad;
static struct objects fixed;
static long counts[OUTCOMES], totals[OUTCOMES];

int failures(void)
{
    return bad;
}

double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void set_flag(int pe)
{
    shmem_long_atomic_set(&o->f, 1, pe);
}

void wait_flag(void)
{
    shmem_long_wait_until(&o->f, SHMEM_CMP_EQ, 1);
}

void must(const char *id, int good, const char *what)
{
    if (good)
        return;
    bad++;
    printf("FAILED %s on PE %d: %s\n", id, me, what);
}

static void judge(const char *id, unsigned allowed)
{
    char line[200];
    size_t at = (size_t)snprintf(line, sizeof line, "%s", id);
    long seen = 0;
    int wrong = 0;

    for (int r = 0; r < OUTCOMES; r++) {
        seen += totals[r];
        if (!totals[r])
            continue;
        at += (size_t)snprintf(line + at, sizeof line - at, " r=%d:%ld", r, totals[r]);
        wrong |= !(allowed & ONLY(r));
    }
    if (me == 0)
        printf("%s%s\n", wrong || !seen ? "FAILED " : "", line);
    bad += wrong || !seen;
}

// LITMUS_ONLY=L03: the case whose name begins so; LITMUS_SKIP: not those, three letters each with a comma
// between. LITMUS_ROUNDS: so many rounds.
static int chosen(const char *id)
{
    const char *only = getenv("LITMUS_ONLY"), *skip = getenv("LITMUS_SKIP");
    char name[4] = "";

    memcpy(name, id, 3);
    return (!only || strncmp(id, only, strlen(only)) == 0) && !(skip && strstr(skip, name));
}

void litmus(const char *id, round_fn round, unsigned rounds, unsigned allowed)
{
    const char *given = getenv("LITMUS_ROUNDS");

    if (!chosen(id))
        return;
    rounds = given ? (unsigned)strtoul(given, NULL, 10) : rounds;
    memset(counts, 0, sizeof counts);
    for (unsigned i = 0; i < rounds; i++) {
        memset(o, 0, offsetof(struct objects, big) + 64);
        shmem_barrier_all();
        int r = round();
        if (r != NOTHING)
            counts[r < 0 || r >= OUTCOMES ? OUTCOMES - 1 : r]++;
        shmem_barrier_all();
    }
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, totals, counts, OUTCOMES);
    judge(id, allowed);
    shmem_barrier_all();
}

static void in_both_memories(void (*cases)(void), struct objects *heap)
{
    struct objects *places[] = {heap, &fixed};

    for (unsigned i = 0; i < 2; i++) {
        o = places[i];
        cases();
    }
}

int main(void)
{
    int provided;

    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    n = shmem_n_pes();
    struct objects *heap = shmem_calloc(1, sizeof *heap);
    if (n == 2 || n == 3) {
        in_both_memories(litmus_order, heap);
        in_both_memories(litmus_signal, heap);
        in_both_memories(litmus_rest, heap);
    }
    o = heap;
    if (n == 2)
        litmus_edges();
    if (n == 4)
        litmus_threads();
    if (n == 6)
        litmus_teams();
    shmem_free(heap);
    static long late; // E07: looked at when the library is gone
    long sent = 1;    // and left alone until then
    if (me == 0)
        shmem_long_put_nbi(&late, &sent, 1, n - 1);
    shmem_finalize();
    if (me == n - 1)
        must("E07", late == 1, "what was sent before shmem_finalize has not arrived");
    return bad != 0;
}
