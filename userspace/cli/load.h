/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_CLI_LOAD_H
#define WHYIDLE_CLI_LOAD_H

#include "import/import.h"

/*
 * import_load with a progress line on standard error, if that is a terminal, from a second on. The line is
 * gone when it returns. `symbols`: a folder to look for functions in that have no names, and a line on
 * standard error that says how many were found; NULL: none.
 */
int load_model(struct model *model, const char *path, const char *symbols, struct error *error);

#endif
