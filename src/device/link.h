// SPDX-License-Identifier: MIT
// The port as `drydock ctl` wants it: one small file in the runtime directory, which every device reads at
// its opening and when it has changed. Lines: "port down" or "port up"; "gid ADDRESS" and "gid -", entries of
// the GID table behind the host's own.
#ifndef DOCK_DEVICE_LINK_H
#define DOCK_DEVICE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/order.h"

#define DOCK_LINK_FILE "link"
#define DOCK_LINK_GIDS 15

struct dock_dev;

struct dock_link {
    bool down;
    unsigned gids;
    uint8_t gid[DOCK_LINK_GIDS][16]; // zeros: an entry that was taken away
};

// No file is a port that is up. -EBADMSG: a line that is none of these.
int dock_link_read(int dir_fd, struct dock_link *out);
int dock_link_write(int dir_fd, const struct dock_link *l);
// IPv6, or IPv4 as its mapped form. -EINVAL.
int dock_link_address(const char *text, uint8_t raw[16]);

// The engine: has the file changed? Then the port and the table are as it says, and programs are told.
// `tell` false: at the opening, when nobody has seen it otherwise.
void dock_link_look(struct dock_dev *dev, bool tell);
// Nothing is answered while it is. Any thread.
extern dock_a32 dock_link_is_down;
static inline bool dock_link_down(void)
{
    return __builtin_expect(dock_peek32(&dock_link_is_down), 0);
}

#endif
