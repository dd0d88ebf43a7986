// SPDX-License-Identifier: MIT
// liburma_common.so.0: the helpers that UMDK's own programs (urma_perftest, uRPC, dlock) take from it. UMDK
// does not install a header for them; names, arguments and results are as those programs expect.
#ifndef DOCK_FACE_URMA_COMMON_H
#define DOCK_FACE_URMA_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Rate of the counter that the callers read (rdtsc, cntvct_el0), in MHz; 0 when it cannot be told. Takes
// about 50 ms. With `warn` a difference between the cores' clocks is said on stderr. Any thread.
double get_cpu_mhz(bool warn);

// Text to number: decimal, 0x or 0 prefix, the whole text. 0; -EINVAL (NULL, or '-' before an unsigned
// number), -ENOEXEC (no number), -EFAULT (too large for 64 bits), -ERANGE (too large for the type). *number
// is set on success only. Bool: exactly "true" or "false", else -EINVAL.
int ub_str_to_bool(const char *text, bool *value);
int ub_str_to_u8(const char *text, uint8_t *number);
int ub_str_to_u16(const char *text, uint16_t *number);
int ub_str_to_u32(const char *text, uint32_t *number);
int ub_str_to_u64(const char *text, uint64_t *number);
int ub_str_to_int(const char *text, int *number);

enum ub_huge_page { UB_HUGE_2MB, UB_HUGE_1GB, UB_HUGE_DEFAULT };

// Private memory of huge pages at or near `hint`; NULL with errno when length is 0 or the machine has none
// left. To be given back with ub_hugefree (0, or -1 with errno) and the same length.
void *ub_hugemalloc(size_t length, enum ub_huge_page page, void *hint);
int ub_hugefree(void *address, size_t length);

// First set bit at or after `from`, `size` when there is none.
unsigned long ub_find_first_bit(const unsigned long *words, unsigned long size);
unsigned long ub_find_next_bit(const unsigned long *words, unsigned long size, unsigned long from);

#endif
