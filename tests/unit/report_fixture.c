// SPDX-License-Identifier: GPL-2.0-only
#include "report_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

#define START (1000 * MS) /* of the session, CLOCK_MONOTONIC */

/* A long name, kept in analysis.owned. */
static char *own(struct analysis *analysis, size_t length)
{
	char **slot = array_add(&analysis->owned);

	cr_assert_not_null(slot);
	*slot = malloc(length + 1);
	cr_assert_not_null(*slot);
	memset(*slot, 'x', length);
	(*slot)[length] = '\0';
	return *slot;
}

void fixture_empty(struct analysis *analysis)
{
	memset(analysis, 0, sizeof(*analysis));
	analysis->command = "python train.py --epochs 3";
	analysis->tier = "T2";
	analysis->timeline = "cupti";
	analysis->source = "session";
	analysis->session_start_ns = START;
	analysis->session_end_ns = START + 5000 * MS;
}

struct device_report *fixture_device(struct analysis *analysis, const char *name, uint64_t busy_ns)
{
	struct device_report *device = array_add(&analysis->devices);

	cr_assert_not_null(device);
	device->device = (uint32_t)analysis->devices.count - 1;
	device->name = name;
	for (unsigned i = 0; i < 16; i++)
		device->uuid[i] = (uint8_t)(i * 16 + device->device);
	device->window_start_ns = START + 310 * MS;
	device->window_end_ns = device->window_start_ns + busy_ns;
	device->busy_ns = device->compute_busy_ns = busy_ns;
	device->lead_in_ns = 310 * MS;
	device->trail_out_ns = 190 * MS;
	device->op_count = 1234;
	return device;
}

struct cause *fixture_cause(struct device_report *device, enum cause_code code, enum cause_role role,
                            uint64_t ns)
{
	struct cause *cause = array_add(&device->causes);

	cr_assert_not_null(cause);
	cause->code = code;
	cause->role = role;
	cause->confidence = CONFIDENCE_HIGH;
	cause->ns = cause->gain_high_ns = ns;
	cause->gap_count = ns / (10 * MS) + 1;
	device->idle_ns += ns;
	device->late_ns += ns;
	device->window_end_ns += ns;
	device->gap_count = device->gap_count < cause->gap_count ? cause->gap_count : device->gap_count;
	return cause;
}

void fixture_thread(struct cause *cause, uint32_t pid, uint32_t tid, const char *comm, uint64_t ns)
{
	struct cause_thread *thread = array_add(&cause->threads);

	cr_assert_not_null(thread);
	thread->pid = pid;
	thread->tid = tid;
	thread->comm = comm;
	thread->ns = ns;
}

struct gap_report *fixture_gap(struct device_report *device, uint64_t start_ns, const char *kernel)
{
	struct gap_report *gap = array_add(&device->top_gaps);

	cr_assert_not_null(gap);
	gap->start_ns = gap->end_ns = device->window_start_ns + start_ns;
	gap->kernel = kernel;
	gap->launch = kernel ? "cudaLaunchKernel" : NULL;
	gap->pid = gap->tid = kernel ? 1230 : 0;
	gap->comm = kernel ? "main" : NULL;
	return gap;
}

struct chain_link *fixture_link(struct gap_report *gap, uint32_t pid, uint32_t tid, const char *comm,
                                const char *state, enum cause_code code, enum cause_role role, uint64_t ns)
{
	struct chain_link *link = array_add(&gap->chain);

	cr_assert_not_null(link);
	link->pid = pid;
	link->tid = tid;
	link->comm = comm;
	link->state = state;
	link->code = code;
	link->role = role;
	link->confidence = CONFIDENCE_HIGH;
	link->start_ns = gap->end_ns;
	link->end_ns = gap->end_ns = gap->end_ns + ns;
	return link;
}

static int larger_first(const void *left, const void *right)
{
	const struct cause *a = left, *b = right;

	return a->ns < b->ns ? 1 : a->ns > b->ns ? -1 : 0;
}

static const struct cause_thread launcher = {.pid = 1230, .tid = 1230, .comm = "main"};

static void add_starved_gaps(struct device_report *device)
{
	struct gap_report *gap = fixture_gap(device, 920 * MS, "_Z15ampere_sgemm_tnPKfS0_Pfiii");
	struct chain_link *link;

	fixture_link(gap, 1230, 1230, "main", "running", CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 300000);
	link =
	    fixture_link(gap, 1240, 1240, "loader-0", "running", CAUSE_HOST_USER_CODE, ROLE_WORKER, 14200000);
	link->via = "main ← pt_data_pin ← loader-0";
	/* A second one of the same kind, which belongs to the same line. */
	link =
	    fixture_link(gap, 1240, 1240, "loader-0", "running", CAUSE_HOST_USER_CODE, ROLE_WORKER, 5000000);
	link->via = "main ← pt_data_pin ← loader-0";
	link = fixture_link(gap, 1240, 1240, "loader-0", "blocked", CAUSE_WAIT_DISK, ROLE_WORKER, 1800000);
	link->via = "main ← pt_data_pin ← loader-0";
	link->detail.syscall = "pread64";
	link->detail.path = "/data/train/shard-000017.tar";
	fixture_link(gap, 0, 0, "device", "device", CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 2100);

	gap = fixture_gap(device, 1500 * MS, NULL);
	for (unsigned i = 0; i < 12; i++)
		fixture_link(gap, 1230, 1230, "main", i % 2 ? "running" : "runnable",
		             i % 2 ? CAUSE_HOST_USER_CODE : CAUSE_SCHED_CPU_CONTENTION, ROLE_LAUNCHER,
		             100000 * (i + 1));
}

/* Idle 3147 ms in 4.02 s. */
static void add_starved_device(struct analysis *analysis, const char *name)
{
	struct device_report *device = fixture_device(analysis, name, 873 * MS);
	struct cause *cause = fixture_cause(device, CAUSE_HOST_USER_CODE, ROLE_WORKER, 2460 * MS);

	fixture_thread(cause, 1240, 1240, "loader-0", 1300 * MS);
	fixture_thread(cause, 1241, 1241, "loader-1", 1160 * MS);
	cause->waiter = &launcher;
	cause->group = (struct worker_group){.count = 2,
	                                     .wait_ns = 2790 * MS,
	                                     .running = 0.97,
	                                     .runnable = 0.01,
	                                     .blocked_disk = 0.02,
	                                     .enough = 6};
	cause = fixture_cause(device, CAUSE_WAIT_DISK, ROLE_WORKER, 300 * MS);
	cause->confidence = CONFIDENCE_MEDIUM;
	fixture_thread(cause, 1240, 1240, "loader-0", 300 * MS);
	cause->detail.syscall = "pread64";
	cause->detail.path = "/data/train/shard-000017.tar";
	cause = fixture_cause(device, CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 200 * MS);
	fixture_thread(cause, 1230, 1230, "main", 200 * MS);
	cause = fixture_cause(device, CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 130 * MS);
	fixture_thread(cause, 1230, 1230, "main", 130 * MS);
	fixture_cause(device, CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 30 * MS);
	fixture_cause(device, CAUSE_UNKNOWN_NO_WAKER, ROLE_DEVICE, 27 * MS)->confidence = CONFIDENCE_LOW;
}

void fixture_starved(struct analysis *analysis)
{
	fixture_empty(analysis);
	add_starved_device(analysis, "NVIDIA H200");
	add_starved_gaps(&analysis->devices.items[0]);
}

void fixture_healthy(struct analysis *analysis)
{
	struct device_report *device;
	struct cause *cause;

	fixture_empty(analysis);
	device = fixture_device(analysis, "NVIDIA H200", 3984 * MS);
	cause = fixture_cause(device, CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 30 * MS);
	fixture_thread(cause, 1230, 1230, "main", 30 * MS);
	fixture_cause(device, CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 6 * MS + 200000);
}

void fixture_lock(struct analysis *analysis)
{
	struct device_report *device;
	struct gap_report *gap;
	struct chain_link *link;
	struct cause *cause;

	fixture_empty(analysis);
	device = fixture_device(analysis, "NVIDIA H200", 1500 * MS);
	cause = fixture_cause(device, CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 900 * MS);
	fixture_thread(cause, 1230, 1230, "main", 900 * MS);
	cause->detail.holder = "logger (1236)";
	cause->detail.lock = "futex 0x7f12a4000b10";
	cause->detail.syscall = "futex";
	fixture_cause(device, CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 20 * MS);
	gap = fixture_gap(device, 100 * MS, "step_kernel");
	link = fixture_link(gap, 1230, 1230, "main", "blocked", CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 4 * MS);
	link->detail = cause->detail;
}

void fixture_several(struct analysis *analysis)
{
	struct device_report *device;
	struct cause *cause;

	fixture_empty(analysis);
	add_starved_device(analysis, "NVIDIA H200");
	device = fixture_device(analysis, "NVIDIA H200", 800 * MS);
	cause = fixture_cause(device, CAUSE_HOST_USER_CODE, ROLE_WORKER, 3000 * MS);
	for (unsigned i = 0; i < 6; i++)
		fixture_thread(cause, 1300 + i, 1300 + i, "python3", 500 * MS);
	cause->group = (struct worker_group){.count = 8, .wait_ns = 3000 * MS, .running = 1};
	fixture_device(analysis, "NVIDIA H200", 3900 * MS);
	fixture_cause(&analysis->devices.items[2], CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 90 * MS);
	device = fixture_device(analysis, "NVIDIA H200", 0);
	device->op_count = 0;
}

void fixture_lost(struct analysis *analysis)
{
	const char **line;
	struct cause *cause;

	fixture_empty(analysis);
	add_starved_device(analysis, "NVIDIA H200");
	cause = fixture_cause(analysis->devices.items, CAUSE_UNKNOWN_LOST, ROLE_DEVICE, 500 * MS);
	cause->confidence = CONFIDENCE_LOW;
	array_sort(&analysis->devices.items->causes, larger_first);
	analysis->incomplete = true;
	analysis->losses.bpf_ring = 123456;
	analysis->losses.cupti = 7;
	line = array_add(&analysis->degraded);
	cr_assert_not_null(line);
	*line = "no user stacks: the kernel refused perf events (set kernel.perf_event_paranoid to 2)";
}

void fixture_hostile(struct analysis *analysis)
{
	struct device_report *device;
	struct gap_report *gap;
	struct chain_link *link;
	struct cause *cause;
	const char **line;
	char *large;

	fixture_empty(analysis);
	large = own(analysis, 1 << 20);
	analysis->command = "sh -c '\033]0;owned\007'\nGPU 0 was busy 100 %";
	analysis->tier = "\033[2J";
	device = fixture_device(analysis, "\033[31mGPU\xff\xfe\n", 500 * MS);
	cause = fixture_cause(device, CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 900 * MS);
	fixture_thread(cause, 1230, 1230, "a\033[2Jb\r\n", 900 * MS);
	cause->threads.items[0].cmdline = "\xc3";
	cause->detail.holder = large;
	cause->detail.path = "/tmp/\xe2\x80\xae"
	                     "txt.exe";
	cause->detail.lock = "\xed\xa0\x80\xf5\x80\x80\x80";
	cause = fixture_cause(device, CAUSE_HOST_USER_CODE, ROLE_WORKER, 800 * MS);
	fixture_thread(cause, 1240, 1240, large, 400 * MS);
	fixture_thread(cause, 1241, 1241, "日本語のとても長いスレッド名がここにある", 300 * MS);
	fixture_thread(cause, 1242, 1242, "", 100 * MS);
	gap = fixture_gap(device, 100 * MS, large);
	gap->launch = "cuda\tLaunch\x7f";
	gap->comm = "\xc2\x9b[31m";
	link = fixture_link(gap, 1230, 1230, "\033[1A", "blocked", CAUSE_WAIT_LOCK, ROLE_LAUNCHER, 4 * MS);
	link->via = large;
	link->detail = device->causes.items[0].detail;
	line = array_add(&analysis->degraded);
	cr_assert_not_null(line);
	*line = large;
}

void fixture_free(struct analysis *analysis)
{
	analysis_free(analysis);
}

char *fixture_text(const struct analysis *analysis)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	cr_assert_eq(report_text(out, analysis, NULL), 0);
	cr_assert_eq(fclose(out), 0);
	return text;
}

char *fixture_json(const struct analysis *analysis)
{
	struct error error = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	cr_assert_eq(report_json(out, analysis, &error), 0, "%s", error.text);
	cr_assert_eq(fclose(out), 0);
	return text;
}
