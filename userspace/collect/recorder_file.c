// SPDX-License-Identifier: GPL-2.0-only
/* The session file of a recording: where it is, whose it is, and what it says of the recording itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/recorder_parts.h"

/*
 * Under sudo the file is made as the invoking user, who then owns it, and who may write where root may not (a
 * home on NFS); as root only where that user may not.
 */
static int open_writer(struct recorder *recorder, struct error *error)
{
	const struct launch_user *user = &recorder->user;
	const char *path = recorder->result->path;
	gid_t group = getegid();
	int err;

	if (!user->drop)
		return session_writer_open(&recorder->writer, path, error);
	if (setegid(user->gid) < 0 || seteuid(user->uid) < 0)
		err = -EPERM;
	else
		err = session_writer_open(&recorder->writer, path, error);
	if (seteuid(0) < 0 || setegid(group) < 0) {
		session_writer_close(recorder->writer, NULL);
		recorder->writer = NULL;
		return error_set(error, -EPERM, "cannot become root again: %s", strerror(errno));
	}
	return err ? session_writer_open(&recorder->writer, path, error) : 0;
}

int recorder_open_file(struct recorder *recorder, const char *default_name, struct error *error)
{
	struct recorder_result *result = recorder->result;
	const char *name = recorder->options->output ? recorder->options->output : default_name;
	int err;

	if (snprintf(result->path, sizeof(result->path), "%s", name) >= (int)sizeof(result->path))
		err = error_set(error, -ENAMETOOLONG, "the name of the output file is too long");
	else
		err = open_writer(recorder, error);
	if (err)
		result->path[0] = '\0';
	return err;
}

void recorder_put_start(struct recorder *recorder)
{
	recorder->start_ns = recorder->progress_ns = clock_ns(CLOCK_MONOTONIC);
	recorder->steal = steal_ticks_now();
	recorder->next_progress_ns = recorder->start_ns + PROGRESS_PERIOD_NS;
	recorder_put_number(recorder, "start_mono_ns", recorder->start_ns);
	recorder_put_number(recorder, "start_real_ns", clock_ns(CLOCK_REALTIME));
}

void recorder_put_session(struct recorder *recorder, const char *subject)
{
	struct utsname system;

	recorder_put_info(recorder, "version", WHYIDLE_VERSION);
	recorder_put_info(recorder, "command", subject);
	if (recorder->options->options && *recorder->options->options)
		recorder_put_info(recorder, "options", recorder->options->options);
	if (uname(&system) == 0) {
		recorder_put_info(recorder, "kernel", system.release);
		recorder_put_info(recorder, "hostname", system.nodename);
	}
	recorder_put_info(recorder, "tier", "T2");
	recorder_put_number(recorder, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	recorder_put_number(recorder, "sample_period_ns",
	                    recorder->bpf ? recorder->options->sample_period_ns : 0);
	recorder_put_start(recorder);
	for (size_t i = 0; i < recorder->degraded_count; i++)
		recorder_put_info(recorder, "degraded", recorder->degraded[i]);
}

/* Takes a file away that holds nothing, because the command did not start. */
void recorder_drop_file(struct recorder *recorder)
{
	struct recorder_result *result = recorder->result;
	struct stat info;

	if (!recorder->writer)
		return;
	session_writer_close(recorder->writer, NULL);
	recorder->writer = NULL;
	if (lstat(result->path, &info) == 0 && S_ISREG(info.st_mode)) /* never a device */
		unlink(result->path);
	result->path[0] = '\0';
}
