/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes that existed before recording began, as records: their threads, parents and command lines, from
 * /proc.
 */
#ifndef WHYIDLE_COLLECT_BPF_TASKS_H
#define WHYIDLE_COLLECT_BPF_TASKS_H

#include <stdint.h>

#include "base/error.h"
#include "trace/session.h"

#define TASKS_CMDLINE 4096

/* Arguments of a process, separated by spaces, cut to fit; "" if it has gone. */
void bpf_tasks_cmdline(uint32_t pid, char cmdline[TASKS_CMDLINE]);

/* Puts spaces for the NULs between arguments; a NUL follows the `length` bytes. */
void bpf_tasks_join(char *arguments, size_t length);

/* Fills in where the process of an exec record is. */
void bpf_tasks_place(struct record_exec *record, struct session_writer *writer);

/* The process that a thread or process id belongs to, 0 if there is none. */
uint32_t bpf_tasks_process(uint32_t id);

/* Writes fork and task records for each thread of `pid` and an exec record. A process that has gone gives
 * nothing. */
int bpf_tasks_write(uint32_t pid, uint64_t now, struct session_writer *writer, struct error *error);

#endif
