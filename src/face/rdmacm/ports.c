// SPDX-License-Identifier: MIT
// Ports. Who holds one holds a record lock on a range of one empty file: the kernel gives it back when the
// process dies, however it dies, and forked children do not keep it. The range is the port on one address,
// or on all, so that overlapping ranges are exactly the binds that exclude each other.
//
//     offset = space(2) port(16) v6(1) address(32); "any" is the whole range of its family
//
// Record locks do not exclude the ids of one process: those stand in a list, too.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/seed.h"
#include "face/rdmacm/rdmacm_face.h"

enum { FIRST_FREE = 32768, LAST_FREE = 60999 };

static struct cm_port *mine; // held by this process

struct range {
    uint64_t start, length;
};

static struct range range_of(const struct cm_port *p)
{
    uint64_t base = ((uint64_t)p->space << 16 | p->number) << 33;

    if (p->both)
        return (struct range){base, 1ull << 33};
    base |= (uint64_t)p->v6 << 32;
    return p->addr ? (struct range){base | p->addr, 1} : (struct range){base, 1ull << 32};
}

static bool overlap(struct range a, struct range b)
{
    return a.start < b.start + b.length && b.start < a.start + a.length;
}

static int set_lock(short type, struct range r)
{
    struct flock l = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)r.start, .l_len = (off_t)r.length};

    if (!fcntl(cm.ports_fd, F_SETLK, &l))
        return 0;
    return errno == EACCES || errno == EAGAIN ? -EADDRINUSE : -errno;
}

static bool taken_here(const struct cm_port *port, bool shared)
{
    for (const struct cm_port *p = mine; p; p = p->next)
        if (p != port && !(shared && p->shared) && overlap(range_of(p), range_of(port)))
            return true;
    return false;
}

static int take_number(struct cm_port *port)
{
    int ret = taken_here(port, port->shared) ? -EADDRINUSE : 0;

    if (!ret)
        ret = set_lock(port->shared ? F_RDLCK : F_WRLCK, range_of(port));
    if (ret)
        return ret;
    port->held = true;
    port->next = mine;
    mine = port;
    return 0;
}

int cm_port_take(struct cm_port *port)
{
    const uint32_t count = LAST_FREE - FIRST_FREE + 1;
    uint32_t start;
    int ret = -EADDRINUSE;

    if (port->number)
        return take_number(port);
    start = (uint32_t)(dock_mix(dock_now_ns() ^ (uint64_t)getpid() << 32) % count);
    for (uint32_t i = 0; i < count && ret == -EADDRINUSE; i++) {
        port->number = (uint16_t)(FIRST_FREE + (start + i) % count);
        ret = take_number(port);
    }
    if (ret)
        port->number = 0;
    return ret;
}

void cm_port_drop(struct cm_port *port)
{
    struct cm_port **p = &mine;

    if (!port->held)
        return;
    while (*p != port)
        p = &(*p)->next;
    *p = port->next;
    port->held = false;
    set_lock(F_UNLCK, range_of(port));
    // What the others of this process hold of the same range went with it.
    for (struct cm_port *other = mine; other; other = other->next)
        if (overlap(range_of(other), range_of(port)))
            set_lock(other->shared ? F_RDLCK : F_WRLCK, range_of(other));
}

void cm_ports_forget(void)
{
    mine = NULL;
}

int cm_port_alone(struct cm_port *port)
{
    int ret = taken_here(port, false) ? -EADDRINUSE : 0;

    if (!ret && port->shared)
        ret = set_lock(F_WRLCK, range_of(port));
    if (!ret)
        port->shared = false;
    return ret;
}

bool cm_port_bound(const struct cm_port *port)
{
    struct range r = range_of(port);
    struct flock l = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)r.start, .l_len = (off_t)r.length};

    return taken_here(port, false) || (!fcntl(cm.ports_fd, F_GETLK, &l) && l.l_type != F_UNLCK);
}

static uint8_t space_of(enum rdma_port_space ps)
{
    switch (ps) {
    case RDMA_PS_TCP:
        return 0;
    case RDMA_PS_UDP:
        return 1;
    case RDMA_PS_IPOIB:
        return 2;
    default:
        return 3;
    }
}

// An IPv6 address as a number that two addresses of a host hardly ever share; 0 is "any" and nothing else.
static uint32_t fold(const struct in6_addr *a)
{
    uint64_t half[2];
    uint32_t n;

    memcpy(half, a, sizeof half);
    n = (uint32_t)dock_mix(half[0] ^ dock_mix(half[1]));
    return n ? n : 1;
}

void cm_port_of(struct cm_port *port, enum rdma_port_space ps, const struct sockaddr *addr)
{
    const struct sockaddr_in *v4 = (const void *)addr;
    const struct sockaddr_in6 *v6 = (const void *)addr;

    port->space = space_of(ps);
    port->v6 = addr->sa_family == AF_INET6;
    port->number = cm_addr_port(addr);
    if (cm_addr_any(addr))
        port->addr = 0;
    else
        port->addr = port->v6 ? fold(&v6->sin6_addr) : ntohl(v4->sin_addr.s_addr);
}

void cm_port_name(const struct cm_port *port, bool any, char name[CM_NAME])
{
    snprintf(name, CM_NAME, "%c%04x%08x", (port->v6 ? "TUIB" : "tuib")[port->space & 3], port->number,
             any ? 0 : port->addr);
}
