/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this machine can and cannot do, found out by trying where that is possible.
 */
#ifndef WHYIDLE_COLLECT_DOCTOR_H
#define WHYIDLE_COLLECT_DOCTOR_H

#include <stdint.h>

#include "base/error.h"
#include "collect/pure_doctor_report.h"

/*
 * Examines the machine and, unless `pid` is 0, this process: those checks come last, with their `process` set
 * (doctor_process.h). Returns 0 or a negative errno with `error` (no memory, -ESRCH: no such process); free
 * the report in either case.
 */
int doctor_examine(uint32_t pid, struct doctor_report *report, struct error *error);

#endif
