// SPDX-License-Identifier: MIT
// Every function of OpenSHMEM 1.5, those that 1.6 added, and the deprecated ones back to 1.0. Included with
// DOCK_SHMEM_NAME(name) saying what the function is called: itself by shmem.h, with a p in front by pshmem.h.
//
// Rules for all of them (OpenSHMEM 1.5, sections 8 and 9):
//  - `dest` of a put and `source` of a get are symmetric addresses as they are here; the other side is any
//    memory of the program. nelems counts elements of the type, bytes for `mem`, elements of SIZE bits for
//    the sized names; strides count elements.
//  - No call reports an error by a code unless its type is int. Before shmem_init, with a PE number out of
//    range, or with an address that is not symmetric the program ends with a line that says which.
//  - A PE that died: the next call that needs it ends the program in words.
//  - Threads: as many as shmem_init_thread provided. A context made private belongs to one thread, a
//    serialized one to one at a time.
//  - Memory: what shmem_malloc gives is the program's until shmem_free; handles until they are destroyed.

#define DOCK_P(name) DOCK_SHMEM_NAME(name)

// ---- setup (9.1), threads (9.2)

void DOCK_P(shmem_init)(void);                                        // collective; may be nested
int DOCK_P(shmem_init_thread)(int requested, int *provided);          // 0
void DOCK_P(shmem_query_thread)(int *provided);                       // SHMEM_THREAD_*
void DOCK_P(shmem_query_initialized)(int *initialized);               // 1.6; any time
void DOCK_P(shmem_finalize)(void);                                    // collective: completes and syncs
void DOCK_P(shmem_global_exit)(int status) __attribute__((noreturn)); // ends all PEs with `status`
int DOCK_P(shmem_my_pe)(void);
int DOCK_P(shmem_n_pes)(void);
int DOCK_P(shmem_pe_accessible)(int pe);                     // 1 or 0
int DOCK_P(shmem_addr_accessible)(const void *addr, int pe); // 1: addr is symmetric and pe a PE
// Where `dest` of `pe` can be loaded and stored here; NULL where it cannot (memory that is not mapped).
void *DOCK_P(shmem_ptr)(const void *dest, int pe);
void *DOCK_P(shmem_team_ptr)(shmem_team_t team, const void *dest, int pe); // 1.6
void DOCK_P(shmem_info_get_version)(int *major, int *minor);
void DOCK_P(shmem_info_get_name)(char *name); // SHMEM_MAX_NAME_LEN bytes
void DOCK_P(shmem_pcontrol)(int level, ...);  // for tools; does nothing here
void DOCK_P(start_pes)(int npes);             // shmem_init; the number is not looked at
int DOCK_P(_my_pe)(void);
int DOCK_P(_num_pes)(void);

// ---- memory (9.3). Collective over all PEs, with the same arguments everywhere. NULL: the heap is exhausted
// (logged), or nothing was asked for. Barrier on exit of the allocating calls, on entry of free.

void *DOCK_P(shmem_malloc)(size_t size);
void *DOCK_P(shmem_malloc_with_hints)(size_t size, long hints); // hints change nothing here
void *DOCK_P(shmem_calloc)(size_t count, size_t size);
void *DOCK_P(shmem_align)(size_t alignment, size_t size); // a power of two
void *DOCK_P(shmem_realloc)(void *ptr, size_t size);      // NULL: ptr is as it was
void DOCK_P(shmem_free)(void *ptr);
void *DOCK_P(shmalloc)(size_t size);
void *DOCK_P(shmemalign)(size_t alignment, size_t size);
void *DOCK_P(shrealloc)(void *ptr, size_t size);
void DOCK_P(shfree)(void *ptr);

// ---- teams (9.4): handles; PE numbers of a team count its members. -1 or nonzero: invalid team or argument.

int DOCK_P(shmem_team_my_pe)(shmem_team_t team);
int DOCK_P(shmem_team_n_pes)(shmem_team_t team);
int DOCK_P(shmem_team_get_config)(shmem_team_t team, long config_mask, shmem_team_config_t *config);
int DOCK_P(shmem_team_translate_pe)(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);
// Collective over the parent: *new_team is SHMEM_TEAM_INVALID where this PE is no member, or on failure.
int DOCK_P(shmem_team_split_strided)(shmem_team_t parent_team, int start, int stride, int size,
                                     const shmem_team_config_t *config, long config_mask,
                                     shmem_team_t *new_team);
int DOCK_P(shmem_team_split_2d)(shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config,
                                long xaxis_mask, shmem_team_t *xaxis_team,
                                const shmem_team_config_t *yaxis_config, long yaxis_mask,
                                shmem_team_t *yaxis_team);
void DOCK_P(shmem_team_destroy)(shmem_team_t team); // collective; its contexts are destroyed with it

// ---- contexts (9.5): local. Nonzero: no more memory or queues; *ctx is then SHMEM_CTX_INVALID.

int DOCK_P(shmem_ctx_create)(long options, shmem_ctx_t *ctx);
int DOCK_P(shmem_team_create_ctx)(shmem_team_t team, long options, shmem_ctx_t *ctx);
void DOCK_P(shmem_ctx_destroy)(shmem_ctx_t ctx); // quiet first
int DOCK_P(shmem_ctx_get_team)(shmem_ctx_t ctx, shmem_team_t *team);
// 1.6: hints that a batch follows; change nothing here.
void DOCK_P(shmem_ctx_session_start)(shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config,
                                     long config_mask);
void DOCK_P(shmem_ctx_session_stop)(shmem_ctx_t ctx);

// ---- order (9.10). Fence: what this context sent to a PE before is placed there before what it sends later.
// Quiet: all that this context sent is complete, at both ends, and visible to everybody.

void DOCK_P(shmem_fence)(void);
void DOCK_P(shmem_ctx_fence)(shmem_ctx_t ctx);
void DOCK_P(shmem_quiet)(void);
void DOCK_P(shmem_ctx_quiet)(shmem_ctx_t ctx);
void DOCK_P(shmem_pe_quiet)(const int *target_pes, size_t npes); // 1.6
void DOCK_P(shmem_ctx_pe_quiet)(shmem_ctx_t ctx, const int *target_pes, size_t npes);

// ---- put and get (9.6). Blocking: put returns when the source may be reused, get when the data is here.
// _nbi: both sides are in use until quiet. i: strided; ib: strided blocks (1.6).

#define DOCK_SHMEM_RMA(N, T)                                                                                 \
    void DOCK_P(shmem_##N##_put)(T * dest, const T *source, size_t nelems, int pe);                          \
    void DOCK_P(shmem_ctx_##N##_put)(shmem_ctx_t ctx, T * dest, const T *source, size_t nelems, int pe);     \
    void DOCK_P(shmem_##N##_get)(T * dest, const T *source, size_t nelems, int pe);                          \
    void DOCK_P(shmem_ctx_##N##_get)(shmem_ctx_t ctx, T * dest, const T *source, size_t nelems, int pe);     \
    void DOCK_P(shmem_##N##_put_nbi)(T * dest, const T *source, size_t nelems, int pe);                      \
    void DOCK_P(shmem_ctx_##N##_put_nbi)(shmem_ctx_t ctx, T * dest, const T *source, size_t nelems, int pe); \
    void DOCK_P(shmem_##N##_get_nbi)(T * dest, const T *source, size_t nelems, int pe);                      \
    void DOCK_P(shmem_ctx_##N##_get_nbi)(shmem_ctx_t ctx, T * dest, const T *source, size_t nelems, int pe); \
    void DOCK_P(shmem_##N##_p)(T * dest, T value, int pe);                                                   \
    void DOCK_P(shmem_ctx_##N##_p)(shmem_ctx_t ctx, T * dest, T value, int pe);                              \
    T DOCK_P(shmem_##N##_g)(const T *source, int pe);                                                        \
    T DOCK_P(shmem_ctx_##N##_g)(shmem_ctx_t ctx, const T *source, int pe);                                   \
    void DOCK_P(shmem_##N##_iput)(T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,    \
                                  int pe);                                                                   \
    void DOCK_P(shmem_ctx_##N##_iput)(shmem_ctx_t ctx, T * dest, const T *source, ptrdiff_t dst,             \
                                      ptrdiff_t sst, size_t nelems, int pe);                                 \
    void DOCK_P(shmem_##N##_iget)(T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,    \
                                  int pe);                                                                   \
    void DOCK_P(shmem_ctx_##N##_iget)(shmem_ctx_t ctx, T * dest, const T *source, ptrdiff_t dst,             \
                                      ptrdiff_t sst, size_t nelems, int pe);                                 \
    void DOCK_P(shmem_##N##_ibput)(T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,    \
                                   size_t nblocks, int pe);                                                  \
    void DOCK_P(shmem_ctx_##N##_ibput)(shmem_ctx_t ctx, T * dest, const T *source, ptrdiff_t dst,            \
                                       ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);                 \
    void DOCK_P(shmem_##N##_ibget)(T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,    \
                                   size_t nblocks, int pe);                                                  \
    void DOCK_P(shmem_ctx_##N##_ibget)(shmem_ctx_t ctx, T * dest, const T *source, ptrdiff_t dst,            \
                                       ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);                 \
    /* 9.8: put with a signal. The word changes after the data is there; sig_op SHMEM_SIGNAL_SET or _ADD. */ \
    void DOCK_P(shmem_##N##_put_signal)(T * dest, const T *source, size_t nelems, uint64_t *sig_addr,        \
                                        uint64_t signal, int sig_op, int pe);                                \
    void DOCK_P(shmem_ctx_##N##_put_signal)(shmem_ctx_t ctx, T * dest, const T *source, size_t nelems,       \
                                            uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);        \
    void DOCK_P(shmem_##N##_put_signal_nbi)(T * dest, const T *source, size_t nelems, uint64_t *sig_addr,    \
                                            uint64_t signal, int sig_op, int pe);                            \
    void DOCK_P(shmem_ctx_##N##_put_signal_nbi)(shmem_ctx_t ctx, T * dest, const T *source, size_t nelems,   \
                                                uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);    \
    /* 9.9: collectives over a team. 0, or nonzero for an invalid team. */                                   \
    int DOCK_P(shmem_##N##_broadcast)(shmem_team_t team, T * dest, const T *source, size_t nelems,           \
                                      int PE_root);                                                          \
    int DOCK_P(shmem_##N##_collect)(shmem_team_t team, T * dest, const T *source, size_t nelems);            \
    int DOCK_P(shmem_##N##_fcollect)(shmem_team_t team, T * dest, const T *source, size_t nelems);           \
    int DOCK_P(shmem_##N##_alltoall)(shmem_team_t team, T * dest, const T *source, size_t nelems);           \
    int DOCK_P(shmem_##N##_alltoalls)(shmem_team_t team, T * dest, const T *source, ptrdiff_t dst,           \
                                      ptrdiff_t sst, size_t nelems);
DOCK_SHMEM_RMA_TYPES(DOCK_SHMEM_RMA)
#undef DOCK_SHMEM_RMA

#define DOCK_SHMEM_PLAIN(OP)                                                                                 \
    void DOCK_P(shmem_put##OP)(void *dest, const void *source, size_t nelems, int pe);                       \
    void DOCK_P(shmem_ctx_put##OP)(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe);  \
    void DOCK_P(shmem_get##OP)(void *dest, const void *source, size_t nelems, int pe);                       \
    void DOCK_P(shmem_ctx_get##OP)(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe);  \
    void DOCK_P(shmem_put##OP##_nbi)(void *dest, const void *source, size_t nelems, int pe);                 \
    void DOCK_P(shmem_ctx_put##OP##_nbi)(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,     \
                                         int pe);                                                            \
    void DOCK_P(shmem_get##OP##_nbi)(void *dest, const void *source, size_t nelems, int pe);                 \
    void DOCK_P(shmem_ctx_get##OP##_nbi)(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,     \
                                         int pe);                                                            \
    void DOCK_P(shmem_put##OP##_signal)(void *dest, const void *source, size_t nelems, uint64_t *sig_addr,   \
                                        uint64_t signal, int sig_op, int pe);                                \
    void DOCK_P(shmem_ctx_put##OP##_signal)(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,  \
                                            uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);        \
    void DOCK_P(shmem_put##OP##_signal_nbi)(void *dest, const void *source, size_t nelems,                   \
                                            uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);        \
    void DOCK_P(shmem_ctx_put##OP##_signal_nbi)(shmem_ctx_t ctx, void *dest, const void *source,             \
                                                size_t nelems, uint64_t *sig_addr, uint64_t signal,          \
                                                int sig_op, int pe);
#define DOCK_SHMEM_SIZED(S)                                                                                  \
    DOCK_SHMEM_PLAIN(S)                                                                                      \
    void DOCK_P(shmem_iput##S)(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,  \
                               int pe);                                                                      \
    void DOCK_P(shmem_ctx_iput##S)(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,           \
                                   ptrdiff_t sst, size_t nelems, int pe);                                    \
    void DOCK_P(shmem_iget##S)(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,  \
                               int pe);                                                                      \
    void DOCK_P(shmem_ctx_iget##S)(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,           \
                                   ptrdiff_t sst, size_t nelems, int pe);                                    \
    void DOCK_P(shmem_ibput##S)(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,  \
                                size_t nblocks, int pe);                                                     \
    void DOCK_P(shmem_ctx_ibput##S)(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,          \
                                    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);                    \
    void DOCK_P(shmem_ibget##S)(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,  \
                                size_t nblocks, int pe);                                                     \
    void DOCK_P(shmem_ctx_ibget##S)(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,          \
                                    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
DOCK_SHMEM_PLAIN(mem)
DOCK_SHMEM_SIZES(DOCK_SHMEM_SIZED)
#undef DOCK_SHMEM_SIZED
#undef DOCK_SHMEM_PLAIN

// ---- signals

uint64_t DOCK_P(shmem_signal_fetch)(const uint64_t *sig_addr);
uint64_t DOCK_P(shmem_signal_wait_until)(uint64_t *sig_addr, int cmp, uint64_t cmp_value);
void DOCK_P(shmem_signal_add)(uint64_t *sig_addr, uint64_t signal, int pe); // 1.6
void DOCK_P(shmem_ctx_signal_add)(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);
void DOCK_P(shmem_signal_set)(uint64_t *sig_addr, uint64_t signal, int pe); // 1.6
void DOCK_P(shmem_ctx_signal_set)(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);

// ---- atomics (9.7), exclusive among each other on one word. Without a result they are posted; a result is
// here when the call returns, of _nbi when quiet does.

#define DOCK_SHMEM_EXT_AMO(N, T)                                                                             \
    T DOCK_P(shmem_##N##_atomic_fetch)(const T *source, int pe);                                             \
    T DOCK_P(shmem_ctx_##N##_atomic_fetch)(shmem_ctx_t ctx, const T *source, int pe);                        \
    void DOCK_P(shmem_##N##_atomic_fetch_nbi)(T * fetch, const T *source, int pe);                           \
    void DOCK_P(shmem_ctx_##N##_atomic_fetch_nbi)(shmem_ctx_t ctx, T * fetch, const T *source, int pe);      \
    void DOCK_P(shmem_##N##_atomic_set)(T * dest, T value, int pe);                                          \
    void DOCK_P(shmem_ctx_##N##_atomic_set)(shmem_ctx_t ctx, T * dest, T value, int pe);                     \
    T DOCK_P(shmem_##N##_atomic_swap)(T * dest, T value, int pe);                                            \
    T DOCK_P(shmem_ctx_##N##_atomic_swap)(shmem_ctx_t ctx, T * dest, T value, int pe);                       \
    void DOCK_P(shmem_##N##_atomic_swap_nbi)(T * fetch, T * dest, T value, int pe);                          \
    void DOCK_P(shmem_ctx_##N##_atomic_swap_nbi)(shmem_ctx_t ctx, T * fetch, T * dest, T value, int pe);
DOCK_SHMEM_EXT_AMO_TYPES(DOCK_SHMEM_EXT_AMO)
#undef DOCK_SHMEM_EXT_AMO

#define DOCK_SHMEM_AMO(N, T)                                                                                 \
    T DOCK_P(shmem_##N##_atomic_compare_swap)(T * dest, T cond, T value, int pe);                            \
    T DOCK_P(shmem_ctx_##N##_atomic_compare_swap)(shmem_ctx_t ctx, T * dest, T cond, T value, int pe);       \
    void DOCK_P(shmem_##N##_atomic_compare_swap_nbi)(T * fetch, T * dest, T cond, T value, int pe);          \
    void DOCK_P(shmem_ctx_##N##_atomic_compare_swap_nbi)(shmem_ctx_t ctx, T * fetch, T * dest, T cond,       \
                                                         T value, int pe);                                   \
    void DOCK_P(shmem_##N##_atomic_inc)(T * dest, int pe);                                                   \
    void DOCK_P(shmem_ctx_##N##_atomic_inc)(shmem_ctx_t ctx, T * dest, int pe);                              \
    T DOCK_P(shmem_##N##_atomic_fetch_inc)(T * dest, int pe);                                                \
    T DOCK_P(shmem_ctx_##N##_atomic_fetch_inc)(shmem_ctx_t ctx, T * dest, int pe);                           \
    void DOCK_P(shmem_##N##_atomic_fetch_inc_nbi)(T * fetch, T * dest, int pe);                              \
    void DOCK_P(shmem_ctx_##N##_atomic_fetch_inc_nbi)(shmem_ctx_t ctx, T * fetch, T * dest, int pe);
DOCK_SHMEM_AMO_TYPES(DOCK_SHMEM_AMO)
#undef DOCK_SHMEM_AMO

#define DOCK_SHMEM_OP_AMO(N, T, OP)                                                                          \
    void DOCK_P(shmem_##N##_atomic_##OP)(T * dest, T value, int pe);                                         \
    void DOCK_P(shmem_ctx_##N##_atomic_##OP)(shmem_ctx_t ctx, T * dest, T value, int pe);                    \
    T DOCK_P(shmem_##N##_atomic_fetch_##OP)(T * dest, T value, int pe);                                      \
    T DOCK_P(shmem_ctx_##N##_atomic_fetch_##OP)(shmem_ctx_t ctx, T * dest, T value, int pe);                 \
    void DOCK_P(shmem_##N##_atomic_fetch_##OP##_nbi)(T * fetch, T * dest, T value, int pe);                  \
    void DOCK_P(shmem_ctx_##N##_atomic_fetch_##OP##_nbi)(shmem_ctx_t ctx, T * fetch, T * dest, T value,      \
                                                         int pe);
#define DOCK_SHMEM_ADD(N, T) DOCK_SHMEM_OP_AMO(N, T, add)
#define DOCK_SHMEM_BITS(N, T)                                                                                \
    DOCK_SHMEM_OP_AMO(N, T, and) DOCK_SHMEM_OP_AMO(N, T, or) DOCK_SHMEM_OP_AMO(N, T, xor)
DOCK_SHMEM_AMO_TYPES(DOCK_SHMEM_ADD)
DOCK_SHMEM_BIT_AMO_TYPES(DOCK_SHMEM_BITS)
#undef DOCK_SHMEM_BITS
#undef DOCK_SHMEM_ADD
#undef DOCK_SHMEM_OP_AMO

#define DOCK_SHMEM_OLD_AMO(N, T)                                                                             \
    void DOCK_P(shmem_##N##_add)(T * dest, T value, int pe);                                                 \
    T DOCK_P(shmem_##N##_cswap)(T * dest, T cond, T value, int pe);                                          \
    T DOCK_P(shmem_##N##_fadd)(T * dest, T value, int pe);                                                   \
    T DOCK_P(shmem_##N##_finc)(T * dest, int pe);                                                            \
    void DOCK_P(shmem_##N##_inc)(T * dest, int pe);
#define DOCK_SHMEM_OLD_SWAP(N, T)                                                                            \
    T DOCK_P(shmem_##N##_fetch)(const T *source, int pe);                                                    \
    void DOCK_P(shmem_##N##_set)(T * dest, T value, int pe);                                                 \
    T DOCK_P(shmem_##N##_swap)(T * dest, T value, int pe);
DOCK_SHMEM_OLD_AMO_TYPES(DOCK_SHMEM_OLD_AMO)
DOCK_SHMEM_OLD_AMO_TYPES(DOCK_SHMEM_OLD_SWAP)
DOCK_SHMEM_FLOAT_TYPES(DOCK_SHMEM_OLD_SWAP)
#undef DOCK_SHMEM_OLD_AMO
#undef DOCK_SHMEM_OLD_SWAP

// ---- waiting and testing (9.9 in 1.5: point-to-point synchronisation). What was sent before the word
// changed in order is visible when they return. status: entries that are not 0 are left out; NULL: none.
// any: the index found, SIZE_MAX if none or nothing to look at; some: how many, indices filled.

#define DOCK_SHMEM_WAIT(N, T)                                                                                \
    void DOCK_P(shmem_##N##_wait_until)(T * ivar, int cmp, T cmp_value);                                     \
    void DOCK_P(shmem_##N##_wait_until_all)(T * ivars, size_t nelems, const int *status, int cmp,            \
                                            T cmp_value);                                                    \
    size_t DOCK_P(shmem_##N##_wait_until_any)(T * ivars, size_t nelems, const int *status, int cmp,          \
                                              T cmp_value);                                                  \
    size_t DOCK_P(shmem_##N##_wait_until_some)(T * ivars, size_t nelems, size_t * indices,                   \
                                               const int *status, int cmp, T cmp_value);                     \
    void DOCK_P(shmem_##N##_wait_until_all_vector)(T * ivars, size_t nelems, const int *status, int cmp,     \
                                                   const T *cmp_values);                                     \
    size_t DOCK_P(shmem_##N##_wait_until_any_vector)(T * ivars, size_t nelems, const int *status, int cmp,   \
                                                     const T *cmp_values);                                   \
    size_t DOCK_P(shmem_##N##_wait_until_some_vector)(T * ivars, size_t nelems, size_t * indices,            \
                                                      const int *status, int cmp, const T *cmp_values);      \
    int DOCK_P(shmem_##N##_test)(T * ivar, int cmp, T cmp_value);                                            \
    int DOCK_P(shmem_##N##_test_all)(T * ivars, size_t nelems, const int *status, int cmp, T cmp_value);     \
    size_t DOCK_P(shmem_##N##_test_any)(T * ivars, size_t nelems, const int *status, int cmp, T cmp_value);  \
    size_t DOCK_P(shmem_##N##_test_some)(T * ivars, size_t nelems, size_t * indices, const int *status,      \
                                         int cmp, T cmp_value);                                              \
    int DOCK_P(shmem_##N##_test_all_vector)(T * ivars, size_t nelems, const int *status, int cmp,            \
                                            const T *cmp_values);                                            \
    size_t DOCK_P(shmem_##N##_test_any_vector)(T * ivars, size_t nelems, const int *status, int cmp,         \
                                               const T *cmp_values);                                         \
    size_t DOCK_P(shmem_##N##_test_some_vector)(T * ivars, size_t nelems, size_t * indices,                  \
                                                const int *status, int cmp, const T *cmp_values);
DOCK_SHMEM_WAIT_TYPES(DOCK_SHMEM_WAIT)
#undef DOCK_SHMEM_WAIT

void DOCK_P(shmem_wait_until)(long *ivar, int cmp, long cmp_value);
void DOCK_P(shmem_wait)(long *ivar, long cmp_value); // until it differs
void DOCK_P(shmem_short_wait)(short *ivar, short cmp_value);
void DOCK_P(shmem_int_wait)(int *ivar, int cmp_value);
void DOCK_P(shmem_long_wait)(long *ivar, long cmp_value);
void DOCK_P(shmem_longlong_wait)(long long *ivar, long long cmp_value);

// ---- collectives. barrier: quiet of the default context, then sync. sync: everybody arrived, and nothing
// more than what was visible.

void DOCK_P(shmem_barrier_all)(void);
void DOCK_P(shmem_sync_all)(void);
int DOCK_P(shmem_team_sync)(shmem_team_t team);
int DOCK_P(shmem_broadcastmem)(shmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root);
int DOCK_P(shmem_collectmem)(shmem_team_t team, void *dest, const void *source, size_t nelems);
int DOCK_P(shmem_fcollectmem)(shmem_team_t team, void *dest, const void *source, size_t nelems);
int DOCK_P(shmem_alltoallmem)(shmem_team_t team, void *dest, const void *source, size_t nelems);
int DOCK_P(shmem_alltoallsmem)(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst,
                               ptrdiff_t sst, size_t nelems);

#define DOCK_SHMEM_REDUCE(N, T, OP)                                                                          \
    int DOCK_P(shmem_##N##_##OP##_reduce)(shmem_team_t team, T * dest, const T *source, size_t nreduce);
#define DOCK_SHMEM_BIT_REDUCE(N, T)                                                                          \
    DOCK_SHMEM_REDUCE(N, T, and) DOCK_SHMEM_REDUCE(N, T, or) DOCK_SHMEM_REDUCE(N, T, xor)
#define DOCK_SHMEM_CMP_REDUCE(N, T) DOCK_SHMEM_REDUCE(N, T, max) DOCK_SHMEM_REDUCE(N, T, min)
#define DOCK_SHMEM_SUM_REDUCE(N, T)                                                                          \
    DOCK_SHMEM_REDUCE(N, T, sum)                                                                             \
    DOCK_SHMEM_REDUCE(N, T, prod)                                                                            \
    int DOCK_P(shmem_##N##_sum_inscan)(shmem_team_t team, T * dest, const T *source, size_t nreduce);        \
    int DOCK_P(shmem_##N##_sum_exscan)(shmem_team_t team, T * dest, const T *source, size_t nreduce);
DOCK_SHMEM_BIT_REDUCE_TYPES(DOCK_SHMEM_BIT_REDUCE)
DOCK_SHMEM_RMA_TYPES(DOCK_SHMEM_CMP_REDUCE)
DOCK_SHMEM_RMA_TYPES(DOCK_SHMEM_SUM_REDUCE)
DOCK_SHMEM_COMPLEX_TYPES(DOCK_SHMEM_SUM_REDUCE)
#undef DOCK_SHMEM_SUM_REDUCE
#undef DOCK_SHMEM_CMP_REDUCE
#undef DOCK_SHMEM_BIT_REDUCE
#undef DOCK_SHMEM_REDUCE

// ---- collectives over an active set, deprecated since 1.5. pSync: SHMEM_*_SYNC_SIZE words of
// SHMEM_SYNC_VALUE on every member, which they are again when the call returns; pWrk is not used.

void DOCK_P(shmem_barrier)(int PE_start, int logPE_stride, int PE_size, long *pSync);
void DOCK_P(shmem_sync)(int PE_start, int logPE_stride, int PE_size, long *pSync);
#define DOCK_SHMEM_SET(S)                                                                                    \
    void DOCK_P(shmem_broadcast##S)(void *dest, const void *source, size_t nelems, int PE_root,              \
                                    int PE_start, int logPE_stride, int PE_size, long *pSync);               \
    void DOCK_P(shmem_collect##S)(void *dest, const void *source, size_t nelems, int PE_start,               \
                                  int logPE_stride, int PE_size, long *pSync);                               \
    void DOCK_P(shmem_fcollect##S)(void *dest, const void *source, size_t nelems, int PE_start,              \
                                   int logPE_stride, int PE_size, long *pSync);                              \
    void DOCK_P(shmem_alltoall##S)(void *dest, const void *source, size_t nelems, int PE_start,              \
                                   int logPE_stride, int PE_size, long *pSync);                              \
    void DOCK_P(shmem_alltoalls##S)(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,            \
                                    size_t nelems, int PE_start, int logPE_stride, int PE_size,              \
                                    long *pSync);
DOCK_SHMEM_SET(32)
DOCK_SHMEM_SET(64)
#undef DOCK_SHMEM_SET

#define DOCK_SHMEM_TO_ALL(N, T, OP)                                                                          \
    void DOCK_P(shmem_##N##_##OP##_to_all)(T * dest, const T *source, int nreduce, int PE_start,             \
                                           int logPE_stride, int PE_size, T *pWrk, long *pSync);
#define DOCK_SHMEM_BIT_TO_ALL(N, T)                                                                          \
    DOCK_SHMEM_TO_ALL(N, T, and) DOCK_SHMEM_TO_ALL(N, T, or) DOCK_SHMEM_TO_ALL(N, T, xor)
#define DOCK_SHMEM_CMP_TO_ALL(N, T) DOCK_SHMEM_TO_ALL(N, T, max) DOCK_SHMEM_TO_ALL(N, T, min)
#define DOCK_SHMEM_SUM_TO_ALL(N, T) DOCK_SHMEM_TO_ALL(N, T, sum) DOCK_SHMEM_TO_ALL(N, T, prod)
DOCK_SHMEM_SET_BIT_TYPES(DOCK_SHMEM_BIT_TO_ALL)
DOCK_SHMEM_SET_TYPES(DOCK_SHMEM_CMP_TO_ALL)
DOCK_SHMEM_SET_TYPES(DOCK_SHMEM_SUM_TO_ALL)
DOCK_SHMEM_COMPLEX_TYPES(DOCK_SHMEM_SUM_TO_ALL)
#undef DOCK_SHMEM_SUM_TO_ALL
#undef DOCK_SHMEM_CMP_TO_ALL
#undef DOCK_SHMEM_BIT_TO_ALL
#undef DOCK_SHMEM_TO_ALL

// ---- locks (9.11): a `long` of 0 on every PE; granted in the order of asking, to a PE and not to a thread.

void DOCK_P(shmem_set_lock)(long *lock);
void DOCK_P(shmem_clear_lock)(long *lock); // quiet of the default context first
int DOCK_P(shmem_test_lock)(long *lock);   // 0: it is ours

#undef DOCK_P
