// SPDX-License-Identifier: MIT
// In C++ the generics of OpenSHMEM are overloads of the same names, one for each C type behind the type
// tables. Arguments, errors and thread rules are those of the typed function that is called.
#ifndef DOCK_SHMEM_OVERLOADS_H
#define DOCK_SHMEM_OVERLOADS_H

#include "shmem/types.h"

// The distinct C++ types of each table: int32_t is int, size_t is unsigned long, and so on.
#define DOCK_CXX_NOT_LONG(X)                                                                                 \
    X(int, int)                                                                                              \
    X(longlong, long long)                                                                                   \
    X(uint, unsigned int)                                                                                    \
    X(ulong, unsigned long)                                                                                  \
    X(ulonglong, unsigned long long)
#define DOCK_CXX_AMO(X) X(long, long) DOCK_CXX_NOT_LONG(X)
#define DOCK_CXX_EXT(X) DOCK_SHMEM_FLOAT_TYPES(X) DOCK_CXX_AMO(X)
#define DOCK_CXX_BITS(X)                                                                                     \
    X(uint, unsigned int)                                                                                    \
    X(ulong, unsigned long)                                                                                  \
    X(ulonglong, unsigned long long)                                                                         \
    X(int32, int)                                                                                            \
    X(int64, long)
#define DOCK_CXX_SHORT(X) X(short, short) X(ushort, unsigned short)
#define DOCK_CXX_WAIT(X) DOCK_CXX_SHORT(X) DOCK_CXX_AMO(X)
#define DOCK_CXX_RMA(X)                                                                                      \
    DOCK_CXX_EXT(X)                                                                                          \
    DOCK_CXX_SHORT(X)                                                                                        \
    X(longdouble, long double)                                                                               \
    X(char, char)                                                                                            \
    X(schar, signed char)                                                                                    \
    X(uchar, unsigned char)
#define DOCK_CXX_BIT_REDUCE(X)                                                                               \
    DOCK_CXX_BITS(X)                                                                                         \
    X(uchar, unsigned char)                                                                                  \
    X(ushort, unsigned short)                                                                                \
    X(int8, signed char)                                                                                     \
    X(int16, short)
#define DOCK_CXX_SUM(X) DOCK_CXX_RMA(X) DOCK_SHMEM_COMPLEX_TYPES(X)

// One overload that returns R; with a context too. The parameters stand in parentheses.
#define DOCK_CXX_LIST(...) __VA_ARGS__
#define DOCK_CXX_ONE(R, N, OP, PARAMETERS, ...)                                                              \
    static inline R shmem_##OP(DOCK_CXX_LIST PARAMETERS)                                                     \
    {                                                                                                        \
        return shmem_##N##_##OP(__VA_ARGS__);                                                                \
    }
#define DOCK_CXX_BOTH(R, N, OP, PARAMETERS, ...)                                                             \
    DOCK_CXX_ONE(R, N, OP, PARAMETERS, __VA_ARGS__)                                                          \
    static inline R shmem_##OP(shmem_ctx_t ctx, DOCK_CXX_LIST PARAMETERS)                                    \
    {                                                                                                        \
        return shmem_ctx_##N##_##OP(ctx, __VA_ARGS__);                                                       \
    }

// ---- put and get

#define DOCK_CXX_MOVE(N, T, OP)                                                                              \
    DOCK_CXX_BOTH(void, N, OP, (T * dest, const T *source, size_t nelems, int pe), dest, source, nelems, pe)
#define DOCK_CXX_STRIDED(N, T, OP)                                                                           \
    DOCK_CXX_BOTH(void, N, i##OP,                                                                            \
                  (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe), dest,    \
                  source, dst, sst, nelems, pe)                                                              \
    DOCK_CXX_BOTH(                                                                                           \
        void, N, ib##OP,                                                                                     \
        (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe),     \
        dest, source, dst, sst, bsize, nblocks, pe)
#define DOCK_CXX_SIGNAL(N, T, OP)                                                                            \
    DOCK_CXX_BOTH(                                                                                           \
        void, N, OP,                                                                                         \
        (T * dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe), \
        dest, source, nelems, sig_addr, signal, sig_op, pe)
#define DOCK_CXX_RMA_OF(N, T)                                                                                \
    DOCK_CXX_MOVE(N, T, put)                                                                                 \
    DOCK_CXX_MOVE(N, T, get)                                                                                 \
    DOCK_CXX_MOVE(N, T, put_nbi)                                                                             \
    DOCK_CXX_MOVE(N, T, get_nbi)                                                                             \
    DOCK_CXX_BOTH(void, N, p, (T * dest, T value, int pe), dest, value, pe)                                  \
    DOCK_CXX_BOTH(T, N, g, (const T *source, int pe), source, pe)                                            \
    DOCK_CXX_STRIDED(N, T, put)                                                                              \
    DOCK_CXX_STRIDED(N, T, get)                                                                              \
    DOCK_CXX_SIGNAL(N, T, put_signal)                                                                        \
    DOCK_CXX_SIGNAL(N, T, put_signal_nbi)
DOCK_CXX_RMA(DOCK_CXX_RMA_OF)

// ---- atomics

#define DOCK_CXX_EXT_OF(N, T)                                                                                \
    DOCK_CXX_BOTH(T, N, atomic_fetch, (const T *source, int pe), source, pe)                                 \
    DOCK_CXX_BOTH(void, N, atomic_fetch_nbi, (T * fetch, const T *source, int pe), fetch, source, pe)        \
    DOCK_CXX_BOTH(void, N, atomic_set, (T * dest, T value, int pe), dest, value, pe)                         \
    DOCK_CXX_BOTH(T, N, atomic_swap, (T * dest, T value, int pe), dest, value, pe)                           \
    DOCK_CXX_BOTH(void, N, atomic_swap_nbi, (T * fetch, T * dest, T value, int pe), fetch, dest, value, pe)
#define DOCK_CXX_OP(N, T, OP)                                                                                \
    DOCK_CXX_BOTH(void, N, atomic_##OP, (T * dest, T value, int pe), dest, value, pe)                        \
    DOCK_CXX_BOTH(T, N, atomic_fetch_##OP, (T * dest, T value, int pe), dest, value, pe)                     \
    DOCK_CXX_BOTH(void, N, atomic_fetch_##OP##_nbi, (T * fetch, T * dest, T value, int pe), fetch, dest,     \
                  value, pe)
#define DOCK_CXX_AMO_OF(N, T)                                                                                \
    DOCK_CXX_BOTH(T, N, atomic_compare_swap, (T * dest, T cond, T value, int pe), dest, cond, value, pe)     \
    DOCK_CXX_BOTH(void, N, atomic_compare_swap_nbi, (T * fetch, T * dest, T cond, T value, int pe), fetch,   \
                  dest, cond, value, pe)                                                                     \
    DOCK_CXX_BOTH(void, N, atomic_inc, (T * dest, int pe), dest, pe)                                         \
    DOCK_CXX_BOTH(T, N, atomic_fetch_inc, (T * dest, int pe), dest, pe)                                      \
    DOCK_CXX_BOTH(void, N, atomic_fetch_inc_nbi, (T * fetch, T * dest, int pe), fetch, dest, pe)             \
    DOCK_CXX_OP(N, T, add)
#define DOCK_CXX_BITS_OF(N, T) DOCK_CXX_OP(N, T, and) DOCK_CXX_OP(N, T, or) DOCK_CXX_OP(N, T, xor)
DOCK_CXX_EXT(DOCK_CXX_EXT_OF)
DOCK_CXX_AMO(DOCK_CXX_AMO_OF)
DOCK_CXX_BITS(DOCK_CXX_BITS_OF)

// Deprecated since 1.4, for the types that they were for then.
#define DOCK_CXX_OLD_AMO_OF(N, T)                                                                            \
    DOCK_CXX_ONE(void, N, add, (T * dest, T value, int pe), dest, value, pe)                                 \
    DOCK_CXX_ONE(T, N, cswap, (T * dest, T cond, T value, int pe), dest, cond, value, pe)                    \
    DOCK_CXX_ONE(T, N, fadd, (T * dest, T value, int pe), dest, value, pe)                                   \
    DOCK_CXX_ONE(T, N, finc, (T * dest, int pe), dest, pe)                                                   \
    DOCK_CXX_ONE(void, N, inc, (T * dest, int pe), dest, pe)
#define DOCK_CXX_OLD_SWAP_OF(N, T)                                                                           \
    DOCK_CXX_ONE(T, N, fetch, (const T *source, int pe), source, pe)                                         \
    DOCK_CXX_ONE(void, N, set, (T * dest, T value, int pe), dest, value, pe)                                 \
    DOCK_CXX_ONE(T, N, swap, (T * dest, T value, int pe), dest, value, pe)
DOCK_SHMEM_OLD_AMO_TYPES(DOCK_CXX_OLD_AMO_OF)
DOCK_SHMEM_OLD_AMO_TYPES(DOCK_CXX_OLD_SWAP_OF)
DOCK_SHMEM_FLOAT_TYPES(DOCK_CXX_OLD_SWAP_OF)

// ---- waiting and testing

#define DOCK_CXX_WAIT_ONE(N, T)                                                                              \
    DOCK_CXX_ONE(void, N, wait_until, (T * ivar, int cmp, T value), ivar, cmp, value)
#define DOCK_CXX_LOOK(R, N, T, OP)                                                                           \
    DOCK_CXX_ONE(R, N, OP, (T * ivars, size_t nelems, const int *status, int cmp, T value), ivars, nelems,   \
                 status, cmp, value)                                                                         \
    DOCK_CXX_ONE(R, N, OP##_vector, (T * ivars, size_t nelems, const int *status, int cmp, const T *values), \
                 ivars, nelems, status, cmp, values)
#define DOCK_CXX_SOME(N, T, OP)                                                                              \
    DOCK_CXX_ONE(size_t, N, OP,                                                                              \
                 (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, T value), ivars,   \
                 nelems, indices, status, cmp, value)                                                        \
    DOCK_CXX_ONE(size_t, N, OP##_vector,                                                                     \
                 (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, const T *values),  \
                 ivars, nelems, indices, status, cmp, values)
#define DOCK_CXX_WAIT_OF(N, T)                                                                               \
    DOCK_CXX_LOOK(void, N, T, wait_until_all)                                                                \
    DOCK_CXX_LOOK(size_t, N, T, wait_until_any)                                                              \
    DOCK_CXX_SOME(N, T, wait_until_some)                                                                     \
    DOCK_CXX_ONE(int, N, test, (T * ivar, int cmp, T value), ivar, cmp, value)                               \
    DOCK_CXX_LOOK(int, N, T, test_all)                                                                       \
    DOCK_CXX_LOOK(size_t, N, T, test_any)                                                                    \
    DOCK_CXX_SOME(N, T, test_some)
DOCK_CXX_WAIT(DOCK_CXX_WAIT_OF)
DOCK_CXX_SHORT(DOCK_CXX_WAIT_ONE)
DOCK_CXX_NOT_LONG(DOCK_CXX_WAIT_ONE) // the deprecated function of this name waits for a long

// ---- collectives over a team

#define DOCK_CXX_TEAM(N, T, OP)                                                                              \
    DOCK_CXX_ONE(int, N, OP, (shmem_team_t team, T * dest, const T *source, size_t count), team, dest,       \
                 source, count)
#define DOCK_CXX_TEAM_OF(N, T)                                                                               \
    DOCK_CXX_ONE(int, N, broadcast,                                                                          \
                 (shmem_team_t team, T * dest, const T *source, size_t nelems, int PE_root), team, dest,     \
                 source, nelems, PE_root)                                                                    \
    DOCK_CXX_TEAM(N, T, collect)                                                                             \
    DOCK_CXX_TEAM(N, T, fcollect)                                                                            \
    DOCK_CXX_TEAM(N, T, alltoall)                                                                            \
    DOCK_CXX_ONE(                                                                                            \
        int, N, alltoalls,                                                                                   \
        (shmem_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems), team,   \
        dest, source, dst, sst, nelems)                                                                      \
    DOCK_CXX_TEAM(N, T, max_reduce)                                                                          \
    DOCK_CXX_TEAM(N, T, min_reduce)
#define DOCK_CXX_SUM_OF(N, T)                                                                                \
    DOCK_CXX_TEAM(N, T, sum_reduce)                                                                          \
    DOCK_CXX_TEAM(N, T, prod_reduce)                                                                         \
    DOCK_CXX_TEAM(N, T, sum_inscan)                                                                          \
    DOCK_CXX_TEAM(N, T, sum_exscan)
#define DOCK_CXX_BIT_REDUCE_OF(N, T)                                                                         \
    DOCK_CXX_TEAM(N, T, and_reduce) DOCK_CXX_TEAM(N, T, or_reduce) DOCK_CXX_TEAM(N, T, xor_reduce)
DOCK_CXX_RMA(DOCK_CXX_TEAM_OF)
DOCK_CXX_SUM(DOCK_CXX_SUM_OF)
DOCK_CXX_BIT_REDUCE(DOCK_CXX_BIT_REDUCE_OF)

static inline int shmem_sync(shmem_team_t team)
{
    return shmem_team_sync(team);
}

#endif
