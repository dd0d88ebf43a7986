// SPDX-License-Identifier: MIT
// Broadcast, collect and alltoall under all their names.
#include "face/shmem/api.h"
#include "face/shmem/collective.h"

#define MOVING(B, E, T, S)                                                                                   \
    int B##broadcast##E(shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root)             \
    {                                                                                                        \
        struct dock_shmem_team *t = osh_team(team);                                                          \
        if (!t)                                                                                              \
            return -1;                                                                                       \
        osh_broadcast(&t->g, dest, source, nelems *(S), PE_root, true);                                      \
        return 0;                                                                                            \
    }                                                                                                        \
    API(B##broadcast##E);                                                                                    \
    int B##collect##E(shmem_team_t team, T *dest, const T *source, size_t nelems)                            \
    {                                                                                                        \
        struct dock_shmem_team *t = osh_team(team);                                                          \
        if (!t)                                                                                              \
            return -1;                                                                                       \
        osh_collect(&t->g, dest, source, nelems *(S));                                                       \
        return 0;                                                                                            \
    }                                                                                                        \
    API(B##collect##E);                                                                                      \
    int B##fcollect##E(shmem_team_t team, T *dest, const T *source, size_t nelems)                           \
    {                                                                                                        \
        struct dock_shmem_team *t = osh_team(team);                                                          \
        if (!t)                                                                                              \
            return -1;                                                                                       \
        osh_fcollect(&t->g, dest, source, nelems *(S));                                                      \
        return 0;                                                                                            \
    }                                                                                                        \
    API(B##fcollect##E);                                                                                     \
    int B##alltoall##E(shmem_team_t team, T *dest, const T *source, size_t nelems)                           \
    {                                                                                                        \
        struct dock_shmem_team *t = osh_team(team);                                                          \
        if (!t)                                                                                              \
            return -1;                                                                                       \
        osh_alltoall(&t->g, dest, source, nelems *(S));                                                      \
        return 0;                                                                                            \
    }                                                                                                        \
    API(B##alltoall##E);                                                                                     \
    int B##alltoalls##E(shmem_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,           \
                        size_t nelems)                                                                       \
    {                                                                                                        \
        struct dock_shmem_team *t = osh_team(team);                                                          \
        if (!t)                                                                                              \
            return -1;                                                                                       \
        osh_alltoalls(&t->g, dest, source, dst, sst, nelems, S);                                             \
        return 0;                                                                                            \
    }                                                                                                        \
    API(B##alltoalls##E);

#define TYPED(N, T) MOVING(shmem_##N##_, , T, sizeof(T))
DOCK_SHMEM_RMA_TYPES(TYPED)
MOVING(shmem_, mem, void, 1)

// ---- over an active set; the root of a broadcast keeps its destination

#define SET(BITS)                                                                                            \
    void shmem_broadcast##BITS(void *dest, const void *source, size_t nelems, int PE_root, int PE_start,     \
                               int logPE_stride, int PE_size, long *pSync)                                   \
    {                                                                                                        \
        struct osh_group g;                                                                                  \
        if (!osh_active_set(PE_start, logPE_stride, PE_size, pSync, &g))                                     \
            return;                                                                                          \
        osh_broadcast(&g, dest, source, nelems *((BITS) / 8), PE_root, false);                               \
    }                                                                                                        \
    API(shmem_broadcast##BITS);                                                                              \
    void shmem_collect##BITS(void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride,  \
                             int PE_size, long *pSync)                                                       \
    {                                                                                                        \
        struct osh_group g;                                                                                  \
        if (!osh_active_set(PE_start, logPE_stride, PE_size, pSync, &g))                                     \
            return;                                                                                          \
        osh_collect(&g, dest, source, nelems *((BITS) / 8));                                                 \
    }                                                                                                        \
    API(shmem_collect##BITS);                                                                                \
    void shmem_fcollect##BITS(void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
                              int PE_size, long *pSync)                                                      \
    {                                                                                                        \
        struct osh_group g;                                                                                  \
        if (!osh_active_set(PE_start, logPE_stride, PE_size, pSync, &g))                                     \
            return;                                                                                          \
        osh_fcollect(&g, dest, source, nelems *((BITS) / 8));                                                \
    }                                                                                                        \
    API(shmem_fcollect##BITS);                                                                               \
    void shmem_alltoall##BITS(void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
                              int PE_size, long *pSync)                                                      \
    {                                                                                                        \
        struct osh_group g;                                                                                  \
        if (!osh_active_set(PE_start, logPE_stride, PE_size, pSync, &g))                                     \
            return;                                                                                          \
        osh_alltoall(&g, dest, source, nelems *((BITS) / 8));                                                \
    }                                                                                                        \
    API(shmem_alltoall##BITS);                                                                               \
    void shmem_alltoalls##BITS(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,  \
                               int PE_start, int logPE_stride, int PE_size, long *pSync)                     \
    {                                                                                                        \
        struct osh_group g;                                                                                  \
        if (!osh_active_set(PE_start, logPE_stride, PE_size, pSync, &g))                                     \
            return;                                                                                          \
        osh_alltoalls(&g, dest, source, dst, sst, nelems, (BITS) / 8);                                       \
    }                                                                                                        \
    API(shmem_alltoalls##BITS);

SET(32)
SET(64)
