/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define FIRST_NS       1000000000ULL /* what takes less needs no line */
#define EVERY_NS       100000000ULL
#define WIDTH          30 /* characters of the bar */
#define NAME_MAX_SHOWN 40

struct line {
	const char *name; /* of the file, without its folder */
	uint64_t next_ns;
	bool shown;
};

static void show(void *context, uint64_t done, uint64_t total)
{
	struct line *line = context;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	char bar[WIDTH + 1] = "";
	double share;

	if (now < line->next_ns)
		return;
	line->next_ns = now + EVERY_NS;
	line->shown = true;
	fprintf(stderr, "\r\033[Kwhyidle: reading ");
	for (const char *c = line->name; *c && c - line->name < NAME_MAX_SHOWN; c++)
		fputc((unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c, stderr);
	if (!total) {
		fprintf(stderr, ", %.0f MB", done / 1e6);
		return;
	}
	share = done < total ? (double)done / total : 1;
	memset(bar, '#', (size_t)(share * WIDTH));
	fprintf(stderr, " [%-*s] %3.0f %% of %.0f MB", WIDTH, bar, share * 100, total / 1e6);
}

/* Where distributions put debug symbols. That there are none is no error. */
static const char installed[] = "/usr/lib/debug";

static int look_for_symbols(struct model *model, const char *folder, struct error *error)
{
	uint64_t functions;
	int err = folder ? model_resolve(model, folder, true, &functions, error) : 0;

	if (!err && folder)
		fprintf(stderr, "whyidle: %" PRIu64 " functions found in %s\n", functions, folder);
	if (!err && model_resolve(model, installed, false, &functions, NULL) == -ENOMEM)
		err = error_no_memory(error);
	return err;
}

int load_model(struct model *model, const char *path, const char *symbols, struct error *error)
{
	const char *slash = strrchr(path, '/');
	struct line line = {.name = slash ? slash + 1 : path,
	                    .next_ns = clock_ns(CLOCK_MONOTONIC) + FIRST_NS};
	struct import_progress progress = {isatty(STDERR_FILENO) ? show : NULL, &line};
	int rc = import_load(model, path, &progress, error);

	if (line.shown)
		fputs("\r\033[K", stderr);
	if (!rc)
		rc = look_for_symbols(model, symbols, error);
	return rc;
}
