// SPDX-License-Identifier: GPL-2.0-only
/* One row a step, in time order. */
#include <errno.h>
#include <stdio.h>

#include "tables/group.h"

static const char *cause_text(struct table *table, const struct step_figures *step)
{
	char text[64];

	if (!step->has_cause)
		return "";
	snprintf(text, sizeof(text), "%s@%s", cause_code_name(step->largest.code),
	         cause_role_name(step->largest.role));
	return table_own(table, text);
}

static int put_step(struct table *table, const struct table_source *source, uint32_t device,
                    const struct step_figures *step)
{
	uint64_t start = source->analysis->session_start_ns;
	const char *cause = cause_text(table, step);
	uint64_t length = step->end_ns - step->start_ns;

	if (!cause)
		return -ENOMEM;
	return put_number(table, device) || put_number(table, step->number) ||
	               put_number(table, step->start_ns > start ? step->start_ns - start : 0) ||
	               put_number(table, length) || put_number(table, length - step->idle_ns) ||
	               put_number(table, step->idle_ns) || put_number(table, step->op_count) ||
	               put_text(table, step->warm_up ? "warm-up"
	                               : step->slow  ? "slow"
	                                             : "") ||
	               put_number(table, step->has_cause ? step->largest.ns : 0) || put_text(table, cause)
	           ? -ENOMEM
	           : 0;
}

int fill_steps(struct table *table, const struct table_source *source)
{
	const struct device_report *device;
	const struct step_figures *step;
	int rc = 0;

	if (!source->analysis)
		return 0;
	array_for_each (device, &source->analysis->devices) {
		if (source->device != MODEL_NONE &&
		    source->model->devices.items[source->device].number != device->device)
			continue;
		array_for_each (step, &device->steps.steps) {
			if (!rc)
				rc = put_step(table, source, device->device, step);
		}
	}
	return rc;
}
