/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of a status: which ones are shown, and in which order. */
#ifndef WHYIDLE_LIVE_PROCESSES_H
#define WHYIDLE_LIVE_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/array.h"
#include "report/format.h"

#define PROCESS_NAME  15 /* columns */
#define PROCESS_PLACE 40

/* What a list is sorted by: the largest figure first, but the smallest pid and the first name. */
enum process_sort {
	SORT_IDLE,
	SORT_CPU,
	SORT_RUNQUEUE,
	SORT_DISK,
	SORT_SWITCHES,
	SORT_LAUNCHES,
	SORT_FIGURES,
	SORT_PID = SORT_FIGURES,
	SORT_NAME,
	SORTS
};

/* "idle", "cpu", "nocpu", "disk", "switches", "launches", "pid", "name"; then NULL */
extern const char *const process_sort_names[SORTS + 1];

struct live_process {
	uint32_t pid;
	char name[FORMAT_TEXT_SIZE(PROCESS_NAME)];
	char place[FORMAT_TEXT_SIZE(PROCESS_PLACE)]; /* its pod, else its container; may be "" */
	double figures[SORT_FIGURES];                /* a negative one is not known */
	const json_t *object;                        /* of the status */
};

struct live_processes {
	ARRAY(struct live_process)
};

struct process_choice {
	enum process_sort sort;
	bool reverse;
	const char *filter; /* part of the name, of the place or of the pid, in any case; NULL, "": all */
	uint32_t pid;       /* only this one, 0: all */
};

/*
 * Those of the status that are chosen, in order. The list is freed with array_free and lives no longer than
 * the status. Returns 0 or -ENOMEM.
 */
int processes_list(struct live_processes *list, const json_t *status, const struct process_choice *choice);

/* Its place in the list, the list's count if it is not there. */
size_t processes_find(const struct live_processes *list, uint32_t pid);

#endif
