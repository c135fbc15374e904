// SPDX-License-Identifier: GPL-2.0-only
/* Kernels of NCCL and the calls they were launched for. */
#include <criterion/criterion.h>

#include "timeline.h"

#define ROW        0xa0
#define COLUMN     0xb0
#define ALL_REDUCE RECORD_NCCL_ALL_REDUCE
#define NAME       "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

static struct timeline line;
static uint32_t caller, other;

static void setup(void)
{
	timeline_begin(&line);
	caller = timeline_process(&line, 100, 0, "train");
	other = timeline_thread(&line, 100, 101, "other");
}

static void teardown(void)
{
	timeline_end(&line);
}

TestSuite(nccl_join, .init = setup, .fini = teardown);

/* A kernel of NCCL that a thread launches at `launch`; the GPU takes it up a while later. */
static void kernel(uint32_t thread, uint64_t launch, uint32_t stream)
{
	struct device *device = &line.model.devices.items[0];
	struct gpu_op *op;

	timeline_kernel(&line, thread, launch, launch + MS, launch + MS + 20 * US);
	op = &device->ops.items[device->ops.count - 1];
	op->stream = stream;
	op->name = model_add_string(&line.model, NAME, sizeof(NAME) - 1);
}

static void group_end(uint32_t thread, uint64_t time, uint32_t group)
{
	timeline_nccl(&line, thread, time, RECORD_NCCL_GROUP_END, 0, 0)->group = group;
}

static struct nccl_call *grouped(uint64_t time, uint32_t function, uint64_t comm, uint64_t number,
                                 uint32_t group)
{
	struct nccl_call *call = timeline_nccl(&line, caller, time, function, comm, number);

	call->group = group;
	return call;
}

static void finish(void)
{
	struct error error = {0};

	cr_assert_eq(model_finish(&line.model, &error), 0, "%s", error.text);
}

/* What operation `index` by start was called for, NULL if that is not known. */
static const struct nccl_work *work(size_t index)
{
	uint32_t at = line.model.devices.items[0].ops.items[index].nccl;

	return at == MODEL_NONE ? NULL : &line.model.nccl_works.items[at];
}

static void assert_work(size_t index, uint64_t comm, uint64_t number, uint32_t part)
{
	cr_assert_not_null(work(index), "operation %zu", index);
	cr_assert_eq(work(index)->comm, comm, "operation %zu", index);
	cr_assert_eq(work(index)->number, number, "operation %zu", index);
	cr_assert_eq(work(index)->part, part, "operation %zu", index);
}

Test(nccl_join, a_kernel_belongs_to_the_call_before_its_launch)
{
	timeline_nccl(&line, caller, 10 * MS, ALL_REDUCE, ROW, 4);
	kernel(caller, 10 * MS + 5 * US, 20);
	timeline_nccl(&line, caller, 10 * MS + 9 * US, ALL_REDUCE, COLUMN, 7);
	kernel(caller, 10 * MS + 15 * US, 20);
	finish();
	assert_work(0, ROW, 4, 0);
	assert_work(1, COLUMN, 7, 0);
	cr_assert_eq(work(0)->bytes, 1024);
	cr_assert_eq(work(0)->bytes_each, 0);
	cr_assert_eq(work(0)->calls, 1);
}

Test(nccl_join, a_call_is_of_its_own_thread)
{
	timeline_nccl(&line, caller, 10 * MS, ALL_REDUCE, ROW, 0);
	timeline_nccl(&line, other, 10 * MS + 2 * US, ALL_REDUCE, COLUMN, 0);
	kernel(caller, 10 * MS + 5 * US, 20);
	kernel(other, 10 * MS + 6 * US, 21);
	finish();
	assert_work(0, ROW, 0, 0);
	assert_work(1, COLUMN, 0, 0);
}

Test(nccl_join, what_was_launched_before_the_first_call_has_none)
{
	kernel(caller, 9 * MS, 20);
	timeline_nccl(&line, caller, 10 * MS, ALL_REDUCE, ROW, 0);
	kernel(caller, 10 * MS + 5 * US, 20);
	finish();
	cr_assert_null(work(0));
	assert_work(1, ROW, 0, 0);
}

/* Other kernels that the thread launches are none of NCCL's. */
Test(nccl_join, only_kernels_of_nccl_are_joined)
{
	timeline_nccl(&line, caller, 10 * MS, ALL_REDUCE, ROW, 0);
	timeline_kernel(&line, caller, 10 * MS + 2 * US, 10 * MS + 30 * US, 10 * MS + 40 * US);
	kernel(caller, 10 * MS + 5 * US, 20);
	finish();
	cr_assert_null(work(0));
	assert_work(1, ROW, 0, 0);
}

/* A graph launches what was called when it was captured. */
Test(nccl_join, kernels_of_graphs_are_left_alone)
{
	timeline_nccl(&line, caller, 10 * MS, ALL_REDUCE, ROW, 0);
	kernel(caller, 10 * MS + 5 * US, 20);
	line.model.devices.items[0].ops.items[0].graph = 3;
	finish();
	cr_assert_null(work(0));
}

/* Nothing is launched before the end of the group. */
Test(nccl_join, a_group_is_one_kernel_at_its_end)
{
	grouped(10 * MS, ALL_REDUCE, ROW, 4, 1);
	grouped(10 * MS + 2 * US, RECORD_NCCL_ALL_GATHER, ROW, 5, 1);
	kernel(caller, 10 * MS + 3 * US, 20);
	group_end(caller, 10 * MS + 4 * US, 1);
	kernel(caller, 10 * MS + 9 * US, 20);
	finish();
	cr_assert_null(work(0));
	assert_work(1, ROW, 4, 0);
	cr_assert_eq(work(1)->calls, 2);
	cr_assert_eq(work(1)->bytes, 1024);
	cr_assert_eq(work(1)->bytes_each, 1024);
}

Test(nccl_join, several_kernels_of_one_group_are_its_parts)
{
	grouped(10 * MS, ALL_REDUCE, ROW, 4, 1);
	grouped(10 * MS + 2 * US, ALL_REDUCE, ROW, 5, 1);
	group_end(caller, 10 * MS + 4 * US, 1);
	kernel(caller, 10 * MS + 9 * US, 20);
	kernel(caller, 10 * MS + 12 * US, 20);
	finish();
	assert_work(0, ROW, 4, 0);
	assert_work(1, ROW, 4, 1);
	/* Which of them moved what is not known. */
	cr_assert_eq(work(0)->bytes, 0);
	cr_assert_eq(work(1)->bytes, 0);
}

Test(nccl_join, a_group_of_two_communicators_is_a_kernel_for_each)
{
	grouped(10 * MS, ALL_REDUCE, ROW, 4, 1);
	grouped(10 * MS + 1 * US, ALL_REDUCE, COLUMN, 8, 1);
	grouped(10 * MS + 2 * US, ALL_REDUCE, ROW, 5, 1);
	group_end(caller, 10 * MS + 4 * US, 1);
	kernel(caller, 10 * MS + 9 * US, 20);
	kernel(caller, 10 * MS + 12 * US, 20);
	finish();
	assert_work(0, ROW, 4, 0);
	assert_work(1, COLUMN, 8, 0);
	cr_assert_eq(work(0)->bytes, 2048);
	cr_assert_eq(work(1)->bytes, 1024);
}

Test(nccl_join, a_group_that_does_not_come_out_even_is_left_alone)
{
	grouped(10 * MS, ALL_REDUCE, ROW, 4, 1);
	grouped(10 * MS + 1 * US, ALL_REDUCE, COLUMN, 8, 1);
	group_end(caller, 10 * MS + 4 * US, 1);
	for (unsigned i = 0; i < 3; i++)
		kernel(caller, 10 * MS + (9 + i) * US, 20);
	finish();
	for (size_t i = 0; i < 3; i++)
		cr_assert_null(work(i));
}

/* Calls alone have shown which stream a handle is: the kernels came in another order. */
Test(nccl_join, kernels_on_other_streams_than_known_are_left_alone)
{
	timeline_nccl(&line, caller, 9 * MS, ALL_REDUCE, ROW, 3)->stream = 70;
	kernel(caller, 9 * MS + 5 * US, 20);
	timeline_nccl(&line, caller, 9 * MS + 9 * US, ALL_REDUCE, COLUMN, 7)->stream = 71;
	kernel(caller, 9 * MS + 15 * US, 21);
	grouped(10 * MS, ALL_REDUCE, ROW, 4, 1)->stream = 70;
	grouped(10 * MS + 1 * US, ALL_REDUCE, COLUMN, 8, 1)->stream = 71;
	group_end(caller, 10 * MS + 4 * US, 1);
	kernel(caller, 10 * MS + 9 * US, 21);
	kernel(caller, 10 * MS + 12 * US, 20);
	finish();
	assert_work(0, ROW, 3, 0);
	assert_work(1, COLUMN, 7, 0);
	cr_assert_null(work(2));
	cr_assert_null(work(3));
}

Test(nccl_join, a_group_without_its_end_is_left_alone)
{
	grouped(10 * MS, ALL_REDUCE, ROW, 4, 1);
	grouped(11 * MS, ALL_REDUCE, ROW, 5, 2);
	group_end(caller, 11 * MS + 4 * US, 2);
	kernel(caller, 11 * MS + 9 * US, 20);
	finish();
	assert_work(0, ROW, 5, 0);
	cr_assert_eq(work(0)->calls, 1);
}

/* A call whose record is lost leaves its kernel to the one before. */
Test(nccl_join, nothing_is_joined_where_records_were_lost)
{
	timeline_nccl(&line, caller, 10 * MS, ALL_REDUCE, ROW, 4);
	kernel(caller, 10 * MS + 5 * US, 20);
	kernel(caller, 12 * MS, 20);
	timeline_lost(&line, RECORD_LOSS_BPF_RING, 11 * MS, 11 * MS + 1);
	timeline_nccl(&line, caller, 13 * MS, ALL_REDUCE, ROW, 6);
	kernel(caller, 13 * MS + 5 * US, 20);
	finish();
	cr_assert_null(work(0));
	cr_assert_null(work(1));
	assert_work(2, ROW, 6, 0);
}

Test(nccl_join, other_losses_do_not_matter)
{
	timeline_lost(&line, RECORD_LOSS_BRIDGE_RING, 9 * MS, 12 * MS);
	timeline_nccl(&line, caller, 10 * MS, ALL_REDUCE, ROW, 4);
	kernel(caller, 10 * MS + 5 * US, 20);
	finish();
	assert_work(0, ROW, 4, 0);
}

/* The number of a message is another count than that of a collective, whichever comes first. */
Test(nccl_join, a_collective_among_messages_gives_the_number)
{
	grouped(10 * MS, RECORD_NCCL_SEND, ROW, 90, 1)->peer = 2;
	grouped(10 * MS + 1 * US, ALL_REDUCE, ROW, 4, 1);
	group_end(caller, 10 * MS + 4 * US, 1);
	kernel(caller, 10 * MS + 9 * US, 20);
	finish();
	assert_work(0, ROW, 4, 0);
	cr_assert_eq(work(0)->function, ALL_REDUCE);
	cr_assert_eq(work(0)->peer, MODEL_NONE);
}

Test(nccl_join, messages_with_one_rank_name_it)
{
	grouped(10 * MS, RECORD_NCCL_SEND, ROW, 5, 1)->peer = 2;
	grouped(10 * MS + 1 * US, RECORD_NCCL_RECV, ROW, 5, 1)->peer = 2;
	group_end(caller, 10 * MS + 4 * US, 1);
	kernel(caller, 10 * MS + 9 * US, 20);
	grouped(11 * MS, RECORD_NCCL_SEND, ROW, 6, 2)->peer = 2;
	grouped(11 * MS + 1 * US, RECORD_NCCL_RECV, ROW, 3, 2)->peer = 0;
	group_end(caller, 11 * MS + 4 * US, 2);
	kernel(caller, 11 * MS + 9 * US, 20);
	finish();
	cr_assert_eq(work(0)->peer, 2);
	cr_assert_eq(work(1)->peer, MODEL_NONE);
	cr_assert_eq(work(1)->function, RECORD_NCCL_SEND);
}

/* Of a type that is not known no bytes are. */
Test(nccl_join, bytes_are_known_only_if_those_of_all_calls_are)
{
	grouped(10 * MS, ALL_REDUCE, ROW, 4, 1);
	grouped(10 * MS + 2 * US, ALL_REDUCE, ROW, 5, 1)->bytes = 0;
	group_end(caller, 10 * MS + 4 * US, 1);
	kernel(caller, 10 * MS + 9 * US, 20);
	finish();
	assert_work(0, ROW, 4, 0);
	cr_assert_eq(work(0)->bytes, 0);
}
