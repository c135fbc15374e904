/* SPDX-License-Identifier: GPL-2.0-only */
/* How complete the user stacks of a session are, and what they cost. */
#include <criterion/criterion.h>

#include "attribute/stack_quality.h"
#include "session_fixture.h"

#define MS 1000000ULL

static struct session_writer *writer;
static const char *path;
static struct error failure;

static void put(const void *record)
{
	cr_assert_eq(session_writer_put(writer, record, &failure), 0, "%s", failure.text);
}

static void put_stack(uint32_t id, uint32_t count, uint32_t flags)
{
	struct record_stack record = {
	    .header = {.type = RECORD_STACK, .size = sizeof(record) + count * 8},
	    .id = id,
	    .kind = RECORD_STACK_USER,
	    .pid = 100,
	    .count = count,
	    .flags = flags,
	};
	const uint64_t frames[] = {0x1000, 0x2000, 0x3000};

	cr_assert_eq(
	    session_writer_put_tail(writer, &record, sizeof(record), frames, (size_t)count * 8, &failure), 0);
}

static void put_symbol(uint64_t address, const char *name, const char *module)
{
	struct record_symbol record = {
	    .header = {.type = RECORD_SYMBOL, .size = sizeof(record)},
	    .address = address,
	    .pid = 100,
	    .name = session_writer_cstring(writer, name),
	    .module = session_writer_cstring(writer, module),
	};

	put(&record);
}

static void put_sample(uint32_t tid, uint32_t stack)
{
	struct record_sample record = {
	    .header = {.type = RECORD_SAMPLE, .size = sizeof(record)},
	    .time_ns = MS,
	    .pid = tid,
	    .tid = tid,
	    .syscall = -1,
	    .ustack = stack,
	};

	put(&record);
}

static void put_wait(uint32_t tid, uint64_t start_ns, uint64_t length_ns, uint32_t stack, uint32_t flags)
{
	struct record_offcpu record = {
	    .header = {.type = RECORD_OFFCPU, .size = sizeof(record)},
	    .out_ns = start_ns,
	    .wake_ns = start_ns + length_ns,
	    .in_ns = start_ns + length_ns + 5 * MS,
	    .pid = tid,
	    .tid = tid,
	    .syscall = -1,
	    .ustack = stack,
	    .flags = flags,
	};

	put(&record);
}

/* A thread of another process that was tracked on demand: parent and child are the same. */
static void put_guest(uint32_t tid)
{
	struct record_fork record = {
	    .header = {.type = RECORD_FORK, .size = sizeof(record)},
	    .time_ns = 1,
	    .parent_pid = tid,
	    .parent_tid = tid,
	    .child_pid = tid,
	    .child_tid = tid,
	};

	put(&record);
}

static void put_infos(void)
{
	session_writer_info(writer, "user_stacks_copied", "7", &failure);
	session_writer_info(writer, "user_stack_bytes_copied", "70000", &failure);
	session_writer_info(writer, "user_stacks_sent", "5", &failure);
	session_writer_info(writer, "user_stack_bytes_sent", "50000", &failure);
	session_writer_info(writer, "lost_user_stacks", "2", &failure);
}

Test(stack_quality, of_a_session)
{
	const uint32_t blocked = RECORD_OFFCPU_WOKEN;
	struct stack_report report;
	struct model model = {0};

	path = fixture_path("session");
	cr_assert_eq(session_writer_open(&writer, path, &failure), 0, "%s", failure.text);
	put_infos();
	put_guest(200);
	put_symbol(0x1000, "inner", "/lib/a.so");
	put_symbol(0x2000, "", "/lib/stripped.so");
	put_stack(1, 3, 0);
	put_stack(2, 1, RECORD_STACK_CUT);
	put_sample(100, 1);
	put_sample(100, 1);
	put_sample(100, 2);
	put_sample(100, 0);
	put_sample(200, 1);
	put_wait(100, 10 * MS, 2 * MS, 1, blocked);
	put_wait(100, 20 * MS, 2 * MS, 2, blocked); /* cut */
	put_wait(100, 30 * MS, 2 * MS, 0, blocked); /* none */
	put_wait(100, 40 * MS, MS, 1, blocked);     /* not longer than 1 ms: what follows is no wait */
	put_wait(100, 50 * MS, 0, 0, RECORD_OFFCPU_PREEMPTED);
	put_wait(200, 10 * MS, 2 * MS, 1, blocked);
	cr_assert_eq(session_writer_close(writer, &failure), 0, "%s", failure.text);

	cr_assert_eq(model_load_session(&model, path, &failure), 0, "%s", failure.text);
	cr_assert_eq(stack_quality(&model, &report), 0);
	cr_assert_eq(report.frames, 7);
	cr_assert_eq(report.frames_named, 3);
	cr_assert_str_eq(report.unnamed_file, "/lib/stripped.so");
	cr_assert_eq(report.unnamed_in_file, 2);
	cr_assert_eq(report.long_waits, 3);
	cr_assert_eq(report.long_waits_complete, 1);
	cr_assert_eq(report.cost.copied, 7);
	cr_assert_eq(report.cost.copied_bytes, 70000);
	cr_assert_eq(report.cost.sent, 5);
	cr_assert_eq(report.cost.sent_bytes, 50000);
	cr_assert_eq(report.cost.lost, 2);
	model_free(&model);
}

/* A stack is one of a collection by the interpreter's word, or by a name, or not at all. */
Test(stack_quality, collections)
{
	struct model model = {0};

	path = fixture_path("session");
	cr_assert_eq(session_writer_open(&writer, path, &failure), 0, "%s", failure.text);
	put_symbol(0x1000, "compute", "/usr/bin/python3.11");
	put_symbol(0x2000, "gc_collect_main", "/usr/bin/python3.11");
	put_stack(1, 1, 0);
	put_stack(2, 1, RECORD_STACK_COLLECTING);
	put_stack(3, 2, RECORD_STACK_CUT);
	put_stack(4, 2, RECORD_STACK_COLLECTING | RECORD_STACK_CUT);
	cr_assert_eq(session_writer_close(writer, &failure), 0, "%s", failure.text);

	cr_assert_eq(model_load_session(&model, path, &failure), 0, "%s", failure.text);
	cr_assert_eq(model.stacks.count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert_eq(model.stacks.items[i].collecting, i > 0, "stack %u", i + 1);
		cr_assert_eq(model.stacks.items[i].cut, i > 1, "stack %u", i + 1);
	}
	model_free(&model);
}
