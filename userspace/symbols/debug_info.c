// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/debug_info.h"

#include <stdlib.h>

#include <dwarf.h>

#define MAX_UNITS         (256u << 10)
#define MAX_UNIT_SPANS    (4u << 20)
#define MAX_ABBREVIATIONS 65536
#define MAX_INDIRECTIONS  4
#define MAX_ENCLOSING     16 /* spans before an address among which one may hold it */

/* Work: an attribute, an entry of a list, a row of a line table. A step takes some nanoseconds. */
#define STEPS_OF_QUESTION (16ULL << 20)
#define STEPS_OF_FILE     (1ULL << 30)

bool debug_info_spend(struct debug_info *info, uint64_t count)
{
	if (count > info->steps || count > info->all_steps) {
		info->steps = 0;
		return false;
	}
	info->steps -= count;
	info->all_steps -= count;
	return true;
}

void debug_info_begin(struct debug_info *info)
{
	info->steps = STEPS_OF_QUESTION;
}

struct byte_reader debug_info_section(const struct debug_info *info, enum debug_section section,
                                      uint64_t offset)
{
	return byte_reader_at(info->sections.items[section].bytes, info->sections.items[section].size,
	                      offset);
}

/* ---- values ---- */

static bool read_number(struct byte_reader *reader, uint64_t form, struct debug_form how,
                        struct debug_value *value)
{
	switch (form) {
	case DW_FORM_flag_present:
		value->number = 1;
		return true;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		value->number = read_fixed(reader, 1);
		return true;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		value->number = read_fixed(reader, 2);
		return true;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		value->number = read_fixed(reader, 3);
		return true;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		value->number = read_fixed(reader, 4);
		return true;
	case DW_FORM_addr:
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		value->number = read_fixed(reader, 8);
		return true;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_GNU_ref_alt:
		value->number = read_fixed(reader, how.offset_size);
		return true;
	case DW_FORM_ref_addr:
		value->number = read_fixed(reader, how.version < 3 ? 8 : how.offset_size);
		return true;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		value->number = read_unsigned(reader);
		return true;
	case DW_FORM_sdata:
		value->number = (uint64_t)read_signed(reader);
		return true;
	default:
		return false;
	}
}

bool debug_value_read(struct byte_reader *reader, uint64_t form, struct debug_form how, int64_t implicit,
                      struct debug_value *value)
{
	for (int i = 0; form == DW_FORM_indirect && i < MAX_INDIRECTIONS; i++)
		form = read_unsigned(reader);
	*value = (struct debug_value){.form = form < UINT16_MAX ? (uint16_t)form : 0};
	switch (form) {
	case DW_FORM_implicit_const:
		value->number = (uint64_t)implicit;
		break;
	case DW_FORM_string:
		value->text = read_cstring(reader, DEBUG_TEXT_MAX);
		break;
	case DW_FORM_block1:
		read_bytes(reader, read_fixed(reader, 1));
		break;
	case DW_FORM_block2:
		read_bytes(reader, read_fixed(reader, 2));
		break;
	case DW_FORM_block4:
		read_bytes(reader, read_fixed(reader, 4));
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		read_bytes(reader, read_unsigned(reader));
		break;
	case DW_FORM_data16:
		read_bytes(reader, 16);
		break;
	default:
		if (!read_number(reader, form, how, value))
			return false;
	}
	return !reader->wrong;
}

/* Number `index` of a table of offsets or addresses. */
bool debug_info_indexed(const struct debug_info *info, enum debug_section section, uint64_t base,
                        uint64_t index, unsigned size, uint64_t *number)
{
	struct byte_reader reader;

	if (index > UINT32_MAX || base > UINT64_MAX / 2)
		return false;
	reader = debug_info_section(info, section, base + index * size);
	*number = read_fixed(&reader, size);
	return !reader.wrong;
}

const char *debug_info_text(const struct debug_info *info, const struct debug_unit *unit,
                            const struct debug_value *value)
{
	enum debug_section section = DEBUG_STR;
	uint64_t offset = value->number;
	struct byte_reader reader;
	const char *text;

	switch (value->form) {
	case DW_FORM_string:
		return value->text && *value->text ? value->text : NULL;
	case DW_FORM_strp:
		break;
	case DW_FORM_line_strp:
		section = DEBUG_LINE_STR;
		break;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		if (debug_info_indexed(info, DEBUG_STR_OFFSETS, unit->str_offsets, value->number,
		                       unit->form.offset_size, &offset))
			break;
		return NULL;
	default:
		return NULL;
	}
	reader = debug_info_section(info, section, offset);
	text = read_cstring(&reader, DEBUG_TEXT_MAX);
	return text && *text ? text : NULL;
}

bool debug_info_address(const struct debug_info *info, const struct debug_unit *unit,
                        const struct debug_value *value, uint64_t *address)
{
	switch (value->form) {
	case DW_FORM_addr:
		*address = value->number;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		return debug_info_indexed(info, DEBUG_ADDR, unit->addresses, value->number, 8, address);
	default:
		return false;
	}
}

/* ---- entries ---- */

static void forget_abbreviations(struct debug_info *info)
{
	info->abbreviations.count = 0;
	index_map_free(&info->abbreviation_at);
	info->abbreviation_at = (struct index_map){0};
}

/* Reads the next abbreviation of the table; false at its end. */
static bool next_abbreviation(struct debug_info *info)
{
	struct byte_reader *reader = &info->abbreviations_left;
	uint64_t code = read_unsigned(reader), tag = read_unsigned(reader), children = read_fixed(reader, 1);
	uint64_t attributes = info->sections.items[DEBUG_ABBREV].size - byte_reader_left(reader);
	struct debug_abbreviation *slot;
	uint64_t name, form;

	if (!code || reader->wrong || info->abbreviations.count >= MAX_ABBREVIATIONS)
		return false;
	do {
		name = read_unsigned(reader);
		form = read_unsigned(reader);
		if (form == DW_FORM_implicit_const)
			read_signed(reader);
	} while ((name || form) && !reader->wrong && debug_info_spend(info, 1));
	slot = reader->wrong || !debug_info_spend(info, 1) ? NULL : array_add(&info->abbreviations);
	if (!slot)
		return false;
	*slot = (struct debug_abbreviation){code, tag < UINT16_MAX ? (uint16_t)tag : 0, children, attributes};
	return code == info->abbreviations.count ||
	       !index_map_put(&info->abbreviation_at, code, info->abbreviations.count - 1);
}

/* They are read as far as they are needed: all units may have one table. */
static const struct debug_abbreviation *abbreviation(struct debug_info *info, const struct debug_unit *unit,
                                                     uint64_t code)
{
	uint32_t at;

	if (info->abbreviations_of != unit->abbreviations) {
		forget_abbreviations(info);
		info->abbreviations_of = unit->abbreviations;
		info->abbreviations_left = debug_info_section(info, DEBUG_ABBREV, unit->abbreviations);
	}
	do {
		size_t count = info->abbreviations.count;

		if (code <= count && info->abbreviations.items[code - 1].code == code)
			return &info->abbreviations.items[code - 1];
		if (count && info->abbreviations.items[count - 1].code == code)
			return &info->abbreviations.items[count - 1];
		if (info->abbreviation_at.count && index_map_get(&info->abbreviation_at, code, &at))
			return &info->abbreviations.items[at];
	} while (next_abbreviation(info));
	info->abbreviations_left = (struct byte_reader){.wrong = true};
	return NULL;
}

static enum debug_field field_of(uint64_t attribute)
{
	switch (attribute) {
	case DW_AT_name:
		return DEBUG_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return DEBUG_LINKAGE_NAME;
	case DW_AT_low_pc:
		return DEBUG_LOW;
	case DW_AT_high_pc:
		return DEBUG_HIGH;
	case DW_AT_ranges:
		return DEBUG_RANGE_LIST;
	case DW_AT_abstract_origin:
		return DEBUG_ORIGIN;
	case DW_AT_specification:
		return DEBUG_SPECIFICATION;
	case DW_AT_call_file:
		return DEBUG_CALL_FILE;
	case DW_AT_call_line:
		return DEBUG_CALL_LINE;
	case DW_AT_sibling:
		return DEBUG_SIBLING;
	case DW_AT_stmt_list:
		return DEBUG_LINES;
	case DW_AT_comp_dir:
		return DEBUG_DIRECTORY;
	case DW_AT_str_offsets_base:
		return DEBUG_STR_OFFSETS_BASE;
	case DW_AT_addr_base:
		return DEBUG_ADDR_BASE;
	case DW_AT_rnglists_base:
		return DEBUG_RNGLISTS_BASE;
	default:
		return DEBUG_FIELDS;
	}
}

bool debug_info_entry(struct debug_info *info, const struct debug_unit *unit, uint64_t offset,
                      struct debug_entry *entry)
{
	struct byte_reader reader, attributes;
	const struct debug_abbreviation *form;
	uint64_t code;

	*entry = (struct debug_entry){.offset = offset};
	if (offset < unit->entries || offset >= unit->end || !debug_info_spend(info, 1))
		return false;
	reader = byte_reader_at(info->sections.items[DEBUG_INFO].bytes, unit->end, offset);
	code = read_unsigned(&reader);
	if (!code) {
		entry->next = unit->end - byte_reader_left(&reader);
		return !reader.wrong;
	}
	form = abbreviation(info, unit, code);
	if (!form)
		return false;
	entry->tag = form->tag;
	entry->children = form->children;
	attributes = debug_info_section(info, DEBUG_ABBREV, form->attributes);
	while (debug_info_spend(info, 1)) {
		uint64_t name = read_unsigned(&attributes), kind = read_unsigned(&attributes);
		int64_t implicit = kind == DW_FORM_implicit_const ? read_signed(&attributes) : 0;
		enum debug_field field = field_of(name);
		struct debug_value value;

		if (!name && !kind) {
			entry->next = unit->end - byte_reader_left(&reader);
			return true;
		}
		if (!debug_value_read(&reader, kind, unit->form, implicit, &value))
			return false;
		if (field != DEBUG_FIELDS)
			entry->values[field] = value;
	}
	return false;
}

static const struct debug_unit *unit_at(const struct debug_info *info, uint64_t offset)
{
	size_t low = 0, high = info->units.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (info->units.items[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low && offset < info->units.items[low - 1].end ? &info->units.items[low - 1] : NULL;
}

bool debug_info_follow(struct debug_info *info, const struct debug_unit **unit,
                       const struct debug_value *value, struct debug_entry *entry)
{
	uint64_t offset = value->number;

	switch (value->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		if (offset >= (*unit)->end)
			return false;
		offset += (*unit)->offset;
		break;
	case DW_FORM_ref_addr:
		*unit = unit_at(info, offset);
		break;
	default:
		return false;
	}
	return *unit && debug_info_entry(info, *unit, offset, entry) && entry->tag;
}

/* ---- units ---- */

/* Reads the head of the unit at `offset` of the section; false if there is no more. */
static bool read_head(const struct debug_info *info, uint64_t offset, struct debug_unit *unit)
{
	const struct debug_bytes *section = &info->sections.items[DEBUG_INFO];
	struct byte_reader reader = debug_info_section(info, DEBUG_INFO, offset);
	uint64_t length = read_fixed(&reader, 4), type = DW_UT_compile, address_size;

	*unit = (struct debug_unit){.offset = offset, .form.offset_size = 4};
	if (length == UINT32_MAX) {
		length = read_fixed(&reader, 8);
		unit->form.offset_size = 8;
	}
	if (reader.wrong || length < 8 || length > byte_reader_left(&reader))
		return false;
	reader.end = reader.at + length;
	unit->end = (uint64_t)(reader.end - section->bytes);
	unit->entries = unit->end;
	unit->form.version = (uint16_t)read_fixed(&reader, 2);
	if (unit->form.version < 2 || unit->form.version > 5)
		return true;
	if (unit->form.version == 5) {
		type = read_fixed(&reader, 1);
		address_size = read_fixed(&reader, 1);
		unit->abbreviations = read_fixed(&reader, unit->form.offset_size);
	} else {
		unit->abbreviations = read_fixed(&reader, unit->form.offset_size);
		address_size = read_fixed(&reader, 1);
	}
	if (type == DW_UT_skeleton || type == DW_UT_split_compile)
		read_bytes(&reader, 8);
	if (reader.wrong || address_size != 8 || type == DW_UT_type || type == DW_UT_split_type)
		return true; /* without entries */
	unit->entries = (uint64_t)(reader.at - section->bytes);
	return true;
}

static void read_root(struct debug_info *info, struct debug_unit *unit, struct debug_entry *root)
{
	const struct debug_value *values = root->values;

	/* The first tables begin behind a head of their section. */
	unit->str_offsets = unit->addresses = 8;
	unit->range_lists = 12;
	if (!debug_info_entry(info, unit, unit->entries, root))
		return;
	if (values[DEBUG_STR_OFFSETS_BASE].form)
		unit->str_offsets = values[DEBUG_STR_OFFSETS_BASE].number;
	if (values[DEBUG_ADDR_BASE].form)
		unit->addresses = values[DEBUG_ADDR_BASE].number;
	if (values[DEBUG_RNGLISTS_BASE].form)
		unit->range_lists = values[DEBUG_RNGLISTS_BASE].number;
	debug_info_address(info, unit, &values[DEBUG_LOW], &unit->low);
	unit->has_lines = values[DEBUG_LINES].form;
	unit->lines = values[DEBUG_LINES].number;
	unit->directory = debug_info_text(info, unit, &values[DEBUG_DIRECTORY]);
}

static bool add_unit_span(void *context, uint64_t start, uint64_t end)
{
	struct debug_info *info = context;
	struct debug_span *span;

	/* Linkers put what they have dropped at 0 or 1. */
	if (start <= 1 || start >= end)
		return true;
	span = info->unit_spans.count < MAX_UNIT_SPANS ? array_add(&info->unit_spans) : NULL;
	if (span)
		*span = (struct debug_span){start, end, info->units.count - 1};
	return span;
}

static int compare_spans(const void *a, const void *b)
{
	const struct debug_span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* The inner one behind the outer one; of several names for the same code the first counts. */
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->what < y->what) - (x->what > y->what);
}

void debug_spans_sort(struct debug_span *spans, size_t count)
{
	qsort_items(spans, count, sizeof(*spans), compare_spans);
}

const struct debug_span *debug_span_find(const struct debug_span *spans, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < MAX_ENCLOSING && i < low; i++) {
		if (address < spans[low - 1 - i].end)
			return &spans[low - 1 - i];
	}
	return NULL;
}

struct debug_unit *debug_info_unit(struct debug_info *info, uint64_t address)
{
	const struct debug_span *span =
	    debug_span_find(info->unit_spans.items, info->unit_spans.count, address);

	return span ? &info->units.items[span->what] : NULL;
}

static void read_units(struct debug_info *info)
{
	struct debug_unit unit;

	for (uint64_t offset = 0; info->units.count < MAX_UNITS && read_head(info, offset, &unit);
	     offset = unit.end) {
		struct debug_unit *slot = array_add(&info->units);
		struct debug_entry root;

		if (!slot)
			return;
		debug_info_begin(info);
		read_root(info, &unit, &root);
		*slot = unit;
		if (root.tag == DW_TAG_compile_unit || root.tag == DW_TAG_skeleton_unit)
			debug_info_ranges(info, &unit, &root, add_unit_span, info);
	}
	debug_spans_sort(info->unit_spans.items, info->unit_spans.count);
}

struct debug_info *debug_info_open(struct debug_sections *sections)
{
	struct debug_info *info = calloc(1, sizeof(*info));

	if (!info) {
		debug_sections_free(sections);
		return NULL;
	}
	info->sections = *sections;
	*sections = (struct debug_sections){0};
	info->abbreviations_of = UINT64_MAX;
	info->all_steps = STEPS_OF_FILE;
	info->rows_serial = 1;
	read_units(info);
	return info;
}

void debug_info_free(struct debug_info *info)
{
	char **file;

	if (!info)
		return;
	forget_abbreviations(info);
	array_for_each (file, &info->files)
		free(*file);
	array_free(&info->files);
	array_free(&info->units);
	array_free(&info->unit_spans);
	array_free(&info->functions);
	array_free(&info->rows);
	array_free(&info->abbreviations);
	index_map_free(&info->file_at);
	debug_sections_free(&info->sections);
	free(info);
}
