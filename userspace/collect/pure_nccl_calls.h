/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of NCCL that are probed (bpf/nccl.bpf.c), and where each has its arguments. By their prototypes
 * in NCCL's user guide; tried with the simulated library only.
 */
#ifndef WHYIDLE_COLLECT_PURE_NCCL_CALLS_H
#define WHYIDLE_COLLECT_PURE_NCCL_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* NCCL_COOKIE of an exported function, 0: it is not probed. `*creates`: it makes a communicator. */
uint64_t nccl_call_cookie(const char *name, bool *creates);

#endif
