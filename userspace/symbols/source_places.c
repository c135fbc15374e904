// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/source_places.h"

#include <dwarf.h>

#include "symbols/debug_lines.h"

#define MAX_ORIGINS   16 /* entries that refer to each other for a name */
#define MAX_FUNCTIONS (16u << 20)
#define MAX_DEPTH     4096

struct collected {
	struct debug_info *info;
	uint64_t entry;   /* that is being looked at */
	uint64_t address; /* that is looked for */
	bool found;
};

static bool add_function(void *context, uint64_t start, uint64_t end)
{
	struct collected *collected = context;
	struct debug_info *info = collected->info;
	struct debug_span *span;

	if (start <= 1 || start >= end)
		return true;
	span = info->functions.count < MAX_FUNCTIONS ? array_add(&info->functions) : NULL;
	if (span)
		*span = (struct debug_span){start, end, collected->entry};
	return span;
}

static bool look_for_address(void *context, uint64_t start, uint64_t end)
{
	struct collected *collected = context;

	collected->found = collected->address >= start && collected->address < end;
	return !collected->found;
}

static bool holds(struct debug_info *info, const struct debug_unit *unit, const struct debug_entry *entry,
                  uint64_t address)
{
	struct collected collected = {.address = address};

	debug_info_ranges(info, unit, entry, look_for_address, &collected);
	return collected.found;
}

/* Where the entry behind this one and its children lies, if it says so; else its children are next. */
static uint64_t behind(const struct debug_unit *unit, const struct debug_entry *entry)
{
	const struct debug_value *sibling = &entry->values[DEBUG_SIBLING];
	uint64_t offset = sibling->number < unit->end ? unit->offset + sibling->number : 0;

	return entry->children && sibling->form && sibling->form != DW_FORM_ref_addr && offset > entry->next
	           ? offset
	           : 0;
}

/* Makes a list of the unit's functions, once. */
static void search_unit(struct debug_info *info, struct debug_unit *unit)
{
	struct collected collected = {.info = info};
	struct debug_entry entry;

	if (unit->searched)
		return;
	unit->searched = true;
	unit->first_function = info->functions.count;
	for (uint64_t at = unit->entries; debug_info_entry(info, unit, at, &entry); at = entry.next) {
		if (entry.tag == DW_TAG_subprogram) {
			collected.entry = entry.offset;
			debug_info_ranges(info, unit, &entry, add_function, &collected);
		}
	}
	unit->functions = info->functions.count - unit->first_function;
	if (unit->functions)
		debug_spans_sort(info->functions.items + unit->first_function, unit->functions);
}

/* The innermost function of the unit that holds the address. */
static bool find_function(struct debug_info *info, struct debug_unit *unit, uint64_t address,
                          struct debug_entry *function)
{
	const struct debug_span *span;

	search_unit(info, unit);
	if (!unit->functions)
		return false;
	span = debug_span_find(info->functions.items + unit->first_function, unit->functions, address);
	return span && debug_info_entry(info, unit, span->what, function) &&
	       function->tag == DW_TAG_subprogram;
}

static bool is_block(uint16_t tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
	       tag == DW_TAG_catch_block;
}

/* Adds what was inlined into functions[0] at the address, outermost first; returns how many there are then.
 */
static size_t find_inlined(struct debug_info *info, const struct debug_unit *unit, uint64_t address,
                           struct debug_entry functions[SOURCE_PLACES_MAX])
{
	/* Children of the entry that holds the address are looked at: those deeper are passed. */
	uint64_t at = functions[0].next;
	unsigned depth = 0;
	size_t count = 1;

	if (!functions[0].children)
		return 1;
	while (count < SOURCE_PLACES_MAX) {
		struct debug_entry entry;
		uint64_t next;

		if (!debug_info_entry(info, unit, at, &entry) || (!entry.tag && !depth))
			break;
		at = entry.next;
		if (!entry.tag) {
			depth--;
			continue;
		}
		if (!depth && is_block(entry.tag) && holds(info, unit, &entry, address)) {
			if (entry.tag == DW_TAG_inlined_subroutine)
				functions[count++] = entry;
			if (!entry.children)
				break;
			continue;
		}
		next = behind(unit, &entry);
		if (next)
			at = next;
		else if (entry.children && ++depth > MAX_DEPTH)
			break;
	}
	return count;
}

/* Of the entry or one that it refers to. A name for the linker says more than one for people. */
static const char *function_name(struct debug_info *info, const struct debug_unit *unit,
                                 const struct debug_entry *function)
{
	struct debug_entry entry = *function;
	const char *name = NULL, *linkage = NULL;

	for (int i = 0; i < MAX_ORIGINS && !linkage; i++) {
		const struct debug_value *origin = &entry.values[DEBUG_ORIGIN];

		linkage = debug_info_text(info, unit, &entry.values[DEBUG_LINKAGE_NAME]);
		name = name ?: debug_info_text(info, unit, &entry.values[DEBUG_NAME]);
		if (!origin->form)
			origin = &entry.values[DEBUG_SPECIFICATION];
		if (!origin->form || !debug_info_follow(info, &unit, origin, &entry))
			break;
	}
	return linkage ?: name;
}

static int as_line(uint64_t number)
{
	return number < 1u << 30 ? (int)number : 0;
}

size_t source_places(struct debug_info *info, uint64_t address, struct source_place places[SOURCE_PLACES_MAX])
{
	struct debug_entry functions[SOURCE_PLACES_MAX];
	struct debug_unit *unit;
	uint64_t file;
	size_t count;
	int line;

	debug_info_begin(info);
	unit = debug_info_unit(info, address);
	if (!unit)
		return 0;
	count = find_function(info, unit, address, &functions[0])
	            ? find_inlined(info, unit, address, functions)
	            : 0;
	for (size_t i = 0; i < count; i++) {
		places[i] =
		    (struct source_place){.function = function_name(info, unit, &functions[count - 1 - i])};
		if (i) {
			const struct debug_value *values = functions[count - i].values;

			places[i].file = debug_lines_file(info, unit, values[DEBUG_CALL_FILE].number);
			places[i].line = as_line(values[DEBUG_CALL_LINE].number);
		}
	}
	if (!debug_lines_find(info, unit, address, &file, &line))
		return count;
	if (!count)
		places[count++] = (struct source_place){0};
	places[0].file = debug_lines_file(info, unit, file);
	places[0].line = line;
	return count;
}
