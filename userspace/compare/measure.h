/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a comparison needs of one run: idle time by cause and kernels of each device, cut into consecutive
 * batches so that the spread inside the run shows. A batch is a number of steps where steps are found, else a
 * slice of the window.
 */
#ifndef WHYIDLE_COMPARE_MEASURE_H
#define WHYIDLE_COMPARE_MEASURE_H

#include "attribute/analysis.h"
#include "attribute/steps.h"
#include "compare/noise.h"

struct batch {
	uint64_t time_ns, idle_ns, steps;
	uint64_t cause_ns[CAUSE_COUNT][ROLE_COUNT];
};

/* Operations of one name: a kernel, or copies of one kind. */
struct kernel_measure {
	char *name;
	uint64_t count, ns; /* of those that start within a batch */
	uint64_t batch_count[NOISE_BATCHES_MOST], batch_ns[NOISE_BATCHES_MOST];
};

struct device_measure {
	uint32_t device; /* number in its input */
	char *name, *path;
	uint64_t window_start_ns, window_end_ns;
	uint64_t busy_ns, idle_ns, gap_count, op_count; /* of the whole window */
	enum steps_origin origin;
	char *step_name;     /* STEPS_NAMED */
	uint64_t period_ops; /* STEPS_RHYTHM: operations of a step */
	uint64_t steps;      /* that are compared */
	uint64_t warm_up;    /* steps at the beginning that are not */
	uint64_t step_least_ns, step_median_ns, step_most_ns;
	unsigned batches; /* 0: too little to be cut */
	struct batch batch[NOISE_BATCHES_MOST];
	struct {
		ARRAY(struct kernel_measure)
	} kernels; /* by ns, largest first */
};

struct measurement {
	const char *source; /* "session", "kineto", "nsys" of the first input; static */
	bool simulated, incomplete;
	uint64_t lost; /* records */
	struct {
		ARRAY(struct device_measure)
	} devices;
};

/*
 * Adds the devices of an analysed model that did anything. Both may be freed afterwards. Returns 0 or a
 * negative errno with `error`; measurement_free in either case.
 */
int measurement_add(struct measurement *measurement, const struct model *model,
                    const struct analysis *analysis, const char *path, struct error *error);
void measurement_free(struct measurement *measurement);

/* Sum of a batch's field over all batches of the device. */
uint64_t measure_time_ns(const struct device_measure *device);
uint64_t measure_cause_ns(const struct device_measure *device, enum cause_code code, enum cause_role role);

#endif
