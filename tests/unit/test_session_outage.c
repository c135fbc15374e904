/* SPDX-License-Identifier: GPL-2.0-only */
/* Session files on a disk that is full, for a while or for good. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session_fixture.h"
#include "trace/backlog.h"

/* A writer that counts what it was given and what it said. */
struct source {
	struct session_writer *writer;
	const char *path;
	uint64_t state, time;
	uint64_t events; /* put so far */
	int failures;    /* calls that returned an error */
	struct error error;
};

static struct source open_source(const char *path)
{
	struct source source = {.path = path, .state = 7, .time = 1000};

	cr_assert_eq(session_writer_open(&source.writer, path, &source.error), 0, "%s", source.error.text);
	return source;
}

static void put_events(struct source *source, int count)
{
	for (int i = 0; i < count; i++, source->time += 1000) {
		struct record_offcpu record = fixture_offcpu(&source->state, source->time);

		source->failures += session_writer_put(source->writer, &record, &source->error) != 0;
		source->events++;
	}
}

static void put_name(struct source *source, uint32_t tid, const char *comm)
{
	struct record_task task = {
	    .header = {.type = RECORD_TASK, .size = sizeof(task)},
	    .tid = tid,
	    .comm = session_writer_cstring(source->writer, comm),
	};

	cr_assert_neq(task.comm, 0);
	source->failures += session_writer_put(source->writer, &task, &source->error) != 0;
}

/* The soft limit on the size of files; SIGXFSZ keeps its default action, which ends the process. */
static void limit_files(uint64_t size)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Every string and task is there, strings before their use; events and losses add up to what was put. */
static void check_whole(const struct source *source, const char *const *names, uint32_t name_count)
{
	struct session_summary summary;
	struct shown shown = {0};
	struct error error = {0};
	uint64_t events = 0, lost = 0, last_time = 0;
	uint32_t strings = 0, tasks = 0;

	cr_assert_eq(shown_read(&shown, source->path, &summary, &error), 0, "%s", error.text);
	cr_assert(summary.complete);
	cr_assert_eq(summary.bad_chunks, 0);
	cr_assert_eq(summary.lost_bytes, 0);
	cr_assert_eq(summary.lost_records, 0);
	for (size_t i = 0; i < shown.records.count; i++) {
		const struct record_header *header = (const void *)shown.records.items[i].bytes;

		if (header->type == RECORD_STRING) {
			const struct record_string *string = (const void *)header;

			cr_assert_lt(strings, name_count);
			cr_assert_str_eq((const char *)(string + 1), names[strings]);
			cr_assert_eq(string->id, ++strings);
		} else if (header->type == RECORD_TASK) {
			const struct record_task *task = (const void *)header;

			cr_assert_eq(task->tid, tasks++);
			cr_assert_leq(task->comm, strings, "string %u is used before it is defined",
			              task->comm);
		} else if (header->type == RECORD_OFFCPU) {
			const struct record_offcpu *offcpu = (const void *)header;

			cr_assert_eq(offcpu->out_ns, last_time + 1000, "a hole without a RECORD_LOSS");
			last_time = offcpu->out_ns;
			events++;
		} else {
			const struct record_loss *loss = (const void *)header;

			cr_assert_eq(header->type, RECORD_LOSS);
			cr_assert_eq(loss->cause, RECORD_LOSS_FILE);
			cr_assert_eq(loss->start_ns, last_time + 1000);
			cr_assert_eq(loss->end_ns, last_time + 1000 * (loss->count + 1));
			last_time += 1000 * loss->count;
			lost += loss->count;
		}
	}
	cr_assert_eq(strings, name_count);
	cr_assert_eq(tasks, name_count);
	cr_assert_gt(lost, 0);
	cr_assert_eq(events + lost, source->events);
	shown_free(&shown);
}

/* The file as it is now ends with its last finished chunk. */
static uint64_t read_unfinished(const struct source *source)
{
	struct session_summary summary;
	struct error error = {0};
	struct stat status;

	cr_assert_eq(shown_read(NULL, source->path, &summary, &error), 0, "%s", error.text);
	cr_assert_not(summary.complete);
	cr_assert_eq(summary.bad_chunks, 0);
	cr_assert_eq(summary.lost_bytes, 0, "what a failed write left was not cut off");
	cr_assert_eq(stat(source->path, &status), 0);
	cr_assert_eq((uint64_t)status.st_size, session_writer_bytes(source->writer));
	return summary.records;
}

static const char *const names[] = {"python", "loader", "pin_memory", "backward"};

Test(session_outage, goes_on_when_there_is_room_again)
{
	struct source source = open_source(fixture_path("session"));

	put_name(&source, 0, names[0]);
	put_events(&source, 10);
	cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
	put_name(&source, 1, names[1]);
	limit_files(session_writer_bytes(source.writer) + 300000);
	put_events(&source, 20000);
	cr_assert_eq(source.failures, 1, "told once");
	cr_assert_eq(source.error.code, -EFBIG);
	cr_assert_not_null(strstr(source.error.text, source.path));
	put_name(&source, 2, names[2]);
	cr_assert_eq(session_writer_flush(source.writer, NULL), 0, "already told");
	cr_assert_eq(read_unfinished(&source), 12);
	cr_assert_eq(session_writer_lost(source.writer), 20000 + 2, "two names wait");

	limit_files(RLIM_INFINITY);
	put_events(&source, 5);
	cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
	cr_assert_eq(session_writer_lost(source.writer), 20000 + 5, "the names no longer wait");
	put_name(&source, 3, names[3]);
	put_events(&source, 10);
	cr_assert_eq(source.failures, 1);
	cr_assert_eq(session_writer_close(source.writer, NULL), 0);
	check_whole(&source, names, 4);
}

/* Nobody flushes: the writer tries by itself once enough was dropped. */
Test(session_outage, goes_on_without_a_flush)
{
	struct source source = open_source(fixture_path("session"));
	uint64_t lost;

	limit_files(session_writer_bytes(source.writer) + 300000);
	put_name(&source, 0, names[0]);
	put_events(&source, 10000);
	cr_assert_eq(source.failures, 1);
	limit_files(RLIM_INFINITY);
	put_events(&source, 20000);
	lost = session_writer_lost(source.writer);
	put_events(&source, 1000);
	cr_assert_eq(session_writer_lost(source.writer), lost, "the outage is over");
	cr_assert_eq(session_writer_close(source.writer, NULL), 0);
	check_whole(&source, names, 1);
}

Test(session_outage, every_outage_is_told_and_counted)
{
	struct source source = open_source(fixture_path("session"));

	for (int round = 1; round <= 3; round++) {
		put_name(&source, (uint32_t)round - 1, names[round - 1]);
		put_events(&source, 10);
		cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
		limit_files(session_writer_bytes(source.writer) + 100000);
		put_events(&source, 10000);
		cr_assert_eq(source.failures, round);
		limit_files(RLIM_INFINITY);
		cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
	}
	cr_assert_eq(session_writer_close(source.writer, NULL), 0);
	check_whole(&source, names, 3);
}

/* The place of the chunk that did not fit is enough for the loss and the end mark. */
Test(session_outage, a_file_that_stays_full_is_finished)
{
	struct source source = open_source(fixture_path("session"));

	put_name(&source, 0, names[0]);
	put_events(&source, 10);
	cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
	limit_files(session_writer_bytes(source.writer) + 100000);
	put_name(&source, 1, names[1]);
	put_events(&source, 30000);
	cr_assert_eq(source.failures, 1);
	cr_assert_eq(session_writer_close(source.writer, NULL), 0);
	check_whole(&source, names, 2);
}

/* The first failure may come as late as the end. */
Test(session_outage, a_last_chunk_that_does_not_fit_is_told)
{
	struct source source = open_source(fixture_path("session"));

	put_events(&source, 1);
	cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
	put_events(&source, 5000);
	limit_files(session_writer_bytes(source.writer) + 5000);
	cr_assert_eq(source.failures, 0);
	cr_assert_eq(session_writer_close(source.writer, &source.error), -EFBIG);
	check_whole(&source, names, 0);
}

Test(session_outage, no_room_for_the_end_mark)
{
	struct source source = open_source(fixture_path("session"));
	struct session_summary summary;

	put_events(&source, 10);
	cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
	limit_files(session_writer_bytes(source.writer) + 10);
	put_events(&source, 10000);
	cr_assert_eq(source.failures, 1);
	cr_assert_eq(session_writer_lost(source.writer), 10000);
	cr_assert_eq(session_writer_close(source.writer, &source.error), -EFBIG);
	cr_assert_eq(shown_read(NULL, source.path, &summary, NULL), 0);
	cr_assert_eq(summary.records, 10);
	cr_assert_not(summary.complete);
	cr_assert_eq(summary.lost_bytes, 0);
}

Test(session_outage, a_failure_that_strings_meet_is_told_by_the_next_call)
{
	struct source source = open_source(fixture_path("session"));
	char *text = malloc(SESSION_MAX_STRING);
	struct error error = {0};

	limit_files(session_writer_bytes(source.writer) + 100000);
	for (uint32_t i = 1; i <= 20; i++) {
		fixture_fill(&source.state, text, SESSION_MAX_STRING);
		cr_assert_eq(session_writer_string(source.writer, text, SESSION_MAX_STRING), i);
	}
	cr_assert_eq(session_writer_flush(source.writer, &error), -EFBIG);
	limit_files(RLIM_INFINITY);
	cr_assert_eq(session_writer_close(source.writer, &error), 0, "%s", error.text);
	{
		struct session_summary summary;
		struct shown shown = {0};

		cr_assert_eq(shown_read(&shown, source.path, &summary, NULL), 0);
		cr_assert(summary.complete);
		cr_assert_eq(shown_count(&shown, RECORD_STRING), 20);
		cr_assert_eq(shown_count(&shown, RECORD_LOSS), 0, "no event was lost");
		shown_free(&shown);
	}
	free(text);
}

Test(session_outage, the_header_does_not_fit)
{
	struct session_writer *writer;
	struct error error = {0};

	limit_files(16);
	cr_assert_eq(session_writer_open(&writer, fixture_path("session"), &error), -EFBIG);
	cr_assert_not_null(strstr(error.text, "cannot write"));
}

/* A real full disk, where a small one can be had. */
Test(session_outage, full_disk)
{
	const char *disk = fixture_path("disk"), *path = fixture_path("disk/session");
	const char *ballast_path = fixture_path("disk/ballast");
	static const char block[65536];
	struct source source;
	FILE *ballast;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		cr_skip_test("mounting a small disk needs root");
	cr_assert_eq(mkdir(disk, 0700), 0);
	if (mount("none", disk, "tmpfs", 0, "size=8m") < 0)
		cr_skip_test("a small tmpfs cannot be mounted: %s", strerror(errno));
	source = open_source(path);
	put_name(&source, 0, names[0]);
	put_events(&source, 10);
	cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
	ballast = fopen(ballast_path, "w");
	cr_assert_not_null(ballast);
	setvbuf(ballast, NULL, _IONBF, 0);
	while (fwrite(block, 1, sizeof(block), ballast) == sizeof(block))
		;
	cr_assert_eq(errno, ENOSPC);
	cr_assert_eq(ftruncate(fileno(ballast), (off_t)(lseek(fileno(ballast), 0, SEEK_CUR) - 300000)), 0);
	put_name(&source, 1, names[1]);
	put_events(&source, 20000);
	cr_assert_eq(source.failures, 1);
	cr_assert_eq(source.error.code, -ENOSPC);
	cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
	cr_assert_eq(read_unfinished(&source), 12);
	cr_assert_eq(session_writer_lost(source.writer), 20000 + 1);
	fclose(ballast);
	cr_assert_eq(unlink(ballast_path), 0);
	put_name(&source, 2, names[2]);
	cr_assert_eq(session_writer_flush(source.writer, NULL), 0);
	put_events(&source, 10);
	cr_assert_eq(source.failures, 1);
	cr_assert_eq(session_writer_close(source.writer, NULL), 0);
	check_whole(&source, names, 3);
	cr_assert_eq(umount2(disk, MNT_DETACH), 0);
}

Test(session_outage, the_backlog_is_bounded)
{
	struct {
		struct record_stack stack;
		uint64_t frames[64];
	} record = {.stack = {.header = {.type = RECORD_STACK, .size = sizeof(record)}, .count = 64}};
	struct record_offcpu event = fixture_offcpu(&(uint64_t){8}, 5000);
	const uint64_t fit = BACKLOG_MAX_BYTES / sizeof(record);
	struct backlog backlog = {0};

	backlog_add(&backlog, &event, sizeof(event), NULL, 0);
	cr_assert_eq(backlog.kept_records, 0, "events are not kept");
	for (uint64_t i = 0; i < fit + 10; i++)
		backlog_add(&backlog, &record.stack, sizeof(record.stack), record.frames,
		            sizeof(record.frames));
	cr_assert_eq(backlog.kept_records, fit);
	cr_assert_eq(backlog.dropped, 11);
	cr_assert_eq(backlog.span.start_ns, 5000);
	cr_assert_eq(backlog.span.end_ns, 6000);
	cr_assert_leq(backlog.kept_capacity, BACKLOG_MAX_BYTES);
	backlog_free(&backlog);
}
