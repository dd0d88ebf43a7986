// SPDX-License-Identifier: MIT
// What the subcommands of `drydock` share. Each subcommand is one function in a file of its name; main.c
// lists them.
#ifndef DOCK_CLI_CLI_H
#define DOCK_CLI_CLI_H

// Exit codes of `drydock` itself; run adds those that env(1) and nice(1) give for a program that did not
// start.
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_RUN_REFUSED = 125,
    CLI_RUN_NOT_EXECUTABLE = 126,
    CLI_RUN_NOT_FOUND = 127,
};

// Subcommands: argv[0] is the subcommand's own name. They return the exit code.
int cli_run(int argc, char **argv);
int cli_info(int argc, char **argv);
int cli_show(int argc, char **argv);
int cli_ctl(int argc, char **argv);

// Says one line, "drydock: ...", on stderr and returns code, so that a check ends in one statement.
int cli_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
