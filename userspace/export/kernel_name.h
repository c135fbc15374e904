/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of operations as other tools write them. */
#ifndef WHYIDLE_EXPORT_KERNEL_NAME_H
#define WHYIDLE_EXPORT_KERNEL_NAME_H

#include <stddef.h>

#include "model/copy_name.h"

struct name_part {
	const char *start; /* within the whole name */
	size_t length;
};

/*
 * The function's own name: without its return type, namespaces, template arguments and parameters. Takes
 * C++ names in words ("void at::native::reduce_kernel<512>(int)") and mangled ones; anything else is returned
 * whole.
 */
struct name_part kernel_base_name(const char *name);

/* "Stream Synchronize": of a CUpti_ActivitySynchronizationType. */
const char *sync_type_name(uint32_t type);

#endif
