// SPDX-License-Identifier: MIT
// drydock run: find the program, see that the loader will take our libraries into it, say which device it is
// on, and become it.
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena/rundir.h"
#include "cli/cli.h"
#include "cli/loader.h"
#include "cli/program.h"
#include "cli/tree.h"
#include "device/identity.h"

static int check_program(const char *name)
{
    struct dock_program program;
    char reason[PATH_MAX + 256];
    int rc = dock_program_find(name, &program);

    if (rc == -ENOENT)
        return cli_fail(CLI_RUN_NOT_FOUND, "%s: not found", name);
    if (rc)
        return cli_fail(CLI_RUN_NOT_EXECUTABLE, "%s: not an executable file, or not for this user", name);
    if (dock_program_takes_preload(&program, reason, sizeof(reason)))
        return cli_fail(CLI_RUN_REFUSED, "%s %s", program.path, reason);
    return 0;
}

static int prepare_loader(void)
{
    struct dock_loader loader;
    int rc = dock_loader_find(&loader);

    if (rc == -ENOENT)
        return cli_fail(
            CLI_RUN_REFUSED,
            "libibverbs.so.1 and libdrydock_preload.so are neither in ../lib/drydock nor in ../lib of this "
            "command: build or install Drydock whole");
    if (rc == -EINVAL)
        return cli_fail(CLI_RUN_REFUSED,
                        "a blank or colon in '%s' cannot be expressed in LD_PRELOAD: move Drydock",
                        loader.dir);
    if (rc == 0)
        rc = dock_loader_export(&loader);
    return rc ? cli_fail(CLI_RUN_REFUSED, "cannot prepare the environment: %s", strerror(-rc)) : 0;
}

// Whoever fails in here has logged the reason.
static int prepare_tree(const struct dock_identity *id)
{
    struct dock_rundir dir;
    char root[PATH_MAX];

    if (dock_rundir_open(NULL, &dir))
        return CLI_RUN_REFUSED;
    int rc = dock_tree_make(dir.fd, id, root, sizeof(root));
    dock_rundir_close(&dir);
    if (rc)
        return CLI_RUN_REFUSED;
    return setenv("DRYDOCK_SHIM", root, 1) ? cli_fail(CLI_RUN_REFUSED, "no memory for the environment") : 0;
}

static int become(char **argv)
{
    int reason;

    execvp(argv[0], argv);
    reason = errno;
    return cli_fail(reason == ENOENT ? CLI_RUN_NOT_FOUND : CLI_RUN_NOT_EXECUTABLE, "%s: %s", argv[0],
                    strerror(reason));
}

int cli_run(int argc, char **argv)
{
    const struct dock_identity *id = dock_identity();
    int first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
    int code;

    if (first >= argc || (first == 1 && argv[1][0] == '-'))
        return cli_fail(CLI_RUN_REFUSED, "usage: drydock run [--] PROGRAM [ARGUMENT...]");
    code = check_program(argv[first]);
    if (!code)
        code = prepare_loader();
    if (!code)
        code = prepare_tree(id);
    if (code)
        return code;
    fprintf(stderr, "drydock: %s (RoCE, software) for %s\n", id->name, basename(argv[first]));
    return become(argv + first);
}
