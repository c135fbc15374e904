// SPDX-License-Identifier: GPL-2.0-only
#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

int library_open(void **handle, const char *library, const struct library_symbol *symbols, size_t count,
                 const char *purpose, const char *package, struct error *error)
{
	*handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!*handle)
		return error_set(error, -ENOTSUP, "%s: %s cannot be loaded (Debian, Ubuntu: install %s)",
		                 purpose, library, package);
	for (size_t i = 0; i < count; i++) {
		void *symbol = dlsym(*handle, symbols[i].name);

		if (!symbol) {
			dlclose(*handle);
			*handle = NULL;
			return error_set(error, -ENOTSUP, "%s: %s has no %s", purpose, library,
			                 symbols[i].name);
		}
		memcpy(symbols[i].function, &symbol, sizeof(symbol));
	}
	return 0;
}
