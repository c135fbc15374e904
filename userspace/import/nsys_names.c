/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of processes and threads, the recorded command, and what Nsight Systems itself says went wrong. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "import/nsys_loader.h"

#define COMMAND_MAX     4096
#define DIAGNOSTICS_MAX 8

enum { PROCESS_ID, PROCESS_NAME };

static int load_process_name(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	uint32_t process, name;
	int64_t global_pid;

	(void)context;
	if (!nsys_integer(table, PROCESS_ID, &global_pid))
		return 1;
	process = nsys_known_process(loader, global_pid);
	if (process == MODEL_NONE)
		return 0;
	name = nsys_string(loader, nsys_text(table, PROCESS_NAME));
	if (name == MODEL_NONE)
		return -ENOMEM;
	loader->model->processes.items[process].comm = name;
	return 0;
}

enum { THREAD_ID, THREAD_NAME };

static int load_thread_name(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	uint32_t thread, name;
	int64_t global_tid;

	(void)context;
	if (!nsys_integer(table, THREAD_ID, &global_tid))
		return 1;
	thread = nsys_known_thread(loader, global_tid);
	if (thread == MODEL_NONE)
		return 0;
	name = nsys_name(loader, table, THREAD_NAME);
	if (name == MODEL_NONE)
		return -ENOMEM;
	loader->model->threads.items[thread].comm = name;
	return 0;
}

int nsys_load_names(struct nsys_loader *loader)
{
	static const struct nsys_column processes[] = {
	    [PROCESS_ID] = {"globalPid", true}, [PROCESS_NAME] = {"name", true}};
	static const struct nsys_column threads[] = {
	    [THREAD_ID] = {"globalTid", true}, [THREAD_NAME] = {"nameId", true}};
	struct model *model = loader->model;
	struct nsys_table table;
	struct thread *thread;
	int rc = nsys_read(loader, &table, "PROCESSES", "names of processes are not known", processes, 2,
	                   load_process_name, NULL);

	if (!rc)
		rc = nsys_read(loader, &table, "ThreadNames", "names of threads are not known", threads, 2,
		               load_thread_name, NULL);
	array_for_each (thread, &model->threads) {
		struct process *process = &model->processes.items[thread->process];

		if (!thread->comm)
			thread->comm = process->comm;
		else if (!process->comm && thread->tid == thread->pid)
			process->comm = thread->comm;
	}
	return rc;
}

enum { CAPTURE_NAME, CAPTURE_VALUE };

/* "PROCESS_0:COMMAND" and then its arguments, in order. */
static int load_capture(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	const char *name = nsys_text(table, CAPTURE_NAME), *value = nsys_text(table, CAPTURE_VALUE);
	char *command = context;
	size_t length = strlen(command);

	(void)loader;
	if (!name || !value)
		return 0;
	if (!strcmp(name, "PROCESS_0:COMMAND"))
		snprintf(command, COMMAND_MAX, "%s", value);
	else if (length && !strncmp(name, "PROCESS_0:ARGUMENT_", 19))
		snprintf(command + length, COMMAND_MAX - length, " %s", value);
	return 0;
}

int nsys_load_command(struct nsys_loader *loader)
{
	static const struct nsys_column columns[] = {
	    [CAPTURE_NAME] = {"name", true}, [CAPTURE_VALUE] = {"value", true}};
	char command[COMMAND_MAX] = "";
	struct nsys_table table;
	int rc = nsys_read(loader, &table, "META_DATA_CAPTURE", "the recorded command is not known", columns,
	                   2, load_capture, command);

	if (rc)
		return rc;
	loader->model->command = nsys_string(loader, command);
	return loader->model->command == MODEL_NONE ? -ENOMEM : 0;
}

enum { DIAGNOSTIC_SEVERITY, DIAGNOSTIC_TEXT };

/* True if the line speaks of records that are not there. */
static bool tells_of_loss(const char *text)
{
	static const char *const words[] = {"lost", "drop", "not all ", "incomplete", "overflow", "missing"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcasestr(text, words[i]))
			return true;
	}
	return false;
}

static int load_diagnostic(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	const char *text = nsys_text(table, DIAGNOSTIC_TEXT);
	uint32_t *left = context;

	/* Severity 1 is information. */
	if (!text || !*left || nsys_unsigned(table, DIAGNOSTIC_SEVERITY, 0) < 2 || !tells_of_loss(text))
		return 0;
	--*left;
	return nsys_note(loader, "Nsight Systems says: %s", text);
}

int nsys_load_diagnostics(struct nsys_loader *loader)
{
	static const struct nsys_column columns[] = {
	    [DIAGNOSTIC_SEVERITY] = {"severity", true}, [DIAGNOSTIC_TEXT] = {"text", true}};
	uint32_t left = DIAGNOSTICS_MAX;
	struct nsys_table table;

	return nsys_read(loader, &table, "DIAGNOSTIC_EVENT", "warnings of the recording are not known",
	                 columns, 2, load_diagnostic, &left);
}
