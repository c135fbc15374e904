/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A folder of binaries or of debug information that was split off, to be searched by build id: laid out as
 * debuggers want it (.build-id/ab/cdef.debug), as debuginfod's clients keep it (abcdef/debuginfo), or in any
 * other way. Neither the files nor the build ids are trusted.
 */
#ifndef WHYIDLE_SYMBOLS_SYMBOL_FOLDER_H
#define WHYIDLE_SYMBOLS_SYMBOL_FOLDER_H

#include "base/error.h"
#include "symbols/binary.h"

struct symbol_folder;

/*
 * `whole`: looks at files that no layout names, too. Returns 0 or a negative errno with `error`: the folder
 * must be there. Free it with symbol_folder_close.
 */
int symbol_folder_open(struct symbol_folder **folder, const char *path, bool whole, struct error *error);

/*
 * The next file with this build id: *at is 0 for the first one and counts up. NULL if there are no more. It
 * belongs to the folder. At most 20,000 files of a folder that is laid out in any other way are looked at.
 */
struct binary *symbol_folder_find(struct symbol_folder *folder, const char *build_id, uint32_t *at);

/* NULL is allowed. */
void symbol_folder_close(struct symbol_folder *folder);

#endif
