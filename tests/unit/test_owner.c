// SPDX-License-Identifier: GPL-2.0-only
/* Busy and idle, and who ended a gap: the device, or a thread that launched late. */
#include "attribute/gaps.h"
#include "gap_fixture.h"

TestSuite(owner, .init = gap_setup, .fini = gap_teardown);

static struct gpu_op *last_op(void)
{
	struct device *device = &line.model.devices.items[0];

	return &device->ops.items[device->ops.count - 1];
}

/* A call that is inside from `enter` to `exit` and launches a kernel at `start`. */
static void launch(uint32_t thread, const char *function, uint64_t enter, uint64_t exit, uint64_t start)
{
	uint32_t correlation = line.correlation++;

	timeline_call(&line, thread, function, enter, exit, correlation);
	timeline_op(&line, line.model.threads.items[thread].pid, start, start + 1 * MS, correlation);
}

/* ---- busy and idle ---- */

/* A short operation of another stream within a long one: the gap begins where the long one ends. */
Test(owner, busy_is_the_union_of_all_streams)
{
	struct gpu_op *op = timeline_op(&line, MAIN, 5 * MS, 6 * MS, 0);

	op->stream = 9;
	end_gap();
	timeline_analyse(&line);
	cr_assert_eq(line.analysis.devices.items[0].gap_count, 1);
	cr_assert_eq(line.analysis.devices.items[0].idle_ns, 10 * MS);
	cr_assert_eq(line.analysis.devices.items[0].busy_ns, 10 * MS);
}

Test(owner, busy_goes_on_where_streams_overlap)
{
	timeline_op(&line, MAIN, 9 * MS, 12 * MS, 0)->stream = 9;
	end_gap();
	timeline_analyse(&line);
	cr_assert_eq(line.analysis.devices.items[0].gap_count, 1);
	cr_assert_eq(line.analysis.devices.items[0].idle_ns, 8 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 8 * MS - 5 * US);
}

/* Kernels of a collective wait for other ranks: they are busy, and no computing. */
Test(owner, collectives_and_copies_do_not_compute)
{
	timeline_kernel(&line, main_thread, 20 * MS - 5 * US, 20 * MS, 22 * MS);
	last_op()->name = model_add_string(&line.model, "ncclDevKernel_AllReduce", 23);
	timeline_kernel(&line, main_thread, 21 * MS, 22 * MS, 23 * MS);
	last_op()->kind = OP_MEMCPY;
	timeline_analyse(&line);
	cr_assert_eq(line.analysis.devices.items[0].busy_ns, 12 * MS);
	cr_assert_eq(line.analysis.devices.items[0].compute_busy_ns, 9 * MS);
}

/* Half a megabyte from memory that is not pinned, fed in 5 ms: its time is latency. */
Test(owner, a_small_copy_is_busy_all_the_time)
{
	launch(main_thread, "cudaMemcpyAsync", 10 * MS, 15 * MS, 10 * MS);
	last_op()->end_ns = 15 * MS;
	last_op()->kind = OP_MEMCPY;
	last_op()->source_kind = 1;
	last_op()->bytes = 1 << 19;
	end_gap();
	timeline_analyse(&line);
	cr_assert_eq(line.analysis.devices.items[0].idle_ns, 5 * MS);
}

/* ---- queued: the device ---- */

/* Launched at 2 ms, begins at 20 ms; the launcher sleeps all the time. */
static struct gpu_op *queued(void)
{
	timeline_sleep(&line, main_thread, 3 * MS, 25 * MS);
	timeline_kernel(&line, main_thread, 2 * MS, 20 * MS, 21 * MS);
	return last_op();
}

static enum confidence confidence_of(enum cause_code code)
{
	timeline_analyse(&line);
	assert_ns(code, ROLE_DEVICE, 10 * MS);
	return cause_there(code, ROLE_DEVICE)->confidence;
}

Test(owner, a_queued_operation_behind_another_stream_depends_on_it)
{
	queued();
	cr_assert_eq(confidence_of(CAUSE_DEVICE_DEPENDENCY), CONFIDENCE_LOW,
	             "the same stream explains nothing");
	gap_again();
	queued()->stream = 9;
	cr_assert_eq(confidence_of(CAUSE_DEVICE_DEPENDENCY), CONFIDENCE_MEDIUM);
}

Test(owner, a_queued_operation_next_to_a_copy_is_held_by_it)
{
	queued()->kind = OP_MEMCPY;
	confidence_of(CAUSE_DEVICE_COPY);
	gap_again();
	last_op()->kind = OP_MEMCPY;
	queued();
	confidence_of(CAUSE_DEVICE_COPY);
}

Test(owner, a_queued_operation_behind_another_process_is_held_by_it)
{
	timeline_process(&line, 300, 0, "other");
	last_op()->process = model_get_process(&line.model, 300);
	queued();
	confidence_of(CAUSE_DEVICE_OTHER_PROCESS);
}

Test(owner, what_a_stream_waited_for_is_not_known_of_other_tools_traces)
{
	line.model.source = MODEL_KINETO;
	queued();
	confidence_of(CAUSE_UNKNOWN_UNTRACED);
}

/* Nothing runs on the GPU any more, as far as the window goes. */
Test(owner, a_gap_that_nothing_ends_had_no_work)
{
	struct analysis_options options = {
	    .device = -1, .has_window = true, .window_start_ns = 5 * MS, .window_end_ns = 18 * MS};
	struct error error = {0};

	cr_assert_eq(model_finish(&line.model, &error), 0);
	cr_assert_eq(analysis_run(&line.analysis, &line.model, &options, &error), 0);
	assert_ns(CAUSE_EXTERNAL_NO_WORK, ROLE_DEVICE, 8 * MS);
	cr_assert_eq(timeline_top(&line)->confidence, CONFIDENCE_MEDIUM);
}

/* Which part of the idle time was launched in time, whatever its causes. */
Test(owner, idle_time_is_told_by_its_launch)
{
	end_gap();
	timeline_kernel(&line, main_thread, 20 * MS, 24 * MS, 25 * MS);
	timeline_op(&line, MAIN, 27 * MS, 28 * MS, 0);
	timeline_analyse(&line);
	cr_assert_eq(line.analysis.devices.items[0].late_ns, 10 * MS);
	cr_assert_eq(line.analysis.devices.items[0].queued_ns, 3 * MS);
	cr_assert_eq(line.analysis.devices.items[0].unknown_ns, 2 * MS);
}

/* ---- inside the launching call ---- */

Test(owner, a_call_that_takes_long_to_submit_is_the_hosts)
{
	launch(main_thread, "cudaLaunchKernel", 15 * MS, 19900 * US, 20 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 5 * MS);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 4900 * US);
	/* After the call the device had it. */
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 95 * US);
	assert_ns(CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 5 * US);
}

/* Entered before the gap, and still inside for more than a millisecond of it: it had not submitted yet. */
Test(owner, a_launch_that_is_inside_for_long_is_late)
{
	launch(main_thread, "cudaLaunchKernel", 9900 * US, 12 * MS, 20 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 2 * MS);
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 8 * MS);
	gap_again();
	launch(main_thread, "cudaLaunchKernel", 9900 * US, 11 * MS, 20 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 10 * MS);
}

Test(owner, a_launch_that_is_blocked_inside_is_late)
{
	launch(main_thread, "cudaLaunchKernel", 9900 * US, 10600 * US, 20 * MS);
	timeline_futex(&line, main_thread, 10100 * US, 10500 * US, 10500 * US, other_thread(101), 0x1000);
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_CUDA_LOCK, ROLE_LAUNCHER, 400 * US);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 200 * US);
}

/* Piece by piece: the copy is the host's as long as it is in the call. */
Test(owner, a_copy_is_fed_as_long_as_its_call_lasts)
{
	launch(main_thread, "cudaMemcpyAsync", 9900 * US, 10600 * US, 20 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 600 * US);
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 10 * MS - 600 * US);
}

/* ---- launch-bound ---- */

/*
 * At 20 ms a kernel of 5 µs, launched by the main thread in a call that is back at 20.003 ms; the next one is
 * launched `later_ns` after that.
 */
static uint64_t next_launch(uint32_t thread, uint64_t later_ns)
{
	uint64_t enter = 20 * MS + 3 * US + later_ns;

	timeline_kernel(&line, main_thread, 20 * MS, 20 * MS + 5 * US, 20 * MS + 10 * US);
	timeline_kernel(&line, thread, enter, enter + 5 * US, enter + 100 * US);
	timeline_analyse(&line);
	return enter + 5 * US - (20 * MS + 10 * US);
}

Test(owner, a_run_of_launches_ends_after_a_tenth_of_a_millisecond)
{
	uint64_t gap = next_launch(main_thread, 100 * US);

	assert_ns(CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, gap);
	gap_again();
	next_launch(main_thread, 100 * US + 1);
	assert_ns(CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 0);
}

/* Two threads that launch in turns do not run from launch to launch. */
Test(owner, a_run_of_launches_is_of_one_thread)
{
	next_launch(other_thread(101), 50 * US);
	assert_ns(CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 0);
}

/* In flight when the GPU fell idle: queued by its entry, and yet too late to go straight on. */
Test(owner, a_launch_in_flight_is_launch_bound)
{
	timeline_kernel(&line, main_thread, 20 * MS, 20 * MS + 5 * US, 20 * MS + 10 * US);
	timeline_kernel(&line, main_thread, 20 * MS + 8 * US, 20 * MS + 20 * US, 20 * MS + 40 * US);
	timeline_analyse(&line);
	assert_ns(CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 10 * US);
	cr_assert_eq(cause_there(CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER)->confidence, CONFIDENCE_MEDIUM);
	cr_assert_eq(line.analysis.devices.items[0].queued_ns, 10 * US);
}

/* ---- a drained queue ---- */

/* A call by `thread` that ends at a time; then main launches late. What of the gap is serial code? */
static uint64_t serial_after(uint32_t thread, const char *function, uint64_t exit)
{
	uint64_t ns;

	timeline_call(&line, thread, function, 2 * MS, exit, 0);
	end_gap();
	timeline_analyse(&line);
	ns = timeline_ns(&line, CAUSE_HOST_SYNC_THEN_SERIAL, ROLE_LAUNCHER);
	gap_again();
	return ns;
}

/* The end of an operation and of the call that waited for it come from different places. */
Test(owner, a_synchronisation_that_ends_with_the_gap_has_drained_the_queue)
{
	cr_assert_eq(serial_after(main_thread, "cudaStreamSynchronize", 10 * MS - 19 * US), HOST_PART);
	cr_assert_eq(serial_after(main_thread, "cudaStreamSynchronize", 10 * MS - 21 * US), 0);
}

Test(owner, a_copy_drains_the_queue_and_a_launch_does_not)
{
	cr_assert_eq(serial_after(main_thread, "cudaMemcpyAsync", 10 * MS), HOST_PART);
	cr_assert_eq(serial_after(main_thread, "cudaLaunchKernel", 10 * MS), 0);
}

Test(owner, only_its_own_process_drains_a_queue)
{
	cr_assert_eq(serial_after(other_thread(101), "cudaStreamSynchronize", 10 * MS), HOST_PART);
	cr_assert_eq(serial_after(timeline_process(&line, 300, 0, "other"), "cudaStreamSynchronize", 10 * MS),
	             0);
}

/* ---- the floor ---- */

/* `count` late launches, a millisecond apart, whose kernels begin `submit_ns` (for the first `quick`) or 400
 * µs after the entry of the call. Each excess is the device's, if it is above the threshold. */
static void late_launches(uint64_t count, uint64_t quick, uint64_t submit_ns)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t enter = 11 * MS + i * MS, start = enter + (i < quick ? submit_ns : 400 * US);

		timeline_kernel(&line, main_thread, enter, start, start + 10 * US);
	}
	timeline_analyse(&line);
}

/* 397 µs after the call are over, less the floor. */
#define EXCESS(floor) (397 * US - (floor))

Test(owner, the_floor_is_a_low_percentile)
{
	late_launches(40, 5, 8 * US);
	/* Of the fifth fastest of forty; all launches but the quick ones are over it. */
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 35 * EXCESS(8 * US));
	gap_again();
	late_launches(40, 4, 8 * US);
	/* The tenth percentile is 400 µs now, but no more than 50 µs are believed. */
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 36 * EXCESS(50 * US));
}

Test(owner, the_floor_needs_twenty_launches)
{
	late_launches(19, 10, 8 * US);
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 9 * EXCESS(5 * US));
	gap_again();
	late_launches(20, 10, 8 * US);
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 10 * EXCESS(8 * US));
}

/* 25 µs are five floors: up to there a queued gap is the device's own, above it something held the work back.
 */
Test(owner, a_short_queued_gap_is_the_floor)
{
	timeline_kernel(&line, main_thread, 2 * MS, 10 * MS + 25 * US, 11 * MS);
	timeline_kernel(&line, main_thread, 3 * MS, 11 * MS + 25 * US + 1, 12 * MS);
	timeline_analyse(&line);
	assert_ns(CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 25 * US);
	assert_ns(CAUSE_DEVICE_DEPENDENCY, ROLE_DEVICE, 25 * US + 1);
}
