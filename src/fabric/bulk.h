// SPDX-License-Identifier: MIT
#ifndef DOCK_FABRIC_BULK_H
#define DOCK_FABRIC_BULK_H

#include <stddef.h>

// As memmove. From 31 KiB on what is stored first may be the beginning or the end.
void dock_bulk_copy(char *to, const char *from, size_t n);

#endif
