// SPDX-License-Identifier: MIT
// The C11 generics of OpenSHMEM 1.5 and 1.6: the type of one argument chooses the function; where a context
// may come first, the number of arguments tells.
#ifndef DOCK_SHMEM_GENERIC_H
#define DOCK_SHMEM_GENERIC_H

// Association lists: the distinct C types behind a type table.
#define DOCK_G_AMO(B, E)                                                                                     \
    int : B##int##E,                                                                                         \
          long : B##long##E,                                                                                 \
                 long long : B##longlong##E,                                                                 \
                             unsigned int : B##uint##E,                                                      \
                                            unsigned long : B##ulong##E,                                     \
                                                            unsigned long long : B##ulonglong##E
#define DOCK_G_FLOAT(B, E) float : B##float##E, double : B##double##E
#define DOCK_G_EXT(B, E) DOCK_G_FLOAT(B, E), DOCK_G_AMO(B, E)
#define DOCK_G_WAIT(B, E) short : B##short##E, unsigned short : B##ushort##E, DOCK_G_AMO(B, E)
#define DOCK_G_RMA(B, E)                                                                                     \
    DOCK_G_FLOAT(B, E), long double : B##longdouble##E,                                                      \
                                      char : B##char##E,                                                     \
                                             signed char : B##schar##E,                                      \
                                                           unsigned char : B##uchar##E,                      \
                                                                           DOCK_G_WAIT(B, E)
#define DOCK_G_BITS(B, E)                                                                                    \
    unsigned int : B##uint##E,                                                                               \
                   unsigned long : B##ulong##E,                                                              \
                                   unsigned long long : B##ulonglong##E,                                     \
                                                        int : B##int32##E,                                   \
                                                              long : B##int64##E
#define DOCK_G_BIT_REDUCE(B, E)                                                                              \
    unsigned char : B##uchar##E,                                                                             \
                    unsigned short : B##ushort##E,                                                           \
                                     signed char : B##int8##E,                                               \
                                                   short : B##int16##E,                                      \
                                                           DOCK_G_BITS(B, E)
#define DOCK_G_SUM(B, E) DOCK_G_RMA(B, E), float _Complex : B##complexf##E, double _Complex : B##complexd##E

// The function for the type that p points to.
#define DOCK_G(LIST, B, E, p) _Generic(*(p), LIST(B, E))

// Calls whose first argument points to the type, with a context before it or without. Nn: n arguments
// without a context.
#define DOCK_G_PLAIN(LIST, E, p, ...) DOCK_G(LIST, shmem_, E, p)(p, __VA_ARGS__)
#define DOCK_G_CTX(LIST, E, c, p, ...) DOCK_G(LIST, shmem_ctx_, E, p)(c, p, __VA_ARGS__)
#define DOCK_G_4TH(a, b, c, d, ...) d
#define DOCK_G_5TH(a, b, c, d, e, ...) e
#define DOCK_G_6TH(a, b, c, d, e, f, ...) f
#define DOCK_G_8TH(a, b, c, d, e, f, g, h, ...) h
#define DOCK_G_9TH(a, b, c, d, e, f, g, h, i, ...) i
#define DOCK_G_N2(LIST, E, ...) DOCK_G_4TH(__VA_ARGS__, DOCK_G_CTX, DOCK_G_PLAIN, ~)(LIST, E, __VA_ARGS__)
#define DOCK_G_N3(LIST, E, ...) DOCK_G_5TH(__VA_ARGS__, DOCK_G_CTX, DOCK_G_PLAIN, ~)(LIST, E, __VA_ARGS__)
#define DOCK_G_N4(LIST, E, ...) DOCK_G_6TH(__VA_ARGS__, DOCK_G_CTX, DOCK_G_PLAIN, ~)(LIST, E, __VA_ARGS__)
#define DOCK_G_N6(LIST, E, ...) DOCK_G_8TH(__VA_ARGS__, DOCK_G_CTX, DOCK_G_PLAIN, ~)(LIST, E, __VA_ARGS__)
#define DOCK_G_N7(LIST, E, ...) DOCK_G_9TH(__VA_ARGS__, DOCK_G_CTX, DOCK_G_PLAIN, ~)(LIST, E, __VA_ARGS__)

#define shmem_put(...) DOCK_G_N4(DOCK_G_RMA, _put, __VA_ARGS__)
#define shmem_get(...) DOCK_G_N4(DOCK_G_RMA, _get, __VA_ARGS__)
#define shmem_put_nbi(...) DOCK_G_N4(DOCK_G_RMA, _put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) DOCK_G_N4(DOCK_G_RMA, _get_nbi, __VA_ARGS__)
#define shmem_p(...) DOCK_G_N3(DOCK_G_RMA, _p, __VA_ARGS__)
#define shmem_g(...) DOCK_G_N2(DOCK_G_RMA, _g, __VA_ARGS__)
#define shmem_iput(...) DOCK_G_N6(DOCK_G_RMA, _iput, __VA_ARGS__)
#define shmem_iget(...) DOCK_G_N6(DOCK_G_RMA, _iget, __VA_ARGS__)
#define shmem_ibput(...) DOCK_G_N7(DOCK_G_RMA, _ibput, __VA_ARGS__)
#define shmem_ibget(...) DOCK_G_N7(DOCK_G_RMA, _ibget, __VA_ARGS__)
#define shmem_put_signal(...) DOCK_G_N7(DOCK_G_RMA, _put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) DOCK_G_N7(DOCK_G_RMA, _put_signal_nbi, __VA_ARGS__)

#define shmem_atomic_fetch(...) DOCK_G_N2(DOCK_G_EXT, _atomic_fetch, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) DOCK_G_N3(DOCK_G_EXT, _atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_set(...) DOCK_G_N3(DOCK_G_EXT, _atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) DOCK_G_N3(DOCK_G_EXT, _atomic_swap, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) DOCK_G_N4(DOCK_G_EXT, _atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) DOCK_G_N4(DOCK_G_AMO, _atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...)                                                                   \
    DOCK_G_9TH(__VA_ARGS__, ~, ~, DOCK_G_CTX, DOCK_G_PLAIN, ~, ~, ~)                                         \
    (DOCK_G_AMO, _atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_inc(...) DOCK_G_N2(DOCK_G_AMO, _atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) DOCK_G_N2(DOCK_G_AMO, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) DOCK_G_N3(DOCK_G_AMO, _atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_add(...) DOCK_G_N3(DOCK_G_AMO, _atomic_add, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) DOCK_G_N3(DOCK_G_AMO, _atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) DOCK_G_N4(DOCK_G_AMO, _atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_and(...) DOCK_G_N3(DOCK_G_BITS, _atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) DOCK_G_N3(DOCK_G_BITS, _atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) DOCK_G_N4(DOCK_G_BITS, _atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_or(...) DOCK_G_N3(DOCK_G_BITS, _atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) DOCK_G_N3(DOCK_G_BITS, _atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) DOCK_G_N4(DOCK_G_BITS, _atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_xor(...) DOCK_G_N3(DOCK_G_BITS, _atomic_xor, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) DOCK_G_N3(DOCK_G_BITS, _atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) DOCK_G_N4(DOCK_G_BITS, _atomic_fetch_xor_nbi, __VA_ARGS__)

// Deprecated since 1.4.
#define shmem_add(...) shmem_atomic_add(__VA_ARGS__)
#define shmem_cswap(...) shmem_atomic_compare_swap(__VA_ARGS__)
#define shmem_fadd(...) shmem_atomic_fetch_add(__VA_ARGS__)
#define shmem_finc(...) shmem_atomic_fetch_inc(__VA_ARGS__)
#define shmem_inc(...) shmem_atomic_inc(__VA_ARGS__)
#define shmem_fetch(...) shmem_atomic_fetch(__VA_ARGS__)
#define shmem_set(...) shmem_atomic_set(__VA_ARGS__)
#define shmem_swap(...) shmem_atomic_swap(__VA_ARGS__)

#define shmem_wait_until(...) DOCK_G_PLAIN(DOCK_G_WAIT, _wait_until, __VA_ARGS__)
#define shmem_wait_until_all(...) DOCK_G_PLAIN(DOCK_G_WAIT, _wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...) DOCK_G_PLAIN(DOCK_G_WAIT, _wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...) DOCK_G_PLAIN(DOCK_G_WAIT, _wait_until_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...) DOCK_G_PLAIN(DOCK_G_WAIT, _wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...) DOCK_G_PLAIN(DOCK_G_WAIT, _wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) DOCK_G_PLAIN(DOCK_G_WAIT, _wait_until_some_vector, __VA_ARGS__)
#define shmem_test(...) DOCK_G_PLAIN(DOCK_G_WAIT, _test, __VA_ARGS__)
#define shmem_test_all(...) DOCK_G_PLAIN(DOCK_G_WAIT, _test_all, __VA_ARGS__)
#define shmem_test_any(...) DOCK_G_PLAIN(DOCK_G_WAIT, _test_any, __VA_ARGS__)
#define shmem_test_some(...) DOCK_G_PLAIN(DOCK_G_WAIT, _test_some, __VA_ARGS__)
#define shmem_test_all_vector(...) DOCK_G_PLAIN(DOCK_G_WAIT, _test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...) DOCK_G_PLAIN(DOCK_G_WAIT, _test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...) DOCK_G_PLAIN(DOCK_G_WAIT, _test_some_vector, __VA_ARGS__)

// Collectives: the team comes first, the destination tells the type.
#define DOCK_G_TEAM(LIST, E, team, p, ...) DOCK_G(LIST, shmem_, E, p)(team, p, __VA_ARGS__)
#define shmem_broadcast(...) DOCK_G_TEAM(DOCK_G_RMA, _broadcast, __VA_ARGS__)
#define shmem_collect(...) DOCK_G_TEAM(DOCK_G_RMA, _collect, __VA_ARGS__)
#define shmem_fcollect(...) DOCK_G_TEAM(DOCK_G_RMA, _fcollect, __VA_ARGS__)
#define shmem_alltoall(...) DOCK_G_TEAM(DOCK_G_RMA, _alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) DOCK_G_TEAM(DOCK_G_RMA, _alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...) DOCK_G_TEAM(DOCK_G_BIT_REDUCE, _and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) DOCK_G_TEAM(DOCK_G_BIT_REDUCE, _or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) DOCK_G_TEAM(DOCK_G_BIT_REDUCE, _xor_reduce, __VA_ARGS__)
#define shmem_max_reduce(...) DOCK_G_TEAM(DOCK_G_RMA, _max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) DOCK_G_TEAM(DOCK_G_RMA, _min_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...) DOCK_G_TEAM(DOCK_G_SUM, _sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) DOCK_G_TEAM(DOCK_G_SUM, _prod_reduce, __VA_ARGS__)
#define shmem_sum_inscan(...) DOCK_G_TEAM(DOCK_G_SUM, _sum_inscan, __VA_ARGS__)
#define shmem_sum_exscan(...) DOCK_G_TEAM(DOCK_G_SUM, _sum_exscan, __VA_ARGS__)

// shmem_sync(team), or the deprecated one over an active set. A name does not expand inside itself.
#define shmem_sync(...) DOCK_G_5TH(__VA_ARGS__, shmem_sync, ~, ~, shmem_team_sync, ~)(__VA_ARGS__)

#endif
