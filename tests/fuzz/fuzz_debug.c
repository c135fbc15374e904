// SPDX-License-Identifier: GPL-2.0-only
/*
 * Debug information (DWARF) of a file that somebody else wrote: its sections as they are, so that changes
 * reach what reads them and not only what reads the file around them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/source_places.h"
#include "tests/fuzz/fuzz_debug.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_ASKED 24

static void ask(struct debug_info *info, uint64_t address)
{
	struct source_place places[SOURCE_PLACES_MAX];
	size_t count = source_places(info, address, places);

	REQUIRE(count <= SOURCE_PLACES_MAX);
	for (size_t i = 0; i < count; i++) {
		REQUIRE(places[i].line >= 0);
		REQUIRE(!places[i].function || *places[i].function);
		REQUIRE(!places[i].file || *places[i].file);
	}
}

/* Each section in memory of its own: what is read behind its end is seen. */
static void split(const uint8_t *data, size_t size, struct debug_sections *sections)
{
	struct fuzz_debug_head head;

	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	*sections = (struct debug_sections){0};
	for (int i = 0; i < DEBUG_SECTIONS; i++) {
		struct debug_bytes *section = &sections->items[i];

		section->size = head.sizes[i] < size ? head.sizes[i] : size;
		if (!section->size)
			continue;
		section->owned = malloc(section->size);
		REQUIRE(section->owned);
		section->bytes = memcpy(section->owned, data, section->size);
		data += section->size;
		size -= section->size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct debug_sections sections;
	struct debug_info *info;

	if (size < sizeof(struct fuzz_debug_head))
		return 0;
	split(data, size, &sections);
	info = debug_info_open(&sections);
	REQUIRE(info);
	for (size_t i = 0; i < info->unit_spans.count && i < MAX_ASKED; i++) {
		uint64_t start = info->unit_spans.items[i].start, end = info->unit_spans.items[i].end;

		for (uint64_t part = 0; part < 8; part++)
			ask(info, start + (end - start) / 8 * part);
		ask(info, end - 1);
	}
	for (size_t i = 0; i < info->functions.count && i < MAX_ASKED; i++)
		ask(info, info->functions.items[i].start);
	debug_info_free(info);
	return 0;
}
