// SPDX-License-Identifier: MIT
// drydock ctl: the port goes down or up, the GID table changes, under the programs that run.
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "arena/rundir.h"
#include "base/address.h"
#include "base/log.h"
#include "cli/cli.h"
#include "device/identity.h"
#include "device/link.h"

static const uint8_t free_entry[16]; // the table has holes where addresses went

static int find(const struct dock_link *l, const uint8_t raw[16])
{
    for (unsigned i = 0; i < l->gids; i++)
        if (!memcmp(l->gid[i], raw, sizeof l->gid[i]))
            return (int)i;
    return -1;
}

static int add_gid(struct dock_link *l, const uint8_t raw[16], const char *text)
{
    int at = find(l, free_entry);

    if (find(l, raw) >= 0)
        return cli_fail(CLI_FAILED, "%s is in the table already", text);
    if (at < 0 && dock_identity()->gids + l->gids >= DOCK_GID_TABLE - 1)
        return cli_fail(CLI_FAILED, "the GID table is full");
    memcpy(l->gid[at < 0 ? (int)l->gids++ : at], raw, sizeof l->gid[0]);
    return CLI_OK;
}

static int remove_gid(struct dock_link *l, const uint8_t raw[16], const char *text)
{
    int at = find(l, raw);

    if (at < 0)
        return cli_fail(CLI_FAILED, "%s was not added: the host's own addresses stay", text);
    memset(l->gid[at], 0, sizeof l->gid[at]);
    return CLI_OK;
}

static int change(struct dock_link *l, char **argv)
{
    uint8_t raw[16];

    if (!strcmp(argv[1], "port")) {
        l->down = argv[2][0] == 'd';
        return CLI_OK;
    }
    if (dock_link_address(argv[3], raw) || dock_address_is_zero(raw))
        return cli_fail(CLI_USAGE, "%s is no IPv4 or IPv6 address", argv[3]);
    return argv[2][0] == 'a' ? add_gid(l, raw, argv[3]) : remove_gid(l, raw, argv[3]);
}

static bool understood(int argc, char **argv)
{
    if (argc == 3)
        return !strcmp(argv[1], "port") && (!strcmp(argv[2], "up") || !strcmp(argv[2], "down"));
    return argc == 4 && !strcmp(argv[1], "gid") && (!strcmp(argv[2], "add") || !strcmp(argv[2], "del"));
}

// One after the other: of two changes at once one would be lost. The directory's own descriptor only names
// it.
static int lock(const struct dock_rundir *dir)
{
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int read_change_write(const struct dock_rundir *dir, char **argv)
{
    struct dock_link l;
    int code, held = lock(dir);

    if (held < 0)
        return cli_fail(CLI_FAILED, "%s cannot be locked", dir->path);
    if (dock_link_read(dir->fd, &l))
        code = cli_fail(CLI_FAILED, "%s/%s cannot be read", dir->path, DOCK_LINK_FILE);
    else
        code = change(&l, argv);
    if (code == CLI_OK && dock_link_write(dir->fd, &l))
        code = cli_fail(CLI_FAILED, "%s/%s cannot be written", dir->path, DOCK_LINK_FILE);
    close(held);
    return code;
}

int cli_ctl(int argc, char **argv)
{
    struct dock_rundir dir;
    int code;

    if (!understood(argc, argv))
        return cli_fail(CLI_USAGE, "usage: drydock ctl port up|down, drydock ctl gid add|del ADDRESS");
    if (dock_rundir_open(NULL, &dir))
        return cli_fail(CLI_FAILED, "%s", dock_log_last());
    code = read_change_write(&dir, argv);
    dock_rundir_close(&dir);
    return code;
}
