/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "bpf/settings.h"
#include "collect/bpf_uprobe.h"
#include "collect/steal.h"
#include "whyidle.skel.h"

#define DEFAULT_RING_BYTES   (64u << 20)
#define DEFAULT_MIN_STACK_NS 100000
#define STACK_BUDGET         (4u << 20) /* bytes of user stacks between two polls */
#define TRIAL_ENTRIES        64         /* map sizes while a program is only tried */

/* Sizes for a recording of a second or so (options->small). */
#define SMALL_RING_BYTES (8u << 20)
#define SMALL_STACKS     8192
#define SMALL_SLOTS      128

/* Inode of the initial pid namespace, fixed by the kernel (PROC_PID_INIT_INO). */
#define INITIAL_PID_NAMESPACE 0xeffffffcu

/* The programs, and what a recording lacks without each. */
static const struct program {
	const char *name;
	bool essential;
	const char *missing;
} programs_known[] = {
    {"sched_switched", true, "off-CPU intervals"},
    {"sched_wakes", true, "who woke a thread"},
    {"process_forked", true, "new processes and threads"},
    {"process_exited", true, "the end of threads"},
    {"process_executed", false, "programs that a recorded process executes are not named"},
    {"task_renamed", false, "threads that change their name keep the old one"},
    {"threads_adopted", false,
     "threads that exist when recording begins are seen from their next switch on only"},
    {"intervals_left", false, "threads that are still blocked when recording ends are not reported"},
    {"threads_forgotten", false, "one recording only can be made with the programs once they are loaded"},
    {"user_fault", false, "page faults are not counted"},
    {"kernel_fault", false, "page faults inside system calls are not counted"},
    {"cpu_sampled", false, "no CPU samples: what running threads did is not known"},
    {"timer_interrupted", false, "when the hypervisor took CPUs away is known less exactly"},
    {"call_launches", false, "CUDA launches cannot be probed"},
    {"call_enters", false, "CUDA calls that block cannot be probed"},
    {"call_returns", false, "the end of CUDA calls cannot be probed"},
    {"nccl_called", false, "calls of NCCL cannot be probed"},
    {"nccl_creates", false, "communicators of NCCL are not known: they cannot be probed"},
    {"nccl_created", false, "communicators of NCCL are not known: their making cannot be probed"},
    {"lock_called", false, "locks are not named: the C library cannot be probed"},
};

#define PROGRAMS_KNOWN (sizeof(programs_known) / sizeof(programs_known[0]))

/* System calls whose first argument says what they are about. Numbers differ by architecture, some lack a
 * few. */
static const struct {
	int number;
	enum syscall_kind kind;
} syscall_kinds[] = {
    {SYS_read, SYSCALL_FD},
    {SYS_write, SYSCALL_FD},
    {SYS_readv, SYSCALL_FD},
    {SYS_writev, SYSCALL_FD},
    {SYS_pread64, SYSCALL_FD},
    {SYS_pwrite64, SYSCALL_FD},
    {SYS_preadv, SYSCALL_FD},
    {SYS_pwritev, SYSCALL_FD},
    {SYS_preadv2, SYSCALL_FD},
    {SYS_pwritev2, SYSCALL_FD},
    {SYS_recvfrom, SYSCALL_FD},
    {SYS_recvmsg, SYSCALL_FD},
    {SYS_recvmmsg, SYSCALL_FD},
    {SYS_sendto, SYSCALL_FD},
    {SYS_sendmsg, SYSCALL_FD},
    {SYS_sendmmsg, SYSCALL_FD},
    {SYS_accept, SYSCALL_FD},
    {SYS_accept4, SYSCALL_FD},
    {SYS_connect, SYSCALL_FD},
    {SYS_shutdown, SYSCALL_FD},
    {SYS_ioctl, SYSCALL_FD},
    {SYS_fsync, SYSCALL_FD},
    {SYS_fdatasync, SYSCALL_FD},
    {SYS_sync_file_range, SYSCALL_FD},
    {SYS_ftruncate, SYSCALL_FD},
    {SYS_fallocate, SYSCALL_FD},
    {SYS_splice, SYSCALL_FD},
    {SYS_tee, SYSCALL_FD},
    {SYS_vmsplice, SYSCALL_FD},
    {SYS_sendfile, SYSCALL_FD},
    {SYS_copy_file_range, SYSCALL_FD},
    {SYS_epoll_pwait, SYSCALL_EPOLL},
    {SYS_flock, SYSCALL_FD},
    {SYS_fcntl, SYSCALL_FD},
    {SYS_getdents64, SYSCALL_FD},
    {SYS_io_uring_enter, SYSCALL_FD},
    {SYS_ppoll, SYSCALL_POLL},
    {SYS_futex, SYSCALL_FUTEX},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, SYSCALL_EPOLL},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, SYSCALL_EPOLL},
#endif
    {SYS_pselect6, SYSCALL_SELECT},
#ifdef SYS_select
    {SYS_select, SYSCALL_SELECT},
#endif
#ifdef SYS_poll
    {SYS_poll, SYSCALL_POLL},
#endif
};

/* What is to be loaded, and how. */
struct plan {
	bool left_out[PROGRAMS_KNOWN];
	bool thread_table; /* see struct bpf_settings */
	uint64_t pid_namespace;
	bool switch_has_state;
	bool uprobe_multi;     /* probes on CUDA calls are attached all at once */
	bool virtual;          /* see struct bpf_settings */
	bool timer_interrupts; /* the kernel has a tracepoint for them: x86 */
};

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_DEBUG || !getenv("WHYIDLE_DEBUG"))
		return 0;
	return vfprintf(stderr, format, arguments);
}

static void set_options(struct bpf_settings *settings, const struct plan *plan,
                        const struct bpf_source_options *options)
{
	settings->pid_namespace = plan->pid_namespace;
	settings->min_offcpu_ns = options->min_offcpu_ns;
	settings->user_stacks = options->user_stacks;
	settings->min_stack_ns = options->min_stack_ns ? options->min_stack_ns : DEFAULT_MIN_STACK_NS;
	settings->stack_budget = STACK_BUDGET;
	settings->thread_table = plan->thread_table;
	settings->collector = (__u32)getpid();
	settings->cpus = (__u32)libbpf_num_possible_cpus();
	settings->switch_has_state = plan->switch_has_state;
	settings->report_callers = options->callers.called != NULL;
	settings->adopt_callers = settings->report_callers && options->callers.adopt;
	settings->locks = options->locks;
	settings->virtual = plan->virtual;
	for (size_t i = 0; i < PROGRAMS_KNOWN; i++) {
		if (!strcmp(programs_known[i].name, "threads_adopted"))
			settings->adopt_on_switch = plan->left_out[i];
	}
	for (size_t i = 0; i < sizeof(syscall_kinds) / sizeof(syscall_kinds[0]); i++) {
		if (syscall_kinds[i].number < SETTINGS_SYSCALLS)
			settings->syscall_kinds[syscall_kinds[i].number] = syscall_kinds[i].kind;
	}
}

/* Sizes of maps. A map that the settings make useless gets the least size. */
static int set_sizes(struct whyidle_bpf *programs, const struct plan *plan,
                     const struct bpf_source_options *options, bool trial)
{
	uint64_t ring = options->ring_bytes ? options->ring_bytes : DEFAULT_RING_BYTES;
	int err = 0;

	if (trial) {
		ring = sysconf(_SC_PAGESIZE);
		err = err ?: bpf_map__set_max_entries(programs->maps.tracked_processes, TRIAL_ENTRIES);
		err = err ?: bpf_map__set_max_entries(programs->maps.named_threads, TRIAL_ENTRIES);
		err = err ?: bpf_map__set_max_entries(programs->maps.named_files, TRIAL_ENTRIES);
		err = err ?: bpf_map__set_max_entries(programs->maps.kernel_stacks, TRIAL_ENTRIES);
		err = err ?: bpf_map__set_max_entries(programs->maps.kernel_stacks_second, TRIAL_ENTRIES);
	}
	if (!trial && options->small) {
		ring = options->ring_bytes ? ring : SMALL_RING_BYTES;
		err = err ?: bpf_map__set_max_entries(programs->maps.kernel_stacks, SMALL_STACKS);
		err = err ?: bpf_map__set_max_entries(programs->maps.kernel_stacks_second, SMALL_STACKS);
		err = err ?: bpf_map__set_max_entries(programs->maps.stack_slots, SMALL_SLOTS);
		err = err ?: bpf_map__set_max_entries(programs->maps.free_slots, SMALL_SLOTS);
	}
	err = err ?: bpf_map__set_max_entries(programs->maps.ring, ring);
	if (trial || !options->user_stacks) {
		err = err ?: bpf_map__set_max_entries(programs->maps.stack_slots, 1);
		err = err ?: bpf_map__set_max_entries(programs->maps.free_slots, 1);
	}
	if (plan->thread_table)
		return err ?: bpf_map__set_autocreate(programs->maps.thread_storage, false);
	return err ?: bpf_map__set_max_entries(programs->maps.thread_table, 1);
}

/*
 * For tests of degraded recordings: WHYIDLE_BPF_WITHOUT names, separated by commas, programs that are treated
 * as if the kernel refused them, or "task_storage", "uprobe_multi", "user_stacks" or "steal_clock".
 */
static bool treated_as_refused(const char *name)
{
	const char *without = secure_getenv("WHYIDLE_BPF_WITHOUT");
	size_t length = strlen(name);

	for (const char *at = without; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (!strncmp(at, name, length) && (!at[length] || at[length] == ','))
			return true;
	}
	return false;
}

/* A program that is loaded for one way of attaching cannot be attached the other way. */
static int set_attach_types(struct whyidle_bpf *programs, const struct plan *plan)
{
	struct bpf_program *const probes[] = {programs->progs.call_launches, programs->progs.call_enters,
	                                      programs->progs.call_returns,  programs->progs.lock_called,
	                                      programs->progs.nccl_called,   programs->progs.nccl_creates,
	                                      programs->progs.nccl_created};
	int err = 0;

	for (size_t i = 0; plan->uprobe_multi && i < sizeof(probes) / sizeof(probes[0]) && !err; i++)
		err = bpf_program__set_expected_attach_type(
		    probes[i], (enum bpf_attach_type)BPF_UPROBE_MULTI_ATTACH_TYPE);
	return err;
}

/* Every slot for user stacks is free at first. */
static int fill_slots(struct whyidle_bpf *programs)
{
	uint32_t count = bpf_map__max_entries(programs->maps.free_slots);
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++)
		err = bpf_map_update_elem(bpf_map__fd(programs->maps.free_slots), NULL, &i, BPF_ANY);
	return err;
}

/* Loads the programs of the plan, or only the one with index `only` to see if it can be; -1: all. */
static int plan_load(const struct plan *plan, const struct bpf_source_options *options, int only,
                     struct whyidle_bpf **loaded)
{
	struct whyidle_bpf *programs = whyidle_bpf__open();
	int err;

	if (!programs)
		return errno ? -errno : -ENOMEM;
	set_options(&programs->rodata->settings, plan, options);
	err = set_sizes(programs, plan, options, only >= 0);
	err = err ?: set_attach_types(programs, plan);
	for (size_t i = 0; i < PROGRAMS_KNOWN && !err; i++) {
		struct bpf_program *program =
		    bpf_object__find_program_by_name(programs->obj, programs_known[i].name);
		bool wanted = only >= 0 ? only == (int)i : !plan->left_out[i];

		err = program ? bpf_program__set_autoload(program, wanted) : -ENOENT;
		if (wanted && treated_as_refused(programs_known[i].name))
			err = -EPERM;
	}
	if (!plan->thread_table && treated_as_refused("task_storage"))
		err = -EPERM;
	if (options->user_stacks && treated_as_refused("user_stacks"))
		err = -E2BIG;
	if (!err)
		err = whyidle_bpf__load(programs);
	if (!err && only < 0)
		err = fill_slots(programs);
	if (err || only >= 0)
		whyidle_bpf__destroy(programs);
	else
		*loaded = programs;
	return err;
}

/* Number of parameters of a tracepoint, -1 if the kernel has none of that name. */
static int tracepoint_parameters(const struct btf *kernel, const char *name)
{
	const struct btf_type *type;
	char type_name[64];
	int id;

	snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
	id = btf__find_by_name_kind(kernel, type_name, BTF_KIND_TYPEDEF);
	if (id < 0)
		return -1;
	type = btf__type_by_id(kernel, btf__type_by_id(kernel, id)->type);
	if (!type || !btf_is_ptr(type))
		return -1;
	type = btf__type_by_id(kernel, type->type);
	/* The first parameter is the tracepoint's own data pointer. */
	return type && btf_is_func_proto(type) ? (int)btf_vlen(type) - 1 : -1;
}

static int refuse(struct error *error, int code, const char *what)
{
	if (code == -EPERM || code == -EACCES) {
		if (geteuid() == 0)
			return error_set(
			    error, code,
			    "%s: the kernel does not allow BPF here; in a container it needs the "
			    "capabilities BPF and PERFMON, and kernel lockdown must be off",
			    what);
		return error_set(
		    error, code,
		    "%s: recording needs root, or these capabilities on the program: sudo setcap "
		    "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog+ep $(which whyidle)",
		    what);
	}
	if (code == -ENOSYS)
		return error_set(error, code, "%s: this kernel has no BPF (CONFIG_BPF_SYSCALL)", what);
	if (code == -EINVAL)
		return error_set(error, code, "%s: this kernel is too old (Linux 5.15 or later is needed)",
		                 what);
	return error_set(error, code, "%s: %s", what, strerror(-code));
}

/* The pid namespace of this process as the programs know it. */
static uint64_t own_pid_namespace(void)
{
	struct stat status;

	if (stat("/proc/self/ns/pid", &status) || status.st_ino == INITIAL_PID_NAMESPACE)
		return 0;
	return status.st_ino;
}

/* Fails early, and in a person's words, where nothing could be loaded at all. */
static int check_kernel(struct plan *plan, struct error *error)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "whyidle_trial", 0, 0, sysconf(_SC_PAGESIZE), NULL);
	struct btf *kernel;

	if (fd < 0)
		return refuse(error, fd, "cannot use BPF");
	close(fd);
	errno = 0;
	kernel = btf__load_vmlinux_btf();
	if (!kernel && errno == ENOMEM)
		return error_no_memory(error);
	if (!kernel)
		return error_set(
		    error, -ENOTSUP,
		    "this kernel does not describe its types (no usable /sys/kernel/btf/vmlinux): "
		    "a kernel built with CONFIG_DEBUG_INFO_BTF is needed");
	plan->pid_namespace = own_pid_namespace();
	plan->switch_has_state = tracepoint_parameters(kernel, "sched_switch") >= 4;
	plan->virtual = steal_possible() && !treated_as_refused("steal_clock");
	plan->timer_interrupts = tracepoint_parameters(kernel, "local_timer_exit") >= 0;
	btf__free(kernel);
	plan->uprobe_multi = !treated_as_refused("uprobe_multi") && bpf_uprobe_multi_works();
	return 0;
}

static void report_missing(const struct bpf_source_options *options, const char *what, int code)
{
	char line[256];

	if (!options->degraded)
		return;
	snprintf(line, sizeof(line), "%s (the kernel refused: %s)", what, strerror(-code));
	options->degraded(options->context, line);
}

/* Tries each program of the plan by itself and leaves out what fails. Returns an error for essential ones. */
static int plan_reduce(struct plan *plan, const struct bpf_source_options *options, struct error *error)
{
	int refused[PROGRAMS_KNOWN] = {0};

	for (size_t i = 0; i < PROGRAMS_KNOWN; i++) {
		if (plan->left_out[i])
			continue;
		refused[i] = plan_load(plan, options, i, NULL);
		if (!refused[i])
			continue;
		if (programs_known[i].essential)
			return error_set(
			    error, refused[i],
			    "the kernel refused the BPF program %s (%s): %s (WHYIDLE_DEBUG=1 shows "
			    "its reasons)",
			    programs_known[i].name, programs_known[i].missing, strerror(-refused[i]));
		plan->left_out[i] = true;
	}
	for (size_t i = 0; i < PROGRAMS_KNOWN; i++) {
		if (refused[i])
			report_missing(options, programs_known[i].missing, refused[i]);
	}
	return 0;
}

int bpf_probe_load(struct whyidle_bpf **programs, const struct bpf_source_options *given, struct error *error)
{
	struct bpf_source_options reduced = *given;
	const struct bpf_source_options *options = &reduced;
	struct plan plan = {0}, table;
	int err;

	libbpf_set_print(print_libbpf);
	err = check_kernel(&plan, error);
	if (err)
		return err;
	for (size_t i = 0; i < PROGRAMS_KNOWN; i++)
		plan.left_out[i] =
		    (!options->sample_period_ns && !strcmp(programs_known[i].name, "cpu_sampled")) ||
		    (!options->locks && !strcmp(programs_known[i].name, "lock_called")) ||
		    (!(plan.virtual && plan.timer_interrupts) &&
		     !strcmp(programs_known[i].name, "timer_interrupted"));
	table = plan;
	table.thread_table = true;

	/* Nearly always the first attempt is the only one. */
	err = plan_load(&plan, options, -1, programs);
	if (!err)
		return 0;
	/* Following Python's frames is the largest part by far: a kernel may find it too complex to check. */
	if (err == -E2BIG && reduced.user_stacks) {
		reduced.user_stacks = 0;
		report_missing(options, "no user stacks: causes name no Python line and no function", err);
		if (!plan_load(&plan, options, -1, programs))
			return 0;
	}
	err = plan_reduce(&plan, options, error);
	if (err && !plan_reduce(&table, options, error)) {
		report_missing(options, "at most 65536 threads are recorded at a time", err);
		plan = table;
		err = 0;
	}
	if (err)
		return err;
	err = plan_load(&plan, options, -1, programs);
	return err ? refuse(error, err, "cannot load the BPF programs") : 0;
}
