/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of CUDA functions as other tools write them. */
#ifndef WHYIDLE_EXPORT_API_NAME_H
#define WHYIDLE_EXPORT_API_NAME_H

#include <stdbool.h>

/* True for the driver's functions ("cuLaunchKernel"), false for the runtime's and HIP's. */
bool api_is_driver(const char *function);

#endif
