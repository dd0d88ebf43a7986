// SPDX-License-Identifier: MIT
// The two forms of `drydock show`.
#ifndef DOCK_CLI_SHOW_H
#define DOCK_CLI_SHOW_H

#include <stdio.h>

#include "cli/look.h"

void show_table(FILE *to, const struct look *look);
void show_json(FILE *to, const struct look *look);

#endif
