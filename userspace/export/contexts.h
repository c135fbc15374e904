/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which device a CUDA context is on. Synchronisations name no device; their context is on the one that has
 * operations of the same process and context.
 */
#ifndef WHYIDLE_EXPORT_CONTEXTS_H
#define WHYIDLE_EXPORT_CONTEXTS_H

#include "model/model.h"

/* Fills in the map, which the caller frees in either case. Returns 0 or -ENOMEM. */
int contexts_map(struct index_map *map, const struct model *model);

/* Index of the device; false if no operation tells. */
bool context_device(const struct index_map *map, uint32_t process, uint32_t context, uint32_t *device);

#endif
