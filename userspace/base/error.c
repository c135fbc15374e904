/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *error, int code, const char *format, ...)
{
	va_list args;

	if (!error)
		return code;
	error->code = code;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	for (char *c = error->text; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	}
	return code;
}

int error_no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, "out of memory");
}
