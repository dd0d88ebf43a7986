// SPDX-License-Identifier: MIT
// Put and get under all their names, plain and with a signal.
#include "face/shmem/api.h"
#include "face/shmem/shmem_face.h"

// In bytes; what is too much stays the most there is, which no memory has room for.
static ptrdiff_t stride(ptrdiff_t elements, size_t size)
{
    ptrdiff_t bytes;

    if (__builtin_mul_overflow(elements, size, &bytes))
        return elements < 0 ? PTRDIFF_MIN : PTRDIFF_MAX;
    return bytes;
}

static struct osh_strides elements(ptrdiff_t dst, ptrdiff_t sst, size_t count, size_t size)
{
    return (struct osh_strides){stride(dst, size), stride(sst, size), size, count};
}

static struct osh_strides blocks(ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(bsize, size, &bytes))
        bytes = SIZE_MAX;
    return (struct osh_strides){stride(dst, size), stride(sst, size), bytes, count};
}

// PRE and CTX begin the names without and with a context, OP ends them; T is the type of the elements, S
// their size.
#define RMA(PRE, CTX, OP, T, S)                                                                              \
    void PRE##put##OP(T *dest, const T *source, size_t nelems, int pe)                                       \
    {                                                                                                        \
        osh_put(osh.ctx, dest, source, nelems *(S), pe);                                                     \
    }                                                                                                        \
    API(PRE##put##OP);                                                                                       \
    void CTX##put##OP(shmem_ctx_t ctx, T *dest, const T *source, size_t nelems, int pe)                      \
    {                                                                                                        \
        osh_put(osh_ctx(ctx), dest, source, nelems *(S), pe);                                                \
    }                                                                                                        \
    API(CTX##put##OP);                                                                                       \
    void PRE##get##OP(T *dest, const T *source, size_t nelems, int pe)                                       \
    {                                                                                                        \
        osh_get(osh.ctx, dest, source, nelems *(S), pe);                                                     \
    }                                                                                                        \
    API(PRE##get##OP);                                                                                       \
    void CTX##get##OP(shmem_ctx_t ctx, T *dest, const T *source, size_t nelems, int pe)                      \
    {                                                                                                        \
        osh_get(osh_ctx(ctx), dest, source, nelems *(S), pe);                                                \
    }                                                                                                        \
    API(CTX##get##OP);                                                                                       \
    void PRE##put##OP##_nbi(T *dest, const T *source, size_t nelems, int pe)                                 \
    {                                                                                                        \
        osh_put_nbi(osh.ctx, dest, source, nelems *(S), pe);                                                 \
    }                                                                                                        \
    API(PRE##put##OP##_nbi);                                                                                 \
    void CTX##put##OP##_nbi(shmem_ctx_t ctx, T *dest, const T *source, size_t nelems, int pe)                \
    {                                                                                                        \
        osh_put_nbi(osh_ctx(ctx), dest, source, nelems *(S), pe);                                            \
    }                                                                                                        \
    API(CTX##put##OP##_nbi);                                                                                 \
    void PRE##get##OP##_nbi(T *dest, const T *source, size_t nelems, int pe)                                 \
    {                                                                                                        \
        osh_get_nbi(osh.ctx, dest, source, nelems *(S), pe);                                                 \
    }                                                                                                        \
    API(PRE##get##OP##_nbi);                                                                                 \
    void CTX##get##OP##_nbi(shmem_ctx_t ctx, T *dest, const T *source, size_t nelems, int pe)                \
    {                                                                                                        \
        osh_get_nbi(osh_ctx(ctx), dest, source, nelems *(S), pe);                                            \
    }                                                                                                        \
    API(CTX##get##OP##_nbi);                                                                                 \
    void PRE##put##OP##_signal(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, \
                               int sig_op, int pe)                                                           \
    {                                                                                                        \
        osh_put_signal(osh.ctx, dest, source, nelems *(S), (struct osh_signal){sig_addr, signal, sig_op},    \
                       pe, false);                                                                           \
    }                                                                                                        \
    API(PRE##put##OP##_signal);                                                                              \
    void CTX##put##OP##_signal(shmem_ctx_t ctx, T *dest, const T *source, size_t nelems, uint64_t *sig_addr, \
                               uint64_t signal, int sig_op, int pe)                                          \
    {                                                                                                        \
        osh_put_signal(osh_ctx(ctx), dest, source, nelems *(S),                                              \
                       (struct osh_signal){sig_addr, signal, sig_op}, pe, false);                            \
    }                                                                                                        \
    API(CTX##put##OP##_signal);                                                                              \
    void PRE##put##OP##_signal_nbi(T *dest, const T *source, size_t nelems, uint64_t *sig_addr,              \
                                   uint64_t signal, int sig_op, int pe)                                      \
    {                                                                                                        \
        osh_put_signal(osh.ctx, dest, source, nelems *(S), (struct osh_signal){sig_addr, signal, sig_op},    \
                       pe, true);                                                                            \
    }                                                                                                        \
    API(PRE##put##OP##_signal_nbi);                                                                          \
    void CTX##put##OP##_signal_nbi(shmem_ctx_t ctx, T *dest, const T *source, size_t nelems,                 \
                                   uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)                  \
    {                                                                                                        \
        osh_put_signal(osh_ctx(ctx), dest, source, nelems *(S),                                              \
                       (struct osh_signal){sig_addr, signal, sig_op}, pe, true);                             \
    }                                                                                                        \
    API(CTX##put##OP##_signal_nbi);

#define STRIDED(PRE, CTX, OP, T, S)                                                                          \
    void PRE##iput##OP(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)        \
    {                                                                                                        \
        osh_iput(osh.ctx, dest, source, elements(dst, sst, nelems, S), pe);                                  \
    }                                                                                                        \
    API(PRE##iput##OP);                                                                                      \
    void CTX##iput##OP(shmem_ctx_t ctx, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,              \
                       size_t nelems, int pe)                                                                \
    {                                                                                                        \
        osh_iput(osh_ctx(ctx), dest, source, elements(dst, sst, nelems, S), pe);                             \
    }                                                                                                        \
    API(CTX##iput##OP);                                                                                      \
    void PRE##iget##OP(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)        \
    {                                                                                                        \
        osh_iget(osh.ctx, dest, source, elements(dst, sst, nelems, S), pe);                                  \
    }                                                                                                        \
    API(PRE##iget##OP);                                                                                      \
    void CTX##iget##OP(shmem_ctx_t ctx, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,              \
                       size_t nelems, int pe)                                                                \
    {                                                                                                        \
        osh_iget(osh_ctx(ctx), dest, source, elements(dst, sst, nelems, S), pe);                             \
    }                                                                                                        \
    API(CTX##iget##OP);                                                                                      \
    void PRE##ibput##OP(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,                \
                        size_t nblocks, int pe)                                                              \
    {                                                                                                        \
        osh_iput(osh.ctx, dest, source, blocks(dst, sst, bsize, nblocks, S), pe);                            \
    }                                                                                                        \
    API(PRE##ibput##OP);                                                                                     \
    void CTX##ibput##OP(shmem_ctx_t ctx, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,             \
                        size_t bsize, size_t nblocks, int pe)                                                \
    {                                                                                                        \
        osh_iput(osh_ctx(ctx), dest, source, blocks(dst, sst, bsize, nblocks, S), pe);                       \
    }                                                                                                        \
    API(CTX##ibput##OP);                                                                                     \
    void PRE##ibget##OP(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,                \
                        size_t nblocks, int pe)                                                              \
    {                                                                                                        \
        osh_iget(osh.ctx, dest, source, blocks(dst, sst, bsize, nblocks, S), pe);                            \
    }                                                                                                        \
    API(PRE##ibget##OP);                                                                                     \
    void CTX##ibget##OP(shmem_ctx_t ctx, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,             \
                        size_t bsize, size_t nblocks, int pe)                                                \
    {                                                                                                        \
        osh_iget(osh_ctx(ctx), dest, source, blocks(dst, sst, bsize, nblocks, S), pe);                       \
    }                                                                                                        \
    API(CTX##ibget##OP);

#define SINGLE(PRE, CTX, T)                                                                                  \
    void PRE##p(T *dest, T value, int pe)                                                                    \
    {                                                                                                        \
        osh_put(osh.ctx, dest, &value, sizeof value, pe);                                                    \
    }                                                                                                        \
    API(PRE##p);                                                                                             \
    void CTX##p(shmem_ctx_t ctx, T *dest, T value, int pe)                                                   \
    {                                                                                                        \
        osh_put(osh_ctx(ctx), dest, &value, sizeof value, pe);                                               \
    }                                                                                                        \
    API(CTX##p);                                                                                             \
    T PRE##g(const T *source, int pe)                                                                        \
    {                                                                                                        \
        T value;                                                                                             \
        osh_get(osh.ctx, &value, source, sizeof value, pe);                                                  \
        return value;                                                                                        \
    }                                                                                                        \
    API(PRE##g);                                                                                             \
    T CTX##g(shmem_ctx_t ctx, const T *source, int pe)                                                       \
    {                                                                                                        \
        T value;                                                                                             \
        osh_get(osh_ctx(ctx), &value, source, sizeof value, pe);                                             \
        return value;                                                                                        \
    }                                                                                                        \
    API(CTX##g);

#define TYPED(N, T)                                                                                          \
    RMA(shmem_##N##_, shmem_ctx_##N##_, , T, sizeof(T))                                                      \
    STRIDED(shmem_##N##_, shmem_ctx_##N##_, , T, sizeof(T))                                                  \
    SINGLE(shmem_##N##_, shmem_ctx_##N##_, T)
#define SIZED(BITS)                                                                                          \
    RMA(shmem_, shmem_ctx_, BITS, void, (BITS) / 8)                                                          \
    STRIDED(shmem_, shmem_ctx_, BITS, void, (BITS) / 8)

DOCK_SHMEM_RMA_TYPES(TYPED)
DOCK_SHMEM_SIZES(SIZED)
RMA(shmem_, shmem_ctx_, mem, void, 1)
