// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attaches to a process as the recorder does, for the tests:
 *
 *	attach_tool [-m MS] [-c CYCLES] [-f] [-g] [-t TIMEOUT_MS] [-w PATIENCE_MS] [-k STEP] PID
 *
 * reads records for that long (300 ms), lets go, and prints a line for each cycle:
 *
 *	attached records=N operations=N names=N devices=N phase=N borrow_us=… … text=…
 *	failed reason=CODE text=…
 *
 * -f: CUPTI is finalised in the end; -g: goes without a word, as a collector that dies does; -k: is killed
 *(SIGKILL, by itself) right after that step (enum inject_step) of the way in. Exit status 0 if every cycle
 *attached, 3 if not.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/pure_ring_reader.h"
#include "cupti_bridge/attach.h"
#include "cupti_bridge/ring.h"
#include "inject/inject.h"

#define RING_BYTES   (4u << 20)
#define STOP_MS      10000
#define OPERATION_MS 10000

extern const unsigned char bridge_blob_start[], bridge_blob_end[];

struct counts {
	uint64_t records, operations, names, devices;
	uint64_t first_ns; /* when the first GPU operation was seen */
	uint32_t phase;
	char text[256];
};

static void count(struct counts *counts, const struct ring_record *record)
{
	const struct ring_status *status = (const struct ring_status *)record;

	counts->records++;
	counts->names += record->type == RING_NAME;
	counts->devices += record->type == RING_DEVICE;
	if (record->type == RING_KERNEL || record->type == RING_MEMCPY || record->type == RING_MEMSET) {
		counts->operations++;
		if (!counts->first_ns)
			counts->first_ns = clock_ns(CLOCK_MONOTONIC);
	}
	if (record->type == RING_STATUS && record->size >= sizeof(*status)) {
		counts->phase = status->phase;
		snprintf(counts->text, sizeof(counts->text), "%.*s", (int)status->text_length, status->text);
	}
}

static void drain(struct ring_reader *reader, struct counts *counts)
{
	const struct ring_record *record;

	if (!ring_reader_begin(reader))
		return;
	while ((record = ring_reader_next(reader)))
		count(counts, record);
	ring_reader_end(reader);
}

/* True once the bridge has closed its end of the pipe. */
static bool has_left(int pipe, int milliseconds)
{
	struct pollfd poll_fd = {.fd = pipe};

	return poll(&poll_fd, 1, milliseconds) == 1 && (poll_fd.revents & (POLLERR | POLLHUP));
}

/* At least for that long, and until there was an operation or CUPTI has failed. */
static void read_records(int pipe, struct ring_reader *reader, struct counts *counts, int milliseconds)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)milliseconds * 1000000u;
	uint64_t last = end + OPERATION_MS * 1000000ULL;

	while (clock_ns(CLOCK_MONOTONIC) < last && !has_left(pipe, 5)) {
		drain(reader, counts);
		if (clock_ns(CLOCK_MONOTONIC) >= end &&
		    (counts->operations || counts->phase == RING_PHASE_FAILED))
			break;
	}
}

static void die_at(void *context, enum inject_step step)
{
	if ((int)step == *(const int *)context)
		kill(getpid(), SIGKILL);
}

static int one_cycle(const struct inject_options *options, int milliseconds, bool go_silently)
{
	struct error error = {0};
	struct inject *inject;
	struct inject_times times;
	enum inject_reason reason = INJECT_OK;
	const char *text = "";
	struct counts counts = {0};
	static struct ring_reader reader;
	struct pollfd poll_fd;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), stop_ns;
	int ring, pipe;
	void *memory;

	if (inject_start(&inject, options, &error)) {
		printf("failed reason=start text=%s\n", error.text);
		return 3;
	}
	poll_fd = (struct pollfd){.fd = inject_fd(inject), .events = POLLIN};
	while (poll(&poll_fd, 1, -1) < 0)
		;
	if (inject_state(inject, &reason, &text) != INJECT_ATTACHED || inject_take(inject, &ring, &pipe)) {
		printf("failed reason=%s text=%s\n", inject_reason_code(reason), text);
		inject_close(inject);
		return 3;
	}
	inject_times(inject, &times);
	memory = mmap(NULL, RING_CONTROL_SIZE + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
	if (memory == MAP_FAILED)
		return 3;
	ring_reader_init(&reader, memory, RING_BYTES);
	read_records(pipe, &reader, &counts, milliseconds);
	if (go_silently)
		_exit(0);
	stop_ns = clock_ns(CLOCK_MONOTONIC);
	if (write(pipe, &(char){ATTACH_STOP}, 1) < 0)
		perror("pipe");
	for (uint64_t end = stop_ns + STOP_MS * 1000000ULL;
	     clock_ns(CLOCK_MONOTONIC) < end && !has_left(pipe, 5);)
		drain(&reader, &counts);
	stop_ns = clock_ns(CLOCK_MONOTONIC) - stop_ns;
	drain(&reader, &counts);
	close(pipe);
	inject_close(inject);
	printf("attached records=%" PRIu64 " operations=%" PRIu64 " names=%" PRIu64 " devices=%" PRIu64
	       " phase=%u borrow_us=%" PRIu64 " borrowed_us=%" PRIu64 " load_us=%" PRIu64 " total_us=%" PRIu64
	       " first_us=%" PRIu64 " stop_us=%" PRIu64 " text=%s\n",
	       counts.records, counts.operations, counts.names, counts.devices, counts.phase,
	       times.borrow_ns / 1000, times.borrowed_ns / 1000, times.load_ns / 1000, times.total_ns / 1000,
	       counts.first_ns ? (counts.first_ns - begin) / 1000 : 0, stop_ns / 1000, counts.text);
	fflush(stdout);
	munmap(memory, RING_CONTROL_SIZE + RING_BYTES);
	close(ring);
	return 0;
}

int main(int argc, char **argv)
{
	struct inject_options options = {
	    .bridge = bridge_blob_start,
	    .bridge_bytes = (size_t)(bridge_blob_end - bridge_blob_start),
	    .ring_bytes = RING_BYTES,
	    .flush_period_ms = 20,
	};
	int option, milliseconds = 300, cycles = 1, status = 0, die = -1;
	bool go_silently = false;

	signal(SIGPIPE, SIG_IGN); /* the bridge may leave while it is spoken to */
	while ((option = getopt(argc, argv, "m:c:fgt:w:k:")) != -1) {
		if (option == 'm')
			milliseconds = atoi(optarg);
		else if (option == 'c')
			cycles = atoi(optarg);
		else if (option == 't')
			options.timeout_ms = (uint32_t)atoi(optarg);
		else if (option == 'w')
			options.patience_ms = (uint32_t)atoi(optarg);
		else if (option == 'k')
			die = atoi(optarg);
		else if (option == 'f')
			options.finalize = true;
		else if (option == 'g')
			go_silently = true;
		else
			return 2;
	}
	if (optind + 1 != argc)
		return 2;
	options.step = die_at;
	options.context = &die;
	options.pid = (uint32_t)strtoul(argv[optind], NULL, 10);
	while (cycles-- > 0)
		if (one_cycle(&options, milliseconds, go_silently))
			status = 3;
	return status;
}
