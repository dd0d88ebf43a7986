// SPDX-License-Identifier: MIT
#include "cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

// The kernel follows a script to its interpreter this often before it gives up.
enum { SCRIPT_DEPTH = 4 };

static int try_path(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno == EACCES ? -EACCES : -ENOENT;
    if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0)
        return -EACCES;
    return 0;
}

// An empty element of PATH is the current directory.
static int try_element(const char *dir, size_t length, const char *name, struct dock_program *program)
{
    int n = length ? snprintf(program->path, sizeof(program->path), "%.*s/%s", (int)length, dir, name)
                   : snprintf(program->path, sizeof(program->path), "./%s", name);

    return n < (int)sizeof(program->path) ? try_path(program->path) : -ENOENT;
}

int dock_program_find(const char *name, struct dock_program *program)
{
    const char *dir = getenv("PATH");
    int verdict = -ENOENT;

    if (strchr(name, '/')) {
        if (strlen(name) >= sizeof(program->path))
            return -ENOENT;
        strcpy(program->path, name);
        return try_path(program->path);
    }
    if (!dir)
        dir = "/bin:/usr/bin";
    for (;; dir++) {
        size_t length = strcspn(dir, ":");
        int rc = *name ? try_element(dir, length, name, program) : -ENOENT;

        if (rc == 0)
            return 0;
        if (rc == -EACCES)
            verdict = rc;
        dir += length;
        if (*dir == '\0')
            return verdict;
    }
}

// The kernel ignores both kinds of privilege below on a nosuid mount and under no_new_privs, and then the
// loader honours LD_PRELOAD as ever.
static bool privilege_ignored(const char *path)
{
    struct statvfs fs;

    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || (statvfs(path, &fs) == 0 && fs.f_flag & ST_NOSUID);
}

static const char *privilege(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || privilege_ignored(path))
        return NULL;
    if (st.st_mode & S_ISUID && st.st_uid != getuid())
        return "is set-user-ID: the loader ignores LD_PRELOAD there";
    if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
        return "is set-group-ID: the loader ignores LD_PRELOAD there";
    if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        return "has file capabilities: the loader ignores LD_PRELOAD there";
    return NULL;
}

static bool read_header(int fd, Elf64_Ehdr *header)
{
    return pread(fd, header, sizeof(*header), 0) == (ssize_t)sizeof(*header) &&
           memcmp(header->e_ident, ELFMAG, SELFMAG) == 0;
}

static bool same_machine(const Elf64_Ehdr *header)
{
    Elf64_Ehdr own;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && read_header(fd, &own);

    if (fd >= 0)
        close(fd);
    return !known ||
           (own.e_ident[EI_CLASS] == header->e_ident[EI_CLASS] && own.e_machine == header->e_machine);
}

static bool names_loader(int fd, const Elf64_Ehdr *header)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;

        if (pread(fd, &segment, sizeof(segment), (off_t)(header->e_phoff + i * sizeof(segment))) !=
            (ssize_t)sizeof(segment))
            return false;
        if (segment.p_type == PT_INTERP)
            return true;
    }
    return false;
}

static const char *binary_objection(int fd)
{
    Elf64_Ehdr header;

    if (!read_header(fd, &header))
        return NULL;
    if (!same_machine(&header))
        return "is built for another kind of machine than this drydock";
    if (!names_loader(fd, &header))
        return "is statically linked: it loads no library, so no device can be put in front of it";
    return NULL;
}

// Replaces path by the interpreter that a script names in its first line; false when it is no script.
static bool script_interpreter(int fd, char *path, size_t size)
{
    char line[256];
    ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
    char *word;
    char *end = NULL;

    if (n < 3 || line[0] != '#' || line[1] != '!')
        return false;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    word = strtok_r(line + 2, " \t", &end);
    if (!word || strlen(word) >= size)
        return false;
    strcpy(path, word);
    return true;
}

int dock_program_takes_preload(const struct dock_program *program, char *reason, size_t size)
{
    char path[PATH_MAX];
    const char *objection = NULL;
    bool script = true;

    strcpy(path, program->path);
    for (int depth = 0; script && !objection && depth <= SCRIPT_DEPTH; depth++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0) // may be run but not read: the loader will judge
            return 0;
        script = script_interpreter(fd, path, sizeof(path));
        if (!script) // privilege bits of a script are ignored by the kernel, those of its interpreter are not
            objection = privilege(path);
        if (!script && !objection)
            objection = binary_objection(fd);
        close(fd);
    }
    if (!objection)
        return 0;
    if (strcmp(path, program->path) == 0)
        snprintf(reason, size, "%s", objection);
    else
        snprintf(reason, size, "is a script for %s, which %s", path, objection);
    return -EPERM;
}
