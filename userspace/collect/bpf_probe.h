/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads as much of the BPF programs as this kernel allows, by trial: what it refuses is left out and said.
 */
#ifndef WHYIDLE_COLLECT_BPF_PROBE_H
#define WHYIDLE_COLLECT_BPF_PROBE_H

#include "base/error.h"
#include "collect/bpf_source.h"

struct whyidle_bpf;

/*
 * Loads the programs with their settings taken from `options`. Programs that are left out have no descriptor
 * (bpf_program__fd is negative). Returns 0 with *programs owned by the caller (whyidle_bpf__destroy), or a
 * negative errno with `error`.
 */
int bpf_probe_load(struct whyidle_bpf **programs, const struct bpf_source_options *options,
                   struct error *error);

#endif
