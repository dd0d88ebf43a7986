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

// Room for the longest path below the tree and the longest text of a file.
enum { TREE_PATH = 192, TREE_TEXT = 128 };

struct tree {
    int fd;
    int rc; // of the first step that failed; later steps do nothing
    char device[16 + DOCK_NAME_MAX + 16];
};

static void failed(struct tree *tree, const char *what, const char *path)
{
    tree->rc = -errno;
    dock_error("cannot %s %s of the private sysfs tree: %s", what, path, strerror(errno));
}

static void make_directory(struct tree *tree, const char *path)
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

// One file with one line in it; its directory is there.
__attribute__((format(printf, 3, 4))) static void put(struct tree *tree, const char *path, const char *format,
                                                      ...)
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

static const char *below(const struct tree *tree, const char *path)
{
    static _Thread_local char whole[TREE_PATH];

    snprintf(whole, sizeof(whole), "%s%s", tree->device, path);
    return whole;
}

static void put_device(struct tree *tree, const struct dock_identity *id)
{
    static const char *const guids[] = {"/node_guid", "/sys_image_guid"};
    const uint8_t *g = id->guid;

    make_directory(tree, below(tree, "/device"));
    for (int i = 0; i < 2; i++)
        put(tree, below(tree, guids[i]), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4],
            g[5], g[6], g[7]);
    put(tree, below(tree, "/board_id"), "DRYDOCK");
    put(tree, below(tree, "/fw_ver"), "%s", dock_version());
    put(tree, below(tree, "/hca_type"), "drydock");
    put(tree, below(tree, "/hw_rev"), "0x1");
    put(tree, below(tree, "/node_type"), "1: CA");
    put(tree, below(tree, "/node_desc"), "Drydock software device");
    put(tree, below(tree, "/device/numa_node"), "-1");
}

static void put_port(struct tree *tree)
{
    make_directory(tree, below(tree, "/ports/1/gids"));
    make_directory(tree, below(tree, "/ports/1/pkeys"));
    make_directory(tree, below(tree, "/ports/1/gid_attrs/types"));
    make_directory(tree, below(tree, "/ports/1/gid_attrs/ndevs"));
    put(tree, below(tree, "/ports/1/state"), "4: ACTIVE");
    put(tree, below(tree, "/ports/1/phys_state"), "5: LinkUp");
    put(tree, below(tree, "/ports/1/link_layer"), "Ethernet");
    put(tree, below(tree, "/ports/1/lid"), "0x0");
    put(tree, below(tree, "/ports/1/sm_lid"), "0x0");
    put(tree, below(tree, "/ports/1/rate"), "100 Gb/sec (4X EDR)");
    put(tree, below(tree, "/ports/1/pkeys/0"), "0xffff");
}

static void put_gid(struct tree *tree, unsigned index, const uint8_t raw[16])
{
    char name[32];
    char text[40];
    int n = 0;

    snprintf(name, sizeof(name), "/ports/1/gids/%u", index);
    for (int i = 0; i < 16; i += 2)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%02x%02x", i ? ":" : "", raw[i], raw[i + 1]);
    put(tree, below(tree, name), "%s", text);
}

// Attributes exist for filled entries only; what an earlier run left of an address that is gone must go too.
static void put_gid_attribute(struct tree *tree, const char *attribute, unsigned index, const char *text)
{
    char name[48];
    const char *path;

    snprintf(name, sizeof(name), "/ports/1/gid_attrs/%s/%u", attribute, index);
    path = below(tree, name);
    if (text)
        put(tree, path, "%s", text);
    else if (tree->rc == 0 && unlinkat(tree->fd, path, 0) != 0 && errno != ENOENT)
        failed(tree, "remove", path);
}

static void put_gids(struct tree *tree, const struct dock_identity *id)
{
    for (unsigned i = 0; i < DOCK_GID_TABLE; i++) {
        bool filled = i < id->gids;
        char name[IF_NAMESIZE];
        const char *netdev = filled && id->gid[i].ifindex ? if_indextoname(id->gid[i].ifindex, name) : NULL;

        put_gid(tree, i, id->gid[i].raw);
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
        make_directory(tree, below(tree, path));
        return;
    }
}

static void put_verbs_class(struct tree *tree, const struct dock_identity *id)
{
    make_directory(tree, "sys/class/infiniband_verbs/uverbs0");
    put(tree, "sys/class/infiniband_verbs/abi_version", "6");
    put(tree, "sys/class/infiniband_verbs/uverbs0/abi_version", "1");
    put(tree, "sys/class/infiniband_verbs/uverbs0/ibdev", "%s", id->name);
    make_directory(tree, "dev/infiniband");
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
    close(tree.fd);
    return tree.rc;
}
