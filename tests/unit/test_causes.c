// SPDX-License-Identifier: GPL-2.0-only
/* What leaves add up to: how sure a cause is, the group of workers behind it, and what may be promised of it.
 */
#include <string.h>
#include <sys/syscall.h>

#include "gap_fixture.h"

TestSuite(causes, .init = gap_setup, .fini = gap_teardown);

/* ---- the lowest confidence that a tenth of a cause has ---- */

/*
 * Main waits in [10, 14.5] ms for a thread that runs, which is sure, and then for `weak_ns` once more, of
 * which only the system call is known, or another futex word.
 */
static enum confidence confidence_with(uint64_t weak_ns, bool other_word)
{
	uint32_t other = other_thread(101);
	struct offcpu *weak;
	enum confidence confidence;

	timeline_futex(&line, main_thread, 10 * MS, 14500 * US, 14500 * US, other, 0x1000);
	weak =
	    timeline_futex(&line, main_thread, 15 * MS, 15 * MS + weak_ns, 15 * MS + weak_ns, other, 0x1000);
	if (other_word)
		weak->waker_args[0] = 0x2000;
	else
		weak->kstack = MODEL_NONE;
	end_gap();
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_THREAD, 4500 * US + weak_ns);
	confidence = cause_there(CAUSE_HOST_USER_CODE, ROLE_THREAD)->confidence;
	gap_again();
	return confidence;
}

Test(causes, a_cause_is_as_sure_as_its_least_sure_tenth)
{
	cr_assert_eq(confidence_with(500 * US, false), CONFIDENCE_LOW);
	cr_assert_eq(confidence_with(499 * US, false), CONFIDENCE_HIGH);
	cr_assert_eq(confidence_with(500 * US, true), CONFIDENCE_MEDIUM);
	cr_assert_eq(confidence_with(499 * US, true), CONFIDENCE_HIGH);
}

/* ---- the files that one line of code reads ---- */

/* Main reads from each file in turn, for so long; an empty path is one that is not known. */
struct reading {
	const char *path;
	uint64_t ns;
};

static const char *path_of(const struct reading *readings, size_t count)
{
	uint32_t paths[4] = {0};
	uint64_t t = 10 * MS;
	const char *path;

	gap_again();
	for (size_t i = 0; i < count; t += readings[i++].ns) {
		struct offcpu *wait =
		    timeline_blocked(&line, main_thread, t, t + readings[i].ns, t + readings[i].ns,
		                     "folio_wait_bit_common", MODEL_NONE, "bio_endio");

		/* As in a recording, a path has one number. */
		for (size_t k = 0; k < i && !paths[i]; k++)
			paths[i] = strcmp(readings[k].path, readings[i].path) ? 0 : paths[k];
		if (*readings[i].path && !paths[i])
			paths[i] = model_add_string(&line.model, readings[i].path, strlen(readings[i].path));
		wait->syscall = SYS_read;
		wait->path = paths[i];
	}
	end_gap();
	timeline_analyse(&line);
	path = cause_there(CAUSE_WAIT_DISK, ROLE_LAUNCHER)->detail.path;
	return path ? path : "none";
}

#define path_of_readings(...)                                                                                \
	path_of((const struct reading[]){__VA_ARGS__},                                                       \
	        sizeof((const struct reading[]){__VA_ARGS__}) / sizeof(struct reading))

Test(causes, one_file_is_named_and_of_many_what_they_have_in_common)
{
	cr_assert_str_eq(path_of_readings({"/data/a/1", 3 * MS}, {"/data/a/1", 2 * MS}), "/data/a/1");
	cr_assert_str_eq(path_of_readings({"/data/a/1", 3 * MS}, {"/data/a/2", 2 * MS}), "/data/a/…");
	cr_assert_str_eq(
	    path_of_readings({"/data/a/1", 3 * MS}, {"/data/b/1", 2 * MS}, {"/data/a/1", 3 * MS}), "/data/…");
	cr_assert_str_eq(path_of_readings({"/data/a/1", 3 * MS}, {"/usr/lib/x", 2 * MS}), "none");
	cr_assert_str_eq(path_of_readings({"/data/a/1", 3 * MS}, {"", 2 * MS}), "none");
}

/* A page of the program's own that was read in between, or a file that was not found out. */
Test(causes, a_file_of_nearly_all_the_time_is_named_whatever_else_was_read)
{
	cr_assert_str_eq(path_of_readings({"/data/a/1", 5 * MS}, {"/usr/bin/app", 250 * US}), "/data/a/1");
	cr_assert_str_eq(path_of_readings({"/usr/bin/app", 250 * US}, {"/data/a/1", 5 * MS}), "/data/a/1");
	cr_assert_str_eq(path_of_readings({"/data/a/1", 5 * MS}, {"", 250 * US}), "/data/a/1");
	cr_assert_str_eq(path_of_readings({"", 250 * US}, {"/data/a/1", 5 * MS}), "/data/a/1");
	cr_assert_str_eq(path_of_readings({"/data/a/1", 5 * MS}, {"/usr/bin/app", 300 * US}), "none");
}

/* ---- workers ---- */

/*
 * Two workers deliver, the first in [10, 15] ms and the second in [15.2, 19.2]. A third one never does. While
 * one works the other sleeps, reads, has nothing to do, or is kept from the CPU.
 */
static void two_workers(void)
{
	uint32_t first = timeline_process(&line, WORKER, MAIN, "loader-0");
	uint32_t second = timeline_process(&line, WORKER + 1, MAIN, "loader-1");

	timeline_process(&line, WORKER + 2, MAIN, "loader-2");
	timeline_pipe(&line, main_thread, 10 * MS, 15 * MS, 15 * MS, first);
	timeline_pipe(&line, main_thread, 15200 * US, 19200 * US, 19200 * US, second);
	/* The first: works for 4 ms, sleeps for 1, and then has nothing to do until main asks it again. */
	timeline_sleep(&line, first, 11 * MS, 12 * MS);
	timeline_pipe(&line, first, 15100 * US, 25 * MS, 25 * MS, main_thread);
	/* The second: reads for 4 ms, is ready for 1 and runs for 4. */
	timeline_blocked(&line, second, 9 * MS, 14 * MS, 14 * MS, "folio_wait_bit_common", MODEL_NONE,
	                 "bio_endio");
	timeline_preempted(&line, second, 14 * MS, 15 * MS, first);
	end_gap();
	timeline_analyse(&line);
}

Test(causes, the_states_of_a_group_are_those_of_all_that_delivered)
{
	const struct worker_group *group;

	two_workers();
	group = &cause_there(CAUSE_HOST_USER_CODE, ROLE_WORKER)->group;
	cr_assert_eq(group->count, 2);
	cr_assert_eq(group->wait_ns, 9 * MS);
	cr_assert_float_eq(group->running, 8 / 18.0, 1e-9);
	cr_assert_float_eq(group->blocked_sleep, 1 / 18.0, 1e-9);
	cr_assert_float_eq(group->blocked_disk, 4 / 18.0, 1e-9);
	cr_assert_float_eq(group->runnable, 1 / 18.0, 1e-9);
	cr_assert_float_eq(group->blocked_input, 4 / 18.0, 1e-9);
	cr_assert_float_eq(group->blocked_other, 0, 1e-9);
}

/* From 10 to 19.2 ms they work for 18.4 less 4.1 ms: in the 0.2 ms that the launcher needs, that takes 72. */
Test(causes, enough_workers_do_the_work_without_the_waits)
{
	two_workers();
	cr_assert_eq(cause_there(CAUSE_HOST_USER_CODE, ROLE_WORKER)->group.enough, 72);
}

/* Woken by somebody else than the one it works for: it was busy with that. */
Test(causes, a_worker_that_waits_for_another_is_not_idle)
{
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0");
	uint32_t helper = timeline_process(&line, 300, WORKER, "decoder");

	timeline_pipe(&line, main_thread, 10 * MS, 19 * MS, 19 * MS, worker);
	timeline_pipe(&line, worker, 10 * MS, 18 * MS, 18 * MS, helper);
	end_gap();
	timeline_analyse(&line);
	cr_assert_float_eq(timeline_top(&line)->group.blocked_other, 8 / 9.0, 1e-9);
	cr_assert_float_eq(timeline_top(&line)->group.blocked_input, 0, 1e-9);
}

/* Of a wait for its own thread nothing is told of the workers. */
Test(causes, only_waits_that_lead_to_a_worker_count_for_the_group)
{
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0"), pin = other_thread(101);

	timeline_futex(&line, main_thread, 10 * MS, 14 * MS, 14 * MS, pin, 0x1000);
	timeline_pipe(&line, main_thread, 15 * MS, 19 * MS, 19 * MS, worker);
	end_gap();
	timeline_analyse(&line);
	cr_assert_eq(cause_there(CAUSE_HOST_USER_CODE, ROLE_WORKER)->group.wait_ns, 4 * MS);
	cr_assert_eq(cause_there(CAUSE_HOST_USER_CODE, ROLE_THREAD)->group.count, 0);
}

/* ---- gains ---- */

/* Twenty steps of 10 ms; in each a worker sleeps for 8.98 ms and main waits for it. */
static const struct cause *fed_by_a_worker(bool sure)
{
	uint32_t worker = timeline_process(&line, WORKER, MAIN, "loader-0");
	const struct cause *cause;

	for (uint64_t i = 0, t = 20 * MS; i < 20; i++, t += 10 * MS) {
		struct offcpu *wait;

		timeline_kernel(&line, main_thread, t, t + 5 * US, t + 500 * US);
		timeline_sleep(&line, worker, t + 510 * US, t + 9490 * US);
		wait = timeline_pipe(&line, main_thread, t + 500 * US, t + 9500 * US, t + 9500 * US, worker);
		if (!sure)
			wait->kstack = MODEL_NONE;
	}
	timeline_analyse(&line);
	cause = cause_there(CAUSE_WAIT_SLEEP, ROLE_WORKER);
	cr_assert_eq(cause->confidence, sure ? CONFIDENCE_HIGH : CONFIDENCE_LOW);
	return cause;
}

Test(causes, what_is_not_sure_promises_no_gain)
{
	const struct cause *cause = fed_by_a_worker(true);

	cr_assert(cause->replayed);
	cr_assert_gt(cause->gain_low_ns, cause->ns / 2);
	gap_again();
	cause = fed_by_a_worker(false);
	cr_assert(line.analysis.devices.items[0].replay.accepted);
	cr_assert_not(cause->replayed);
	cr_assert_eq(cause->gain_low_ns, 0);
	cr_assert_eq(cause->gain_high_ns, cause->ns, "the bound");
}
