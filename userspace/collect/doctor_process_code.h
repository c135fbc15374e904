/* SPDX-License-Identifier: GPL-2.0-only */
/* The doctor's look at one process: what its call stacks will show. */
#ifndef WHYIDLE_COLLECT_DOCTOR_PROCESS_CODE_H
#define WHYIDLE_COLLECT_DOCTOR_PROCESS_CODE_H

#include <stdint.h>

#include "collect/pure_doctor_report.h"

/* Adds python and stacks. */
void doctor_check_process_code(uint32_t pid, struct doctor_report *report);

#endif
