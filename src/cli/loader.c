// SPDX-License-Identifier: MIT
#include "cli/loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct library {
    const char *name;
    bool needed;
} libraries[] = {
    {"libibverbs.so.1", true},
    {"librdmacm.so.1", false},
    {"liburma.so.0", false},
    {"libdrydock_preload.so", true},
};

enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]) };

bool dock_loader_has(const struct dock_loader *loader, const char *library)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", loader->dir, library);
    return access(path, R_OK) == 0;
}

static bool complete(const struct dock_loader *loader)
{
    for (int i = 0; i < LIBRARIES; i++) {
        if (libraries[i].needed && !dock_loader_has(loader, libraries[i].name))
            return false;
    }
    return true;
}

int dock_loader_find_from(const char *exe, struct dock_loader *loader)
{
    static const char *const places[] = {"../lib/drydock", "../lib"};
    const char *slash = strrchr(exe, '/');

    for (int i = 0; slash && i < 2; i++) {
        char place[2 * PATH_MAX];
        char resolved[PATH_MAX];

        snprintf(place, sizeof(place), "%.*s/%s", (int)(slash - exe), exe, places[i]);
        strcpy(loader->dir, realpath(place, resolved) ? resolved : "");
        if (!complete(loader))
            continue;
        return strpbrk(loader->dir, " \t\n:;") ? -EINVAL : 0;
    }
    return -ENOENT;
}

int dock_loader_find(struct dock_loader *loader)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    if (n < 0)
        return -errno;
    exe[n] = '\0';
    return dock_loader_find_from(exe, loader);
}

static bool has_element(const char *list, const char *item)
{
    size_t length = strlen(item);

    while (*list) {
        size_t n = strcspn(list, ": ");

        if (n == length && memcmp(list, item, n) == 0)
            return true;
        list += n + (list[n] != '\0');
    }
    return false;
}

// An empty LD_LIBRARY_PATH element would mean the current directory, so an empty old value counts as none.
static int add_element(const char *variable, const char *item, bool first)
{
    const char *old = getenv(variable);
    char *value = NULL;
    int rc;

    if (old && has_element(old, item))
        return 0;
    if (!old || !*old)
        return setenv(variable, item, 1) == 0 ? 0 : -errno;
    rc = asprintf(&value, "%s:%s", first ? item : old, first ? old : item);
    if (rc < 0)
        return -ENOMEM;
    rc = setenv(variable, value, 1) == 0 ? 0 : -errno;
    free(value);
    return rc;
}

int dock_loader_export(const struct dock_loader *loader)
{
    int rc = add_element("LD_LIBRARY_PATH", loader->dir, true);

    for (int i = 0; rc == 0 && i < LIBRARIES; i++) {
        char path[PATH_MAX + 64];

        snprintf(path, sizeof(path), "%s/%s", loader->dir, libraries[i].name);
        if (dock_loader_has(loader, libraries[i].name))
            rc = add_element("LD_PRELOAD", path, false);
    }
    return rc;
}
