// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stacks are unwound by the tables of the files whose code is on them. A table that lacks is not seen in a
 * file's headers alone, so some addresses of each file are looked up, as a recording would.
 */
#include "collect/doctor_process_code.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "collect/process_code.h"
#include "collect/python_process.h"

#define ADDRESSES  256 /* of a file that are looked up */
#define LEAST_STEP 16  /* bytes: functions are aligned to that */
#define LOOK_NS    2000000000ULL
#define MAX_BYTES  (64u << 20) /* of code: larger files take seconds, and a process has a few of them */
#define LIST_TEXT  160

/* ---- Python ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Name of a mapped file that is an interpreter by its name, NULL. */
static const char *interpreter_file(const struct process_code *process)
{
	const struct mapping *mapping;

	array_for_each (mapping, &process->mappings) {
		const char *name = base_name(mapping->path);

		if (mapping->executable && mapping->inode &&
		    (!strncmp(name, "python3", 7) || !strncmp(name, "libpython3", 10)))
			return name;
	}
	return NULL;
}

static void check_python(struct processes_code *all, struct process_code *process,
                         struct doctor_report *report)
{
	const char *file = interpreter_file(process);
	struct python_process python;
	struct doctor_check *check;

	if (python_process_find(all, process, &python)) {
		doctor_add(report, "python", DOCTOR_OK,
		           "Python %u.%u: its functions and lines are in stacks, waits for its lock are told",
		           python.version >> 8, python.version & 0xff);
	} else if (file) {
		check = doctor_add(
		    report, "python", DOCTOR_DEGRADED,
		    "%s: not a version whose frames are known; stacks show the interpreter's C functions",
		    file);
		doctor_fix(check, "CPython 3.9 to 3.14 of a release build is known");
	} else {
		doctor_add(report, "python", DOCTOR_OK, "no Python in it");
	}
}

/* ---- native stacks ---- */

struct stack_look {
	size_t files, unwound, named, skipped;
	char without[LIST_TEXT]; /* names of files that cannot be unwound */
};

static void look_at(struct processes_code *all, struct process_code *process, const struct mapping *mapping,
                    struct stack_look *look)
{
	struct binary *binary = process_code_binary(all, process, mapping);
	uint64_t size = mapping->end - mapping->start, step = size / ADDRESSES;
	size_t rules = 0, names = 0, used = strlen(look->without);

	if (!binary)
		return;
	step = step < LEAST_STEP ? LEAST_STEP : step;
	for (uint64_t at = step / 2; at < size; at += step) {
		struct unwind_rule rule;
		uint64_t address;

		/* Between functions there is none. */
		if (!binary_address(binary, mapping->offset + at, &address) ||
		    !binary_rule(binary, address, &rule))
			continue;
		rules++;
		names += binary_function(binary, address) != NULL;
	}
	look->files++;
	look->unwound += rules > 0;
	look->named += rules && 2 * names >= rules;
	if (!rules && used + 40 < sizeof(look->without))
		snprintf(look->without + used, sizeof(look->without) - used, "%s%.32s", used ? ", " : "",
		         base_name(mapping->path));
}

/* The largest mapping of code of each file. */
static bool is_largest(const struct process_code *process, const struct mapping *mapping)
{
	const struct mapping *other;

	array_for_each (other, &process->mappings) {
		uint64_t size = mapping->end - mapping->start, others = other->end - other->start;

		if (other->executable && other->inode == mapping->inode && other->device == mapping->device &&
		    (others > size || (others == size && other < mapping)))
			return false;
	}
	return true;
}

static void check_stacks(struct processes_code *all, struct process_code *process,
                         struct doctor_report *report)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + LOOK_NS;
	struct stack_look look = {0};
	const struct mapping *mapping;
	struct doctor_check *check;
	char skipped[64] = "";

	array_for_each (mapping, &process->mappings) {
		if (!mapping->executable || !mapping->inode || !is_largest(process, mapping))
			continue;
		if (mapping->end - mapping->start > MAX_BYTES || clock_ns(CLOCK_MONOTONIC) > until)
			look.skipped++;
		else
			look_at(all, process, mapping, &look);
	}
	if (look.skipped)
		snprintf(skipped, sizeof(skipped), "; %zu large ones were not looked at", look.skipped);
	check = doctor_add(
	    report, "stacks", look.unwound == look.files ? DOCTOR_OK : DOCTOR_DEGRADED,
	    "%zu of %zu files with code can be unwound, %zu of them name most of their functions%s%s%s",
	    look.unwound, look.files, look.named, *look.without ? "; not: " : "", look.without, skipped);
	if (look.unwound < look.files)
		doctor_fix(check,
		           "stacks end where they come into such a file, unless it keeps frame pointers");
}

void doctor_check_process_code(uint32_t pid, struct doctor_report *report)
{
	struct processes_code all = {0};
	struct process_code *process = process_code_get(&all, pid);

	if (process) {
		process_code_refresh(process, clock_ns(CLOCK_MONOTONIC));
		check_python(&all, process, report);
		check_stacks(&all, process, report);
	}
	processes_code_free(&all);
}
