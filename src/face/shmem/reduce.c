// SPDX-License-Identifier: MIT
// Reductions and scans under all their names.
#include "face/shmem/api.h"
#include "face/shmem/collective.h"

// One loop for each operation and type.
#define COMBINE(N, T, OP, EXPR)                                                                              \
    static void OP##_##N(void *into, const void *with, size_t count)                                         \
    {                                                                                                        \
        T *a = into;                                                                                         \
        const T *b = with;                                                                                   \
        for (size_t i = 0; i < count; i++)                                                                   \
            a[i] = (T)(EXPR);                                                                                \
    }                                                                                                        \
    static const struct osh_op op_##OP##_##N = {OP##_##N, sizeof(T)};

#define REDUCE(N, T, OP)                                                                                     \
    int shmem_##N##_##OP##_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce)               \
    {                                                                                                        \
        struct dock_shmem_team *t = osh_team(team);                                                          \
        if (!t)                                                                                              \
            return -1;                                                                                       \
        osh_reduce(&t->g, dest, source, nreduce, &op_##OP##_##N);                                            \
        return 0;                                                                                            \
    }                                                                                                        \
    API(shmem_##N##_##OP##_reduce);

#define SCAN(N, T, NAME, EXCLUSIVE)                                                                          \
    int shmem_##N##_sum_##NAME(shmem_team_t team, T *dest, const T *source, size_t nreduce)                  \
    {                                                                                                        \
        struct dock_shmem_team *t = osh_team(team);                                                          \
        if (!t)                                                                                              \
            return -1;                                                                                       \
        osh_scan(&t->g, dest, source, nreduce, &op_sum_##N, EXCLUSIVE);                                      \
        return 0;                                                                                            \
    }                                                                                                        \
    API(shmem_##N##_sum_##NAME);

#define TO_ALL(N, T, OP)                                                                                     \
    void shmem_##N##_##OP##_to_all(T *dest, const T *source, int nreduce, int PE_start, int logPE_stride,    \
                                   int PE_size, T *pWrk, long *pSync)                                        \
    {                                                                                                        \
        struct osh_group g;                                                                                  \
        if (!osh_active_set(PE_start, logPE_stride, PE_size, pSync, &g))                                     \
            return;                                                                                          \
        (void)pWrk;                                                                                          \
        osh_reduce(&g, dest, source, nreduce > 0 ? (size_t)nreduce : 0, &op_##OP##_##N);                     \
    }                                                                                                        \
    API(shmem_##N##_##OP##_to_all);

#define BIT_OPS(N, T)                                                                                        \
    COMBINE(N, T, and, a[i] & b[i])                                                                          \
    COMBINE(N, T, or, a[i] | b[i])                                                                           \
    COMBINE(N, T, xor, a[i] ^ b[i])
#define ORDER_OPS(N, T)                                                                                      \
    COMBINE(N, T, max, a[i] > b[i] ? a[i] : b[i])                                                            \
    COMBINE(N, T, min, a[i] < b[i] ? a[i] : b[i])
#define SUM_OPS(N, T)                                                                                        \
    COMBINE(N, T, sum, a[i] + b[i])                                                                          \
    COMBINE(N, T, prod, a[i] * b[i])

DOCK_SHMEM_BIT_REDUCE_TYPES(BIT_OPS)
DOCK_SHMEM_SET_BIT_TYPES(BIT_OPS) // of active sets: the signed ones that teams do not have
DOCK_SHMEM_RMA_TYPES(ORDER_OPS)
DOCK_SHMEM_RMA_TYPES(SUM_OPS)
DOCK_SHMEM_COMPLEX_TYPES(SUM_OPS)

#define BIT_REDUCE(N, T) REDUCE(N, T, and) REDUCE(N, T, or) REDUCE(N, T, xor)
#define ORDER_REDUCE(N, T) REDUCE(N, T, max) REDUCE(N, T, min)
#define SUM_REDUCE(N, T)                                                                                     \
    REDUCE(N, T, sum) REDUCE(N, T, prod) SCAN(N, T, inscan, false) SCAN(N, T, exscan, true)

DOCK_SHMEM_BIT_REDUCE_TYPES(BIT_REDUCE)
DOCK_SHMEM_RMA_TYPES(ORDER_REDUCE)
DOCK_SHMEM_RMA_TYPES(SUM_REDUCE)
DOCK_SHMEM_COMPLEX_TYPES(SUM_REDUCE)

#define BIT_TO_ALL(N, T) TO_ALL(N, T, and) TO_ALL(N, T, or) TO_ALL(N, T, xor)
#define ORDER_TO_ALL(N, T) TO_ALL(N, T, max) TO_ALL(N, T, min)
#define SUM_TO_ALL(N, T) TO_ALL(N, T, sum) TO_ALL(N, T, prod)

DOCK_SHMEM_SET_BIT_TYPES(BIT_TO_ALL)
DOCK_SHMEM_SET_TYPES(ORDER_TO_ALL)
DOCK_SHMEM_SET_TYPES(SUM_TO_ALL)
DOCK_SHMEM_COMPLEX_TYPES(SUM_TO_ALL)

const struct osh_op osh_and_uint64 = {and_uint64, sizeof(uint64_t)};
