/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps in the session which rank of a job a process is. */
#ifndef WHYIDLE_COLLECT_JOB_RANK_H
#define WHYIDLE_COLLECT_JOB_RANK_H

#include <stdint.h>

#include "trace/session.h"

/*
 * Writes a RECORD_RANK if the environment that the process began with says so (pure_job_rank.h); nothing else
 * of that environment is kept. Returns 0, also if it says nothing or cannot be read, or the error of the
 * writer.
 */
int job_rank_put(struct session_writer *writer, uint32_t pid, struct error *error);

#endif
