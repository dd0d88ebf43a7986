// SPDX-License-Identifier: MIT
// The sysfs calls. Files below our own device are answered from the identity, so that they read the same with
// and without the private tree that `drydock run` lays out; any other path is read as it is.
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/identity.h"
#include "face/verbs/verbs_face.h"

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *sysfs_dev, const char *fnfmt, ...)
    __attribute__((format(printf, 4, 5)));

const char *vb_private_root(void)
{
    const char *root = secure_getenv("DRYDOCK_SHIM");
    return root && root[0] == '/' && strlen(root) < IBV_SYSFS_PATH_MAX / 2 ? root : "";
}

const char *ibv_get_sysfs_path(void)
{
    static char path[IBV_SYSFS_PATH_MAX];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *given = secure_getenv("SYSFS_PATH");

    dock_lock(&lock);
    if (!path[0]) {
        size_t n = given && strlen(given) < sizeof path ? strlen(given) : 0;
        while (n > 1 && given[n - 1] == '/')
            n--;
        if (n)
            snprintf(path, sizeof path, "%.*s", (int)n, given);
        else
            snprintf(path, sizeof path, "%s/sys", vb_private_root());
    }
    dock_unlock(&lock);
    return path;
}

static int guid_text(char *out, size_t size)
{
    const uint8_t *g = dock_identity()->guid;
    return snprintf(out, size, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4], g[5],
                    g[6], g[7]);
}

// The answer to `file` of our device, or -1 when that file is not among those we tell.
static int own_answer(const char *file, char *out, size_t size)
{
    static const struct {
        const char *file, *text;
    } fixed[] = {
        {"board_id", "DRYDOCK"},
        {"fw_ver", VB_FW_VERSION},
        {"hca_type", "drydock"},
        {"hw_rev", "0x1"},
        {"node_type", "1: CA"},
        {"node_desc", "Drydock software device"},
        {"ports/1/state", "4: ACTIVE"},
        {"ports/1/phys_state", "5: LinkUp"},
        {"ports/1/link_layer", "Ethernet"},
        {"ports/1/lid", "0x0"},
        {"ports/1/pkeys/0", "0xffff"},
        {"ports/1/rate", "100 Gb/sec (4X EDR)"},
    };

    if (!strcmp(file, "node_guid") || !strcmp(file, "sys_image_guid"))
        return guid_text(out, size);
    if (!strcmp(file, "ibdev"))
        return snprintf(out, size, "%s", dock_identity()->name);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (!strcmp(file, fixed[i].file))
            return snprintf(out, size, "%s", fixed[i].text);
    return -1;
}

static int real_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[PATH_MAX];
    ssize_t n;
    int fd;

    if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path)
        return -1;
    fd = dock_open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    dock_uncancelled_begin();
    n = read(fd, buf, size);
    dock_uncancelled_end();
    dock_close(fd);
    if (n > 0 && buf[n - 1] == '\n')
        buf[--n] = '\0';
    else if (n >= 0 && (size_t)n < size)
        buf[n] = '\0';
    return (int)n;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char answer[128];
    int n;

    if (!dir || !file || !buf || !size) {
        errno = dock_refuse(EINVAL, "ibv_read_sysfs_file: no directory, file or buffer given");
        return -1;
    }
    n = strcmp(dir, vb_device()->ibdev_path) ? -1 : own_answer(file, answer, sizeof answer);
    if (n < 0)
        return real_file(dir, file, buf, size);
    if ((size_t)n >= size)
        n = (int)size - 1;
    memcpy(buf, answer, (size_t)n);
    buf[n] = '\0';
    return n;
}

int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *sysfs_dev, const char *fnfmt, ...)
{
    (void)buf;
    (void)size;
    (void)sysfs_dev;
    (void)fnfmt;
    errno = dock_refuse(ENOSYS,
                        "ibv_read_ibdev_sysfs_file: only drivers of kernel devices call it, there is none");
    return -1;
}
