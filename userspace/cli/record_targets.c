// SPDX-License-Identifier: GPL-2.0-only
#include "cli/record_targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/quantity.h"

#define PID_MAX         (1u << 22) /* PID_MAX_LIMIT of the kernel */
#define CONTAINER_LEAST 6          /* characters of an id: see cgroup_in_container */

bool record_targets_given(const struct record_targets *targets)
{
	return targets->all || targets->pids || targets->cgroup || targets->comm || targets->container;
}

static int add_pid(struct record_targets *targets, const char *text, struct error *error)
{
	uint64_t pid;
	uint32_t *slot;

	if (quantity_number(text, &pid) || !pid || pid > PID_MAX)
		return error_set(error, -EINVAL, "record: not a process id: '%s' (--pid 12,34)", text);
	slot = array_add(&targets->list);
	if (!slot)
		return error_no_memory(error);
	*slot = pid;
	return 0;
}

static int parse_pids(struct record_targets *targets, struct error *error)
{
	char *copy = strdup(targets->pids), *rest = copy, *word;
	int err = copy ? 0 : error_no_memory(error);

	while (!err && (word = strsep(&rest, ",")))
		err = add_pid(targets, word, error);
	free(copy);
	return err;
}

int record_targets_resolve(struct record_targets *targets, struct discover_filter *filter,
                           struct error *error)
{
	int err = 0;

	if (targets->pids)
		err = parse_pids(targets, error);
	if (!err && targets->container && strlen(targets->container) < CONTAINER_LEAST)
		err = error_set(error, -EINVAL,
		                "record: --container: at least %d characters of the id are needed",
		                CONTAINER_LEAST);
	if (!err && targets->cgroup && targets->cgroup[0] != '/')
		err = error_set(error, -EINVAL,
		                "record: --cgroup: the path begins with / (see /proc/PID/cgroup)");
	*filter = (struct discover_filter){
	    .all = targets->all,
	    .pids = targets->list.items,
	    .pid_count = targets->list.count,
	    .cgroup = targets->cgroup,
	    .comm = targets->comm,
	    .container = targets->container,
	};
	return err;
}

void record_targets_free(struct record_targets *targets)
{
	array_free(&targets->list);
}
