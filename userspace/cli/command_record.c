// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/capture_range.h"
#include "cli/record_span.h"
#include "cli/record_targets.h"
#include "cli/session_report.h"
#include "collect/bpf_source.h"
#include "collect/pure_environment.h"
#include "collect/recorder.h"

struct record_values {
	const char *output, *html;
	bool quiet, as_root, no_bridge, no_bpf, no_report, json, inject, inject_finalize;
	uint64_t ring_bytes, bridge_ring_bytes, sample_period_ns, min_offcpu_ns;
	int uprobes, user_stacks, locks;
	struct record_targets targets;
	struct record_span span;
	const char *capture_range;
	struct range steps;
};

#define FIELD(name) offsetof(struct record_values, name)

static const char *const uprobe_words[] = {[RECORDER_UPROBES_AUTO] = "auto",
                                           [RECORDER_UPROBES_ALWAYS] = "always",
                                           [RECORDER_UPROBES_NEVER] = "never",
                                           NULL};

static const char *const stack_words[] = {[RECORDER_STACKS_ALL] = "all",
                                          [RECORDER_STACKS_OFFCPU] = "offcpu",
                                          [RECORDER_STACKS_SAMPLES] = "samples",
                                          [RECORDER_STACKS_NONE] = "none",
                                          NULL};

static const char *const lock_words[] = {[RECORDER_LOCKS_OFF] = "off",
                                         [RECORDER_LOCKS_WAITS] = "waits",
                                         [RECORDER_LOCKS_MUTEXES] = "mutexes",
                                         NULL};

static const struct option_spec options[] = {
    {.name = "pid",
     .letter = 'p',
     .argument = "PID[,PID]...",
     .help = "record processes that run already, with all that they start, until they end",
     .kind = OPTION_TEXT,
     .offset = FIELD(targets.pids)},
    {.name = "all",
     .letter = 'a',
     .help = "record every process that uses CUDA, now or later",
     .kind = OPTION_FLAG,
     .offset = FIELD(targets.all)},
    {.name = "cgroup",
     .argument = "PATH",
     .help = "those in this control group or below it",
     .kind = OPTION_TEXT,
     .offset = FIELD(targets.cgroup)},
    {.name = "container",
     .argument = "ID",
     .help = "those in this container (the beginning of its id is enough)",
     .kind = OPTION_TEXT,
     .offset = FIELD(targets.container)},
    {.name = "comm",
     .argument = "NAME",
     .help = "those with this name (ps -o comm), which may hold * and ?",
     .kind = OPTION_TEXT,
     .offset = FIELD(targets.comm)},
    {.name = "duration",
     .letter = 'd',
     .argument = "TIME",
     .help = "how long to record, in seconds or with a unit (default: until the command ends, or Ctrl-C)",
     .kind = OPTION_TEXT,
     .offset = FIELD(span.duration)},
    {.name = "delay",
     .argument = "TIME",
     .help = "how long after the start of the command to begin",
     .kind = OPTION_TEXT,
     .offset = FIELD(span.delay),
     .advanced = true},
    {.name = "kill",
     .argument = "SIGNAL",
     .help = "what a command gets that goes on after --duration: none (default: it is left alone and waited "
             "for), sigterm, sigint, sigkill or a number",
     .kind = OPTION_TEXT,
     .offset = FIELD(span.kill),
     .advanced = true},
    {.name = "capture-range",
     .argument = "RANGE",
     .help =
         "report on what the program marks only: cudaProfilerApi, or nvtx:NAME or nvtx:NAME@DOMAIN; all is "
         "recorded",
     .kind = OPTION_TEXT,
     .offset = FIELD(capture_range)},
    {.name = "steps",
     .argument = "A..B",
     .help = "report on these steps only (whyidle report --help); all is recorded",
     .kind = OPTION_RANGE,
     .offset = FIELD(steps),
     .advanced = true},
    {.name = "inject",
     .help = "load the CUPTI bridge into processes that run already, for the time of the recording: "
             "GPU times as CUPTI has them instead of an inferred timeline (x86-64, glibc)",
     .kind = OPTION_FLAG,
     .offset = FIELD(inject)},
    {.name = "inject-finalize",
     .help =
         "with --inject: finalise CUPTI when the bridge is taken out, in a CUDA call of the program. Gives "
         "back speed that graphs and launches otherwise lose; not the default because it was tried five "
         "times only (docs/attach.md)",
     .kind = OPTION_FLAG,
     .offset = FIELD(inject_finalize),
     .advanced = true},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help =
         "session file (default: whyidle-NAME-PID.whyidle or whyidle-TIME.whyidle in the current directory)",
     .kind = OPTION_TEXT,
     .offset = FIELD(output)},
    {.name = "quiet",
     .letter = 'q',
     .help = "no progress line and no closing line; warnings, errors and the report remain",
     .kind = OPTION_FLAG,
     .offset = FIELD(quiet)},
    {.name = "no-report",
     .help = "record only, explain nothing at the end",
     .kind = OPTION_FLAG,
     .offset = FIELD(no_report),
     .advanced = true},
    {.name = "json",
     .help = "print the report as JSON on standard output, after all that the command wrote there",
     .kind = OPTION_FLAG,
     .offset = FIELD(json)},
    {.name = "html",
     .argument = "OUT",
     .help = "write the report as an HTML file as well, to be opened in a browser",
     .kind = OPTION_TEXT,
     .offset = FIELD(html)},
    {.name = "as-root",
     .help = "under sudo, run the command as root instead of as the user who called sudo",
     .kind = OPTION_FLAG,
     .offset = FIELD(as_root),
     .advanced = true},
    {.name = "ring-size",
     .argument = "BYTES",
     .help = "ring buffer for kernel events, a power of two (default 64M)",
     .kind = OPTION_BYTES,
     .offset = FIELD(ring_bytes),
     .min = 4096,
     .max = 1ULL << 30,
     .power_of_two = true,
     .advanced = true},
    {.name = "bridge-ring-size",
     .argument = "BYTES",
     .help = "ring buffer for GPU events of each process, a power of two (default 32M)",
     .kind = OPTION_BYTES,
     .offset = FIELD(bridge_ring_bytes),
     .min = 4096,
     .max = 1ULL << 30,
     .power_of_two = true,
     .advanced = true},
    {.name = "sample-period",
     .argument = "TIME",
     .help = "how often to sample what runs on each CPU, 0 for never (default 10ms)",
     .kind = OPTION_TIME,
     .offset = FIELD(sample_period_ns),
     .max = 1000000000,
     .advanced = true},
    {.name = "min-offcpu",
     .argument = "TIME",
     .help = "leave out stretches off the CPU that are shorter (default 0: none)",
     .kind = OPTION_TIME,
     .offset = FIELD(min_offcpu_ns),
     .advanced = true},
    {.name = "uprobes",
     .argument = "WHEN",
     .help = "probes on CUDA calls: auto (where the CUPTI bridge does not work), always, never (nor on those "
             "of NCCL)",
     .kind = OPTION_CHOICE,
     .offset = FIELD(uprobes),
     .choices = uprobe_words,
     .advanced = true},
    {.name = "user-stacks",
     .argument = "WHICH",
     .help = "user stacks, which name functions and lines: all (default), offcpu (of threads that wait), "
             "samples (of what runs), none",
     .kind = OPTION_CHOICE,
     .offset = FIELD(user_stacks),
     .choices = stack_words,
     .advanced = true},
    {.name = "locks",
     .argument = "WHICH",
     .help = "probes on the C library, which name what threads wait for: off (default), waits (condition "
             "variables, semaphores, joins, read-write locks), mutexes (these as well; costs the most)",
     .kind = OPTION_CHOICE,
     .offset = FIELD(locks),
     .choices = lock_words},
    {.name = "no-bridge",
     .help = "load nothing into the command: no GPU timeline",
     .kind = OPTION_FLAG,
     .offset = FIELD(no_bridge),
     .advanced = true},
    {.name = "no-bpf",
     .help = "GPU timeline only: needs no privileges, names no causes",
     .kind = OPTION_FLAG,
     .offset = FIELD(no_bpf),
     .advanced = true},
};

static const struct command_spec spec = {
    .name = "record",
    .usage = "[options] -- COMMAND [ARGUMENT]... | [options] {--pid PID | --all | ...}",
    .summary = "Records a command, or processes that run, and explains why the GPUs were idle.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .stop_at_operand = true,
    .examples = "sudo whyidle record -- python train.py          # until it ends\n"
                "sudo whyidle record --pid 1234 --inject -d 10   # ten seconds of one that runs already\n"
                "sudo whyidle record --all -d 30                 # whatever uses CUDA on this machine\n",
    .notes =
        "The command keeps its standard input, output and error; everything of whyidle, the report too, "
        "goes\n"
        "to standard error (but --json to standard output). The exit status is the command's own, 128+N if\n"
        "signal N ended it. Ctrl-C reaches the command as always; a second one ends the recording without\n"
        "waiting for it.\n"
        "Processes that run already are left as they are, unless --inject is given. Without CUPTI in them "
        "the\n"
        "GPU timeline is inferred from their CUDA calls. Ctrl-C ends the recording, and the report comes.\n",
};

struct screen {
	bool progress; /* a progress line may be shown */
	bool shown;    /* one stands there now */
};

/* What watches a recording. */
struct watcher {
	struct screen screen;
	const struct record_values *values;
	bool concluded, failed;
};

static void clear_progress(struct screen *screen)
{
	if (screen->shown)
		fputs("\r\033[K", stderr);
	screen->shown = false;
}

static void show_line(void *context, const char *text)
{
	clear_progress(&((struct watcher *)context)->screen);
	fprintf(stderr, "whyidle: %s\n", text);
}

static void show_progress(void *context, const struct recorder_progress *progress)
{
	struct screen *screen = &((struct watcher *)context)->screen;

	if (!screen->progress)
		return;
	fprintf(stderr, "\r\033[Kwhyidle: %.0f s", progress->elapsed_ns / 1e9);
	if (progress->duration_ns)
		fprintf(stderr, " of %.0f", progress->duration_ns / 1e9);
	if (progress->processes)
		fprintf(stderr, ", %zu process%s", progress->processes, progress->processes > 1 ? "es" : "");
	fprintf(stderr, ", %.0f events/s, %llu lost, %.1f MB", progress->rate,
	        (unsigned long long)progress->lost, progress->file_bytes / 1e6);
	screen->shown = true;
}

/* The options as given, for the session's own record. */
static char *options_line(int argc, char **argv, int first)
{
	char **copy = calloc(argc + 1, sizeof(*copy));
	char *line;
	int count = 0;

	if (!copy)
		return NULL;
	for (int i = 1; i < first && i < argc; i++) {
		if (strcmp(argv[i], "--"))
			copy[count++] = argv[i];
	}
	line = environment_command_line(copy);
	free(copy);
	return line;
}

/* Under sudo the page belongs to whom the session belongs: only its owner can read it. */
static void give_away(const char *page, const char *session)
{
	struct stat owner;

	if (geteuid() == 0 && !stat(session, &owner) && owner.st_uid)
		(void)!lchown(page, owner.st_uid, owner.st_gid);
}

/* As text or JSON, and as a page if one is wanted: each keeps as many gaps as it shows. */
static int report(const struct record_values *values, const char *path, struct error *error)
{
	struct session_report_options wanted = {
	    .device = -1,
	    .steps = values->steps,
	    .capture_range = values->capture_range,
	    .text = values->json ? NULL : stderr,
	    .json = values->json ? stdout : NULL,
	};
	int err = values->no_report ? 0 : session_report_print(path, &wanted, error);

	if (err || !values->html)
		return err;
	wanted.text = wanted.json = NULL;
	wanted.html = values->html;
	err = session_report_print(path, &wanted, error);
	if (!err)
		give_away(values->html, path);
	return err;
}

/* What remains once the recording has ended: the report, and where the file is. Returns false if it failed.
 */
static bool conclude(const struct record_values *values, const struct recorder_result *result)
{
	struct error error = {0};
	bool failed = !result->file_complete;

	if (report(values, result->path, &error)) {
		command_error(&error);
		failed = true;
	}
	if (!values->quiet)
		fprintf(stderr, "whyidle: session kept in %s\n", result->path);
	return !failed;
}

static void conclude_early(void *context, const struct recorder_result *result)
{
	struct watcher *watcher = context;

	clear_progress(&watcher->screen);
	watcher->concluded = true;
	watcher->failed = !conclude(watcher->values, result);
	fflush(stdout);
}

/* Do the options go together? `command` may be NULL. */
static int check(struct record_values *values, struct recorder_options *wanted, const char *command,
                 struct error *error)
{
	bool running = record_targets_given(&values->targets);

	if (running && command)
		return error_set(error, -EINVAL, "record: either a command or processes that run already");
	if (!running && (!command || !*command))
		return error_set(error, -EINVAL,
		                 "record: which command, or which processes? (see whyidle record --help)");
	if (running && (values->span.delay || values->span.kill))
		return error_set(error, -EINVAL,
		                 "record: --delay and --kill are for a command, not for processes that run "
		                 "already");
	if (values->capture_range && values->steps.given)
		return error_set(error, -EINVAL, "record: --capture-range or --steps, not both");
	if (values->no_report && !values->html && (values->capture_range || values->steps.given))
		return error_set(
		    error, -EINVAL,
		    "record: --capture-range and --steps are of the report: give them to whyidle "
		    "report, or leave out --no-report");
	if (values->capture_range && capture_range_check(values->capture_range, error))
		return -EINVAL;
	if (values->inject && (!running || values->no_bridge))
		return error_set(
		    error, -EINVAL,
		    "record: --inject is for processes that run already, and for the CUPTI bridge");
	if (values->inject_finalize && !values->inject)
		return error_set(error, -EINVAL, "record: --inject-finalize goes with --inject");
	if (running && values->no_bpf)
		return error_set(error, -EINVAL,
		                 "record: --no-bpf leaves nothing to record of processes that run already");
	if (values->no_bpf && values->no_bridge)
		return error_set(error, -EINVAL,
		                 "record: --no-bpf and --no-bridge together leave nothing to record");
	if (values->no_bpf && values->locks != RECORDER_LOCKS_OFF)
		return error_set(error, -EINVAL, "record: --locks needs BPF, which --no-bpf leaves out");
	if (record_span_resolve(&values->span, wanted, error))
		return -EINVAL;
	return record_targets_resolve(&values->targets, &wanted->targets, error);
}

static int run(const struct command_services *services, int argc, char **argv)
{
	struct record_values values = {.sample_period_ns = BPF_SOURCE_SAMPLE_PERIOD_NS};
	struct recorder_options wanted = {0};
	struct watcher watcher = {.values = &values};
	struct recorder_observer observer = {
	    .line = show_line, .progress = show_progress, .outlived = conclude_early, .context = &watcher};
	struct recorder_result result;
	enum options_result parsed;
	struct error error = {0};
	char *line;
	int first, err;

	parsed = options_parse(&spec, argc, argv, &values, &first, &error);
	if (parsed == OPTIONS_OK && check(&values, &wanted, first < argc ? argv[first] : NULL, &error))
		parsed = OPTIONS_BAD;
	if (parsed != OPTIONS_OK) {
		record_targets_free(&values.targets);
		return command_leave(&spec, parsed, &error);
	}
	line = options_line(argc, argv, first);
	wanted.command = first < argc ? argv + first : NULL;
	wanted.output = values.output;
	wanted.options = line;
	wanted.as_root = values.as_root;
	wanted.no_bridge = values.no_bridge;
	wanted.no_bpf = values.no_bpf;
	wanted.inject = values.inject;
	wanted.inject_finalize = values.inject_finalize;
	wanted.uprobes = values.uprobes;
	wanted.bpf_ring_bytes = values.ring_bytes;
	wanted.bridge_ring_bytes = values.bridge_ring_bytes;
	wanted.sample_period_ns = values.sample_period_ns;
	wanted.min_offcpu_ns = values.min_offcpu_ns;
	wanted.user_stacks = values.user_stacks;
	wanted.locks = values.locks;
	watcher.screen.progress = !values.quiet && isatty(STDERR_FILENO);
	err = services->record(&wanted, &observer, &result, &error);
	clear_progress(&watcher.screen);
	free(line);
	record_targets_free(&values.targets);
	if (err) {
		command_error(&error);
		return result.exit_status;
	}
	if (!watcher.concluded)
		watcher.failed = !conclude(&values, &result);
	/* The command's own status tells more, unless it has none to tell. */
	return result.exit_status ? result.exit_status : watcher.failed ? STATUS_FAILED : STATUS_DONE;
}

const struct command command_record = {&spec, run};
