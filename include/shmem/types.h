// SPDX-License-Identifier: MIT
// The type tables of OpenSHMEM 1.6 as lists: X(NAME, TYPE) once for each row. Everything typed is generated
// from these, the declarations here and the definitions in the library.
#ifndef DOCK_SHMEM_TYPES_H
#define DOCK_SHMEM_TYPES_H

#include <stddef.h>
#include <stdint.h>

// The integers of the standard AMO types (table "stdamotypes").
#define DOCK_SHMEM_AMO_TYPES(X)                                                                              \
    X(int, int)                                                                                              \
    X(long, long)                                                                                            \
    X(longlong, long long)                                                                                   \
    X(uint, unsigned int)                                                                                    \
    X(ulong, unsigned long)                                                                                  \
    X(ulonglong, unsigned long long)                                                                         \
    X(int32, int32_t)                                                                                        \
    X(int64, int64_t)                                                                                        \
    X(uint32, uint32_t)                                                                                      \
    X(uint64, uint64_t)                                                                                      \
    X(size, size_t)                                                                                          \
    X(ptrdiff, ptrdiff_t)

#define DOCK_SHMEM_FLOAT_TYPES(X)                                                                            \
    X(float, float)                                                                                          \
    X(double, double)

// Types of set, fetch and swap (table "extamotypes").
#define DOCK_SHMEM_EXT_AMO_TYPES(X)                                                                          \
    DOCK_SHMEM_FLOAT_TYPES(X)                                                                                \
    DOCK_SHMEM_AMO_TYPES(X)

// Types of and, or, xor (table "bitamotypes").
#define DOCK_SHMEM_BIT_AMO_TYPES(X)                                                                          \
    X(uint, unsigned int)                                                                                    \
    X(ulong, unsigned long)                                                                                  \
    X(ulonglong, unsigned long long)                                                                         \
    X(int32, int32_t)                                                                                        \
    X(int64, int64_t)                                                                                        \
    X(uint32, uint32_t)                                                                                      \
    X(uint64, uint64_t)

// What can be waited for: the AMO types, and two that 1.5 deprecates.
#define DOCK_SHMEM_WAIT_TYPES(X)                                                                             \
    DOCK_SHMEM_AMO_TYPES(X)                                                                                  \
    X(short, short)                                                                                          \
    X(ushort, unsigned short)

#define DOCK_SHMEM_SMALL_TYPES(X)                                                                            \
    X(char, char)                                                                                            \
    X(schar, signed char)                                                                                    \
    X(short, short)                                                                                          \
    X(uchar, unsigned char)                                                                                  \
    X(ushort, unsigned short)                                                                                \
    X(int8, int8_t)                                                                                          \
    X(int16, int16_t)                                                                                        \
    X(uint8, uint8_t)                                                                                        \
    X(uint16, uint16_t)

// Types of put, get and most collectives (table "stdrmatypes").
#define DOCK_SHMEM_RMA_TYPES(X)                                                                              \
    DOCK_SHMEM_FLOAT_TYPES(X)                                                                                \
    X(longdouble, long double)                                                                               \
    DOCK_SHMEM_SMALL_TYPES(X)                                                                                \
    DOCK_SHMEM_AMO_TYPES(X)

// Elements by size in bits.
#define DOCK_SHMEM_SIZES(X) X(8) X(16) X(32) X(64) X(128)

// Team reductions (table "teamreducetypes").
#define DOCK_SHMEM_BIT_REDUCE_TYPES(X)                                                                       \
    X(uchar, unsigned char)                                                                                  \
    X(ushort, unsigned short)                                                                                \
    X(uint, unsigned int)                                                                                    \
    X(ulong, unsigned long)                                                                                  \
    X(ulonglong, unsigned long long)                                                                         \
    X(int8, int8_t)                                                                                          \
    X(int16, int16_t)                                                                                        \
    X(int32, int32_t)                                                                                        \
    X(int64, int64_t)                                                                                        \
    X(uint8, uint8_t)                                                                                        \
    X(uint16, uint16_t)                                                                                      \
    X(uint32, uint32_t)                                                                                      \
    X(uint64, uint64_t)                                                                                      \
    X(size, size_t)

// Not of ISO C++, which knows them as an extension.
__extension__ typedef float _Complex dock_shmem_complexf;
__extension__ typedef double _Complex dock_shmem_complexd;

#define DOCK_SHMEM_COMPLEX_TYPES(X)                                                                          \
    X(complexf, dock_shmem_complexf)                                                                         \
    X(complexd, dock_shmem_complexd)

// Reductions over an active set (table "asetreducetypes"), deprecated since 1.5.
#define DOCK_SHMEM_SET_BIT_TYPES(X)                                                                          \
    X(short, short)                                                                                          \
    X(int, int)                                                                                              \
    X(long, long)                                                                                            \
    X(longlong, long long)

#define DOCK_SHMEM_SET_TYPES(X)                                                                              \
    DOCK_SHMEM_SET_BIT_TYPES(X)                                                                              \
    DOCK_SHMEM_FLOAT_TYPES(X)                                                                                \
    X(longdouble, long double)

// The old atomics, deprecated since 1.4.
#define DOCK_SHMEM_OLD_AMO_TYPES(X)                                                                          \
    X(int, int)                                                                                              \
    X(long, long)                                                                                            \
    X(longlong, long long)

#endif
