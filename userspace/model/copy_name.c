// SPDX-License-Identifier: GPL-2.0-only
#include "model/copy_name.h"

#include <stdio.h>

const char *copy_name(char buffer[COPY_NAME_SIZE], const struct gpu_op *op)
{
	/* By CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind. */
	static const char *const directions[] = {"<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
	                                         "AtoD",      "DtoA", "DtoD", "HtoH", "PtoP"};
	static const char *const memories[] = {"Unknown", "Pageable", "Pinned",        "Device",
	                                       "Array",   "Managed",  "Device Static", "Managed Static"};
#define NAME_OF(table, index) (table)[(index) < sizeof(table) / sizeof(*(table)) ? (index) : 0]

	if (op->kind == OP_MEMSET)
		snprintf(buffer, COPY_NAME_SIZE, "Memset (%s)",
		         NAME_OF(memories, op->target_kind ? op->target_kind : op->source_kind));
	else
		snprintf(buffer, COPY_NAME_SIZE, "Memcpy %s (%s -> %s)", NAME_OF(directions, op->copy_kind),
		         NAME_OF(memories, op->source_kind), NAME_OF(memories, op->target_kind));
	return buffer;
#undef NAME_OF
}

const char *op_title(char buffer[COPY_NAME_SIZE], const struct model *model, const struct gpu_op *op)
{
	const char *name = model_string(model, op->name);

	if (*name)
		return name;
	if (op->kind == OP_MEMCPY || op->kind == OP_MEMSET)
		return copy_name(buffer, op);
	return op->kind == OP_GRAPH ? "CUDA graph" : "kernel";
}
