/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traces that other tools recorded, read into the same model that session files give: PyTorch profiler
 * (Kineto) Chrome traces, plain or gzip, and Nsight Systems SQLite exports. Recognised by content, not by
 * name.
 *
 * What a loader must deliver (model.h): devices with their operations in file order (gpu_op.order) and the
 * number the file gives them; threads with their CUDA calls; scopes; whatever scheduler data there is
 * (model.has_sched). Times become ns on one clock as the file has it. Correlation ids that do not fit 32 bits
 * are renumbered. Then model_finish. What the file cannot tell goes to model.degraded, one line each.
 *
 * Errors are one line: what is wrong with which file and what to do. A truncated file is read up to the
 * break, with a line in model.degraded and summary.complete false.
 */
#ifndef WHYIDLE_IMPORT_H
#define WHYIDLE_IMPORT_H

#include "model/model.h"

enum import_format {
	IMPORT_UNKNOWN,
	IMPORT_SESSION,
	IMPORT_KINETO,
	IMPORT_NSYS,
};

/* Told now and then while a file is read: bytes done of the total (0: not known). May be NULL. */
struct import_progress {
	void (*report)(void *context, uint64_t done, uint64_t total);
	void *context;
};

/* Looks at the first bytes. IMPORT_UNKNOWN with `error` filled in if it is nothing that can be read. */
enum import_format import_recognise(const char *path, struct error *error);

/* Reads any file that import_recognise knows. Returns 0 or a negative errno; call model_free in either case.
 */
int import_load(struct model *model, const char *path, const struct import_progress *progress,
                struct error *error);

int import_kineto(struct model *model, const char *path, const struct import_progress *progress,
                  struct error *error);
int import_nsys(struct model *model, const char *path, const struct import_progress *progress,
                struct error *error);

#endif
