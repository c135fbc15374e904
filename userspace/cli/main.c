// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/command_look.h"
#include "collect/doctor.h"
#include "collect/recorder.h"
#include "daemon/daemon.h"

static const struct command *const commands[] = {&command_record, &command_report, &command_compare,
                                                 &command_export, &command_doctor, &command_daemon,
                                                 &command_top,    &command_dump};

static void help(FILE *out)
{
	fputs("usage: whyidle [COMMAND ...]\n\nTells why a GPU was idle. Without a command (as root): "
	      "watches all that uses a GPU for ten\n"
	      "seconds and explains it.\n\n",
	      out);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  %-10s %s\n", commands[i]->spec->name, commands[i]->spec->summary);
	fprintf(out, "  %-10s %s\n", "version", "Prints the version.");
	fputs("\nwhyidle COMMAND --help tells more about each.\n", out);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
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
		options_help(stdout, command->spec);
	else
		help(stdout);
	return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
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
	command = find(name);
	return command ? command->run(&services, argc - 1, argv + 1) : unknown(name);
}
