/* SPDX-License-Identifier: GPL-2.0-only */
/* Session files read into a model: the lives of threads and processes, and what was lost of them. */
#include <criterion/criterion.h>

#include "model/model.h"
#include "session_fixture.h"

#define LEADER 100u
#define OTHER  101u

static struct session_writer *writer;
static const char *path;
static struct error failure;

static void begin(void)
{
	path = fixture_path("session");
	cr_assert_eq(session_writer_open(&writer, path, &failure), 0, "%s", failure.text);
}

static void put(const void *record)
{
	cr_assert_eq(session_writer_put(writer, record, &failure), 0, "%s", failure.text);
}

static void put_fork(uint32_t tid, uint64_t time_ns)
{
	struct record_fork record = {
	    .header = {.type = RECORD_FORK, .size = sizeof(record)},
	    .time_ns = time_ns,
	    .parent_pid = tid == LEADER ? 1 : LEADER,
	    .parent_tid = tid == LEADER ? 1 : LEADER,
	    .child_pid = LEADER,
	    .child_tid = tid,
	};

	put(&record);
}

static void put_offcpu(uint32_t tid, uint64_t out_ns, uint32_t seq)
{
	struct record_offcpu record = {
	    .header = {.type = RECORD_OFFCPU, .size = sizeof(record)},
	    .out_ns = out_ns,
	    .in_ns = out_ns + 5,
	    .pid = LEADER,
	    .tid = tid,
	    .seq = seq,
	};

	put(&record);
}

static void put_exit(uint32_t tid, uint64_t time_ns, uint32_t seq)
{
	struct record_exit record = {
	    .header = {.type = RECORD_EXIT, .size = sizeof(record)},
	    .time_ns = time_ns,
	    .pid = LEADER,
	    .tid = tid,
	    .seq = seq,
	};

	put(&record);
}

static void put_exec(uint64_t time_ns)
{
	struct record_exec record = {
	    .header = {.type = RECORD_EXEC, .size = sizeof(record)},
	    .time_ns = time_ns,
	    .pid = LEADER,
	    .tid = LEADER,
	    .comm = session_writer_cstring(writer, "replaced"),
	    .cmdline = session_writer_cstring(writer, "replaced by exec"),
	};

	put(&record);
}

/* A leader with three intervals and another thread with one, up to the moment of its exec. */
static void put_takeover(void)
{
	put_fork(LEADER, 1000);
	put_offcpu(LEADER, 1010, 1);
	put_offcpu(LEADER, 1020, 2);
	put_fork(OTHER, 1030);
	put_offcpu(LEADER, 1040, 3);
	put_offcpu(OTHER, 1050, 1);
	put_exit(LEADER, 1100, 3);
	put_exit(OTHER, 1110, 1);
}

static struct model load(void)
{
	struct model model;

	cr_assert_eq(session_writer_close(writer, &failure), 0, "%s", failure.text);
	cr_assert_eq(model_load_session(&model, path, &failure), 0, "%s", failure.text);
	return model;
}

static const struct thread *thread_at(const struct model *model, uint32_t tid, uint64_t time_ns)
{
	uint32_t index = model_thread_at(model, tid, time_ns);

	cr_assert_neq(index, MODEL_NONE, "no thread %u at %lu", tid, (unsigned long)time_ns);
	return &model->threads.items[index];
}

static void check_nothing_lost(const struct thread *thread)
{
	const struct offcpu *offcpu;

	cr_expect_not(thread->lost_at_end);
	array_for_each (offcpu, &thread->offcpu)
		cr_expect_not(offcpu->lost_before, "before %lu", (unsigned long)offcpu->out_ns);
}

Test(session_load, exec_by_another_thread_begins_a_new_leader)
{
	const struct thread *before, *after, *other;
	struct model model;

	begin();
	put_takeover();
	put_exec(1120);
	for (uint32_t i = 1; i <= 5; i++)
		put_offcpu(LEADER, 1120 + 10 * i, i);
	model = load();
	before = thread_at(&model, LEADER, 1099);
	other = thread_at(&model, OTHER, 1105);
	after = thread_at(&model, LEADER, 5000);
	cr_assert_neq(before, after);
	cr_expect_eq(before->end_ns, 1100);
	cr_expect_eq(before->offcpu.count, 3);
	cr_expect_eq(other->end_ns, 1110);
	cr_expect_eq(after->start_ns, 1120);
	cr_expect_eq(after->end_ns, UINT64_MAX);
	cr_expect_eq(after->offcpu.count, 5);
	cr_expect(after->tracked);
	check_nothing_lost(before);
	check_nothing_lost(other);
	check_nothing_lost(after);
	cr_expect_eq(model_thread_at(&model, LEADER, 1110), MODEL_NONE);
	/* One process all along, which has not ended. */
	cr_assert_eq(before->process, after->process);
	cr_expect_eq(model.processes.items[after->process].end_ns, UINT64_MAX);
	cr_expect_str_eq(model_string(&model, model.processes.items[after->process].cmdline),
	                 "replaced by exec");
	model_free(&model);
}

Test(session_load, a_new_leader_without_intervals_ran_all_the_time)
{
	const struct thread *after;
	struct model model;

	begin();
	put_takeover();
	put_exec(1120);
	put_exit(LEADER, 1200, 0);
	model = load();
	after = thread_at(&model, LEADER, 1150);
	cr_expect(after->tracked);
	cr_expect_eq(after->end_ns, 1200);
	cr_expect_eq(after->offcpu.count, 0);
	check_nothing_lost(after);
	cr_expect_eq(model.processes.items[after->process].end_ns, 1200);
	model_free(&model);
}

Test(session_load, losses_of_a_new_leader_are_seen)
{
	const struct thread *after;
	struct model model;

	begin();
	put_takeover();
	put_exec(1120);
	put_offcpu(LEADER, 1130, 3); /* not the fourth of the old leader */
	put_offcpu(LEADER, 1140, 4);
	put_exit(LEADER, 1200, 6);
	model = load();
	after = thread_at(&model, LEADER, 1150);
	cr_assert_eq(after->offcpu.count, 2);
	cr_expect(after->offcpu.items[0].lost_before);
	cr_expect_not(after->offcpu.items[1].lost_before);
	cr_expect(after->lost_at_end);
	model_free(&model);
}

Test(session_load, intervals_after_an_exit_are_a_new_threads_also_without_the_exec)
{
	const struct thread *before, *after;
	struct model model;

	begin();
	put_takeover();
	put_offcpu(LEADER, 1130, 1);
	put_offcpu(LEADER, 1140, 2);
	model = load();
	before = thread_at(&model, LEADER, 1090);
	after = thread_at(&model, LEADER, 2000);
	cr_assert_neq(before, after);
	cr_expect_eq(before->end_ns, 1100);
	cr_expect_eq(before->offcpu.count, 3);
	cr_expect_eq(after->offcpu.count, 2);
	check_nothing_lost(after);
	model_free(&model);
}

Test(session_load, exec_by_the_leader_changes_nothing_but_the_name)
{
	const struct thread *thread;
	struct model model;

	begin();
	put_fork(LEADER, 1000);
	put_offcpu(LEADER, 1010, 1);
	put_exec(1020);
	put_offcpu(LEADER, 1030, 2);
	put_offcpu(LEADER, 1040, 4);
	put_exit(LEADER, 1050, 4);
	model = load();
	thread = thread_at(&model, LEADER, 1045);
	cr_expect_eq(thread->start_ns, 1000);
	cr_expect_eq(thread->end_ns, 1050);
	cr_assert_eq(thread->offcpu.count, 3);
	cr_expect_not(thread->offcpu.items[1].lost_before);
	cr_expect(thread->offcpu.items[2].lost_before);
	cr_expect_str_eq(model_string(&model, thread->comm), "replaced");
	model_free(&model);
}

Test(session_load, threads_that_outlive_the_leader_keep_the_process_alive)
{
	const struct thread *other;
	struct model model;

	begin();
	put_fork(LEADER, 1000);
	put_fork(OTHER, 1010);
	put_exit(LEADER, 1020, 0);
	put_offcpu(OTHER, 1030, 1);
	put_exit(OTHER, 1040, 1);
	model = load();
	other = thread_at(&model, OTHER, 1035);
	check_nothing_lost(other);
	cr_expect_eq(model.processes.items[other->process].end_ns, 1040);
	model_free(&model);
}

static void put_range(uint64_t start_ns, uint64_t end_ns, const char *name, const char *domain, uint32_t kind)
{
	struct record_range record = {
	    .header = {.type = RECORD_RANGE, .size = sizeof(record)},
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .pid = LEADER,
	    .tid = LEADER,
	    .name = session_writer_cstring(writer, name),
	    .domain = domain ? session_writer_cstring(writer, domain) : 0,
	    .kind = kind,
	};

	put(&record);
}

/* In the order of their ends, as the program's thread writes them. */
Test(session_load, ranges_nest_or_cross)
{
	static const struct {
		const char *name;
		uint32_t kind, outer;
		bool crosses;
	} wanted[] = {
	    {"step", SCOPE_ANNOTATION, MODEL_NONE, false},
	    {"epoch", SCOPE_RANGE, 0, true},
	    {"loader:fetch", SCOPE_ANNOTATION, 1, false},
	    {"loader:wait", SCOPE_ANNOTATION, 2, false},
	    {"late", SCOPE_RANGE, 2, true},
	    {"after", SCOPE_ANNOTATION, 4, false},
	};
	const struct thread *thread;
	struct model model;

	begin();
	put_fork(LEADER, 1000);
	put_range(1400, 1500, "wait", "loader", RECORD_RANGE_PUSH_POP);
	put_range(1300, 1600, "fetch", "loader", RECORD_RANGE_PUSH_POP);
	put_range(1100, 1800, "step", NULL, RECORD_RANGE_PUSH_POP);
	put_range(1550, 2000, "late", NULL, RECORD_RANGE_START_END);
	put_range(1850, 2100, "after", NULL, RECORD_RANGE_PUSH_POP); /* the row of "step" is free again */
	put_range(1200, 3000, "epoch", NULL, RECORD_RANGE_START_END);
	model = load();
	thread = thread_at(&model, LEADER, 1500);
	cr_assert_eq(thread->scopes.count, sizeof(wanted) / sizeof(wanted[0]));
	for (size_t i = 0; i < thread->scopes.count; i++) {
		const struct scope *scope = &thread->scopes.items[i];

		cr_expect_str_eq(model_string(&model, scope->name), wanted[i].name);
		cr_expect_eq(scope->kind, wanted[i].kind, "%s", wanted[i].name);
		cr_expect_eq(scope->crosses, wanted[i].crosses, "%s", wanted[i].name);
		cr_expect_eq(scope->outer, wanted[i].outer, "%s: %u", wanted[i].name, scope->outer);
	}
	model_free(&model);
}

Test(session_load, a_range_that_ends_before_it_begins_is_empty)
{
	const struct thread *thread;
	struct model model;

	begin();
	put_fork(LEADER, 1000);
	put_range(1400, 1300, "back", NULL, RECORD_RANGE_PUSH_POP);
	model = load();
	thread = thread_at(&model, LEADER, 1500);
	cr_assert_eq(thread->scopes.count, 1);
	cr_expect_eq(thread->scopes.items[0].start_ns, 1400);
	cr_expect_eq(thread->scopes.items[0].end_ns, 1400);
	model_free(&model);
}

/* Elements of its type: 100 floats. A rank that its communicator cannot have is none. */
Test(session_load, calls_of_nccl)
{
	struct record_nccl record = {
	    .header = {.type = RECORD_NCCL, .size = sizeof(record)},
	    .time_ns = 1100,
	    .pid = LEADER,
	    .tid = LEADER,
	    .function = RECORD_NCCL_ALL_REDUCE,
	    .type = 7,
	    .comm = 0x10,
	    .id = 0x20,
	    .number = 3,
	    .count = 100,
	    .stream = 0x30,
	    .size = 4,
	    .rank = 2,
	    .group = 5,
	};
	const struct thread *thread;
	struct model model;

	begin();
	put_fork(LEADER, 1000);
	put(&record);
	record.time_ns = 1200;
	record.rank = 4;
	record.type = 1000;
	put(&record);
	record.type = 8;
	record.count = UINT64_MAX / 4;
	put(&record);
	model = load();
	thread = thread_at(&model, LEADER, 1500);
	cr_assert_eq(thread->nccl_calls.count, 3);
	cr_expect_eq(thread->nccl_calls.items[0].bytes, 400);
	cr_expect_eq(thread->nccl_calls.items[0].size, 4);
	cr_expect_eq(thread->nccl_calls.items[0].rank, 2);
	cr_expect_eq(thread->nccl_calls.items[0].comm, 0x20);
	cr_expect_eq(thread->nccl_calls.items[0].handle, 0x10);
	cr_expect_eq(thread->nccl_calls.items[0].number, 3);
	cr_expect_eq(thread->nccl_calls.items[0].group, 5);
	cr_expect_eq(thread->nccl_calls.items[0].stream, 0x30);
	cr_expect_eq(thread->nccl_calls.items[1].bytes, 0);
	cr_expect_eq(thread->nccl_calls.items[1].size, 0);
	cr_expect_eq(thread->nccl_calls.items[2].bytes, 0);
	model_free(&model);
}
