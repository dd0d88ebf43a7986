// SPDX-License-Identifier: MIT
#include "preload/shim_path.h"

#include <stdlib.h>
#include <string.h>

static const char dev_dir[] = "/dev/infiniband";
static const char dev_node[] = "/dev/infiniband/uverbs0";
static const char sys_class[] = "/sys/class/infiniband";
static const char sys_verbs[] = "/sys/class/infiniband_verbs";
static const char sys_ub[] = "/sys/class/ubcore";

static struct {
    bool known;
    size_t length; // 0: no tree, nothing is rewritten
    char root[DOCK_SHIM_PATH_MAX];
} shim;

void dock_shim_set_root(const char *root)
{
    size_t length = root ? strlen(root) : 0;

    if (length >= sizeof(shim.root) || (length && root[0] != '/'))
        length = 0;
    if (length)
        memcpy(shim.root, root, length);
    shim.length = length;
    shim.known = true;
}

// Constructors of other libraries may open files before ours has run, so the first caller asks. That is still
// one thread: nobody starts threads before the constructor below.
static bool active(void)
{
    if (__builtin_expect(!shim.known, 0))
        dock_shim_set_root(secure_getenv("DRYDOCK_SHIM"));
    return shim.length != 0;
}

__attribute__((constructor)) static void shim_start(void)
{
    active();
}

// True when path is dir or lies below it.
static bool below(const char *path, const char *dir, size_t length)
{
    return strncmp(path, dir, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool dock_shim_owns(const char *path)
{
    if (!path || path[0] != '/' || !active())
        return false;
    if (path[1] == 'd')
        return strncmp(path, dev_dir, sizeof(dev_dir) - 1) == 0;
    return path[1] == 's' && (strncmp(path, sys_class, sizeof(sys_class) - 1) == 0 ||
                              strncmp(path, sys_ub, sizeof(sys_ub) - 1) == 0);
}

static const char *in_tree(const char *path, struct dock_shim_buf *buf)
{
    size_t length = strlen(path);

    if (shim.length + length >= sizeof(buf->text))
        return path;
    memcpy(buf->text, shim.root, shim.length);
    memcpy(buf->text + shim.length, path, length + 1);
    return buf->text;
}

const char *dock_shim_path(const char *path, struct dock_shim_buf *buf)
{
    if (__builtin_expect(!dock_shim_owns(path), 1))
        return path;
    if (strcmp(path, dev_node) == 0)
        return "/dev/null";
    if (below(path, dev_dir, sizeof(dev_dir) - 1) || below(path, sys_class, sizeof(sys_class) - 1) ||
        below(path, sys_verbs, sizeof(sys_verbs) - 1) || below(path, sys_ub, sizeof(sys_ub) - 1))
        return in_tree(path, buf);
    return path;
}
