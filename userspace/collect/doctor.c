// SPDX-License-Identifier: GPL-2.0-only
#include "collect/doctor.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/proc_file.h"
#include "collect/bpf_source.h"
#include "collect/doctor_cuda.h"
#include "collect/doctor_process.h"
#include "collect/pure_doctor_report.h"
#include "collect/process_info.h"

/* ---- kernel ---- */

static bool read_number(const char *path, long *value)
{
	char text[32], *end;

	if (!proc_file_read(path, text, sizeof(text)))
		return false;
	*value = strtol(text, &end, 10);
	return end != text;
}

static void check_kernel(struct doctor_report *report)
{
	unsigned int major = 0, minor = 0;
	struct doctor_check *check;
	struct utsname system;

	if (uname(&system) < 0 || sscanf(system.release, "%u.%u", &major, &minor) != 2)
		return;
	if (major > 5 || (major == 5 && minor >= 15)) {
		doctor_add(report, "kernel", DOCTOR_OK, "Linux %s (%s)", system.release, system.machine);
		return;
	}
	check = doctor_add(report, "kernel", DOCTOR_DEGRADED, "Linux %s (%s) is older than 5.15",
	                   system.release, system.machine);
	doctor_fix(check, "use a kernel from 5.15 on; older ones are not tried");
}

static void check_btf(struct doctor_report *report)
{
	struct doctor_check *check;

	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) {
		doctor_add(report, "btf", DOCTOR_OK,
		           "the kernel describes its types (/sys/kernel/btf/vmlinux)");
		return;
	}
	check = doctor_add(report, "btf", DOCTOR_MISSING,
	                   "no type information at /sys/kernel/btf/vmlinux: %s", strerror(errno));
	doctor_fix(check, "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, and mount /sys");
}

static void check_libbpf(struct doctor_report *report)
{
	doctor_add(report, "libbpf", DOCTOR_OK, "libbpf %s", libbpf_version_string() + 1);
}

struct load_trial {
	char missing[ERROR_TEXT];
};

static void on_missing(void *context, const char *what)
{
	struct load_trial *trial = context;
	size_t used = strlen(trial->missing);

	snprintf(trial->missing + used, sizeof(trial->missing) - used, "%s%s", used ? "; " : "", what);
}

/* Loads the very programs that `record` loads. */
static void check_bpf_load(struct doctor_report *report)
{
	struct load_trial trial = {""};
	struct bpf_source_options options = {.ring_bytes = 1 << 20,
	                                     .sample_period_ns = BPF_SOURCE_SAMPLE_PERIOD_NS,
	                                     .user_stacks = STACKS_OFFCPU | STACKS_SAMPLED,
	                                     .degraded = on_missing,
	                                     .context = &trial};
	struct bpf_source *source = NULL;
	struct doctor_check *check;
	struct error error = {0};

	if (bpf_source_open(&source, &options, &error)) {
		check = doctor_add(report, "bpf_load", DOCTOR_MISSING,
		                   "the BPF programs cannot be loaded: %s", error.text);
		doctor_fix(check, "run as root, or give whyidle the capabilities below; in a container: "
		                  "--cap-add=BPF,PERFMON and a seccomp profile that allows bpf()");
	} else if (trial.missing[0]) {
		check = doctor_add(report, "bpf_load", DOCTOR_DEGRADED, "the BPF programs load, but: %s",
		                   trial.missing);
	} else {
		check =
		    doctor_add(report, "bpf_load", DOCTOR_OK,
		               "all BPF programs load (scheduler, processes, faults, samples, CUDA calls)");
	}
	if (check)
		check->essential = true;
	bpf_source_close(source);
}

/* ---- perf events ---- */

static int perf_open(struct perf_event_attr *attribute, pid_t pid, int cpu)
{
	int fd = syscall(SYS_perf_event_open, attribute, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void check_sampling(struct doctor_report *report)
{
	struct perf_event_attr attribute = {
	    .type = PERF_TYPE_SOFTWARE,
	    .size = sizeof(attribute),
	    .config = PERF_COUNT_SW_CPU_CLOCK,
	    .sample_period = BPF_SOURCE_SAMPLE_PERIOD_NS,
	    .disabled = 1,
	};
	struct doctor_check *check;
	int fd = perf_open(&attribute, -1, 0);

	if (fd >= 0) {
		close(fd);
		doctor_add(report, "sampling", DOCTOR_OK, "every CPU can be sampled (perf cpu-clock)");
		return;
	}
	check = doctor_add(report, "sampling", DOCTOR_DEGRADED,
	                   "no samples of what runs on the CPUs: perf_event_open: %s", strerror(-fd));
	doctor_fix(check, "needs CAP_PERFMON (or kernel.perf_event_paranoid <= 0)");
}

/* Offset of a function within our own executable, for a trial probe. */
static uint64_t own_offset(const void *function)
{
	unsigned long long start, end, offset;
	uint64_t found = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx %*s %llx", &start, &end, &offset) == 3 &&
		    (uintptr_t)function >= start && (uintptr_t)function < end)
			found = (uintptr_t)function - start + offset;
	}
	if (maps)
		fclose(maps);
	return found;
}

static void check_uprobes(struct doctor_report *report)
{
	struct perf_event_attr attribute = {.size = sizeof(attribute), .disabled = 1};
	struct doctor_check *check;
	long type;
	int fd = -ENOENT;

	if (read_number("/sys/bus/event_source/devices/uprobe/type", &type)) {
		attribute.type = type;
		attribute.config1 = (uintptr_t) "/proc/self/exe";
		attribute.config2 = own_offset(check_uprobes);
		fd = perf_open(&attribute, -1, 0);
	}
	if (fd >= 0) {
		close(fd);
		doctor_add(report, "uprobes", DOCTOR_OK, "functions of programs can be probed");
		return;
	}
	check =
	    doctor_add(report, "uprobes", DOCTOR_DEGRADED,
	               "no probes on CUDA calls, the fallback where CUPTI cannot be used: %s", strerror(-fd));
	doctor_fix(check, "needs CAP_PERFMON and a kernel built with CONFIG_UPROBE_EVENTS=y");
}

/* ---- privileges ---- */

static const struct {
	int number;
	const char *name, *why;
	bool needed; /* or CAP_SYS_ADMIN, which includes it */
} capabilities[] = {
    {CAP_BPF, "CAP_BPF", "loading the BPF programs", true},
    {CAP_PERFMON, "CAP_PERFMON", "scheduler tracepoints, samples, probes", true},
    {CAP_SYSLOG, "CAP_SYSLOG", "names of kernel functions (/proc/kallsyms)", false},
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "libraries and files of processes of other users", false},
};

static uint64_t effective_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, data) < 0)
		return 0;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

static void check_capabilities(struct doctor_report *report)
{
	uint64_t have = effective_capabilities();
	char missing[256] = "", optional[256] = "";
	struct doctor_check *check;

	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
		char *list = capabilities[i].needed ? missing : optional;
		size_t used = strlen(list);

		if (have & 1ULL << capabilities[i].number || have & 1ULL << CAP_SYS_ADMIN)
			continue;
		snprintf(list + used, 256 - used, "%s%s (%s)", used ? ", " : "", capabilities[i].name,
		         capabilities[i].why);
	}
	if (!missing[0] && !optional[0]) {
		doctor_add(report, "capabilities", DOCTOR_OK, "all that are needed are in effect%s",
		           geteuid() == 0 ? " (root)" : "");
		return;
	}
	check = doctor_add(report, "capabilities", missing[0] ? DOCTOR_MISSING : DOCTOR_DEGRADED,
	                   "not in effect: %s%s%s", missing, missing[0] && optional[0] ? ", " : "", optional);
	doctor_fix(check,
	           "run with sudo, or once: "
	           "sudo setcap cap_bpf,cap_perfmon,cap_syslog,cap_sys_ptrace+ep $(command -v whyidle)");
}

static void check_settings(struct doctor_report *report)
{
	uint64_t have = effective_capabilities();
	bool privileged = have & (1ULL << CAP_SYS_ADMIN | 1ULL << CAP_PERFMON);
	struct doctor_check *check;
	long value;

	if (read_number("/proc/sys/kernel/perf_event_paranoid", &value)) {
		check = doctor_add(report, "perf_event_paranoid",
		                   privileged || value <= 0 ? DOCTOR_OK : DOCTOR_DEGRADED, "%ld%s", value,
		                   privileged ? " (does not matter with CAP_PERFMON)" : "");
		if (!privileged && value > 0)
			doctor_fix(check, "needs CAP_PERFMON, or sysctl kernel.perf_event_paranoid=0");
	}
	if (read_number("/proc/sys/kernel/kptr_restrict", &value)) {
		bool hidden = value >= 2 || (value == 1 && !(have & (1ULL << CAP_SYSLOG)));

		check = doctor_add(
		    report, "kptr_restrict", hidden ? DOCTOR_DEGRADED : DOCTOR_OK, "%ld%s", value,
		    hidden ? ": kernel functions have no names, most waits cannot be told apart" : "");
		if (hidden)
			doctor_fix(check, value >= 2 ? "sysctl kernel.kptr_restrict=1"
			                             : "needs CAP_SYSLOG, or sysctl kernel.kptr_restrict=0");
	}
	if (read_number("/proc/sys/kernel/unprivileged_bpf_disabled", &value))
		doctor_add(report, "unprivileged_bpf_disabled", DOCTOR_NOTE,
		           "%ld (whyidle uses CAP_BPF, whatever this says)", value);
	if (!read_number("/proc/sys/kernel/yama/ptrace_scope", &value))
		doctor_add(report, "ptrace_scope", DOCTOR_OK, "not restricted (no Yama)");
	else
		doctor_add(report, "ptrace_scope", DOCTOR_NOTE,
		           "%ld (matters only for attaching to running processes)", value);
}

/* Kernels before 5.11 account BPF memory to this limit. */
static void check_memlock(struct doctor_report *report)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return;
	if (limit.rlim_cur == RLIM_INFINITY)
		doctor_add(report, "memlock", DOCTOR_OK, "unlimited");
	else
		doctor_add(report, "memlock", DOCTOR_NOTE,
		           "%llu KiB (kernels from 5.11 on do not use it for BPF)",
		           (unsigned long long)limit.rlim_cur / 1024);
}

/* ---- container ---- */

static bool in_container(const char **hint)
{
	static const char *const files[] = {"/.dockerenv", "/run/.containerenv"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (access(files[i], F_OK) == 0) {
			*hint = files[i];
			return true;
		}
	}
	*hint = "environment variable container";
	return getenv("container") != NULL;
}

static void check_container(struct doctor_report *report)
{
	struct doctor_check *check;
	const char *hint;
	bool contained = in_container(&hint);

	if (!process_in_initial_pid_namespace()) {
		check = doctor_add(report, "container", DOCTOR_DEGRADED,
		                   "in a pid namespace of its own%s%s%s: BPF sees the ids of the host",
		                   contained ? " (" : "", contained ? hint : "", contained ? ")" : "");
		doctor_fix(check, "run whyidle on the host, or the container with --pid=host");
	} else if (contained) {
		doctor_add(report, "container", DOCTOR_OK,
		           "looks like a container (%s), with the host's process ids", hint);
	} else {
		doctor_add(report, "container", DOCTOR_OK, "none found");
	}
}

int doctor_examine(uint32_t pid, struct doctor_report *report, struct error *error)
{
	struct doctor_check *check;
	int err;

	check_kernel(report);
	check_btf(report);
	check_libbpf(report);
	check_bpf_load(report);
	check_sampling(report);
	check_uprobes(report);
	check_capabilities(report);
	check_settings(report);
	check_memlock(report);
	check_container(report);
	doctor_check_cuda(report);
	err = pid ? doctor_check_process(pid, report, error) : 0;
	if (err)
		return err;
	array_for_each (check, report) {
		if (!check->detail)
			return error_no_memory(error);
	}
	return 0;
}
