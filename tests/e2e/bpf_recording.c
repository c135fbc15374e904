/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf_recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP(array, type)                                                                                    \
	do {                                                                                                 \
		type *item = array_add(array);                                                               \
		if (!item)                                                                                   \
			return -ENOMEM;                                                                      \
		memcpy(item, record, sizeof(*item));                                                         \
	} while (0)

static int keep_string(struct recording *recording, const struct record_string *string)
{
	while (recording->strings.count <= string->id) {
		if (!array_add(&recording->strings))
			return -ENOMEM;
	}
	recording->strings.items[string->id] = strndup((const char *)(string + 1), string->length);
	return recording->strings.items[string->id] ? 0 : -ENOMEM;
}

static int keep_stack(struct recording *recording, const struct record_stack *stack)
{
	struct recorded_stack *item = array_add(&recording->stacks);

	if (!item)
		return -ENOMEM;
	/* Ids are dense and come in order. */
	if (stack->id != recording->stacks.count || stack->count > 64)
		return -EPROTO;
	item->record = *stack;
	memcpy(item->frames, stack + 1, stack->count * sizeof(uint64_t));
	return 0;
}

static int keep(void *context, const struct record_header *record)
{
	struct recording *recording = context;

	switch (record->type) {
	case RECORD_STRING:
		return keep_string(recording, (const struct record_string *)record);
	case RECORD_STACK:
		return keep_stack(recording, (const struct record_stack *)record);
	case RECORD_OFFCPU:
		KEEP(&recording->intervals, struct record_offcpu);
		return 0;
	case RECORD_SAMPLE:
		KEEP(&recording->samples, struct record_sample);
		return 0;
	case RECORD_TASK:
		KEEP(&recording->tasks, struct record_task);
		return 0;
	case RECORD_FORK:
		KEEP(&recording->forks, struct record_fork);
		return 0;
	case RECORD_EXEC:
		KEEP(&recording->execs, struct record_exec);
		return 0;
	case RECORD_EXIT:
		KEEP(&recording->exits, struct record_exit);
		return 0;
	case RECORD_CALL:
		KEEP(&recording->calls, struct record_call);
		return 0;
	case RECORD_LOSS:
		KEEP(&recording->losses, struct record_loss);
		return 0;
	case RECORD_INFO:
		KEEP(&recording->infos, struct record_info);
		return 0;
	case RECORD_SYMBOL:
		KEEP(&recording->symbols, struct record_symbol);
		return 0;
	default:
		return 0;
	}
}

int recording_read(struct recording *recording, const char *path, struct error *error)
{
	struct session_summary summary;
	int err;

	*recording = (struct recording){0};
	err = session_read(path, keep, recording, &summary, error);
	if (!err && (!summary.complete || summary.bad_chunks))
		err = error_set(error, -EPROTO, "the session is not complete");
	return err;
}

void recording_free(struct recording *recording)
{
	char **string;

	array_for_each (string, &recording->strings) {
		free(*string);
	}
	array_free(&recording->strings);
	array_free(&recording->intervals);
	array_free(&recording->samples);
	array_free(&recording->tasks);
	array_free(&recording->forks);
	array_free(&recording->execs);
	array_free(&recording->exits);
	array_free(&recording->calls);
	array_free(&recording->losses);
	array_free(&recording->infos);
	array_free(&recording->stacks);
	array_free(&recording->symbols);
}

const char *recording_string(const struct recording *recording, uint32_t id)
{
	if (id >= recording->strings.count || !recording->strings.items[id])
		return "";
	return recording->strings.items[id];
}

const char *recording_info(const struct recording *recording, const char *key)
{
	const struct record_info *info;

	array_for_each (info, &recording->infos) {
		if (!strcmp(recording_string(recording, info->key), key))
			return recording_string(recording, info->value);
	}
	return NULL;
}

static const char *symbol_name(const struct recording *recording, uint64_t address)
{
	const struct record_symbol *symbol;

	array_for_each (symbol, &recording->symbols) {
		if (symbol->address == address && !symbol->pid)
			return recording_string(recording, symbol->name);
	}
	return "";
}

bool recording_stack_has(const struct recording *recording, uint32_t stack, const char *part)
{
	const struct recorded_stack *found;

	if (!stack || stack > recording->stacks.count)
		return false;
	found = &recording->stacks.items[stack - 1];
	for (uint32_t i = 0; i < found->record.count; i++) {
		if (strstr(symbol_name(recording, found->frames[i]), part))
			return true;
	}
	return false;
}

static void print_stack(const struct recording *recording, const char *title, uint32_t stack)
{
	const struct recorded_stack *found;

	if (!stack || stack > recording->stacks.count)
		return;
	found = &recording->stacks.items[stack - 1];
	printf("      %s:", title);
	for (uint32_t i = 0; i < found->record.count; i++)
		printf(" %s", symbol_name(recording, found->frames[i]));
	printf("\n");
}

void recording_print(const struct recording *recording, uint32_t tid)
{
	const struct record_offcpu *at;

	array_for_each (at, &recording->intervals) {
		if (tid && at->tid != tid)
			continue;
		printf("    %u/%u #%u out %" PRIu64 " wake +%" PRId64 " in +%" PRIu64
		       " flags %x state %x syscall %d(%" PRIx64 ") object %" PRIx64
		       " by %u syscall %d(%" PRIx64 ") object %" PRIx64 "\n",
		       at->pid, at->tid, at->seq, at->out_ns,
		       at->wake_ns ? (int64_t)(at->wake_ns - at->out_ns) : -1, at->in_ns - at->out_ns,
		       at->flags, at->state, at->syscall, at->args[0], at->object, at->waker_tid,
		       at->waker_syscall, at->waker_args[0], at->waker_object);
		print_stack(recording, "blocked in", at->kstack);
		print_stack(recording, "woken in", at->waker_kstack);
	}
}

static bool named(const struct recording *recording, uint32_t tid)
{
	const struct record_task *task;
	const struct record_fork *fork;

	array_for_each (task, &recording->tasks) {
		if (task->tid == tid && *recording_string(recording, task->comm))
			return true;
	}
	array_for_each (fork, &recording->forks) {
		if (fork->child_tid == tid && *recording_string(recording, fork->comm))
			return true;
	}
	return false;
}

/* True if `pid` is `root` or was forked, at some remove, by it. */
static bool below(const struct recording *recording, uint32_t pid, uint32_t root)
{
	for (int depth = 0; depth < 64 && pid != root; depth++) {
		const struct record_fork *fork, *found = NULL;

		array_for_each (fork, &recording->forks) {
			if (fork->child_pid == pid && fork->parent_pid != pid)
				found = fork;
		}
		if (!found)
			return false;
		pid = found->parent_pid;
	}
	return pid == root;
}

/*
 * A thread of another program becomes a guest where it wakes one of ours, or an interrupt does so on top of
 * it: on a busy machine that is anybody. It is announced as its own parent.
 */
static bool is_guest(const struct recording *recording, uint32_t pid, uint32_t root)
{
	const struct record_fork *fork;

	array_for_each (fork, &recording->forks) {
		if (fork->child_pid == pid && fork->child_tid == fork->parent_tid)
			return !below(recording, pid, root);
	}
	return false;
}

#define DROP_GUESTS(list, field)                                                                             \
	do {                                                                                                 \
		size_t kept = 0;                                                                             \
                                                                                                             \
		for (size_t i = 0; i < (list).count; i++) {                                                  \
			if (!is_guest(recording, (list).items[i].field, root))                               \
				(list).items[kept++] = (list).items[i];                                      \
		}                                                                                            \
		(list).count = kept;                                                                         \
	} while (0)

void recording_drop_guests(struct recording *recording, uint32_t root)
{
	DROP_GUESTS(recording->intervals, pid);
	DROP_GUESTS(recording->samples, pid);
	DROP_GUESTS(recording->execs, pid);
	DROP_GUESTS(recording->exits, pid);
}

static const char *interval_flaw(const struct recording *recording, const struct record_offcpu *at,
                                 uint32_t root, uint64_t start_ns, uint64_t end_ns)
{
	if (at->out_ns < start_ns || at->in_ns > end_ns || at->in_ns < at->out_ns)
		return "an interval outside the recording, or backwards";
	if (at->flags & RECORD_OFFCPU_WOKEN ? at->wake_ns < at->out_ns || at->wake_ns > at->in_ns
	                                    : at->wake_ns)
		return "a wake outside its interval";
	if (at->flags & RECORD_OFFCPU_PREEMPTED && at->flags & RECORD_OFFCPU_WOKEN)
		return "a runnable thread that was woken";
	if (!below(recording, at->pid, root))
		return "an interval of a process that is not tracked";
	if (!named(recording, at->tid) || (at->waker_tid && !named(recording, at->waker_tid)) ||
	    (at->next_tid && !named(recording, at->next_tid)) ||
	    (at->prev_tid && !named(recording, at->prev_tid)))
		return "a thread without a name";
	if (at->kstack > recording->stacks.count || at->waker_kstack > recording->stacks.count ||
	    at->ustack > recording->stacks.count)
		return "a stack that is not defined";
	if (!at->cpus_allowed)
		return "a thread that may use no CPU";
	return NULL;
}

const char *recording_flaw(const struct recording *recording, uint32_t root, uint64_t start_ns,
                           uint64_t end_ns)
{
	const struct record_offcpu *at, *before;
	const struct record_exit *exit;

	if (recording->losses.count)
		return "records were lost";
	array_for_each (at, &recording->intervals) {
		const char *flaw = interval_flaw(recording, at, root, start_ns, end_ns);
		const struct record_offcpu *last = NULL;

		if (flaw)
			return flaw;
		for (before = recording->intervals.items; before < at; before++) {
			if (before->tid == at->tid)
				last = before;
		}
		if (at->seq != (last ? last->seq + 1 : 1))
			return "a hole in the sequence numbers";
		if (last && last->in_ns > at->out_ns)
			return "intervals of one thread that overlap";
	}
	array_for_each (exit, &recording->exits) {
		uint32_t seq = 0;

		array_for_each (at, &recording->intervals) {
			if (at->tid == exit->tid)
				seq = at->seq;
		}
		if (exit->seq != seq)
			return "an exit record with another sequence number than the last interval";
		if (!below(recording, exit->pid, root))
			return "the exit of a process that is not tracked";
	}
	return NULL;
}
