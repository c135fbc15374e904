/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wire records (bpf/events.h) → session records.
 */
#ifndef WHYIDLE_COLLECT_BPF_CONVERT_H
#define WHYIDLE_COLLECT_BPF_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/bpf_files.h"
#include "collect/bpf_source.h"
#include "collect/bpf_stacks.h"
#include "collect/user_stacks.h"
#include "trace/session.h"

struct bpf_converter {
	struct session_writer *writer;
	struct bpf_stacks *stacks;
	struct user_stacks *user_stacks;
	struct bpf_files files;
	/* Names of probed CUDA functions by attach cookie. Given by the caller, may grow between calls. */
	char *const *functions;
	size_t function_count;
	const struct bpf_source_callers
	    *callers;     /* who wants to know of processes that call CUDA; NULL: nobody */
	uint64_t invalid; /* records that made no sense, left out */
};

/*
 * Converts one record of `size` bytes and writes what comes of it. A record of unknown type or wrong size is
 * counted and left out. Returns 0 or a negative errno of the writer or -ENOMEM, with `error`.
 */
int bpf_convert(struct bpf_converter *converter, const void *data, size_t size, struct error *error);

#endif
