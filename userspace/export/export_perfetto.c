// SPDX-License-Identifier: GPL-2.0-only
/* Perfetto's own format; docs/exports.md has the mapping. */
#include <errno.h>
#include <stdlib.h>

#include "export/export.h"
#include "export/perfetto.h"

static int set_up(struct perfetto *perfetto)
{
	const struct model *model = perfetto->model;

	perfetto->name_of_string = calloc(model->strings.count + 1, sizeof(*perfetto->name_of_string));
	perfetto->has_states = calloc(model->threads.count + 1, sizeof(*perfetto->has_states));
	if (!perfetto->name_of_string || !perfetto->has_states)
		return -ENOMEM;
	perfetto->next_track = perfetto_gpu_track(perfetto, (uint32_t)model->devices.count, 0);
	return perfetto_find_flows(perfetto);
}

static void tear_down(struct perfetto *perfetto)
{
	protobuf_free(&perfetto->packet);
	protobuf_free(&perfetto->event);
	protobuf_free(&perfetto->interned);
	for (int i = 0; i < PERFETTO_TABLES; i++)
		index_map_free(&perfetto->numbers[i]);
	index_map_free(&perfetto->lane_by_stream);
	array_free(&perfetto->lanes);
	array_free(&perfetto->flows);
	free(perfetto->name_of_string);
	free(perfetto->has_states);
}

static int put_file(struct byte_out *out, void *context)
{
	struct perfetto *perfetto = context;

	perfetto->out = out;
	perfetto_head(perfetto);
	perfetto_hosts(perfetto);
	perfetto_gpus(perfetto);
	return perfetto->failed ? -ENOMEM : 0;
}

int export_perfetto(const char *path, const struct model *model, const struct analysis *analysis,
                    struct error *error)
{
	struct perfetto perfetto = {.model = model, .analysis = analysis};
	int rc = set_up(&perfetto);

	rc = rc ? error_no_memory(error)
	        : byte_out_file(path, byte_out_is_compressed(path), put_file, &perfetto, error);
	tear_down(&perfetto);
	return rc;
}
