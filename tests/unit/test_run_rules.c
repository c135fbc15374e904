// SPDX-License-Identifier: GPL-2.0-only
/* Threads on the CPU: calls by their class, code by its samples. Samples are 4 ms apart unless said. */
#include <sys/syscall.h>

#include "gap_fixture.h"

TestSuite(run_rules, .init = gap_setup, .fini = gap_teardown);

/* ---- calls ---- */

static void calls(const char *function, uint64_t enter, uint64_t exit)
{
	timeline_call(&line, main_thread, function, enter, exit, 0);
	end_gap();
	timeline_analyse(&line);
}

Test(run_rules, calls_have_the_cause_of_their_class)
{
	static const struct {
		const char *function;
		enum cause_code code;
	} rows[] = {
	    {"cudaFree", CAUSE_HOST_CUDA_ALLOC},      {"cudaHostAlloc", CAUSE_HOST_CUDA_ALLOC},
	    {"cuModuleLoad", CAUSE_HOST_COMPILE},     {"cudaMemcpyAsync", CAUSE_HOST_CUDA_API},
	    {"cudaEventRecord", CAUSE_HOST_CUDA_API}, {"cudaSomethingNew", CAUSE_HOST_CUDA_API},
	    {"cudaGraphLaunch", CAUSE_HOST_CUDA_API},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		gap_again();
		calls(rows[i].function, 12 * MS, 15 * MS);
		cr_assert_eq(timeline_ns(&line, rows[i].code, ROLE_LAUNCHER), 3 * MS, "%s", rows[i].function);
		cr_assert_str_eq(cause_there(rows[i].code, ROLE_LAUNCHER)->detail.function, rows[i].function);
	}
}

/* It comes back, which is nobody's fault; after half a millisecond it waits for something else than the GPU.
 */
Test(run_rules, a_synchronisation_that_spins_for_long_waits_for_something_else)
{
	calls("cudaDeviceSynchronize", 2 * MS, 10500 * US);
	assert_ns(CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 500 * US + 5 * US);
	gap_again();
	calls("cudaDeviceSynchronize", 2 * MS, 10500 * US + 1);
	assert_ns(CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 5 * US);
	assert_ns(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER, 500 * US + 1);
	cr_assert_eq(cause_there(CAUSE_HOST_CUDA_API, ROLE_LAUNCHER)->confidence, CONFIDENCE_LOW);
}

/* ---- samples ---- */

/* A sample with a user stack of one frame. */
static void sample_in(const char *function, uint64_t time)
{
	struct model *model = &line.model;
	struct stack *stack = array_add(&model->stacks);
	uint64_t *frame = array_add(&model->frames);

	*frame = 0x400000 + model->frames.count;
	*stack = (struct stack){
	    .kind = RECORD_STACK_USER, .pid = MAIN, .first = model->frames.count - 1, .count = 1};
	model_add_symbol(model,
	                 &(struct symbol){.address = *frame,
	                                  .pid = MAIN,
	                                  .name = model_add_string(model, function, strlen(function))});
	timeline_sample(&line, main_thread, time, NULL);
	model->threads.items[main_thread]
	    .samples.items[model->threads.items[main_thread].samples.count - 1]
	    .ustack = model->stacks.count - 1;
}

static void analyse_gap(void)
{
	end_gap();
	timeline_analyse(&line);
}

/* Four samples: each stands for the time up to half-way to its neighbours. */
Test(run_rules, code_is_told_by_its_samples)
{
	timeline_sample(&line, main_thread, 11 * MS, "clear_page_erms<exc_page_fault");
	timeline_sample(&line, main_thread, 13 * MS, "shrink_node<try_to_free_pages<exc_page_fault");
	timeline_sample(&line, main_thread, 16 * MS, "net_rx_action<asm_sysvec_apic_timer_interrupt");
	timeline_sample(&line, main_thread, 18 * MS, NULL);
	analyse_gap();
	assert_ns(CAUSE_MEMORY_MINOR_FAULT, ROLE_LAUNCHER, 2 * MS);
	assert_ns(CAUSE_MEMORY_RECLAIM, ROLE_LAUNCHER, 2500 * US);
	assert_ns(CAUSE_SCHED_IRQ, ROLE_LAUNCHER, 2500 * US);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 3 * MS - 5 * US);
	cr_assert_eq(cause_there(CAUSE_SCHED_IRQ, ROLE_LAUNCHER)->confidence, CONFIDENCE_MEDIUM,
	             "an interrupt is in the way of whoever runs");
	cr_assert_eq(cause_there(CAUSE_MEMORY_RECLAIM, ROLE_LAUNCHER)->confidence, CONFIDENCE_HIGH);
}

Test(run_rules, code_that_collects_garbage_is_told_by_its_stack)
{
	sample_in("gc_collect_main", 12 * MS);
	sample_in("forward", 16 * MS);
	analyse_gap();
	assert_ns(CAUSE_HOST_GC, ROLE_LAUNCHER, 4 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 6 * MS - 5 * US);
	cr_assert_str_eq(cause_there(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER)->detail.function, "forward");
}

Test(run_rules, a_sample_in_a_system_call_names_it)
{
	timeline_sample(&line, main_thread, 15 * MS, "copy_page_to_iter<vfs_read");
	line.model.threads.items[main_thread].samples.items[0].syscall = SYS_pread64;
	analyse_gap();
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, HOST_PART);
	cr_assert_str_eq(timeline_top(&line)->detail.syscall, "pread64");
}

/* Main runs in [10, 11] ms and sleeps then; the only sample is of the time before, or of the time after. */
static void runs_without_a_sample(uint64_t sample_ns, const char *kernel_function)
{
	timeline_sleep(&line, main_thread, 11 * MS, 19995 * US);
	timeline_sample(&line, main_thread, sample_ns, kernel_function);
	analyse_gap();
}

Test(run_rules, a_fault_speaks_for_half_of_what_follows_within_two_periods)
{
	runs_without_a_sample(2 * MS, "exc_page_fault");
	assert_ns(CAUSE_MEMORY_MINOR_FAULT, ROLE_LAUNCHER, 500 * US);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 500 * US);
	cr_assert_eq(cause_there(CAUSE_MEMORY_MINOR_FAULT, ROLE_LAUNCHER)->confidence, CONFIDENCE_MEDIUM);
	gap_again();
	runs_without_a_sample(2 * MS - 1, "exc_page_fault");
	assert_ns(CAUSE_MEMORY_MINOR_FAULT, ROLE_LAUNCHER, 0);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 1 * MS);
	cr_assert_eq(cause_there(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER)->confidence, CONFIDENCE_HIGH);
}

Test(run_rules, a_fault_speaks_for_half_of_what_went_before)
{
	runs_without_a_sample(19 * MS, "exc_page_fault");
	assert_ns(CAUSE_MEMORY_MINOR_FAULT, ROLE_LAUNCHER, 500 * US);
	gap_again();
	runs_without_a_sample(19 * MS + 1, "exc_page_fault");
	assert_ns(CAUSE_MEMORY_MINOR_FAULT, ROLE_LAUNCHER, 0);
}

/* Reclaim and collections come in storms as faults do; an interrupt says nothing of what ran before it. */
Test(run_rules, only_what_comes_in_storms_speaks_for_its_neighbours)
{
	runs_without_a_sample(9 * MS, "shrink_node");
	assert_ns(CAUSE_MEMORY_RECLAIM, ROLE_LAUNCHER, 500 * US);
	gap_again();
	sample_in("gc_collect_main", 9 * MS);
	runs_without_a_sample(1 * MS, NULL);
	assert_ns(CAUSE_HOST_GC, ROLE_LAUNCHER, 500 * US);
	gap_again();
	runs_without_a_sample(9 * MS, "asm_sysvec_apic_timer_interrupt");
	assert_ns(CAUSE_SCHED_IRQ, ROLE_LAUNCHER, 0);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 1 * MS);
}

/* What was seen before a stretch and after it went on in between. */
Test(run_rules, faults_on_both_sides_leave_nothing_in_between)
{
	timeline_sample(&line, main_thread, 9 * MS, "exc_page_fault");
	runs_without_a_sample(12 * MS, "exc_page_fault");
	assert_ns(CAUSE_MEMORY_MINOR_FAULT, ROLE_LAUNCHER, 1 * MS);
	assert_ns(CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, 0);
}
