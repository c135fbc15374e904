/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of CUDA functions as other tools write them. */
#ifndef WHYIDLE_EXPORT_API_NAME_H
#define WHYIDLE_EXPORT_API_NAME_H

#include <stdbool.h>

#define API_NAME_SIZE 128

/* True for the driver's functions ("cuLaunchKernel"), false for the runtime's and HIP's. */
bool api_is_driver(const char *function);

/*
 * Without the version that CUPTI appends to names of the runtime: "cudaLaunchKernel" for
 * "cudaLaunchKernel_v7000". Returns `function` itself or what it put into `buffer`.
 */
const char *api_plain_name(char buffer[API_NAME_SIZE], const char *function);

#endif
