// SPDX-License-Identifier: MIT
// Atomics under all their names. Floats are exchanged as the words that hold them.
#include <string.h>

#include "face/shmem/api.h"
#include "face/shmem/near.h"
#include "face/shmem/shmem_face.h"

static inline uint64_t bits(const void *value, size_t size)
{
    uint64_t b = 0; // little endian: a short word is the low half

    memcpy(&b, value, size);
    return b;
}

static inline struct osh_atomic atomic(uint8_t op, size_t size, uint64_t operand, uint64_t compare)
{
    return (struct osh_atomic){.op = op, .size = (uint8_t)size, .operand = operand, .compare = compare};
}

#define BITS(v) bits(&(v), sizeof(v))

static inline void *no_const(const void *p)
{
    return (void *)(uintptr_t)p;
}

// A function without a result, with a result, and with a result that comes later; each with and without a
// context. A makes the atomic of the parameters, which come last; Q qualifies what dest points to.
#define SILENT(B, C, E, T, A, ...)                                                                           \
    void B##E(T *dest, ##__VA_ARGS__, int pe)                                                                \
    {                                                                                                        \
        osh_atomic(osh.ctx, dest, A, pe);                                                                    \
    }                                                                                                        \
    API(B##E);                                                                                               \
    void C##E(shmem_ctx_t ctx, T *dest, ##__VA_ARGS__, int pe)                                               \
    {                                                                                                        \
        osh_atomic(osh_ctx(ctx), dest, A, pe);                                                               \
    }                                                                                                        \
    API(C##E);
#define FETCHING(B, C, E, T, Q, A, ...)                                                                      \
    T B##E(Q T *dest, ##__VA_ARGS__, int pe)                                                                 \
    {                                                                                                        \
        uint64_t old = osh_atomic_fetch(osh.ctx, no_const(dest), A, pe);                                     \
        T result;                                                                                            \
        memcpy(&result, &old, sizeof result);                                                                \
        return result;                                                                                       \
    }                                                                                                        \
    API(B##E);                                                                                               \
    T C##E(shmem_ctx_t ctx, Q T *dest, ##__VA_ARGS__, int pe)                                                \
    {                                                                                                        \
        uint64_t old = osh_atomic_fetch(osh_ctx(ctx), no_const(dest), A, pe);                                \
        T result;                                                                                            \
        memcpy(&result, &old, sizeof result);                                                                \
        return result;                                                                                       \
    }                                                                                                        \
    API(C##E);                                                                                               \
    void B##E##_nbi(T *fetch, Q T *dest, ##__VA_ARGS__, int pe)                                              \
    {                                                                                                        \
        osh_atomic_nbi(osh.ctx, fetch, no_const(dest), A, pe);                                               \
    }                                                                                                        \
    API(B##E##_nbi);                                                                                         \
    void C##E##_nbi(shmem_ctx_t ctx, T *fetch, Q T *dest, ##__VA_ARGS__, int pe)                             \
    {                                                                                                        \
        osh_atomic_nbi(osh_ctx(ctx), fetch, no_const(dest), A, pe);                                          \
    }                                                                                                        \
    API(C##E##_nbi);

#define EXT(N, T)                                                                                            \
    SILENT(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, set, T,                                             \
           atomic(DOCK_OP_SWAP, sizeof(T), BITS(value), 0), T value)                                         \
    FETCHING(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, fetch, T, const,                                  \
             atomic(DOCK_OP_FADD, sizeof(T), 0, 0))                                                          \
    FETCHING(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, swap, T, ,                                        \
             atomic(DOCK_OP_SWAP, sizeof(T), BITS(value), 0), T value)
#define STD(N, T)                                                                                            \
    SILENT(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, inc, T, atomic(DOCK_OP_FADD, sizeof(T), 1, 0))      \
    FETCHING(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, fetch_inc, T, ,                                   \
             atomic(DOCK_OP_FADD, sizeof(T), 1, 0))                                                          \
    SILENT(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, add, T,                                             \
           atomic(DOCK_OP_FADD, sizeof(T), BITS(value), 0), T value)                                         \
    FETCHING(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, fetch_add, T, ,                                   \
             atomic(DOCK_OP_FADD, sizeof(T), BITS(value), 0), T value)                                       \
    FETCHING(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, compare_swap, T, ,                                \
             atomic(DOCK_OP_CAS, sizeof(T), BITS(value), BITS(cond)), T cond, T value)
#define BIT(N, T, OP, CODE)                                                                                  \
    SILENT(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, OP, T, atomic(CODE, sizeof(T), BITS(value), 0),     \
           T value)                                                                                          \
    FETCHING(shmem_##N##_atomic_, shmem_ctx_##N##_atomic_, fetch_##OP, T, ,                                  \
             atomic(CODE, sizeof(T), BITS(value), 0), T value)
#define BITWISE(N, T)                                                                                        \
    BIT(N, T, and, DOCK_OP_FAND)                                                                             \
    BIT(N, T, or, DOCK_OP_FOR)                                                                               \
    BIT(N, T, xor, DOCK_OP_FXOR)

DOCK_SHMEM_EXT_AMO_TYPES(EXT)
DOCK_SHMEM_AMO_TYPES(STD)
DOCK_SHMEM_BIT_AMO_TYPES(BITWISE)

#define OLD_SWAP(N, T)                                                                                       \
    T shmem_##N##_fetch(const T *source, int pe)                                                             \
    {                                                                                                        \
        return shmem_##N##_atomic_fetch(source, pe);                                                         \
    }                                                                                                        \
    API(shmem_##N##_fetch);                                                                                  \
    void shmem_##N##_set(T *dest, T value, int pe)                                                           \
    {                                                                                                        \
        shmem_##N##_atomic_set(dest, value, pe);                                                             \
    }                                                                                                        \
    API(shmem_##N##_set);                                                                                    \
    T shmem_##N##_swap(T *dest, T value, int pe)                                                             \
    {                                                                                                        \
        return shmem_##N##_atomic_swap(dest, value, pe);                                                     \
    }                                                                                                        \
    API(shmem_##N##_swap);
#define OLD(N, T)                                                                                            \
    void shmem_##N##_add(T *dest, T value, int pe)                                                           \
    {                                                                                                        \
        shmem_##N##_atomic_add(dest, value, pe);                                                             \
    }                                                                                                        \
    API(shmem_##N##_add);                                                                                    \
    T shmem_##N##_cswap(T *dest, T cond, T value, int pe)                                                    \
    {                                                                                                        \
        return shmem_##N##_atomic_compare_swap(dest, cond, value, pe);                                       \
    }                                                                                                        \
    API(shmem_##N##_cswap);                                                                                  \
    T shmem_##N##_fadd(T *dest, T value, int pe)                                                             \
    {                                                                                                        \
        return shmem_##N##_atomic_fetch_add(dest, value, pe);                                                \
    }                                                                                                        \
    API(shmem_##N##_fadd);                                                                                   \
    T shmem_##N##_finc(T *dest, int pe)                                                                      \
    {                                                                                                        \
        return shmem_##N##_atomic_fetch_inc(dest, pe);                                                       \
    }                                                                                                        \
    API(shmem_##N##_finc);                                                                                   \
    void shmem_##N##_inc(T *dest, int pe)                                                                    \
    {                                                                                                        \
        shmem_##N##_atomic_inc(dest, pe);                                                                    \
    }                                                                                                        \
    API(shmem_##N##_inc);

DOCK_SHMEM_OLD_AMO_TYPES(OLD)
DOCK_SHMEM_OLD_AMO_TYPES(OLD_SWAP)
DOCK_SHMEM_FLOAT_TYPES(OLD_SWAP)

// ---- the 1.6 signal operations: the word of a put_signal, alone

void shmem_ctx_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    osh_atomic(osh_ctx(ctx), sig_addr, atomic(DOCK_OP_FADD, 8, signal, 0), pe);
}
API(shmem_ctx_signal_add);

void shmem_signal_add(uint64_t *sig_addr, uint64_t signal, int pe)
{
    shmem_ctx_signal_add(SHMEM_CTX_DEFAULT, sig_addr, signal, pe);
}
API(shmem_signal_add);

void shmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    osh_atomic(osh_ctx(ctx), sig_addr, atomic(DOCK_OP_SWAP, 8, signal, 0), pe);
}
API(shmem_ctx_signal_set);

void shmem_signal_set(uint64_t *sig_addr, uint64_t signal, int pe)
{
    shmem_ctx_signal_set(SHMEM_CTX_DEFAULT, sig_addr, signal, pe);
}
API(shmem_signal_set);
