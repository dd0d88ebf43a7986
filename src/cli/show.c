// SPDX-License-Identifier: MIT
// drydock show: the live devices of the runtime directory, seen from outside.
#include "cli/show.h"

#include <string.h>

#include "cli/cli.h"

int cli_show(int argc, char **argv)
{
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    struct dock_rundir dir;
    struct look look;
    int rc;

    if (argc > 1 && !json)
        return cli_fail(CLI_USAGE, "usage: drydock show [--json]");
    if (dock_rundir_open(NULL, &dir))
        return CLI_FAILED;
    rc = look_all(&dir, &look);
    if (rc == 0)
        (json ? show_json : show_table)(stdout, &look);
    look_free(&look);
    dock_rundir_close(&dir);
    return rc ? CLI_FAILED : CLI_OK;
}
