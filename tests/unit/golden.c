// SPDX-License-Identifier: GPL-2.0-only
#include "golden.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL: there is no such file. */
static char *file_read(const char *path)
{
	char *text = NULL;
	size_t size;
	int c;
	FILE *in = fopen(path, "r"), *out;

	if (!in)
		return NULL;
	out = open_memstream(&text, &size);
	cr_assert_not_null(out);
	while ((c = fgetc(in)) != EOF)
		fputc(c, out);
	fclose(in);
	cr_assert_eq(fclose(out), 0);
	return text;
}

static void file_write(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	cr_assert_not_null(out, "cannot write %s", path);
	cr_assert_geq(fputs(text, out), 0);
	cr_assert_eq(fclose(out), 0);
}

/* Number of the first line that differs, from 1, and both forms of it. */
static unsigned first_difference(const char **expected, const char **text)
{
	unsigned line = 1;

	for (;;) {
		size_t length = strcspn(*expected, "\n");

		if (length != strcspn(*text, "\n") || memcmp(*expected, *text, length) ||
		    (*expected)[length] != (*text)[length] || !(*expected)[length])
			return line;
		*expected += length + 1;
		*text += length + 1;
		line++;
	}
}

void golden_check(const char *name, const char *text)
{
	const char *directory = getenv("WHYIDLE_GOLDEN_DIR"), *update = getenv("WHYIDLE_GOLDEN_UPDATE");
	char path[PATH_MAX];
	char *expected;

	snprintf(path, sizeof(path), "%s/%s", directory ? directory : "tests/golden", name);
	if (update && *update) {
		file_write(path, text);
		return;
	}
	expected = file_read(path);
	/* Expectations, not assertions: the caller goes on and frees what it has. */
	cr_expect_not_null(expected, "no golden file %s: run `make golden`, from the root of the repository",
	                   path);
	if (expected && strcmp(expected, text)) {
		const char *a = expected, *b = text;
		unsigned line = first_difference(&a, &b);

		cr_log_error("%s:%u differs\n  expected: %.*s\n  got:      %.*s", path, line,
		             (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
		cr_expect_fail("the output is not that of %s", path);
	}
	free(expected);
}
