/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fuzzes the reader of Kineto traces, and the analysis of what it reads.
 *
 * Build and run: make fuzz [FUZZ_SECONDS=60]
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "attribute/analysis.h"
#include "import/import.h"
#include "require.h"

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

static void write_file(const uint8_t *bytes, size_t size)
{
	int fd;

	if (!*path) {
		strcpy(path, "/dev/shm/fuzz-kineto-XXXXXX");
		fd = mkstemp(path);
		REQUIRE(fd >= 0);
		close(fd);
		atexit(remove_file);
	}
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

static void check(const struct analysis *analysis)
{
	const struct device_report *device;

	array_for_each (device, &analysis->devices) {
		const struct cause *cause;
		uint64_t sum = 0;

		array_for_each (cause, &device->causes)
			sum += cause->ns;
		REQUIRE(sum == device->idle_ns);
		REQUIRE(device->busy_ns + device->idle_ns == device->window_end_ns - device->window_start_ns);
		REQUIRE(device->queued_ns + device->late_ns + device->unknown_ns == device->idle_ns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct analysis_options options = {.device = -1};
	struct analysis analysis = {0};
	struct model model = {0};
	struct error error = {0};
	int rc;

	write_file(bytes, size);
	rc = import_kineto(&model, path, NULL, &error);
	REQUIRE(!rc || *error.text);
	if (!rc) {
		REQUIRE(!analysis_run(&analysis, &model, &options, &error));
		check(&analysis);
	}
	analysis_free(&analysis);
	model_free(&model);
	return 0;
}
