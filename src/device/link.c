// SPDX-License-Identifier: MIT
#include "device/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "device/identity.h"
#include "device/internal.h"

#define LINE 64
#define NEW_FILE DOCK_LINK_FILE ".new"

dock_a32 dock_link_is_down;
static struct timespec seen; // of the file, when it was read last; only the engine looks
static ino_t seen_inode;

int dock_link_address(const char *text, uint8_t raw[16])
{
    uint8_t v4[4];

    if (inet_pton(AF_INET6, text, raw) == 1)
        return 0;
    if (inet_pton(AF_INET, text, v4) != 1)
        return -EINVAL;
    dock_address_of_ipv4(raw, v4);
    return 0;
}

static int take_line(char *line, struct dock_link *l)
{
    line[strcspn(line, "\n")] = '\0';
    if (!strcmp(line, "port down") || !strcmp(line, "port up")) {
        l->down = line[5] == 'd';
        return 0;
    }
    if (strncmp(line, "gid ", 4) != 0 || l->gids == DOCK_LINK_GIDS)
        return -EBADMSG;
    memset(l->gid[l->gids], 0, sizeof l->gid[0]);
    if (strcmp(line + 4, "-") != 0 && dock_link_address(line + 4, l->gid[l->gids]))
        return -EBADMSG;
    l->gids++;
    return 0;
}

int dock_link_read(int dir_fd, struct dock_link *out)
{
    int fd = openat(dir_fd, DOCK_LINK_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), err = 0;
    struct dock_link l = {0};
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    char line[LINE];

    if (!file) {
        err = fd < 0 && errno == ENOENT ? 0 : -errno;
        if (fd >= 0)
            close(fd);
    }
    while (file && !err && fgets(line, sizeof line, file))
        err = take_line(line, &l);
    if (file && !err && ferror(file))
        err = -EIO;
    if (file)
        fclose(file);
    if (!err)
        *out = l;
    return err;
}

// Whole or not at all, for who reads it meanwhile.
int dock_link_write(int dir_fd, const struct dock_link *l)
{
    int fd = openat(dir_fd, NEW_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    char text[INET6_ADDRSTRLEN];

    if (!file) {
        int err = -errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    fprintf(file, "port %s\n", l->down ? "down" : "up");
    for (unsigned i = 0; i < l->gids; i++)
        fprintf(file, "gid %s\n",
                dock_address_is_zero(l->gid[i]) ? "-" : inet_ntop(AF_INET6, l->gid[i], text, sizeof text));
    if (fclose(file) || renameat(dir_fd, NEW_FILE, dir_fd, DOCK_LINK_FILE))
        return -errno;
    return 0;
}

static void tell_all(struct dock_dev *dev, enum dock_event_kind kind)
{
    struct dock_event e = {.kind = kind};

    dock_event_raise(dev, NULL, &e, NULL);
}

static void become(struct dock_dev *dev, const struct dock_link *l, bool tell)
{
    if (dock_swap32(&dock_link_is_down, l->down) != l->down && tell) {
        dock_info("the port is %s", l->down ? "down" : "up");
        tell_all(dev, l->down ? DOCK_EVENT_PORT_ERR : DOCK_EVENT_PORT_ACTIVE);
    }
    if (dock_identity_add(l->gid, l->gids) == 1 && tell)
        tell_all(dev, DOCK_EVENT_GID_CHANGE);
}

// What could not be read is tried again at every look, and told once.
static void unread(const struct dock_dev *dev, int err)
{
    static bool said;

    if (!said)
        dock_warn("%s/%s cannot be read (%s): the port stays as it is until it can", dev->dir.path,
                  DOCK_LINK_FILE, strerror(-err));
    said = true;
}

void dock_link_look(struct dock_dev *dev, bool tell)
{
    struct stat st = {0}; // of no file: such a port is up
    struct dock_link l;
    int err;

    if (dev->cfg.dir) // a device in a directory of its own choice is a test's
        return;
    if (fstatat(dev->dir.fd, DOCK_LINK_FILE, &st, AT_SYMLINK_NOFOLLOW) && errno != ENOENT)
        return;
    if (st.st_ino == seen_inode && !memcmp(&st.st_mtim, &seen, sizeof seen))
        return;
    err = dock_link_read(dev->dir.fd, &l);
    if (err && err != -EBADMSG) {
        unread(dev, err);
        return;
    }
    seen = st.st_mtim;
    seen_inode = st.st_ino;
    if (err)
        dock_warn("%s/%s is not what `drydock ctl` writes: the port stays as it is", dev->dir.path,
                  DOCK_LINK_FILE);
    else
        become(dev, &l, tell);
}
