/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where CUDA functions have the arguments that say what a call is about: for probes that read them
 * (bpf/cuda.bpf.c). By the functions' published prototypes.
 */
#ifndef WHYIDLE_COLLECT_CALL_ARGUMENTS_H
#define WHYIDLE_COLLECT_CALL_ARGUMENTS_H

#include <stdint.h>

/*
 * Places as in bpf/settings.h (CALL_PLACE_…). `stream`: the stream. `object`: of launches the function or
 * graph, of copies their direction (enum cudaMemcpyKind), of events the event.
 */
struct call_arguments {
	const char *name; /* stem, as in model/cuda_call.h */
	uint8_t stream, object;
	uint8_t size; /* CALL_SIZE_…: how much work it is */
};

/* NULL if nothing is known of the function. `stem` is the name of a struct cuda_function. */
const struct call_arguments *call_arguments_find(const char *stem);

#endif
