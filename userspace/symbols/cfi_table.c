// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/cfi_table.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>

#include "symbols/elf_file.h"

#define MAX_BYTES   (1ULL << 30)
#define MAX_SPANS   (16u << 20)
#define TABLE_BYTES 32 /* of .eh_frame_hdr that are read */

/* ---- addresses ---- */

static uint64_t read_pointer(struct byte_reader *reader, uint8_t encoding, bool *good)
{
	switch (encoding & 0xf) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return read_fixed(reader, 8);
	case DW_EH_PE_uleb128:
		return read_unsigned(reader);
	case DW_EH_PE_sleb128:
		return (uint64_t)read_signed(reader);
	case DW_EH_PE_udata2:
		return read_fixed(reader, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)read_fixed(reader, 2);
	case DW_EH_PE_udata4:
		return read_fixed(reader, 4);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)read_fixed(reader, 4);
	default:
		*good = false;
		return 0;
	}
}

/* `place`: address of what is read. */
static bool pointer(struct byte_reader *reader, uint8_t encoding, uint64_t place, uint64_t *value)
{
	bool good = true;

	*value = read_pointer(reader, encoding, &good);
	if ((encoding & 0xf0) == DW_EH_PE_pcrel)
		*value += place;
	else if (encoding & 0xf0)
		return false;
	return good && !reader->wrong;
}

bool cfi_table_pointer(const struct cfi_table *table, struct byte_reader *reader, uint8_t encoding,
                       uint64_t *value)
{
	return pointer(reader, encoding, table->address + (uint64_t)(reader->at - table->bytes), value);
}

/* ---- where the section is ---- */

static bool use_part(struct cfi_table *table, Elf *elf, uint64_t offset, uint64_t size, uint64_t address)
{
	const Elf_Data *data;

	if (!size || size > MAX_BYTES)
		return false;
	data = elf_getdata_rawchunk(elf, (int64_t)offset, size, ELF_T_BYTE);
	if (!data || !data->d_buf)
		return false;
	table->bytes = data->d_buf;
	table->size = data->d_size;
	table->address = address;
	return true;
}

/* From an address that is loaded from the file to the end of that part of the file. */
static bool use_address(struct cfi_table *table, Elf *elf, size_t segments, uint64_t address)
{
	for (size_t i = 0; i < segments; i++) {
		GElf_Phdr segment;
		uint64_t within;

		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
		    address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
			continue;
		within = address - segment.p_vaddr;
		return segment.p_offset <= UINT64_MAX / 2 &&
		       use_part(table, elf, segment.p_offset + within, segment.p_filesz - within, address);
	}
	return false;
}

/* By what the loader goes by: .eh_frame_hdr, which begins with a version and three encodings. */
static bool use_segment(struct cfi_table *table, Elf *elf)
{
	size_t segments;

	if (elf_getphdrnum(elf, &segments))
		return false;
	for (size_t i = 0; i < segments; i++) {
		struct byte_reader reader;
		const Elf_Data *data;
		GElf_Phdr segment;
		uint64_t version, encoding, address;

		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_GNU_EH_FRAME)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)segment.p_offset,
		                            segment.p_filesz < TABLE_BYTES ? segment.p_filesz : TABLE_BYTES,
		                            ELF_T_BYTE);
		if (!data || !data->d_buf)
			return false;
		reader = byte_reader_at(data->d_buf, data->d_size, 0);
		version = read_fixed(&reader, 1);
		encoding = read_fixed(&reader, 1);
		read_bytes(&reader, 2);
		return version == 1 && pointer(&reader, (uint8_t)encoding, segment.p_vaddr + 4, &address) &&
		       use_address(table, elf, segments, address);
	}
	return false;
}

static bool use_section(struct cfi_table *table, Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS ||
		    header.sh_flags & SHF_COMPRESSED)
			continue;
		name = elf_file_text(elf, strings, header.sh_name);
		if (name && !strcmp(name, ".eh_frame"))
			return use_part(table, elf, header.sh_offset, header.sh_size, header.sh_addr);
	}
	return false;
}

/* ---- entries ---- */

struct raw_entry {
	uint64_t next;   /* offset of the one behind it */
	uint64_t common; /* offset of what it refers to; UINT64_MAX: it is one that others refer to */
	struct byte_reader rest;
};

static bool read_raw(const struct cfi_table *table, uint64_t offset, struct raw_entry *entry)
{
	struct byte_reader *reader = &entry->rest;
	uint64_t length, place, back;

	*reader = byte_reader_at(table->bytes, table->size, offset);
	length = read_fixed(reader, 4);
	if (length == UINT32_MAX)
		length = read_fixed(reader, 8);
	if (reader->wrong || length < 4 || length > byte_reader_left(reader))
		return false;
	reader->end = reader->at + length;
	place = (uint64_t)(reader->at - table->bytes);
	entry->next = place + length;
	back = read_fixed(reader, 4);
	if (back > place)
		return false;
	entry->common = back ? place - back : UINT64_MAX;
	return true;
}

/* What the letters of the augmentation say; those that are not known end it. */
static bool read_additions(struct byte_reader *reader, const char *letters, struct cfi_common *common)
{
	uint64_t length;
	struct byte_reader additions;

	if (!*letters)
		return true;
	if (*letters++ != 'z')
		return false;
	length = read_unsigned(reader);
	additions = *reader;
	if (!read_bytes(reader, length))
		return false;
	additions.end = reader->at;
	common->lengths = true;
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			common->encoding = (uint8_t)read_fixed(&additions, 1);
			break;
		case 'S':
			common->signal = true;
			break;
		case 'L':
			read_bytes(&additions, 1);
			break;
		case 'P': {
			uint8_t encoding = (uint8_t)read_fixed(&additions, 1);
			bool good = true;

			/* Where the function is that handles exceptions, perhaps by way of another place. */
			read_pointer(&additions, encoding, &good);
			if (!good)
				return false;
			break;
		}
		case 'B': /* which key signs return addresses */
		case 'G': /* whether the stack is tagged */
			break;
		default:
			return false;
		}
	}
	return !additions.wrong;
}

static bool read_common(const struct cfi_table *table, uint64_t offset, struct cfi_common *common)
{
	struct raw_entry raw;
	const char *letters;
	uint64_t version;

	*common = (struct cfi_common){.encoding = DW_EH_PE_absptr};
	if (!read_raw(table, offset, &raw) || raw.common != UINT64_MAX)
		return false;
	version = read_fixed(&raw.rest, 1);
	if (version != 1 && version != 3 && version != 4)
		return false;
	letters = read_cstring(&raw.rest, 16);
	if (!letters)
		return false;
	if (version == 4)
		read_bytes(&raw.rest, 2); /* sizes of addresses and of segments */
	common->code_unit = read_unsigned(&raw.rest);
	common->data_unit = read_signed(&raw.rest);
	/* The register with the return address is the same in all of a machine. */
	if (version == 1)
		read_bytes(&raw.rest, 1);
	else
		read_unsigned(&raw.rest);
	if (!read_additions(&raw.rest, letters, common))
		return false;
	common->program = raw.rest;
	return !raw.rest.wrong;
}

/* `known`: what was read at `common_at`, which is often the same again. */
static bool read_entry(const struct cfi_table *table, const struct raw_entry *raw, struct cfi_common *known,
                       uint64_t *known_at, struct cfi_entry *entry)
{
	struct byte_reader reader = raw->rest;

	if (raw->common == UINT64_MAX)
		return false;
	if (*known_at != raw->common) {
		*known_at = UINT64_MAX;
		if (!read_common(table, raw->common, known))
			return false;
		*known_at = raw->common;
	}
	entry->common = *known;
	if (!cfi_table_pointer(table, &reader, known->encoding, &entry->start) ||
	    !pointer(&reader, known->encoding & 0xf, 0, &entry->size))
		return false;
	if (known->lengths)
		read_bytes(&reader, read_unsigned(&reader));
	entry->program = reader;
	return !reader.wrong;
}

static int compare_spans(const void *a, const void *b)
{
	const struct cfi_span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->entry > y->entry) - (x->entry < y->entry);
}

static void read_spans(struct cfi_table *table)
{
	struct cfi_common known;
	uint64_t known_at = UINT64_MAX;
	struct raw_entry raw;

	for (uint64_t offset = 0; table->spans.count < MAX_SPANS && read_raw(table, offset, &raw);
	     offset = raw.next) {
		struct cfi_entry entry;
		struct cfi_span *span;

		if (!read_entry(table, &raw, &known, &known_at, &entry) || !entry.size)
			continue;
		span = array_add(&table->spans);
		if (!span)
			break;
		*span = (struct cfi_span){entry.start, entry.size, offset};
	}
	array_sort(&table->spans, compare_spans);
}

struct cfi_table *cfi_table_open(Elf *elf)
{
	struct cfi_table *table = calloc(1, sizeof(*table));
	GElf_Ehdr file;

	if (table && gelf_getehdr(elf, &file) && file.e_ident[EI_CLASS] == ELFCLASS64 &&
	    file.e_ident[EI_DATA] == ELFDATA2LSB && (use_segment(table, elf) || use_section(table, elf))) {
		read_spans(table);
		return table;
	}
	free(table);
	return NULL;
}

void cfi_table_free(struct cfi_table *table)
{
	if (!table)
		return;
	array_free(&table->spans);
	free(table);
}

bool cfi_table_find(const struct cfi_table *table, uint64_t address, struct cfi_entry *entry)
{
	uint64_t known_at = UINT64_MAX;
	struct cfi_common known;
	struct raw_entry raw;
	size_t low = 0, high = table->spans.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->spans.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - table->spans.items[low - 1].start >= table->spans.items[low - 1].size)
		return false;
	return read_raw(table, table->spans.items[low - 1].entry, &raw) &&
	       read_entry(table, &raw, &known, &known_at, entry);
}
