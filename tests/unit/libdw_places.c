// SPDX-License-Identifier: GPL-2.0-only
/* The places of an address as libdw reads them, to compare with. Of files that can be trusted. */
#include "tests/unit/libdw_places.h"

#include <stdbool.h>

#include <dwarf.h>

#define MAX_NESTING 64         /* blocks and functions within each other */
#define MAX_SPACES  16         /* namespaces and classes within each other */
#define MAX_ENTRIES (1u << 20) /* of debug information that are looked at for one address */
#define MAX_UNITS   16384      /* where no table says in which one an address lies */

struct search {
	Dwarf_Addr address;
	unsigned left; /* entries that may still be looked at */
};

static bool has_table(Dwarf *dwarf)
{
	Dwarf_Aranges *ranges;
	size_t count;

	return !dwarf_getaranges(dwarf, &ranges, &count) && count;
}

/* Not all compilers write the table that dwarf_addrdie needs. */
static bool find_unit(Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *unit)
{
	Dwarf_Off offset = 0, next;
	size_t header;

	if (dwarf_addrdie(dwarf, address, unit))
		return true;
	if (has_table(dwarf))
		return false;
	for (unsigned i = 0; i < MAX_UNITS; i++, offset = next) {
		if (dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) || next <= offset)
			return false;
		if (dwarf_offdie(dwarf, offset + header, unit) && dwarf_haspc(unit, address) > 0)
			return true;
	}
	return false;
}

/* The part of `parent` that holds the address: a function or a block. */
static bool find_child(struct search *search, Dwarf_Die *parent, Dwarf_Die *found, unsigned spaces)
{
	Dwarf_Die child;

	if (dwarf_child(parent, &child))
		return false;
	do {
		if (!search->left)
			return false;
		search->left--;
		switch (dwarf_tag(&child)) {
		case DW_TAG_subprogram:
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			if (dwarf_haspc(&child, search->address) > 0) {
				*found = child;
				return true;
			}
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
			if (spaces < MAX_SPACES && find_child(search, &child, found, spaces + 1))
				return true;
			break;
		default:
			break;
		}
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

/* Functions around the address, outermost first; returns how many. */
static size_t find_functions(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die functions[SOURCE_PLACES_MAX])
{
	struct search search = {address, MAX_ENTRIES};
	Dwarf_Die at = *unit, found;
	size_t count = 0;

	for (unsigned i = 0; i < MAX_NESTING && find_child(&search, &at, &found, 0); i++) {
		int tag = dwarf_tag(&found);

		/* A function within a function is one of its own. */
		if (tag == DW_TAG_subprogram)
			count = 0;
		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
			if (count == SOURCE_PLACES_MAX)
				break;
			functions[count++] = found;
		}
		at = found;
	}
	return count;
}

static const char *function_name(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(function, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ? name : dwarf_diename(function);
}

static Dwarf_Word number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_attr(die, name, &attribute) && !dwarf_formudata(&attribute, &value) ? value : 0;
}

/* Where the function was called that was put there. */
static void call_place(Dwarf_Die *unit, Dwarf_Die *inlined, struct source_place *place)
{
	Dwarf_Word line = number(inlined, DW_AT_call_line);
	Dwarf_Files *files;
	size_t count;

	if (!dwarf_getsrcfiles(unit, &files, &count))
		place->file = dwarf_filesrc(files, number(inlined, DW_AT_call_file), NULL, NULL);
	place->line = line < 1u << 30 ? (int)line : 0;
}

size_t libdw_places(Dwarf *dwarf, uint64_t address, struct source_place places[SOURCE_PLACES_MAX])
{
	Dwarf_Die unit, functions[SOURCE_PLACES_MAX];
	Dwarf_Line *line;
	size_t count;

	if (!find_unit(dwarf, address, &unit))
		return 0;
	count = find_functions(&unit, address, functions);
	for (size_t i = 0; i < count; i++) {
		Dwarf_Die *function = &functions[count - 1 - i];

		places[i] = (struct source_place){.function = function_name(function)};
		if (i)
			call_place(&unit, &functions[count - i], &places[i]);
	}
	line = dwarf_getsrc_die(&unit, address);
	if (!line)
		return count;
	if (!count)
		places[count++] = (struct source_place){0};
	places[0].file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &places[0].line) || places[0].line < 0)
		places[0].line = 0;
	return count;
}
