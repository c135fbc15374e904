/* SPDX-License-Identifier: GPL-2.0-only */
/* The doctor's look at one process: the CUPTI that the bridge would use in it, and who else may use it. */
#ifndef WHYIDLE_COLLECT_DOCTOR_PROCESS_CUPTI_H
#define WHYIDLE_COLLECT_DOCTOR_PROCESS_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#include "collect/process_info.h"
#include "collect/pure_doctor_report.h"

/* Adds process_cupti and cupti_user. `libraries` are those of process_cuda_libraries. */
void doctor_check_process_cupti(uint32_t pid, struct doctor_report *report,
                                const struct cuda_library *libraries, size_t count);

#endif
