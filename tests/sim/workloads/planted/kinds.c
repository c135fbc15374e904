/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/workloads/planted/planted.h"

static const struct plant_kind *const tables[] = {kinds_of_running, kinds_of_waiting, kinds_of_storage,
                                                  kinds_of_memory,  kinds_of_cuda,    kinds_of_groups,
                                                  kinds_of_network, kinds_of_wakes,   kinds_of_kernel};

const struct plant_kind *plant_kind_find(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct plant_kind *kind = tables[i]; kind->name; kind++)
			if (!strcmp(kind->name, name))
				return kind;
	return NULL;
}

const char *place_name(enum place place)
{
	static const char *const names[PLACE_COUNT] = {
	    [PLACE_LAUNCHER] = "launcher",
	    [PLACE_THREAD] = "thread",
	    [PLACE_WORKER] = "worker",
	    [PLACE_PROCESS] = "process",
	};

	return names[place];
}

static void refuse(const char *text, const char *why)
{
	fprintf(stderr, "planted: %s: %s\n", text, why);
	exit(2);
}

void plant_parse(struct plant *plant, const char *text)
{
	char kind[32], place[16];
	double milliseconds;

	if (sscanf(text, "%31[a-z_]@%15[a-z]:%lf", kind, place, &milliseconds) != 3 || milliseconds < 0)
		refuse(text, "a plant is KIND@PLACE:MS");
	*plant = (struct plant){.kind = plant_kind_find(kind), .place = PLACE_COUNT};
	if (!plant->kind)
		refuse(text, "no such kind");
	for (int i = 0; i < PLACE_COUNT; i++)
		if (!strcmp(place, place_name((enum place)i)))
			plant->place = (enum place)i;
	if (plant->place == PLACE_COUNT || !(plant->kind->places & 1u << plant->place))
		refuse(text, "not in that place");
	plant->duration_ns = (uint64_t)(milliseconds * 1e6);
}
