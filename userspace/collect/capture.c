// SPDX-License-Identifier: GPL-2.0-only
#include "collect/capture.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/bpf_source.h"
#include "collect/process_info.h"
#include "trace/session.h"

#define POLL_MS       50
#define MAX_LIBRARIES 16

struct capture {
	const struct capture_options *options;
	struct capture_result *result;
	struct session_writer *writer;
	bool probed; /* some CUDA library has probes */
};

static int put_info(struct capture *capture, const char *key, const char *value, struct error *error)
{
	return session_writer_info(capture->writer, key, value, error);
}

static int put_number(struct capture *capture, const char *key, uint64_t value, struct error *error)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return put_info(capture, key, text, error);
}

static int put_session_info(struct capture *capture, struct error *error)
{
	const struct capture_options *options = capture->options;
	struct utsname system;
	int err = put_info(capture, "version", WHYIDLE_VERSION, error);

	err = err ?: put_info(capture, "command", "(whyidle daemon)", error);
	err = err ?: put_info(capture, "options", options->reason, error);
	err = err ?: put_info(capture, "tier", "T1", error);
	if (!err && !uname(&system)) {
		err = put_info(capture, "kernel", system.release, error);
		err = err ?: put_info(capture, "hostname", system.nodename, error);
	}
	err = err ?: put_number(capture, "cpus", sysconf(_SC_NPROCESSORS_ONLN), error);
	err = err
	          ?: put_number(capture, "sample_period_ns",
	                        options->samples ? BPF_SOURCE_SAMPLE_PERIOD_NS : 0, error);
	return err;
}

/* Probes on the CUDA calls of a process. A process that has gone has no libraries. */
static int probe_process(struct capture *capture, uint32_t pid, struct error *error)
{
	struct cuda_library libraries[MAX_LIBRARIES];
	size_t count = process_cuda_libraries(pid, libraries, MAX_LIBRARIES);
	char line[ERROR_TEXT + 160];
	struct error why;
	int attached, err = 0;

	capture->result->processes += count > 0;
	for (size_t i = 0; i < count && !err; i++) {
		attached = bpf_source_attach_calls(capture->options->source, libraries[i].path, &why);
		if (attached > 0)
			capture->probed = true;
		if (attached >= 0)
			continue;
		snprintf(line, sizeof(line), "no probes on the CUDA calls in %s: %s", libraries[i].name,
		         why.text);
		err = put_info(capture, "degraded", line, error);
	}
	return err;
}

static int begin(struct capture *capture, struct error *error)
{
	const struct capture_options *options = capture->options;
	struct error gone;
	unsigned parts =
	    (options->samples ? BPF_SOURCE_SAMPLES : 0) | (options->user_stacks ? BPF_SOURCE_USER_STACKS : 0);
	int err = bpf_source_renew(options->source, parts, error);

	err = err ?: put_session_info(capture, error);
	for (size_t i = 0; i < options->family_count && !err; i++)
		bpf_source_track(options->source, options->family[i],
		                 &gone); /* it may have ended: no error */
	err = err ?: bpf_source_attach(options->source, capture->writer, error);
	for (size_t i = 0; i < options->pid_count && !err; i++)
		err = probe_process(capture, options->pids[i], error);
	return err;
}

static int collect(struct capture *capture, struct error *error)
{
	uint64_t end = capture->result->start_ns + capture->options->length_ns, now;
	struct bpf_source_stats stats;
	int err = 0;

	while (err >= 0 && (now = clock_ns(CLOCK_MONOTONIC)) < end) {
		uint64_t left_ms = (end - now) / 1000000 + 1;

		poll(NULL, 0, left_ms < POLL_MS ? (int)left_ms : POLL_MS);
		err = bpf_source_poll(capture->options->source, error);
		bpf_source_stats(capture->options->source, &stats);
		if (stats.events + stats.lost_ring >= capture->options->max_events)
			break;
	}
	capture->result->length_ns = clock_ns(CLOCK_MONOTONIC) - capture->result->start_ns;
	return err < 0 ? err : 0;
}

static int end(struct capture *capture, struct error *error)
{
	struct bpf_source_stats stats;
	int err = bpf_source_finish(capture->options->source, error);

	/* Taking the programs out and emptying the ring takes a while, of which nothing is recorded. */
	err = err < 0 ? err
	              : put_number(capture, "end_mono_ns",
	                           capture->result->start_ns + capture->result->length_ns, error);
	bpf_source_stats(capture->options->source, &stats);
	capture->result->events = stats.events;
	capture->result->lost =
	    stats.lost_ring + stats.lost_stack + stats.lost_storage + session_writer_lost(capture->writer);
	capture->result->prog_ns = stats.prog_ns;
	capture->result->call_ns = stats.call_ns;
	capture->result->call_hits = stats.call_hits;
	return err;
}

int capture_run(const struct capture_options *options, struct capture_result *result, struct error *error)
{
	struct capture capture = {.options = options, .result = result};
	struct error closing;
	int err, closed;

	memset(result, 0, sizeof(*result));
	err = session_writer_open(&capture.writer, options->path, error);
	if (err)
		return err;
	err = begin(&capture, error);
	result->start_ns = clock_ns(CLOCK_MONOTONIC);
	err = err ?: put_number(&capture, "start_mono_ns", result->start_ns, error);
	err = err ?: put_number(&capture, "start_real_ns", clock_ns(CLOCK_REALTIME), error);
	err = err ?: collect(&capture, error);
	err = err ?: end(&capture, error);
	closed = session_writer_close(capture.writer, &closing);
	if (!err && closed) {
		err = closed;
		*error = closing;
	}
	return err;
}
