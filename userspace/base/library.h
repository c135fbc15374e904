/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Libraries that are only loaded when what they are for is wanted: the program runs without them, and a
 * static one can have them.
 */
#ifndef WHYIDLE_BASE_LIBRARY_H
#define WHYIDLE_BASE_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

/* Where the address of a function goes, a pointer to a function of its type. */
struct library_symbol {
	const char *name;
	void *function;
};

/*
 * Loads the library and looks up all symbols. `purpose` begins the line that says what is not to be had
 * ("no metrics port"), `package` says how to get it. Returns 0, or -ENOTSUP with `error`; *handle is closed
 * with dlclose by the caller, who may do so when nothing of the library is in use.
 */
int library_open(void **handle, const char *library, const struct library_symbol *symbols, size_t count,
                 const char *purpose, const char *package, struct error *error);

#endif
