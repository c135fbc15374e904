/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this machine can and cannot do, found out by trying where that is possible.
 */
#ifndef WHYIDLE_COLLECT_DOCTOR_H
#define WHYIDLE_COLLECT_DOCTOR_H

#include "base/error.h"
#include "collect/pure_doctor_report.h"

/* Examines the machine. Returns 0 or -ENOMEM; free the report in either case. */
int doctor_examine(struct doctor_report *report, struct error *error);

#endif
