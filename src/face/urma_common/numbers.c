// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "face/urma_common/common.h"

int ub_str_to_bool(const char *text, bool *value)
{
    bool yes = text && strcmp(text, "true") == 0;

    if (!value || !text || (!yes && strcmp(text, "false") != 0))
        return -EINVAL;
    *value = yes;
    return 0;
}

static int number_of(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    unsigned long long value;

    if (!text || *text == '-')
        return -EINVAL;
    errno = 0;
    value = strtoull(text, &end, 0);
    if (errno == ERANGE)
        return -EFAULT;
    if (*end || end == text)
        return -ENOEXEC;
    if (value > most)
        return -ERANGE;
    *number = value;
    return 0;
}

int ub_str_to_u8(const char *text, uint8_t *number)
{
    uint64_t value;
    int rc = number ? number_of(text, UINT8_MAX, &value) : -EINVAL;

    if (rc == 0)
        *number = (uint8_t)value;
    return rc;
}

int ub_str_to_u16(const char *text, uint16_t *number)
{
    uint64_t value;
    int rc = number ? number_of(text, UINT16_MAX, &value) : -EINVAL;

    if (rc == 0)
        *number = (uint16_t)value;
    return rc;
}

int ub_str_to_u32(const char *text, uint32_t *number)
{
    uint64_t value;
    int rc = number ? number_of(text, UINT32_MAX, &value) : -EINVAL;

    if (rc == 0)
        *number = (uint32_t)value;
    return rc;
}

int ub_str_to_u64(const char *text, uint64_t *number)
{
    uint64_t value;
    int rc = number ? number_of(text, UINT64_MAX, &value) : -EINVAL;

    if (rc == 0)
        *number = value;
    return rc;
}

int ub_str_to_int(const char *text, int *number)
{
    char *end;
    long value;

    if (!text || !number)
        return -EINVAL;
    errno = 0;
    value = strtol(text, &end, 0);
    if (errno == ERANGE)
        return -EFAULT;
    if (*end || end == text)
        return -ENOEXEC;
    if (value < INT_MIN || value > INT_MAX)
        return -ERANGE;
    *number = (int)value;
    return 0;
}

unsigned long ub_find_next_bit(const unsigned long *words, unsigned long size, unsigned long from)
{
    enum { WIDTH = CHAR_BIT * sizeof(unsigned long) };

    for (; from < size; from = (from / WIDTH + 1) * WIDTH) {
        unsigned long rest = words[from / WIDTH] >> from % WIDTH;

        if (rest) {
            from += (unsigned long)__builtin_ctzl(rest);
            return from < size ? from : size;
        }
    }
    return size;
}

unsigned long ub_find_first_bit(const unsigned long *words, unsigned long size)
{
    return ub_find_next_bit(words, size, 0);
}
