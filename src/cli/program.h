// SPDX-License-Identifier: MIT
// Finding the program that `drydock run` is to start, and knowing beforehand when the loader would pass us
// by.
#ifndef DOCK_CLI_PROGRAM_H
#define DOCK_CLI_PROGRAM_H

#include <limits.h>
#include <stddef.h>

struct dock_program {
    char path[PATH_MAX]; // what execvp would start
};

// Finds name as execvp does: as it is when it holds a slash, else along $PATH. 0, -ENOENT or -EACCES (it is
// there, but not an executable file).
int dock_program_find(const char *name, struct dock_program *program);

// Whether the loader will honour LD_PRELOAD in the program, the interpreter in the case of a script. Returns
// 0, or -EPERM with the reason as the rest of a sentence that begins with the program's name.
int dock_program_takes_preload(const struct dock_program *program, char *reason, size_t size);

#endif
