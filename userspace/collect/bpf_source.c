/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_source.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/array.h"
#include "bpf/events.h"
#include "bpf/settings.h"
#include "collect/bpf_calls.h"
#include "collect/bpf_convert.h"
#include "collect/bpf_locks.h"
#include "collect/bpf_nccl.h"
#include "collect/bpf_probe.h"
#include "collect/bpf_stacks.h"
#include "collect/bpf_tasks.h"
#include "whyidle.skel.h"

/* What the programs did, if the kernel counts it (sysctl kernel.bpf_stats_enabled). */
struct program_runs {
	uint64_t ns;                  /* all of them */
	uint64_t call_ns, call_count; /* of these, those on CUDA calls */
};

struct bpf_source {
	struct bpf_source_options options;
	struct whyidle_bpf *programs;
	struct ring_buffer *ring;
	struct bpf_calls calls;
	struct bpf_locks locks;
	struct bpf_nccl nccl;
	struct bpf_stacks stacks;
	struct user_stacks user_stacks;
	struct bpf_converter converter;
	struct {
		ARRAY(struct bpf_link *)
	} links, sample_links; /* NULL items are allowed */
	struct {
		ARRAY(uint32_t)
	} pids; /* tracked before recording began */
	bool attached, finished;
	bool without_samples;
	struct program_runs before; /* in recordings before */
	bool discard;               /* what the ring holds is of nobody's recording */
	bool told_one_by_one;

	uint64_t events;
	uint64_t lost[WIRE_LOSS_COUNT]; /* as told by loss records so far */
	uint64_t losses_read_ns;        /* when that was read */
	int poll_error;                 /* first error of the poll that is going on */
	struct error *error;            /* where it goes */
};

static void degraded(struct bpf_source *source, const char *what)
{
	if (source->options.degraded)
		source->options.degraded(source->options.context, what);
}

/* ---- opening ---- */

static int on_record(void *context, void *data, size_t size)
{
	struct bpf_source *source = context;
	int err;

	if (source->discard)
		return 0;
	err = bpf_convert(&source->converter, data, size, source->poll_error ? NULL : source->error);
	source->events++;
	if (err && !source->poll_error)
		source->poll_error = err;
	/* The rest is taken as well: a ring that is left full loses what comes next. */
	return 0;
}

static void init_stacks(struct bpf_source *source)
{
	struct bpf_stacks *stacks = &source->stacks;
	char line[200];
	int err;

	stacks->kernel_fds[0] = bpf_map__fd(source->programs->maps.kernel_stacks);
	stacks->kernel_fds[1] = bpf_map__fd(source->programs->maps.kernel_stacks_second);
	source->user_stacks.count = &stacks->count;
	source->user_stacks.python_fd = bpf_map__fd(source->programs->maps.python_processes);
	err = bpf_stacks_init(stacks);
	if (!err)
		return;
	snprintf(line, sizeof(line),
	         "kernel functions have no names, so waits are told apart less well (/proc/kallsyms: %s)",
	         err == -EACCES ? "addresses are hidden, CAP_SYSLOG is needed" : strerror(-err));
	degraded(source, line);
}

int bpf_source_open(struct bpf_source **result, const struct bpf_source_options *options, struct error *error)
{
	struct bpf_source *source;
	long page = sysconf(_SC_PAGESIZE);
	int err;

	*result = NULL;
	if (options->ring_bytes && (options->ring_bytes & (options->ring_bytes - 1) ||
	                            options->ring_bytes < (uint64_t)page || options->ring_bytes > 1u << 30))
		return error_set(error, -EINVAL,
		                 "the BPF ring must be a power of two from %ld bytes to 1 GiB", page);
	source = calloc(1, sizeof(*source));
	if (!source)
		return error_no_memory(error);
	source->options = *options;
	source->locks.mutexes = options->lock_mutexes;
	err = bpf_probe_load(&source->programs, options, error);
	if (err)
		goto fail;
	source->ring = ring_buffer__new(bpf_map__fd(source->programs->maps.ring), on_record, source, NULL);
	if (!source->ring) {
		err = error_set(error, -errno, "cannot map the BPF ring: %s", strerror(errno));
		goto fail;
	}
	init_stacks(source);
	source->converter.callers = &source->options.callers;
	*result = source;
	return 0;
fail:
	bpf_source_close(source);
	return err;
}

/* ---- tracking and attaching ---- */

/* Runs an iterator program once over all threads. Nothing happens if it was left out. */
static int run_iterator(struct bpf_program *program)
{
	struct bpf_link *link;
	char buffer[64];
	ssize_t got;
	int fd, err = 0;

	if (bpf_program__fd(program) < 0)
		return 0;
	link = bpf_program__attach_iter(program, NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0) {
		err = -errno;
	} else {
		do {
			got = read(fd, buffer, sizeof(buffer));
		} while (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN)));
		if (got < 0)
			err = -errno;
		close(fd);
	}
	bpf_link__destroy(link);
	return err;
}

static struct program_runs program_runs(const struct bpf_source *source)
{
	struct bpf_program *program;
	struct program_runs sum = {0};

	bpf_object__for_each_program(program, source->programs->obj)
	{
		struct bpf_prog_info info = {0};
		__u32 length = sizeof(info);

		if (bpf_program__fd(program) < 0 ||
		    bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
			continue;
		sum.ns += info.run_time_ns;
		if (bpf_program__type(program) != BPF_PROG_TYPE_KPROBE)
			continue;
		sum.call_ns += info.run_time_ns;
		sum.call_count += info.run_cnt;
	}
	return sum;
}

/* Removes every entry of a hash map, in one pass: the next key is found before one goes. */
static int empty_map(const struct bpf_map *map)
{
	int fd = bpf_map__fd(map);
	unsigned char key[16], next[16];
	bool more;

	if (bpf_map__key_size(map) > sizeof(key))
		return -E2BIG;
	more = !bpf_map_get_next_key(fd, NULL, next);
	while (more) {
		memcpy(key, next, sizeof(key));
		more = !bpf_map_get_next_key(fd, key, next);
		if (bpf_map_delete_elem(fd, key) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* A count for each CPU, all in one entry. */
static int clear_stack_cost(const struct whyidle_bpf *programs)
{
	int cpus = libbpf_num_possible_cpus(), err;
	struct wire_stack_cost *zero = cpus > 0 ? calloc(cpus, sizeof(*zero)) : NULL;
	uint32_t only = 0;

	if (!zero)
		return -ENOMEM;
	err = bpf_map_update_elem(bpf_map__fd(programs->maps.stack_cost), &only, zero, BPF_ANY) ? -errno : 0;
	free(zero);
	return err;
}

int bpf_source_renew(struct bpf_source *source, unsigned parts, struct error *error)
{
	struct whyidle_bpf *programs = source->programs;
	const struct bpf_map *const maps[] = {
	    programs->maps.tracked_processes, programs->maps.named_threads, programs->maps.named_files,
	    programs->maps.python_processes, programs->maps.nccl_comms, programs->maps.nccl_messages,
	    programs->maps.nccl_threads,
	    /* Nothing in them is ever replaced: they would fill up. */
	    programs->maps.kernel_stacks, programs->maps.kernel_stacks_second};
	int err = 0;

	if (source->attached || bpf_program__fd(programs->progs.threads_forgotten) < 0)
		return error_set(error, -ENOTSUP, "the BPF programs cannot be used for a second recording");
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]) && !err; i++)
		err = empty_map(maps[i]);
	if (!err)
		err = run_iterator(programs->progs.threads_forgotten);
	if (err)
		return error_set(error, err, "cannot make the BPF programs ready for another recording: %s",
		                 strerror(-err));
	programs->bss->recording_end_ns = 0;
	memset(programs->bss->steal_looks, 0, sizeof(programs->bss->steal_looks));
	programs->bss->stacks_off = !(parts & BPF_SOURCE_USER_STACKS);
	source->without_samples = !(parts & BPF_SOURCE_SAMPLES);
	/* What the recording before has left in the ring. */
	source->discard = true;
	ring_buffer__consume(source->ring);
	source->discard = false;
	source->events = 0;
	memset(programs->bss->losses, 0, sizeof(programs->bss->losses));
	err = clear_stack_cost(programs);
	if (err)
		return error_set(error, err, "cannot set the cost of stacks to 0: %s", strerror(-err));
	source->before = program_runs(source);
	return 0;
}

static int adopt(struct bpf_source *source, struct error *error)
{
	int err = run_iterator(source->programs->progs.threads_adopted);

	return err ? error_set(error, err, "cannot go over the threads of the system: %s", strerror(-err))
	           : 0;
}

/* Puts a process into the tracked set. Returns 1 if it was there already, by whoever. */
static int mark_tracked(struct bpf_source *source, uint32_t process, struct error *error)
{
	int map = bpf_map__fd(source->programs->maps.tracked_processes);
	uint8_t value = 0;

	if (!bpf_map_lookup_elem(map, &process, &value) && value == TRACKED_WHOLE)
		return 1;
	value = TRACKED_WHOLE;
	if (bpf_map_update_elem(map, &process, &value, BPF_ANY))
		return error_set(error, -errno, "cannot track process %u: %s", process, strerror(errno));
	return 0;
}

int bpf_source_track(struct bpf_source *source, uint32_t pid, struct error *error)
{
	uint32_t process = bpf_tasks_process(pid), *slot;
	int err;

	if (!process)
		return error_set(error, -ESRCH, "there is no process %u", pid);
	if (source->attached)
		return bpf_source_track_all(source, &process, 1, error);
	err = mark_tracked(source, process, error);
	if (err < 0)
		return err;
	slot = array_add(&source->pids);
	if (!slot)
		return error_no_memory(error);
	*slot = process;
	return 0;
}

int bpf_source_track_all(struct bpf_source *source, const uint32_t *pids, size_t count, struct error *error)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct {
		ARRAY(uint32_t)
	} fresh = {0};
	uint32_t *slot;
	int err = 0;

	for (size_t i = 0; i < count && err >= 0; i++) {
		uint32_t process = bpf_tasks_process(pids[i]);

		err = process ? mark_tracked(source, process, error) : 1;
		if (err)
			continue;
		slot = array_add(&fresh);
		if (!slot)
			err = error_no_memory(error);
		else
			*slot = process;
	}
	/* What is known of their threads comes first, then what becomes of them. */
	array_for_each (slot, &fresh) {
		if (err >= 0)
			err = bpf_tasks_write(*slot, now, source->converter.writer, error);
	}
	if (err >= 0 && fresh.count)
		err = adopt(source, error);
	array_free(&fresh);
	return err < 0 ? err : 0;
}

static int keep_link(struct bpf_source *source, struct bpf_link *link, struct error *error)
{
	struct bpf_link **slot = array_add(&source->links);

	if (!slot) {
		bpf_link__destroy(link);
		return error_no_memory(error);
	}
	*slot = link;
	return 0;
}

/* Attaches a tracepoint program. Left out ones, and failures of those that are not essential, are no error.
 */
static int attach(struct bpf_source *source, struct bpf_program *program, bool essential, struct error *error)
{
	struct bpf_link *link;
	char line[128];

	if (bpf_program__fd(program) < 0)
		return 0;
	link = bpf_program__attach(program);
	if (link)
		return keep_link(source, link, error);
	if (essential)
		return error_set(error, -errno, "cannot attach the BPF program %s: %s",
		                 bpf_program__name(program), strerror(errno));
	snprintf(line, sizeof(line), "the BPF program %s cannot be attached: %s", bpf_program__name(program),
	         strerror(errno));
	degraded(source, line);
	return 0;
}

static int attach_tracepoints(struct bpf_source *source, struct error *error)
{
	struct whyidle_bpf *programs = source->programs;
	const struct {
		struct bpf_program *program;
		bool essential;
	} order[] = {
	    {programs->progs.process_forked, true},     {programs->progs.process_exited, true},
	    {programs->progs.process_executed, false},  {programs->progs.task_renamed, false},
	    {programs->progs.sched_wakes, true},        {programs->progs.sched_switched, true},
	    {programs->progs.user_fault, false},        {programs->progs.kernel_fault, false},
	    {programs->progs.timer_interrupted, false},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && !err; i++)
		err = attach(source, order[i].program, order[i].essential, error);
	return err;
}

static int open_clock(int cpu, uint32_t period_ns)
{
	struct perf_event_attr attr = {
	    .size = sizeof(attr),
	    .type = PERF_TYPE_SOFTWARE,
	    .config = PERF_COUNT_SW_CPU_CLOCK,
	    .sample_period = period_ns,
	    .exclude_idle = 1,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A sampling clock on every CPU that is online. Without samples a recording is still worth having. */
static void attach_samples(struct bpf_source *source)
{
	struct bpf_program *program = source->programs->progs.cpu_sampled;
	int cpus = libbpf_num_possible_cpus(), err = 0, opened = 0;
	struct bpf_link **slot, *link;
	char line[128];

	if (bpf_program__fd(program) < 0 || source->without_samples)
		return;
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = open_clock(cpu, source->options.sample_period_ns);

		if (fd < 0) {
			/* ENODEV: the CPU is off line. */
			err = errno == ENODEV ? err : errno;
			continue;
		}
		link = bpf_program__attach_perf_event(program, fd); /* owns fd if it succeeds */
		slot = link ? array_add(&source->sample_links) : NULL;
		if (slot) {
			*slot = link;
			opened++;
			continue;
		}
		err = link ? ENOMEM : errno;
		if (link)
			bpf_link__destroy(link);
		else
			close(fd);
	}
	if (!err)
		return;
	snprintf(line, sizeof(line), "%s CPU samples: %s", opened ? "some CPUs have no" : "no",
	         strerror(err));
	degraded(source, line);
}

int bpf_source_attach(struct bpf_source *source, struct session_writer *writer, struct error *error)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint32_t *pid;
	int err;

	if (source->attached)
		return error_set(error, -EALREADY, "recording has begun already");
	source->converter.writer = source->stacks.writer = source->user_stacks.writer = writer;
	source->converter.stacks = &source->stacks;
	source->converter.user_stacks = &source->user_stacks;
	source->losses_read_ns = now;
	err = attach_tracepoints(source, error);
	if (err)
		return err;
	attach_samples(source);
	source->attached = true;
	/* From here on no thread can be missed: new ones are seen as they come, the others are found now. */
	err = adopt(source, error);
	array_for_each (pid, &source->pids) {
		if (!err)
			err = bpf_tasks_write(*pid, now, writer, error);
	}
	return err;
}

int bpf_source_attach_calls(struct bpf_source *source, const char *path, struct error *error)
{
	int attached = bpf_calls_attach(&source->calls, source->programs, path, error);

	source->converter.functions = source->calls.names.items;
	source->converter.function_count = source->calls.names.count;
	if (attached > 0 && bpf_calls_one_by_one(source->programs) && !source->told_one_by_one) {
		source->told_one_by_one = true;
		degraded(source,
		         "CUDA calls are probed one after another (Linux before 6.6 has no uprobe_multi): "
		         "the first ones of a process may be missing");
	}
	return attached;
}

int bpf_source_attach_locks(struct bpf_source *source, uint32_t pid, struct error *error)
{
	int program = bpf_program__fd(source->programs->progs.lock_called);

	if (program < 0)
		return error_set(error, -ENOTSUP, "the C library cannot be probed");
	if (bpf_calls_one_by_one(source->programs))
		return error_set(error, -ENOTSUP, "probes on many functions at once need Linux 6.6");
	return bpf_locks_attach(&source->locks, program, pid, error);
}

int bpf_source_attach_nccl(struct bpf_source *source, uint32_t pid, struct error *error)
{
	if (bpf_program__fd(source->programs->progs.nccl_called) < 0 ||
	    bpf_calls_one_by_one(source->programs))
		return 0;
	return bpf_nccl_attach(&source->nccl, source->programs, pid, error);
}

bool bpf_source_simulated(const struct bpf_source *source)
{
	return source->calls.simulated;
}

size_t bpf_source_calls_waiting(const struct bpf_source *source)
{
	return source->calls.waiting.count;
}

/* ---- running ---- */

static uint64_t read_loss(const struct bpf_source *source, enum wire_loss cause)
{
	return __atomic_load_n(&source->programs->bss->losses[cause], __ATOMIC_RELAXED);
}

/* What was lost since this was last called lies between the two calls. */
static int write_losses(struct bpf_source *source, struct error *error)
{
	static const struct {
		enum wire_loss wire;
		enum record_loss_cause cause;
	} kinds[] = {
	    {WIRE_LOSS_RING, RECORD_LOSS_BPF_RING},
	    {WIRE_LOSS_STACK, RECORD_LOSS_STACKS},
	    {WIRE_LOSS_STORAGE, RECORD_LOSS_STORAGE},
	};
	uint64_t next_start = clock_ns(CLOCK_MONOTONIC);
	int err = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint64_t lost = read_loss(source, kinds[i].wire);
		struct record_loss record = {
		    .header = {.type = RECORD_LOSS, .size = sizeof(record)},
		    .start_ns = source->losses_read_ns,
		    .end_ns = clock_ns(CLOCK_MONOTONIC),
		    .count = lost - source->lost[kinds[i].wire],
		    .cause = kinds[i].cause,
		};

		if (!record.count)
			continue;
		source->lost[kinds[i].wire] = lost;
		err = session_writer_put(source->converter.writer, &record, err ? NULL : error) ?: err;
	}
	source->losses_read_ns = next_start;
	return err;
}

int bpf_source_poll(struct bpf_source *source, struct error *error)
{
	int count, err;

	bpf_calls_continue(&source->calls, source->programs);
	source->poll_error = 0;
	source->error = error;
	count = ring_buffer__consume(source->ring);
	source->error = NULL;
	if (count < 0)
		return error_set(error, count, "cannot read the BPF ring: %s", strerror(-count));
	user_stacks_poll(&source->user_stacks, clock_ns(CLOCK_MONOTONIC));
	__atomic_store_n(&source->programs->bss->stack_bytes_sent, 0, __ATOMIC_RELAXED);
	err = write_losses(source, source->poll_error ? NULL : error);
	if (source->poll_error)
		return source->poll_error;
	return err ? err : count;
}

/* ---- ending ---- */

static void detach(struct bpf_source *source)
{
	struct bpf_link **link;

	array_for_each (link, &source->links) {
		bpf_link__destroy(*link);
	}
	array_free(&source->links);
	array_for_each (link, &source->sample_links) {
		bpf_link__destroy(*link);
	}
	array_free(&source->sample_links);
}

static int write_count(struct bpf_source *source, const char *key, uint64_t count, struct error *error)
{
	char text[24];

	if (!count)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64, count);
	return session_writer_info(source->converter.writer, key, text, error);
}

static uint64_t lost_user_stacks(const struct bpf_source *source)
{
	return read_loss(source, WIRE_LOSS_SLOT) + read_loss(source, WIRE_LOSS_BUDGET);
}

/* Sum over all CPUs; zeros if it cannot be read. */
static struct wire_stack_cost stack_cost(const struct bpf_source *source)
{
	struct wire_stack_cost sum = {0};
	int cpus = libbpf_num_possible_cpus(), fd = bpf_map__fd(source->programs->maps.stack_cost);
	struct wire_stack_cost *costs = cpus > 0 ? calloc(cpus, sizeof(*costs)) : NULL;
	uint32_t only = 0;

	if (costs && !bpf_map_lookup_elem(fd, &only, costs)) {
		for (int i = 0; i < cpus; i++) {
			sum.copied += costs[i].copied;
			sum.copied_bytes += costs[i].copied_bytes;
			sum.sent += costs[i].sent;
			sum.sent_bytes += costs[i].sent_bytes;
		}
	}
	free(costs);
	return sum;
}

/*
 * Losses that are notes only: CUDA calls of which the length is missing, stacks of which the names are. And
 * what the stacks have cost.
 */
static int write_notes(struct bpf_source *source, struct error *error)
{
	const struct wire_stack_cost cost = stack_cost(source);
	const struct {
		const char *key;
		uint64_t count;
	} notes[] = {
	    {"lost_nest", read_loss(source, WIRE_LOSS_NEST)},
	    {"lost_user_stacks", lost_user_stacks(source)},
	    {"user_stacks_copied", cost.copied},
	    {"user_stack_bytes_copied", cost.copied_bytes},
	    {"user_stacks_sent", cost.sent},
	    {"user_stack_bytes_sent", cost.sent_bytes},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]) && !err; i++)
		err = write_count(source, notes[i].key, notes[i].count, error);
	return err;
}

static void note_hidden(struct bpf_source *source)
{
	uint32_t count = processes_code_hidden(&source->user_stacks.code);
	char text[160];

	if (!count)
		return;
	snprintf(text, sizeof(text),
	         "functions of %" PRIu32 " process%s have no names: /proc does not show %s to the recorder "
	         "(hidepid, or CAP_SYS_PTRACE is missing)",
	         count, count == 1 ? "" : "es", count == 1 ? "it" : "them");
	degraded(source, text);
}

int bpf_source_finish(struct bpf_source *source, struct error *error)
{
	int err, result;

	if (!source->attached || source->finished)
		return 0;
	source->finished = true;
	detach(source);
	/* This stops the probes on CUDA calls too. Taking them out takes longer and so comes last. */
	source->programs->bss->recording_end_ns = clock_ns(CLOCK_MONOTONIC);
	bpf_calls_drop_waiting(&source->calls);
	/* Make room first: the intervals that are left go through the ring too. */
	result = bpf_source_poll(source, error);
	err = run_iterator(source->programs->progs.intervals_left);
	if (err)
		degraded(source, "threads that are still blocked at the end could not be listed");
	if (result >= 0)
		result = bpf_source_poll(source, error);
	else
		bpf_source_poll(source, NULL);
	note_hidden(source);
	err = write_notes(source, result < 0 ? NULL : error);
	bpf_calls_detach(&source->calls, source->programs);
	bpf_locks_free(&source->locks);
	bpf_nccl_free(&source->nccl);
	return result < 0 ? result : err;
}

void bpf_source_stats(const struct bpf_source *source, struct bpf_source_stats *stats)
{
	const struct program_runs runs = program_runs(source);

	*stats = (struct bpf_source_stats){
	    .events = source->events,
	    .lost_ring = read_loss(source, WIRE_LOSS_RING),
	    .lost_stack = read_loss(source, WIRE_LOSS_STACK),
	    .lost_storage = read_loss(source, WIRE_LOSS_STORAGE),
	    .lost_nest = read_loss(source, WIRE_LOSS_NEST),
	    .stacks = source->stacks.count,
	    .user_stacks = source->user_stacks.unwound,
	    .cut_stacks = source->user_stacks.incomplete,
	    .lost_user_stacks = lost_user_stacks(source),
	    .stack_cost = stack_cost(source),
	    .prog_ns = runs.ns - source->before.ns,
	    .call_ns = runs.call_ns - source->before.call_ns,
	    .call_hits = runs.call_count - source->before.call_count,
	};
}

void bpf_source_close(struct bpf_source *source)
{
	if (!source)
		return;
	detach(source);
	bpf_calls_detach(&source->calls, source->programs);
	bpf_locks_free(&source->locks);
	bpf_nccl_free(&source->nccl);
	ring_buffer__free(source->ring);
	bpf_calls_free(&source->calls);
	bpf_stacks_free(&source->stacks);
	user_stacks_free(&source->user_stacks);
	bpf_files_free(&source->converter.files);
	whyidle_bpf__destroy(source->programs);
	array_free(&source->pids);
	free(source);
}
