// SPDX-License-Identifier: MIT
#include "arena/huge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/order.h"
#include "base/rawcall.h"

#define TRIES 3

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

bool dock_huge_setting(const char *name, char text[96])
{
    char path[96];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/%s", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, 95);
    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

static bool size_fits(void)
{
    static dock_a32 known; // 1: it does, 2: it does not. Every thread finds the same
    char text[96];

    if (!dock_peek32(&known))
        dock_set32(
            &known,
            dock_huge_setting("hpage_pmd_size", text) && strtoull(text, NULL, 10) == DOCK_HUGE_BYTES ? 1 : 2);
    return dock_peek32(&known) == 1;
}

static dock_a32 off; // any thread may ask, whatever another one does to the environment

void dock_huge_learn(void)
{
    static dock_a32 said;
    const char *text = getenv("DRYDOCK_HUGE");
    bool on = !text || !*text || !strcmp(text, "on");

    if (!on && strcmp(text, "off") != 0 && !atomic_exchange_explicit(&said, 1, memory_order_relaxed))
        dock_error("DRYDOCK_HUGE=%s is not known (on, off): memory gets no huge pages", text);
    dock_set32(&off, !on);
}

bool dock_huge_wanted(void)
{
    return !dock_peek32(&off) && size_fits();
}

// A page that sits in another processor's batch for a moment is in the way.
long dock_huge_collapse(uint64_t at, uint64_t len)
{
    long err = -EAGAIN;

    for (int i = 0; i < TRIES && (err == -EAGAIN || err == -EBUSY); i++)
        err = dock_rawcall(SYS_madvise, (long)at, (long)len, MADV_COLLAPSE, 0, 0, 0);
    return err;
}
