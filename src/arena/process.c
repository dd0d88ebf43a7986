// SPDX-License-Identifier: MIT
#include "arena/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/seed.h"

static int read_text(const char *path, char *text, size_t size)
{
    int fd = dock_open(path, O_RDONLY | O_CLOEXEC), ret;
    ssize_t n;

    if (fd < 0)
        return -errno;
    dock_uncancelled_begin();
    do
        n = read(fd, text, size - 1);
    while (n < 0 && errno == EINTR);
    dock_uncancelled_end();
    ret = n < 0 ? -errno : 0;
    text[n < 0 ? 0 : n] = '\0';
    dock_close(fd);
    return ret;
}

struct stat_fields {
    char state;
    long threads;
    uint64_t start_time;
};

static int read_stat(const char *who, struct stat_fields *out)
{
    char path[40], text[1024];
    unsigned long long start;
    int ret;

    snprintf(path, sizeof path, "/proc/%s/stat", who);
    ret = read_text(path, text, sizeof text);
    if (ret)
        return ret;
    // The name in parentheses may hold anything, parentheses included: the fields begin after the last.
    const char *fields = strrchr(text, ')');
    if (!fields ||
        sscanf(fields + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &out->state, &out->threads, &start) != 3)
        return -EPROTO;
    out->start_time = start;
    return 0;
}

// Inode numbers of namespaces repeat from boot to boot, the files in a runtime directory may outlive one.
static uint64_t pid_namespace(void)
{
    char boot[64];
    uint64_t id;
    struct stat st;

    if (stat("/proc/self/ns/pid", &st))
        return 0;
    id = dock_mix(st.st_ino);
    if (!read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot))
        for (const char *c = boot; *c; c++)
            id = dock_mix(id ^ (uint8_t)*c);
    return id ? id : 1;
}

void dock_process_self(struct dock_process *out)
{
    struct stat_fields f;

    out->pid = getpid();
    out->start_time = read_stat("self", &f) ? 0 : f.start_time;
    out->pid_namespace = pid_namespace();
}

bool dock_process_equal(const struct dock_process *a, const struct dock_process *b)
{
    return a->pid == b->pid && a->start_time == b->start_time && a->pid_namespace == b->pid_namespace;
}

// /proc may have been mounted for another pid namespace: then its numbers are not ours.
static bool proc_is_ours(void)
{
    char link[16];
    ssize_t n = readlink("/proc/self", link, sizeof link - 1);

    if (n <= 0)
        return false;
    link[n] = '\0';
    return atoi(link) == getpid();
}

int dock_process_alive(const struct dock_process *p)
{
    struct stat_fields f;
    char who[16];
    int ret;

    if (!proc_is_ours())
        return -ENOSYS;
    snprintf(who, sizeof who, "%d", p->pid);
    ret = read_stat(who, &f);
    if (ret)
        return ret == -ENOENT || ret == -ESRCH ? 0 : ret;
    if (f.start_time != p->start_time)
        return 0;
    return !strchr("ZXx", f.state) || f.threads > 1;
}

int dock_process_maps(int pid, const char *name)
{
    char path[40], *line = NULL;
    size_t room = 0, len = strlen(name);
    int found = 0;

    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    dock_uncancelled_begin();
    FILE *f = fopen(path, "re");
    if (!f) {
        found = -errno;
        goto end;
    }
    while (!found && getline(&line, &room, f) > 0) {
        const char *base = strrchr(line, '/');
        found = base && !strncmp(base + 1, name, len);
    }
    // A process that is just ending cannot be asked any more.
    if (!found && ferror(f))
        found = -EIO;
    free(line);
    fclose(f);
end:
    dock_uncancelled_end();
    return found;
}
