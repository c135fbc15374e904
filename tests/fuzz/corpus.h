/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_FUZZ_CORPUS_H
#define WHYIDLE_FUZZ_CORPUS_H

#include <stdio.h>

/* Writes an input to directory/name: a head, which may be empty, and the bytes behind it. Says what fails; 0
 * or 1. */
static inline int corpus_save(const char *directory, const char *name, const void *head, size_t head_size,
                              const void *bytes, size_t size)
{
	char path[4096];
	FILE *file;
	int failed;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		return 1;
	}
	failed = (head_size && fwrite(head, 1, head_size, file) != head_size) ||
	         fwrite(bytes, 1, size, file) != size;
	if (fclose(file) || failed) {
		perror(path);
		return 1;
	}
	return 0;
}

#endif
