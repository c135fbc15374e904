// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/command_look.h"
#include "cli/manual.h"
#include "collect/doctor.h"
#include "collect/recorder.h"
#include "daemon/daemon.h"

static const struct command *const commands[] = {&command_record, &command_report, &command_compare,
                                                 &command_export, &command_doctor, &command_daemon,
                                                 &command_top,    &command_dump};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const char examples[] =
    "sudo whyidle record -- python train.py         # run a program and explain its idle GPU time\n"
    "sudo whyidle record --pid 1234 -d 10           # the same for ten seconds of one that runs already\n"
    "whyidle report trace.json.gz                   # a trace of the PyTorch profiler, or of nsys\n"
    "whyidle compare BEFORE AFTER                   # better or worse, and because of which cause\n"
    "whyidle report FILE --fail-if 'idle > 20%'     # exit status 3 if it is more\n"
    "whyidle export FILE --format perfetto          # for ui.perfetto.dev\n";

static void help(FILE *out)
{
	fputs("usage: whyidle [COMMAND ...]\n\nTells why a GPU was idle. Without a command (as root): "
	      "watches all that uses a GPU for ten\n"
	      "seconds and explains it.\n\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i]->spec->name, commands[i]->spec->summary);
	fputs("  also: version, manual (the manual page), completion bash|zsh\n", out);
	fputs("\nExamples:\n", out);
	fputs(examples, out);
	fputs("\nwhyidle COMMAND --help tells more about each.\n", out);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (!strcmp(commands[i]->spec->name, name))
			return commands[i];
	}
	return NULL;
}

static int unknown(const char *name)
{
	struct error error;

	error_set(&error, -EINVAL, "unknown %s '%s' (see whyidle --help)",
	          name[0] == '-' ? "option" : "command", name);
	command_error(&error);
	return STATUS_USAGE;
}

static int show_help(const char *topic)
{
	const struct command *command = topic ? find(topic) : NULL;

	if (topic && !command)
		return unknown(topic);
	if (command)
		options_help(stdout, command->spec, false);
	else
		help(stdout);
	return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
}

/* The page, or the completion of a shell. */
static int put_manual(const char *name, const char *shell)
{
	const struct command_spec *specs[COMMAND_COUNT];
	const struct manual manual = {specs, COMMAND_COUNT, WHYIDLE_VERSION, examples};
	struct error error;

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		specs[i] = commands[i]->spec;
	if (!strcmp(name, "manual")) {
		manual_page(stdout, &manual);
	} else if (shell && !strcmp(shell, "bash")) {
		manual_bash(stdout, &manual);
	} else if (shell && !strcmp(shell, "zsh")) {
		manual_zsh(stdout, &manual);
	} else {
		error_set(&error, -EINVAL, "completion: which shell? bash or zsh");
		command_error(&error);
		return STATUS_USAGE;
	}
	return fflush(stdout) || ferror(stdout) ? STATUS_FAILED : STATUS_DONE;
}

int main(int argc, char **argv)
{
	static const struct command_services services = {
	    .record = recorder_run, .examine = doctor_examine, .daemon = daemon_run};
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *command;

	if (!name && geteuid() == 0)
		return command_look(&services);
	if (!name) {
		help(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		return show_help(argc > 2 ? argv[2] : NULL);
	if (!strcmp(name, "version") || !strcmp(name, "--version") || !strcmp(name, "-V"))
		return printf("whyidle %s\n", WHYIDLE_VERSION) < 0 || fflush(stdout) ? STATUS_FAILED
		                                                                     : STATUS_DONE;
	if (!strcmp(name, "manual") || !strcmp(name, "completion"))
		return put_manual(name, argc > 2 ? argv[2] : NULL);
	command = find(name);
	return command ? command->run(&services, argc - 1, argv + 1) : unknown(name);
}
