/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the inputs from which fuzz_json starts into a directory: fuzz_json_corpus DIRECTORY */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/json_scan.h"
#include "tests/fuzz/corpus.h"

/* The first byte is the size of the pieces, less one. */
static const char *const texts[] = {
    "\x01{\"a\":[1,-2.5,3e8,\"x\"],\"b\":{\"c\":true,\"d\":false,\"e\":null},\"f\":\"\"}",
    "\x05 [ \"\\u0041\\ud83d\\ude00\\n\\\\\" , NaN , -Infinity , 1712195495505582.988 ] ",
    "\x02\xef\xbb\xbf{\"traceEvents\" : [ {\"ph\": \"X\", \"ts\": \"12.0005\"} , [] ] }\n{}",
    "\x07{\"a\":\"cut off",
    "\x03[1 2]",
};

static int save(const char *directory, size_t number, const char *bytes, size_t size)
{
	char name[32];

	snprintf(name, sizeof(name), "text-%zu", number);
	return corpus_save(directory, name, NULL, 0, bytes, size);
}

int main(int argc, char **argv)
{
	size_t count = sizeof(texts) / sizeof(*texts);
	static char deep[2 * JSON_DEPTH_MAX + 1] = "\x20";

	if (argc != 2)
		return 2;
	for (size_t i = 0; i < count; i++) {
		if (save(argv[1], i, texts[i], strlen(texts[i])))
			return 1;
	}
	memset(deep + 1, '[', JSON_DEPTH_MAX);
	memset(deep + 1 + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	return save(argv[1], count, deep, sizeof(deep));
}
