// SPDX-License-Identifier: GPL-2.0-only
#include "export/contexts.h"

#include <errno.h>

static uint64_t key_of(uint32_t process, uint32_t context)
{
	return (uint64_t)process << 32 | context;
}

int contexts_map(struct index_map *map, const struct model *model)
{
	for (uint32_t i = 0; i < model->devices.count; i++) {
		uint64_t last = UINT64_MAX;
		const struct gpu_op *op;

		array_for_each (op, &model->devices.items[i].ops) {
			uint64_t key = key_of(op->process, op->context);

			if (key != last && index_map_put(map, key, i))
				return -ENOMEM;
			last = key;
		}
	}
	return 0;
}

bool context_device(const struct index_map *map, uint32_t process, uint32_t context, uint32_t *device)
{
	return index_map_get(map, key_of(process, context), device);
}
