// SPDX-License-Identifier: GPL-2.0-only
/* Probes on functions of a process: CUDA calls where there is no bridge, and what is said then; locks. */
#include <stdio.h>
#include <string.h>

#include "collect/job_rank.h"
#include "collect/process_info.h"
#include "collect/recorder_parts.h"

void recorder_probe_cuda(struct recorder *recorder, uint32_t pid, const struct cuda_library *libraries,
                         size_t count)
{
	struct error error = {0};
	int attached = 0;

	for (size_t i = 0; i < count; i++) {
		int one = bpf_source_attach_calls(recorder->bpf, libraries[i].path, &error);

		if (one > 0)
			attached += one;
		else if (one < 0)
			recorder_degrade(recorder, "no probes on the CUDA calls in %s of process %u: %s",
			                 libraries[i].name, pid, error.text);
	}
	if (attached > 0)
		recorder_say(recorder, "%d probes on the CUDA calls of process %u", attached, pid);
}

void recorder_probe_locks(struct recorder *recorder, uint32_t pid)
{
	struct error error = {0};

	if (!recorder->bpf || recorder->options->locks == RECORDER_LOCKS_OFF)
		return;
	if (bpf_source_attach_locks(recorder->bpf, pid, &error) < 0)
		recorder_degrade(recorder, "the locks of process %u are not named: %s", pid, error.text);
}

void recorder_probe_nccl(void *context, uint32_t pid)
{
	struct recorder *recorder = context;
	struct error error = {0};
	int probed;

	if (!recorder->bpf || recorder->options->uprobes == RECORDER_UPROBES_NEVER)
		return;
	probed = bpf_source_attach_nccl(recorder->bpf, pid, &error);
	if (probed < 0)
		recorder_degrade(recorder, "no probes on the NCCL calls of process %u: %s", pid, error.text);
	else if (probed)
		recorder_say(recorder, "%d probes on the NCCL calls of process %u", probed, pid);
}

void recorder_put_rank(struct recorder *recorder, uint32_t pid)
{
	struct error error = {0};

	recorder_note_error(recorder, job_rank_put(recorder->writer, pid, &error), &error);
}

void recorder_cuda_mapped(void *context, uint32_t pid, const struct cuda_library *libraries, size_t count)
{
	struct recorder *recorder = context;

	recorder_probe_locks(recorder, pid);
	if (recorder->bpf && recorder->options->uprobes == RECORDER_UPROBES_ALWAYS)
		recorder_probe_cuda(recorder, pid, libraries, count);
}

void recorder_cuda_without_bridge(void *context, uint32_t pid, enum bridge_state state, const char *text,
                                  const struct cuda_library *libraries, size_t count)
{
	struct recorder *recorder = context;
	const char *why = "the CUPTI bridge was not loaded into it";
	char name[64];

	/* Where a bridge connected, the server has done so. */
	if (state == BRIDGE_ABSENT)
		recorder_put_rank(recorder, pid);

	process_name(pid, name, sizeof(name));
	if (!*name)
		snprintf(name, sizeof(name), "ended");
	if (recorder->options->no_bridge)
		why = "the CUPTI bridge is off (--no-bridge)";
	else if (recorder->injection_taken)
		why = "CUDA_INJECTION64_PATH is used by another tool";
	else if (state == BRIDGE_STARTING)
		why = "CUPTI has not started in it";
	/* A failure has been told by the server already, with its text. */
	(void)text;
	if (state != BRIDGE_FAILED)
		recorder_degrade(recorder, "no GPU timeline for process %u (%s): %s", pid, name, why);
	if (recorder->bpf && recorder->options->uprobes == RECORDER_UPROBES_NEVER)
		recorder_degrade(recorder, "no CUDA calls for process %u (%s): --uprobes never", pid, name);
	if (recorder->bpf && recorder->options->uprobes == RECORDER_UPROBES_AUTO)
		recorder_probe_cuda(recorder, pid, libraries, count);
}
