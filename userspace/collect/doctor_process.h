/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The doctor's look at one process: what a recording of it would show, and why not more. Only looked at,
 * never touched: nothing is attached to it. Its files and names are its own, and not trusted.
 */
#ifndef WHYIDLE_COLLECT_DOCTOR_PROCESS_H
#define WHYIDLE_COLLECT_DOCTOR_PROCESS_H

#include <stdint.h>

#include "base/error.h"
#include "collect/pure_doctor_report.h"

/*
 * Adds checks, all with `process` set: process, cuda_driver, cuda_runtime, cuda_started, cuda_calls,
 * cuda_elsewhere, attach, process_cupti, cupti_user, python, stacks, cpu_quota. Returns 0, -ESRCH or -EACCES
 * with `error`.
 */
int doctor_check_process(uint32_t pid, struct doctor_report *report, struct error *error);

#endif
