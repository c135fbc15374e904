/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Uprobes on the CUDA functions that a library exports.
 */
#ifndef WHYIDLE_COLLECT_BPF_CALLS_H
#define WHYIDLE_COLLECT_BPF_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

struct whyidle_bpf;
struct bpf_link;

struct calls_file {
	uint64_t device, inode;
};

struct bpf_calls {
	struct {
		ARRAY(char *)
	} names; /* of functions, by attach cookie; never taken out */
	struct {
		ARRAY(struct bpf_link *)
	} links;
	struct {
		ARRAY(struct calls_file)
	} files;
};

/*
 * Probes every known CUDA function of the ELF file at `path`, unless that was done before. The file is not
 * trusted. Returns the number of functions probed or a negative errno with `error`. What could be attached
 * stays.
 */
int bpf_calls_attach(struct bpf_calls *calls, struct whyidle_bpf *programs, const char *path,
                     struct error *error);

/* Takes all probes out. Names stay. */
void bpf_calls_detach(struct bpf_calls *calls);

/* A zeroed struct is allowed. */
void bpf_calls_free(struct bpf_calls *calls);

#endif
