// SPDX-License-Identifier: GPL-2.0-only
#include "export/formats.h"

#include <stdio.h>
#include <string.h>

const struct export_format_spec export_formats[EXPORT_FORMAT_COUNT] = {
#define EXPORT_FORMAT_ROW(enumerator, name, ending, purpose, writer)                                         \
	[EXPORT_##enumerator] = {name, ending, purpose, writer},
    EXPORT_FORMATS(EXPORT_FORMAT_ROW)
#undef EXPORT_FORMAT_ROW
};

char *export_default_path(const char *input, enum export_format format)
{
	static const char *const endings[] = {".gz", ".json", ".trace", ".pt", ".whyidle", ".sqlite"};
	const char *slash = strrchr(input, '/');
	size_t folder = slash ? (size_t)(slash + 1 - input) : 0, length = strlen(input);
	char *path;

	/* "rank0.pt.trace.json.gz" gives "rank0.sqlite". */
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		size_t ending = strlen(endings[i]);

		if (length > folder + ending && !memcmp(input + length - ending, endings[i], ending))
			length -= ending;
	}
	if (asprintf(&path, "%.*s%s", (int)length, input, export_formats[format].ending) < 0)
		return NULL;
	return path;
}
