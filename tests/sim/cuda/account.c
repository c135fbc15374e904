/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device's own account: exact busy intervals and counts, kept whether anybody traces or not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/cuda/driver.h"
#include "tests/sim/cuda/engine.h"

struct account {
	struct sim_interval *intervals; /* disjoint, in order */
	size_t count, capacity;
	uint64_t operations[SIM_MARKER];
	uint64_t first_ns, last_ns;
	uint64_t dropped; /* not kept for lack of memory */
};

static struct account accounts[SIM_MAX_DEVICES];

/* Operations arrive by their ends, so that only the newest intervals can touch a new one. */
void account_add(CUdevice device, enum sim_operation_kind kind, uint64_t start_ns, uint64_t end_ns)
{
	struct account *account = &accounts[device];

	account->operations[kind]++;
	if (!account->first_ns || start_ns < account->first_ns)
		account->first_ns = start_ns;
	account->last_ns = end_ns > account->last_ns ? end_ns : account->last_ns;
	while (account->count && account->intervals[account->count - 1].end_ns >= start_ns) {
		struct sim_interval *last = &account->intervals[--account->count];

		start_ns = last->start_ns < start_ns ? last->start_ns : start_ns;
		end_ns = last->end_ns > end_ns ? last->end_ns : end_ns;
	}
	if (account->count == account->capacity) {
		size_t capacity = account->capacity ? 2 * account->capacity : 1024;
		struct sim_interval *more = realloc(account->intervals, capacity * sizeof(*more));

		if (!more) {
			account->dropped++;
			return;
		}
		account->intervals = more;
		account->capacity = capacity;
	}
	account->intervals[account->count++] = (struct sim_interval){start_ns, end_ns};
}

size_t simDeviceBusy(CUdevice device, size_t first, struct sim_interval *intervals, size_t max)
{
	size_t total = 0;

	if (device < 0 || device >= SIM_MAX_DEVICES)
		return 0;
	engine_lock();
	total = accounts[device].count;
	for (size_t i = 0; i < max && first + i < total; i++)
		intervals[i] = accounts[device].intervals[first + i];
	engine_unlock();
	return total;
}

static void write_account(FILE *file, uint32_t device, const struct account *account)
{
	uint64_t busy = 0;

	for (size_t i = 0; i < account->count; i++)
		busy += account->intervals[i].end_ns - account->intervals[i].start_ns;
	fprintf(file,
	        "{\"device\": %" PRIu32 ", \"first_ns\": %" PRIu64 ", \"last_ns\": %" PRIu64
	        ", \"busy_ns\": %" PRIu64 ", \"idle_ns\": %" PRIu64 ", \"dropped\": %" PRIu64
	        ",\n  \"operations\": {\"kernel\": %" PRIu64 ", \"memcpy\": %" PRIu64 ", \"memset\": %" PRIu64
	        "},\n  \"busy\": [",
	        device, account->first_ns, account->last_ns, busy,
	        account->last_ns - account->first_ns - busy, account->dropped,
	        account->operations[SIM_KERNEL], account->operations[SIM_COPY],
	        account->operations[SIM_MEMSET]);
	for (size_t i = 0; i < account->count; i++)
		fprintf(file, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", account->intervals[i].start_ns,
		        account->intervals[i].end_ns);
	fputs("]}", file);
}

/*
 * busy_ns: length of the union of kernels, copies and memsets; idle_ns: the rest between first_ns (start of
 * the first operation) and last_ns (end of the last one). Operations that had not finished are not counted.
 */
void account_write(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file) {
		fprintf(stderr, "simulated GPU: cannot write %s: %m\n", path);
		return;
	}
	engine_lock();
	fprintf(file, "{\"simulated\": true, \"pid\": %d, \"devices\": [", (int)getpid());
	for (uint32_t i = 0; i < sim_options.devices; i++) {
		fputs(i ? ",\n " : "\n ", file);
		write_account(file, i, &accounts[i]);
	}
	engine_unlock();
	fputs("\n]}\n", file);
	if (ferror(file) | fclose(file))
		fprintf(stderr, "simulated GPU: cannot write %s: %m\n", path);
}
