/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_tasks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc_file.h"
#include "collect/process_info.h"

void bpf_tasks_join(char *arguments, size_t length)
{
	while (length && !arguments[length - 1])
		length--;
	for (size_t i = 0; i < length; i++) {
		if (!arguments[i])
			arguments[i] = ' ';
	}
}

void bpf_tasks_cmdline(uint32_t pid, char cmdline[TASKS_CMDLINE])
{
	char path[64];
	size_t length;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	length = proc_file_read(path, cmdline, TASKS_CMDLINE);
	bpf_tasks_join(cmdline, length);
}

/* A number of /proc/PID/status, 0 if it is not there. */
static uint32_t status_number(uint32_t pid, const char *key)
{
	char path[64], status[2048], *found;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	if (!proc_file_read(path, status, sizeof(status)))
		return 0;
	found = strstr(status, key);
	return found ? strtoul(found + strlen(key), NULL, 10) : 0;
}

uint32_t bpf_tasks_process(uint32_t id)
{
	return status_number(id, "\nTgid:");
}

static int write_thread(uint32_t pid, uint32_t tid, uint32_t parent, uint64_t now,
                        struct session_writer *writer, struct error *error)
{
	struct record_fork fork = {.header = {.type = RECORD_FORK, .size = sizeof(fork)}};
	struct record_task task = {.header = {.type = RECORD_TASK, .size = sizeof(task)}};
	char path[64], comm[64];
	size_t length;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
	length = proc_file_read(path, comm, sizeof(comm));
	if (!length)
		return 0;
	if (comm[length - 1] == '\n')
		length--;
	fork.comm = task.comm = session_writer_string(writer, comm, length);
	fork.time_ns = task.time_ns = now;
	fork.parent_pid = pid == tid ? parent : pid;
	fork.child_pid = task.pid = pid;
	fork.child_tid = task.tid = tid;
	err = session_writer_put(writer, &fork, error);
	return err ? err : session_writer_put(writer, &task, error);
}

void bpf_tasks_place(struct record_exec *record, struct session_writer *writer)
{
	struct process_place place;

	process_place_read(record->pid, &place);
	record->container = session_writer_cstring(writer, place.container);
	record->pod = session_writer_cstring(writer, place.pod);
	record->namespace_pid = place.namespace_pid;
}

static int write_exec(uint32_t pid, uint64_t now, struct session_writer *writer, struct error *error)
{
	struct record_exec record = {.header = {.type = RECORD_EXEC, .size = sizeof(record)}};
	char path[64], text[TASKS_CMDLINE];
	ssize_t length;

	record.time_ns = now;
	record.pid = record.tid = pid;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	length = proc_file_read(path, text, sizeof(text));
	if (length)
		record.comm = session_writer_string(writer, text, length - (text[length - 1] == '\n'));
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	length = readlink(path, text, sizeof(text));
	if (length > 0)
		record.filename = session_writer_string(writer, text, length);
	bpf_tasks_cmdline(pid, text);
	record.cmdline = session_writer_cstring(writer, text);
	bpf_tasks_place(&record, writer);
	return session_writer_put(writer, &record, error);
}

int bpf_tasks_write(uint32_t pid, uint64_t now, struct session_writer *writer, struct error *error)
{
	uint32_t parent = status_number(pid, "\nPPid:");
	struct dirent *entry;
	char path[64];
	int err = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOMEM ? error_no_memory(error) : 0;
	while (!err && (entry = readdir(tasks))) {
		uint32_t tid = strtoul(entry->d_name, NULL, 10);

		if (tid)
			err = write_thread(pid, tid, parent, now, writer, error);
	}
	closedir(tasks);
	return err ? err : write_exec(pid, now, writer, error);
}
