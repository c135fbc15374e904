/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The doctor's look at the GPU side: driver, GPUs, copies of CUPTI.
 */
#ifndef WHYIDLE_COLLECT_DOCTOR_CUDA_H
#define WHYIDLE_COLLECT_DOCTOR_CUDA_H

#include "collect/pure_doctor_report.h"

void doctor_check_cuda(struct doctor_report *report);

#endif
