// SPDX-License-Identifier: MIT
// Where a datagram socket is found: the number of its queue pair is the target of a symbolic link in the
// runtime directory, under the name of its port. Senders read it there, each time, so nobody has to answer
// them, and one who binds anew is found at once.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "face/rdmacm/rs.h"

static void name_of(const struct cm_port *port, bool any, char name[CM_NAME])
{
    cm_port_name(port, any, name);
    name[0] = port->v6 ? 'D' : 'd';
}

// Is this the name of a datagram socket's port? Of which?
static bool is_name(const char *name, struct cm_port *port)
{
    char kind;
    unsigned number, addr;

    if (strlen(name) != 13 || sscanf(name, "%c%4x%8x", &kind, &number, &addr) != 3 || (kind | 32) != 'd')
        return false;
    *port = (struct cm_port){.space = 1, .v6 = kind == 'D', .number = (uint16_t)number, .addr = addr};
    return true;
}

// Nobody held the port. Who takes it at this moment may have put its own name there: what is moved away goes
// back if somebody holds the port then, but not over a newer one.
static void sweep_name(const char *name, const struct cm_port *port)
{
    char aside[CM_NAME + 16];

    snprintf(aside, sizeof aside, "~%s.%x", name, (unsigned)getpid());
    if (renameat(cm.dir.fd, name, cm.dir.fd, aside))
        return;
    if (cm_port_bound(port))
        renameat2(cm.dir.fd, aside, cm.dir.fd, name, RENAME_NOREPLACE);
    unlinkat(cm.dir.fd, aside, 0);
}

// Names that ended processes left: those of the range that is ours now are in the way, for a name of one
// address is looked at before that of all; others are litter. cm.lock is held.
static void sweep(const struct cm_port *mine)
{
    int fd = openat(cm.dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;
    struct cm_port port;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((e = readdir(dir))) {
        if (!is_name(e->d_name, &port))
            continue;
        if (port.number == mine->number && !mine->addr && (mine->both || port.v6 == mine->v6))
            unlinkat(cm.dir.fd, e->d_name, 0);
        else if (!cm_port_bound(&port))
            sweep_name(e->d_name, &port);
    }
    closedir(dir);
}

// The port is ours alone, so what stands under its name is a dead process's. cm.lock is held.
int rs_name_publish(struct rdma_cm_id *id, char names[2][CM_NAME])
{
    struct cm_port port = cm_id(id)->port;
    int ret = cm_port_alone(&cm_id(id)->port);
    char number[16];

    if (ret)
        return dock_refuse(ret, "rbind: another datagram socket or id is bound to the port");
    sweep(&port);
    snprintf(number, sizeof number, "%x", id->qp->qp_num);
    for (int i = 0; i < (port.both ? 2 : 1); i++) {
        name_of(&port, false, names[i]);
        unlinkat(cm.dir.fd, names[i], 0);
        if (symlinkat(number, cm.dir.fd, names[i]))
            return dock_refuse(-errno, "rbind: a name in the runtime directory: %s", strerror(errno));
        port.v6 = false;
    }
    return 0;
}

void rs_name_withdraw(char names[2][CM_NAME])
{
    for (int i = 0; i < 2; i++)
        if (names[i][0])
            unlinkat(cm.dir.fd, names[i], 0);
}

// The queue pair that is bound there; 0: none, and the datagram is lost as on a wire.
uint32_t rs_name_find(const struct sockaddr *to)
{
    char name[CM_NAME], number[16];
    struct cm_port port = {0};
    ssize_t n = -1;

    cm_port_of(&port, RDMA_PS_UDP, to);
    for (int any = 0; any < 2 && n < 0; any++) {
        name_of(&port, any, name);
        n = readlinkat(cm.dir.fd, name, number, sizeof number - 1);
    }
    if (n < 0)
        return 0;
    number[n] = 0;
    return (uint32_t)strtoul(number, NULL, 16);
}
