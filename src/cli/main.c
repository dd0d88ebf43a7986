// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct command {
    const char *name;
    const char *arguments;
    const char *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run", "[--] PROGRAM [ARGUMENT...]", "run a program on the software device", cli_run},
    {"info", "", "what the device is and what this machine allows", cli_info},
    {"show", "[--json]", "processes, queues and counters that are live now", cli_show},
    {"ctl", "port up|down, gid add|del ADDRESS", "the port and its addresses, under running programs",
     cli_ctl},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

int cli_fail(int code, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "drydock: %s\n", text);
    return code;
}

static void usage(FILE *to)
{
    fprintf(to, "usage:\n");
    for (int i = 0; i < COMMANDS; i++) {
        char line[64];

        snprintf(line, sizeof(line), "%s %s", commands[i].name, commands[i].arguments);
        fprintf(to, "  drydock %-33s %s\n", line, commands[i].summary);
    }
    fprintf(to, "See drydock(1).\n");
}

static int help(void)
{
    usage(stdout);
    return CLI_OK;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;

    if (!name) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
        return help();
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    cli_fail(CLI_USAGE, "there is no subcommand '%s'", name);
    usage(stderr);
    return CLI_USAGE;
}
