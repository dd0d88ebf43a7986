// SPDX-License-Identifier: MIT
#include "cli/tree.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/tree_own.h"

static void failed(struct tree *tree, const char *what, const char *path)
{
    tree->rc = -errno;
    dock_error("cannot %s %s of the private sysfs tree: %s", what, path, strerror(errno));
}

void dock_tree_directory(struct tree *tree, const char *path)
{
    char part[TREE_PATH];

    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = part; tree->rc == 0 && slash; slash++) {
        slash = strchr(slash, '/');
        if (slash)
            *slash = '\0';
        if (mkdirat(tree->fd, part, 0700) != 0 && errno != EEXIST)
            failed(tree, "make directory", part);
        if (!slash)
            break;
        *slash = '/';
    }
}

static bool holds(const struct tree *tree, const char *path, const char *text)
{
    char found[TREE_TEXT];
    int fd = openat(tree->fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, found, sizeof(found));

    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(text) && memcmp(found, text, (size_t)n) == 0;
}

// Programs may be reading the file right now: it is whole under its name at every instant.
static void replace(struct tree *tree, const char *path, const char *text)
{
    char fresh[TREE_PATH];
    size_t length = strlen(text);
    int fd;

    snprintf(fresh, sizeof(fresh), ".fresh-%d", (int)getpid());
    fd = openat(tree->fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, length) != (ssize_t)length ||
        renameat(tree->fd, fresh, tree->fd, path) != 0)
        failed(tree, "write", path);
    if (fd >= 0)
        close(fd);
}

void dock_tree_put(struct tree *tree, const char *path, const char *format, ...)
{
    char line[TREE_TEXT - 2];
    char text[TREE_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    snprintf(text, sizeof(text), "%s\n", line);
    if (tree->rc == 0 && !holds(tree, path, text))
        replace(tree, path, text);
}

const char *dock_tree_below(const struct tree *tree, const char *path)
{
    static _Thread_local char whole[TREE_PATH];

    snprintf(whole, sizeof(whole), "%s%s", tree->device, path);
    return whole;
}

static void put_device(struct tree *tree, const struct dock_identity *id)
{
    static const char *const guids[] = {"/node_guid", "/sys_image_guid"};
    const uint8_t *g = id->guid;

    dock_tree_directory(tree, dock_tree_below(tree, "/device"));
    for (int i = 0; i < 2; i++)
        dock_tree_put(tree, dock_tree_below(tree, guids[i]), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0],
                      g[1], g[2], g[3], g[4], g[5], g[6], g[7]);
    dock_tree_put(tree, dock_tree_below(tree, "/board_id"), "DRYDOCK");
    dock_tree_put(tree, dock_tree_below(tree, "/fw_ver"), "%s", dock_version());
    dock_tree_put(tree, dock_tree_below(tree, "/hca_type"), "drydock");
    dock_tree_put(tree, dock_tree_below(tree, "/hw_rev"), "0x1");
    dock_tree_put(tree, dock_tree_below(tree, "/node_type"), "1: CA");
    dock_tree_put(tree, dock_tree_below(tree, "/node_desc"), "Drydock software device");
    dock_tree_put(tree, dock_tree_below(tree, "/device/numa_node"), "-1");
}

static void put_port(struct tree *tree)
{
    dock_tree_directory(tree, dock_tree_below(tree, "/ports/1/gids"));
    dock_tree_directory(tree, dock_tree_below(tree, "/ports/1/pkeys"));
    dock_tree_directory(tree, dock_tree_below(tree, "/ports/1/gid_attrs/types"));
    dock_tree_directory(tree, dock_tree_below(tree, "/ports/1/gid_attrs/ndevs"));
    dock_tree_put(tree, dock_tree_below(tree, "/ports/1/state"), "4: ACTIVE");
    dock_tree_put(tree, dock_tree_below(tree, "/ports/1/phys_state"), "5: LinkUp");
    dock_tree_put(tree, dock_tree_below(tree, "/ports/1/link_layer"), "Ethernet");
    dock_tree_put(tree, dock_tree_below(tree, "/ports/1/lid"), "0x0");
    dock_tree_put(tree, dock_tree_below(tree, "/ports/1/sm_lid"), "0x0");
    dock_tree_put(tree, dock_tree_below(tree, "/ports/1/rate"), "100 Gb/sec (4X EDR)");
    dock_tree_put(tree, dock_tree_below(tree, "/ports/1/pkeys/0"), "0xffff");
}

void dock_tree_put_address(struct tree *tree, const char *path, const uint8_t raw[16])
{
    char text[40];
    int n = 0;

    for (int i = 0; i < 16; i += 2)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%02x%02x", i ? ":" : "", raw[i], raw[i + 1]);
    dock_tree_put(tree, dock_tree_below(tree, path), "%s", text);
}

// Attributes exist for filled entries only; what an earlier run left of an address that is gone must go too.
static void put_gid_attribute(struct tree *tree, const char *attribute, unsigned index, const char *text)
{
    char name[48];
    const char *path;

    snprintf(name, sizeof(name), "/ports/1/gid_attrs/%s/%u", attribute, index);
    path = dock_tree_below(tree, name);
    if (text)
        dock_tree_put(tree, path, "%s", text);
    else if (tree->rc == 0 && unlinkat(tree->fd, path, 0) != 0 && errno != ENOENT)
        failed(tree, "remove", path);
}

static void put_gids(struct tree *tree, const struct dock_identity *id)
{
    for (unsigned i = 0; i < DOCK_GID_TABLE; i++) {
        bool filled = i < id->gids;
        char name[IF_NAMESIZE], path[32];
        const char *netdev = filled && id->gid[i].ifindex ? if_indextoname(id->gid[i].ifindex, name) : NULL;

        snprintf(path, sizeof(path), "/ports/1/gids/%u", i);
        dock_tree_put_address(tree, path, id->gid[i].raw);
        put_gid_attribute(tree, "types", i, filled ? "RoCE v2" : NULL);
        put_gid_attribute(tree, "ndevs", i, netdev);
    }
}

// A kernel's device has one network device; ours is that of the first IPv4 address, where one asks for it.
static void put_netdev(struct tree *tree, const struct dock_identity *id)
{
    char name[IF_NAMESIZE];
    char path[16 + IF_NAMESIZE];

    for (unsigned i = 0; i < id->gids; i++) {
        if (!dock_address_is_ipv4(id->gid[i].raw) || !if_indextoname(id->gid[i].ifindex, name))
            continue;
        snprintf(path, sizeof(path), "/device/net/%s", name);
        dock_tree_directory(tree, dock_tree_below(tree, path));
        return;
    }
}

static void put_verbs_class(struct tree *tree, const struct dock_identity *id)
{
    dock_tree_directory(tree, "sys/class/infiniband_verbs/uverbs0");
    dock_tree_put(tree, "sys/class/infiniband_verbs/abi_version", "6");
    dock_tree_put(tree, "sys/class/infiniband_verbs/uverbs0/abi_version", "1");
    dock_tree_put(tree, "sys/class/infiniband_verbs/uverbs0/ibdev", "%s", id->name);
    dock_tree_directory(tree, "dev/infiniband");
    if (tree->rc == 0 && symlinkat("/dev/null", tree->fd, "dev/infiniband/uverbs0") != 0 && errno != EEXIST)
        failed(tree, "make link", "dev/infiniband/uverbs0");
}

static int open_root(int rundir_fd, const char *name, char *root, size_t size)
{
    char dir[DOCK_NAME_MAX + 8];
    char link[40];
    ssize_t n;
    int fd;

    snprintf(dir, sizeof(dir), "tree-%s", name);
    if (mkdirat(rundir_fd, dir, 0700) != 0 && errno != EEXIST)
        return -errno;
    fd = openat(rundir_fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, root, size);
    if (n < 0 || (size_t)n >= size) {
        int rc = n < 0 ? -errno : -ENAMETOOLONG;

        close(fd);
        return rc;
    }
    root[n] = '\0';
    return fd;
}

int dock_tree_make(int rundir_fd, const struct dock_identity *id, char *root, size_t size)
{
    struct tree tree = {.fd = open_root(rundir_fd, id->name, root, size)};

    if (tree.fd < 0) {
        dock_error("cannot make the private sysfs tree in the runtime directory: %s", strerror(-tree.fd));
        return tree.fd;
    }
    snprintf(tree.device, sizeof(tree.device), "sys/class/infiniband/%s", id->name);
    put_device(&tree, id);
    put_port(&tree);
    put_gids(&tree, id);
    put_netdev(&tree, id);
    put_verbs_class(&tree, id);
    snprintf(tree.device, sizeof(tree.device), "sys/class/ubcore/%s", id->name);
    dock_tree_put_ub(&tree, id);
    close(tree.fd);
    return tree.rc;
}
