// SPDX-License-Identifier: MIT
// threads_prog: SHMEM_THREAD_MULTIPLE on two PEs. What threads of one PE hand to each other, by puts to their
// own PE, is in the sight of ThreadSanitizer; what goes to the other PE is not, but what the library does for
// it is. also: threads
#include <pthread.h>
#include <shmem.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, WORDS = 6, ROUNDS = 40 };

// Symmetric; a line of boxes for each thread.
struct box {
    uint64_t data[WORDS], back[WORDS];
    uint64_t sig, ack;
    long flag;
};

static struct objects {
    struct box from_self[THREADS], from_other[THREADS];
    long counter, sum;
} * o, fixed;

static int me, other;
static atomic_int bad;
static shmem_ctx_t shared;

static void must(int good, const char *what, int thread)
{
    if (good)
        return;
    atomic_fetch_add(&bad, 1);
    printf("FAILED %s: thread %d of PE %d\n", what, thread, me);
}

static void fill(uint64_t *words, uint64_t value)
{
    for (int i = 0; i < WORDS; i++)
        words[i] = value + (uint64_t)i;
}

static int holds(const uint64_t *words, uint64_t value)
{
    for (int i = 0; i < WORDS; i++)
        if (words[i] != value + (uint64_t)i)
            return 0;
    return 1;
}

static shmem_ctx_t context(int thread, long options)
{
    shmem_ctx_t c = SHMEM_CTX_DEFAULT;

    must(shmem_ctx_create(options, &c) == 0, "a context", thread);
    return c;
}

// One thread puts words to its own PE, and the next thread, told by an atomic, reads them as plain memory and
// says so.
static void *hand_on(void *arg)
{
    int t = (int)(intptr_t)arg, before = (t + THREADS - 1) % THREADS;
    struct box *mine = &o->from_self[t], *theirs = &o->from_self[before];
    shmem_ctx_t c = t == 0 ? SHMEM_CTX_DEFAULT : t == 1 ? shared : context(t, SHMEM_CTX_PRIVATE);
    uint64_t words[WORDS];

    for (long round = 1; round <= ROUNDS; round++) {
        fill(words, (uint64_t)(1000 * round + t));
        shmem_ctx_uint64_put(c, mine->data, words, WORDS, me);
        shmem_ctx_fence(c);
        shmem_ctx_long_atomic_set(c, &mine->flag, round, me);
        shmem_long_wait_until(&theirs->flag, SHMEM_CMP_GE, round);
        must(holds(theirs->data, (uint64_t)(1000 * round + before)), "words of the thread before", t);
        shmem_ctx_uint64_atomic_inc(c, &theirs->ack, me);
        shmem_uint64_wait_until(&mine->ack, SHMEM_CMP_GE, (uint64_t)round);
    }
    shmem_ctx_quiet(c);
    if (t > 1)
        shmem_ctx_destroy(c);
    return NULL;
}

// A thread of the other PE gets words with a signal, sends what it got back by a get of ours, and
// acknowledges.
static void *talk(void *arg)
{
    int t = (int)(intptr_t)arg;
    struct box *b = &o->from_other[t];
    shmem_ctx_t c = t == 0   ? SHMEM_CTX_DEFAULT
                    : t == 1 ? shared
                             : context(t, t == 2 ? SHMEM_CTX_SERIALIZED : 0);
    uint64_t words[WORDS], got[WORDS];

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        fill(words, 1000 * round + (uint64_t)me);
        shmem_ctx_uint64_put_signal_nbi(c, b->data, words, WORDS, &b->sig, 1, SHMEM_SIGNAL_ADD, other);
        shmem_ctx_quiet(c);
        must(shmem_signal_wait_until(&b->sig, SHMEM_CMP_GE, round) >= round, "a signal", t);
        must(holds(b->data, 1000 * round + (uint64_t)other), "words with a signal", t);
        shmem_ctx_uint64_get_nbi(c, got, b->data, WORDS, other);
        shmem_ctx_quiet(c);
        must(holds(got, 1000 * round + (uint64_t)me), "words by a get", t);
        shmem_ctx_uint64_atomic_inc(c, &b->ack, other);
        shmem_uint64_wait_until(&b->ack, SHMEM_CMP_GE, round);
    }
    shmem_ctx_quiet(c);
    if (t > 1)
        shmem_ctx_destroy(c);
    return NULL;
}

// Contexts come and go in one thread, two flood what they share, and one is in barriers.
static void *crowd(void *arg)
{
    int t = (int)(intptr_t)arg;

    for (int round = 0; round < ROUNDS; round++) {
        shmem_ctx_t c = t == 0 ? context(t, 0) : t < 3 ? shared : SHMEM_CTX_DEFAULT;
        long got = -1;
        shmem_ctx_long_atomic_inc(c, &o->counter, other);
        shmem_ctx_long_atomic_fetch_add_nbi(c, &got, &o->sum, 2, me);
        shmem_ctx_quiet(c);
        must(got >= 0 && got % 2 == 0, "a fetched sum", t);
        if (t == 0)
            shmem_ctx_destroy(c);
        if (t == 3)
            shmem_barrier_all();
    }
    return NULL;
}

static void in_threads(void *(*body)(void *))
{
    pthread_t thread[THREADS];

    shmem_barrier_all();
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    shmem_barrier_all();
}

int main(void)
{
    int provided;

    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    other = 1 - me;
    must(provided == SHMEM_THREAD_MULTIPLE && shmem_n_pes() == 2, "two PEs with threads", 0);
    shared = context(0, 0);
    struct objects *heap = shmem_calloc(1, sizeof *heap), *place[] = {heap, &fixed};
    for (int i = 0; i < 2; i++) {
        o = place[i];
        in_threads(hand_on);
        in_threads(talk);
        in_threads(crowd);
        must(o->counter == THREADS * ROUNDS && o->sum == 2l * THREADS * ROUNDS, "nothing is lost", 0);
    }
    shmem_ctx_destroy(shared);
    shmem_free(heap);
    shmem_finalize();
    return bad != 0;
}
