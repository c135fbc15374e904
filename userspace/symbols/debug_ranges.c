// SPDX-License-Identifier: GPL-2.0-only
/* The addresses that an entry of the debug information stands for: one run, or a list in one of two formats.
 */
#include <dwarf.h>

#include "symbols/debug_info.h"

typedef bool take_range(void *context, uint64_t start, uint64_t end);

/* Pairs relative to a base; (0, 0) ends them, (highest, base) sets the base. */
static void old_ranges(struct debug_info *info, uint64_t base, uint64_t offset, take_range *take,
                       void *context)
{
	struct byte_reader reader = debug_info_section(info, DEBUG_RANGES, offset);

	while (debug_info_spend(info, 1)) {
		uint64_t start = read_fixed(&reader, 8), end = read_fixed(&reader, 8);

		if (reader.wrong || (!start && !end))
			return;
		if (start == UINT64_MAX)
			base = end;
		else if (!take(context, base + start, base + end))
			return;
	}
}

/* One entry of a list; false at the end. `start` and `end` are equal if it is no range. */
static bool next_range(const struct debug_info *info, const struct debug_unit *unit,
                       struct byte_reader *reader, uint64_t *base, uint64_t *start, uint64_t *end)
{
	const uint64_t table = unit->addresses;
	uint64_t kind = read_fixed(reader, 1), first = 0, second = 0;

	*start = *end = 0;
	switch (kind) {
	case DW_RLE_base_addressx:
		return debug_info_indexed(info, DEBUG_ADDR, table, read_unsigned(reader), 8, base);
	case DW_RLE_startx_endx:
		first = read_unsigned(reader);
		second = read_unsigned(reader);
		return debug_info_indexed(info, DEBUG_ADDR, table, first, 8, start) &&
		       debug_info_indexed(info, DEBUG_ADDR, table, second, 8, end);
	case DW_RLE_startx_length:
		first = read_unsigned(reader);
		second = read_unsigned(reader);
		if (!debug_info_indexed(info, DEBUG_ADDR, table, first, 8, start))
			return false;
		*end = *start + second;
		return true;
	case DW_RLE_offset_pair:
		*start = *base + read_unsigned(reader);
		*end = *base + read_unsigned(reader);
		return true;
	case DW_RLE_base_address:
		*base = read_fixed(reader, 8);
		return true;
	case DW_RLE_start_end:
		*start = read_fixed(reader, 8);
		*end = read_fixed(reader, 8);
		return true;
	case DW_RLE_start_length:
		*start = read_fixed(reader, 8);
		*end = *start + read_unsigned(reader);
		return true;
	default:
		return false;
	}
}

static void new_ranges(struct debug_info *info, const struct debug_unit *unit,
                       const struct debug_value *value, take_range *take, void *context)
{
	uint64_t offset = value->number, base = unit->low, start, end;
	struct byte_reader reader;

	if (value->form == DW_FORM_rnglistx) {
		if (!debug_info_indexed(info, DEBUG_RNGLISTS, unit->range_lists, value->number,
		                        unit->form.offset_size, &offset) ||
		    offset > UINT64_MAX - unit->range_lists)
			return;
		offset += unit->range_lists;
	}
	reader = debug_info_section(info, DEBUG_RNGLISTS, offset);
	while (debug_info_spend(info, 1) && next_range(info, unit, &reader, &base, &start, &end) &&
	       !reader.wrong) {
		if (start < end && !take(context, start, end))
			return;
	}
}

void debug_info_ranges(struct debug_info *info, const struct debug_unit *unit,
                       const struct debug_entry *entry,
                       bool (*take)(void *context, uint64_t start, uint64_t end), void *context)
{
	const struct debug_value *list = &entry->values[DEBUG_RANGE_LIST], *high = &entry->values[DEBUG_HIGH];
	uint64_t start, end;

	if (list->form) {
		if (unit->form.version < 5)
			old_ranges(info, unit->low, list->number, take, context);
		else
			new_ranges(info, unit, list, take, context);
		return;
	}
	if (!high->form || !debug_info_address(info, unit, &entry->values[DEBUG_LOW], &start))
		return;
	if (!debug_info_address(info, unit, high, &end))
		end = start + high->number;
	if (start < end)
		take(context, start, end);
}
