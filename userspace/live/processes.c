// SPDX-License-Identifier: GPL-2.0-only
#include "live/processes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "live/status.h"

const char *const process_sort_names[SORTS + 1] = {
    [SORT_IDLE] = "idle", [SORT_CPU] = "cpu",           [SORT_RUNQUEUE] = "nocpu",
    [SORT_DISK] = "disk", [SORT_SWITCHES] = "switches", [SORT_LAUNCHES] = "launches",
    [SORT_PID] = "pid",   [SORT_NAME] = "name",         [SORTS] = NULL,
};

static const char *const keys[SORT_FIGURES] = {
    [SORT_IDLE] = "idle", [SORT_CPU] = "cpu",           [SORT_RUNQUEUE] = "runqueue",
    [SORT_DISK] = "disk", [SORT_SWITCHES] = "switches", [SORT_LAUNCHES] = "launches_per_s",
};

static void take(struct live_process *process, const json_t *object)
{
	const char *pod = json_string_value(json_object_get(object, "pod"));

	process->object = object;
	process->pid = (uint32_t)status_number(object, "pid");
	status_text(process->name, sizeof(process->name), object, "process", PROCESS_NAME);
	status_text(process->place, sizeof(process->place), object, pod && *pod ? "pod" : "container",
	            PROCESS_PLACE);
	for (int i = 0; i < SORT_FIGURES; i++) {
		const json_t *value = json_object_get(object, keys[i]);

		process->figures[i] = json_is_number(value) ? json_number_value(value) : -1;
	}
}

static bool chosen(const struct live_process *process, const struct process_choice *choice)
{
	char pid[16];

	if (choice->pid && process->pid != choice->pid)
		return false;
	if (!choice->filter || !*choice->filter)
		return true;
	snprintf(pid, sizeof(pid), "%u", process->pid);
	return strcasestr(process->name, choice->filter) || strcasestr(process->place, choice->filter) ||
	       strstr(pid, choice->filter);
}

/* Of two processes, by the choice; qsort_r. */
static int compare(const void *a, const void *b, void *context)
{
	const struct live_process *x = a, *y = b;
	const struct process_choice *choice = context;
	int order = 0;

	if (choice->sort < SORT_FIGURES) {
		double first = x->figures[choice->sort], second = y->figures[choice->sort];

		order = (first < second) - (first > second);
	} else if (choice->sort == SORT_NAME) {
		order = strcmp(x->name, y->name);
	}
	if (!order)
		order = (x->pid > y->pid) - (x->pid < y->pid);
	return choice->reverse ? -order : order;
}

int processes_list(struct live_processes *list, const json_t *status, const struct process_choice *choice)
{
	struct process_choice order = *choice;
	json_t *object;
	size_t i;

	*list = (struct live_processes){0};
	json_array_foreach(json_object_get(status, "processes"), i, object)
	{
		struct live_process *process = array_add(list);

		if (!process) {
			array_free(list);
			return -ENOMEM;
		}
		take(process, object);
		if (!chosen(process, choice))
			list->count--;
	}
	if (list->count)
		qsort_r(list->items, list->count, sizeof(*list->items), compare, &order);
	return 0;
}

size_t processes_find(const struct live_processes *list, uint32_t pid)
{
	size_t at = 0;

	while (at < list->count && list->items[at].pid != pid)
		at++;
	return at;
}
