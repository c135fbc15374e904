// SPDX-License-Identifier: GPL-2.0-only
#include "cli/command_look.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/session_report.h"
#include "collect/bpf_source.h"
#include "collect/recorder.h"

#define LOOK_NS 10000000000ULL
#define FOLDER  "/tmp/whyidle-XXXXXX"

struct screen {
	bool terminal, shown;
};

static void clear(struct screen *screen)
{
	if (screen->shown)
		fputs("\r\033[K", stderr);
	screen->shown = false;
}

/* What could not be recorded is in the report as well; lines here would only be in the way of the progress.
 */
static void show_progress(void *context, const struct recorder_progress *progress)
{
	struct screen *screen = context;

	if (!screen->terminal)
		return;
	fprintf(stderr,
	        "\r\033[Kwhyidle: watched %.0f s of %.0f, %zu process%s on the GPU (Ctrl-C: explain now)",
	        progress->elapsed_ns / 1e9, progress->duration_ns / 1e9, progress->processes,
	        progress->processes == 1 ? "" : "es");
	screen->shown = true;
}

static int explain(const struct recorder_result *result, struct error *error)
{
	struct session_report_options wanted = {.device = -1, .text = stdout};
	int err;

	if (!result->processes) {
		puts("No process uses a GPU (none called CUDA while it was watched).");
		return 0;
	}
	err = session_report_print(result->path, &wanted, error);
	if (!err)
		puts("\nNothing was loaded into what ran, so GPU times are inferred. To have them measured "
		     "by CUPTI:\n"
		     "  whyidle record --all --inject -d 10");
	return err;
}

static int look(const struct command_services *services, const char *path, struct error *error)
{
	struct screen screen = {.terminal = isatty(STDERR_FILENO)};
	struct recorder_observer observer = {.progress = show_progress, .context = &screen};
	struct recorder_options wanted = {
	    .targets = {.all = true},
	    .duration_ns = LOOK_NS,
	    .output = path,
	    .as_root = true, /* the file is ours, and goes */
	    .sample_period_ns = BPF_SOURCE_SAMPLE_PERIOD_NS,
	};
	struct recorder_result result;
	int err = services->record(&wanted, &observer, &result, error);

	clear(&screen);
	return err ? err : explain(&result, error);
}

int command_look(const struct command_services *services)
{
	char folder[] = FOLDER, path[sizeof(FOLDER) + 16];
	struct error error = {0};
	int err;

	if (!mkdtemp(folder)) {
		error_set(&error, -errno, "cannot make a folder in /tmp: %s", strerror(errno));
		command_error(&error);
		return STATUS_FAILED;
	}
	snprintf(path, sizeof(path), "%s/session", folder);
	err = look(services, path, &error);
	unlink(path);
	rmdir(folder);
	if (err)
		command_error(&error);
	return err ? STATUS_FAILED : STATUS_DONE;
}
