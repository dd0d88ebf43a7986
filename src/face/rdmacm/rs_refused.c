// SPDX-License-Identifier: MIT
// What datagram sockets have not, in their table.
#include "face/rdmacm/rs.h"

int rs_no_listen(struct rs *rs, int backlog)
{
    (void)rs, (void)backlog;
    return dock_refuse(EOPNOTSUPP, "rlisten: datagrams have no connections");
}

int rs_no_accept(struct rs *rs, struct rs **out)
{
    (void)rs, (void)out;
    return dock_refuse(EOPNOTSUPP, "raccept: datagrams have no connections");
}

static int no_mapped_memory(void)
{
    return dock_refuse(EOPNOTSUPP, "rsocket: datagrams have no mapped memory");
}

int rs_no_map(struct rs *rs, void *buf, size_t len, int prot, off_t *offset)
{
    (void)rs, (void)buf, (void)len, (void)prot, (void)offset;
    return no_mapped_memory();
}

int rs_no_unmap(struct rs *rs, void *buf, size_t len)
{
    (void)rs, (void)buf, (void)len;
    return no_mapped_memory();
}

int rs_no_write(struct rs *rs, struct rs_out *out, off_t offset)
{
    (void)rs, (void)out, (void)offset;
    return no_mapped_memory();
}
