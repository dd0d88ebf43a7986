// SPDX-License-Identifier: MIT
// Waiting and testing. A look is an acquire: what was sent before the word, in order, is there as well.
#include <string.h>

#include "base/order.h"
#include "face/shmem/api.h"
#include "face/shmem/shmem_face.h"

// How the words are read, and with what they are compared: one value, or one for each (`values`).
struct look {
    const void *words;
    size_t count;
    const int *status;
    const void *values;
    int64_t value;
    unsigned wanted;
    uint8_t size;
    bool is_signed, vector;
};

static int64_t widen(uint64_t raw, unsigned size, bool is_signed)
{
    unsigned shift = 64 - 8 * size;

    return is_signed ? (int64_t)(raw << shift) >> shift : (int64_t)raw;
}

static int64_t load(const void *p, unsigned size, bool is_signed)
{
    uint64_t raw = 0;

    // Pairs with what orders the sender's words: the fence of shmem_fence, quiet and put with signal, the
    // acq_rel of an atomic that is done here, the device's store fence before each request.
    if (size == 8)
        raw = dock_acquire64(p);
    else if (size == 4)
        raw = dock_acquire32(p);
    else
        raw = atomic_load_explicit((const _Atomic uint16_t *)p, memory_order_acquire);
    return widen(raw, size, is_signed);
}

// What a comparison may come to. Told once for each call: a look is then a compare and a bit.
enum { LESS = 1, EQUAL = 2, GREATER = 4 };

static unsigned wanted(int cmp)
{
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return EQUAL;
    case SHMEM_CMP_NE:
        return LESS | GREATER;
    case SHMEM_CMP_GT:
        return GREATER;
    case SHMEM_CMP_LE:
        return LESS | EQUAL;
    case SHMEM_CMP_LT:
        return LESS;
    case SHMEM_CMP_GE:
        return GREATER | EQUAL;
    default:
        osh_fatal("%d is no comparison (SHMEM_CMP_*)", cmp);
    }
}

// Without a branch that the arrival of a word would take by surprise.
static unsigned compare(int64_t a, int64_t b, bool is_signed)
{
    bool greater = is_signed ? a > b : (uint64_t)a > (uint64_t)b;

    return LESS << (greater + (greater | (a == b)));
}

static bool holds(const struct look *l, size_t i)
{
    int64_t with = l->value;

    if (l->vector) {
        uint64_t raw = 0;
        memcpy(&raw, (const char *)l->values + i * l->size, l->size);
        with = widen(raw, l->size, l->is_signed);
    }
    return compare(load((const char *)l->words + i * l->size, l->size, l->is_signed), with, l->is_signed) &
           l->wanted;
}

static bool counts(const struct look *l, size_t i)
{
    return !l->status || !l->status[i];
}

static bool nothing_counts(const struct look *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (counts(l, i))
            return false;
    return true;
}

static bool test_all(const struct look *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (counts(l, i) && !holds(l, i))
            return false;
    return true;
}

// The first that holds behind the one that was found last, so that none is passed over for ever.
static size_t test_any(const struct look *l)
{
    static _Thread_local size_t last;

    for (size_t n = 1; n <= l->count; n++) {
        size_t i = (last + n) % l->count;
        if (counts(l, i) && holds(l, i)) {
            last = i;
            return i;
        }
    }
    return SIZE_MAX;
}

static size_t test_some(const struct look *l, size_t *indices)
{
    size_t found = 0;

    for (size_t i = 0; i < l->count; i++)
        if (counts(l, i) && holds(l, i))
            indices[found++] = i;
    return found;
}

static void started(void)
{
    if (__builtin_expect(osh.n == 0, 0))
        osh_bad_pe(0, 0);
}

static int now_all(struct look l)
{
    started();
    bool all = test_all(&l);
    if (!all)
        osh_looked();
    return all;
}

static size_t now_any(struct look l)
{
    started();
    size_t i = test_any(&l);
    if (i == SIZE_MAX)
        osh_looked();
    return i;
}

static size_t now_some(struct look l, size_t *indices)
{
    started();
    size_t found = test_some(&l, indices);
    if (!found)
        osh_looked();
    return found;
}

static void until_all(struct look l)
{
    struct osh_patience p = {0};

    started();
    while (!test_all(&l))
        osh_pause(&p);
}

// One word: nothing else is done between its arrival and the return.
static inline void until_one(const void *word, unsigned size, bool is_signed, int cmp, int64_t value)
{
    unsigned enough = wanted(cmp);
    struct osh_patience p = {0};

    started();
    while (!(compare(load(word, size, is_signed), value, is_signed) & enough))
        osh_pause(&p);
}

static size_t until_any(struct look l)
{
    struct osh_patience p = {0};
    size_t i;

    started();
    if (nothing_counts(&l))
        return SIZE_MAX;
    while ((i = test_any(&l)) == SIZE_MAX)
        osh_pause(&p);
    return i;
}

static size_t until_some(struct look l, size_t *indices)
{
    struct osh_patience p = {0};
    size_t found;

    started();
    if (nothing_counts(&l))
        return 0;
    while ((found = test_some(&l, indices)) == 0)
        osh_pause(&p);
    return found;
}

#define ONE(T)                                                                                               \
    (struct look)                                                                                            \
    {                                                                                                        \
        .words = ivars, .count = nelems, .status = status, .value = (int64_t)cmp_value,                      \
        .wanted = wanted(cmp), .size = sizeof(T), .is_signed = (T)-1 < (T)1                                  \
    }
#define EACH(T)                                                                                              \
    (struct look)                                                                                            \
    {                                                                                                        \
        .words = ivars, .count = nelems, .status = status, .values = cmp_values, .vector = true,             \
        .wanted = wanted(cmp), .size = sizeof(T), .is_signed = (T)-1 < (T)1                                  \
    }
#define SINGLE(T, v)                                                                                         \
    (struct look)                                                                                            \
    {                                                                                                        \
        .words = ivar, .count = 1, .value = (int64_t)(v), .wanted = wanted(cmp), .size = sizeof(T),          \
        .is_signed = (T)-1 < (T)1                                                                            \
    }

#define WAIT(N, T)                                                                                           \
    void shmem_##N##_wait_until(T *ivar, int cmp, T cmp_value)                                               \
    {                                                                                                        \
        until_one(ivar, sizeof(T), (T)-1 < (T)1, cmp, (int64_t)cmp_value);                                   \
    }                                                                                                        \
    API(shmem_##N##_wait_until);                                                                             \
    void shmem_##N##_wait_until_all(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value)        \
    {                                                                                                        \
        until_all(ONE(T));                                                                                   \
    }                                                                                                        \
    API(shmem_##N##_wait_until_all);                                                                         \
    size_t shmem_##N##_wait_until_any(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value)      \
    {                                                                                                        \
        return until_any(ONE(T));                                                                            \
    }                                                                                                        \
    API(shmem_##N##_wait_until_any);                                                                         \
    size_t shmem_##N##_wait_until_some(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
                                       T cmp_value)                                                          \
    {                                                                                                        \
        return until_some(ONE(T), indices);                                                                  \
    }                                                                                                        \
    API(shmem_##N##_wait_until_some);                                                                        \
    void shmem_##N##_wait_until_all_vector(T *ivars, size_t nelems, const int *status, int cmp,              \
                                           const T *cmp_values)                                              \
    {                                                                                                        \
        until_all(EACH(T));                                                                                  \
    }                                                                                                        \
    API(shmem_##N##_wait_until_all_vector);                                                                  \
    size_t shmem_##N##_wait_until_any_vector(T *ivars, size_t nelems, const int *status, int cmp,            \
                                             const T *cmp_values)                                            \
    {                                                                                                        \
        return until_any(EACH(T));                                                                           \
    }                                                                                                        \
    API(shmem_##N##_wait_until_any_vector);                                                                  \
    size_t shmem_##N##_wait_until_some_vector(T *ivars, size_t nelems, size_t *indices, const int *status,   \
                                              int cmp, const T *cmp_values)                                  \
    {                                                                                                        \
        return until_some(EACH(T), indices);                                                                 \
    }                                                                                                        \
    API(shmem_##N##_wait_until_some_vector);                                                                 \
    int shmem_##N##_test(T *ivar, int cmp, T cmp_value)                                                      \
    {                                                                                                        \
        return now_all(SINGLE(T, cmp_value));                                                                \
    }                                                                                                        \
    API(shmem_##N##_test);                                                                                   \
    int shmem_##N##_test_all(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value)               \
    {                                                                                                        \
        return now_all(ONE(T));                                                                              \
    }                                                                                                        \
    API(shmem_##N##_test_all);                                                                               \
    size_t shmem_##N##_test_any(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value)            \
    {                                                                                                        \
        return now_any(ONE(T));                                                                              \
    }                                                                                                        \
    API(shmem_##N##_test_any);                                                                               \
    size_t shmem_##N##_test_some(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp,       \
                                 T cmp_value)                                                                \
    {                                                                                                        \
        return now_some(ONE(T), indices);                                                                    \
    }                                                                                                        \
    API(shmem_##N##_test_some);                                                                              \
    int shmem_##N##_test_all_vector(T *ivars, size_t nelems, const int *status, int cmp,                     \
                                    const T *cmp_values)                                                     \
    {                                                                                                        \
        return now_all(EACH(T));                                                                             \
    }                                                                                                        \
    API(shmem_##N##_test_all_vector);                                                                        \
    size_t shmem_##N##_test_any_vector(T *ivars, size_t nelems, const int *status, int cmp,                  \
                                       const T *cmp_values)                                                  \
    {                                                                                                        \
        return now_any(EACH(T));                                                                             \
    }                                                                                                        \
    API(shmem_##N##_test_any_vector);                                                                        \
    size_t shmem_##N##_test_some_vector(T *ivars, size_t nelems, size_t *indices, const int *status,         \
                                        int cmp, const T *cmp_values)                                        \
    {                                                                                                        \
        return now_some(EACH(T), indices);                                                                   \
    }                                                                                                        \
    API(shmem_##N##_test_some_vector);

DOCK_SHMEM_WAIT_TYPES(WAIT)

#define OLD_WAIT(N, T)                                                                                       \
    void shmem_##N##_wait(T *ivar, T cmp_value)                                                              \
    {                                                                                                        \
        shmem_##N##_wait_until(ivar, SHMEM_CMP_NE, cmp_value);                                               \
    }                                                                                                        \
    API(shmem_##N##_wait);

DOCK_SHMEM_SET_BIT_TYPES(OLD_WAIT)

void shmem_wait(long *ivar, long cmp_value)
{
    shmem_long_wait(ivar, cmp_value);
}
API(shmem_wait);

void(shmem_wait_until)(long *ivar, int cmp, long cmp_value)
{
    shmem_long_wait_until(ivar, cmp, cmp_value);
}
API(shmem_wait_until);

uint64_t shmem_signal_fetch(const uint64_t *sig_addr)
{
    started();
    return dock_acquire64((const dock_a64 *)sig_addr); // pairs with the fence before the signal
}
API(shmem_signal_fetch);

uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)
{
    unsigned enough = wanted(cmp);
    struct osh_patience p = {0};
    uint64_t seen;

    started();
    // acquire, as in shmem_signal_fetch
    while (!(compare((int64_t)(seen = dock_acquire64((dock_a64 *)sig_addr)), (int64_t)cmp_value, false) &
             enough))
        osh_pause(&p);
    return seen;
}
API(shmem_signal_wait_until);
