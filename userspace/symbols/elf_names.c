// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/elf_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>
#include <lzma.h>

#include "base/array.h"
#include "symbols/elf_file.h"

#define MAX_INNER_BYTES (256u << 20) /* of decompressed symbols */
#define ASSEMBLY_REACH  4096         /* bytes behind a symbol without a size that may belong to it */
#define OUTER_LOOKED_AT 16           /* symbols before an address among which one may enclose it */

struct symbol_table {
	Elf_Data *symbols;
	size_t count;
	size_t strings; /* section */
};

/* The symbols of section header `header`; false if it is no symbol table. */
static bool open_table(Elf_Scn *section, uint32_t type, struct symbol_table *table)
{
	GElf_Shdr header;

	if (!gelf_getshdr(section, &header) || header.sh_type != type || !header.sh_entsize)
		return false;
	table->symbols = elf_file_data(section, ELF_FILE_SYMBOLS);
	if (!table->symbols)
		return false;
	table->count = header.sh_size / header.sh_entsize;
	table->strings = header.sh_link;
	return true;
}

static bool is_wanted(enum elf_names_kind kind, unsigned type, uint64_t size)
{
	if (kind == ELF_NAMES_OBJECTS)
		return type == STT_OBJECT && size;
	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

static int add_table(struct elf_names *names, Elf *elf, const struct symbol_table *table)
{
	for (size_t i = 1; i < table->count; i++) {
		struct elf_name *slot;
		const char *name;
		GElf_Sym symbol;
		unsigned type;

		if (!gelf_getsym(table->symbols, (int)i, &symbol))
			break;
		type = GELF_ST_TYPE(symbol.st_info);
		if (!is_wanted(names->kind, type, symbol.st_size) || symbol.st_shndx == SHN_UNDEF ||
		    !symbol.st_value)
			continue;
		name = elf_file_text(elf, table->strings, symbol.st_name);
		if (!name || !*name)
			continue;
		slot = array_add(names);
		if (!slot)
			return -ENOMEM;
		*slot = (struct elf_name){symbol.st_value, symbol.st_size, name};
	}
	return 0;
}

/* Decompresses an .xz file in memory; NULL if it makes no sense. */
static uint8_t *decompress(const uint8_t *bytes, size_t length, size_t *out_length)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t capacity = length * 4 + 4096;
	uint8_t *out = NULL, *grown;
	lzma_ret state = LZMA_OK;

	if (lzma_stream_decoder(&stream, MAX_INNER_BYTES, 0) != LZMA_OK)
		return NULL;
	stream.next_in = bytes;
	stream.avail_in = length;
	while (state == LZMA_OK && capacity <= MAX_INNER_BYTES) {
		size_t done = out ? (size_t)(stream.next_out - out) : 0;

		grown = realloc(out, capacity);
		if (!grown)
			break;
		out = grown;
		stream.next_out = out + done;
		stream.avail_out = capacity - done;
		state = lzma_code(&stream, LZMA_FINISH);
		capacity *= 2;
	}
	*out_length = out ? (size_t)(stream.next_out - out) : 0;
	lzma_end(&stream);
	if (state == LZMA_STREAM_END)
		return out;
	free(out);
	return NULL;
}

static int add_inner(struct elf_names *names, Elf_Scn *section)
{
	Elf_Data *data = elf_file_raw(section, MAX_INNER_BYTES);
	size_t length;
	int err;

	if (names->inner || !data || !data->d_buf)
		return 0;
	names->inner_bytes = decompress(data->d_buf, data->d_size, &length);
	if (!names->inner_bytes)
		return 0;
	names->inner = elf_memory(names->inner_bytes, length);
	if (!names->inner || elf_kind(names->inner) != ELF_K_ELF)
		return 0;
	err = elf_names_add(names, names->inner);
	return err;
}

int elf_names_add(struct elf_names *names, Elf *elf)
{
	struct symbol_table table;
	Elf_Scn *section = NULL;
	bool whole = false;
	size_t strings;
	int err = 0;

	if (elf_getshdrstrndx(elf, &strings))
		return 0;
	while (!err && !whole && (section = elf_nextscn(elf, section))) {
		whole = open_table(section, SHT_SYMTAB, &table);
		if (whole)
			err = add_table(names, elf, &table);
	}
	/* Without a full table: what a stripped file still has. */
	section = NULL;
	while (!err && !whole && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (open_table(section, SHT_DYNSYM, &table)) {
			err = add_table(names, elf, &table);
			continue;
		}
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS)
			continue;
		name = elf_file_text(elf, strings, header.sh_name);
		if (name && !strcmp(name, ".gnu_debugdata") && elf != names->inner)
			err = add_inner(names, section);
	}
	return err;
}

static int compare_names(const void *a, const void *b)
{
	const struct elf_name *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	/* The last one is found. Of several names that is the one that others are made from: "read", not
	 * "__read". */
	return strcmp(x->name, y->name);
}

void elf_names_sort(struct elf_names *names)
{
	array_sort(names, compare_names);
}

const struct elf_name *elf_names_find(const struct elf_names *names, uint64_t address)
{
	size_t low = 0, high = names->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (names->items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < OUTER_LOOKED_AT && i < low; i++) {
		const struct elf_name *name = &names->items[low - 1 - i];

		if (address - name->address < (name->size ? name->size : i ? 0 : ASSEMBLY_REACH))
			return name;
	}
	return NULL;
}

void elf_names_free(struct elf_names *names)
{
	array_free(names);
	elf_end(names->inner);
	free(names->inner_bytes);
	*names = (struct elf_names){0};
}

uint64_t elf_symbol_address(Elf *elf, const char *wanted)
{
	const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		struct symbol_table table;
		Elf_Scn *section = NULL;

		while ((section = elf_nextscn(elf, section))) {
			if (!open_table(section, types[t], &table))
				continue;
			for (size_t i = 1; i < table.count; i++) {
				const char *name;
				GElf_Sym symbol;

				if (!gelf_getsym(table.symbols, (int)i, &symbol))
					break;
				if (symbol.st_shndx == SHN_UNDEF || !symbol.st_value)
					continue;
				name = elf_file_text(elf, table.strings, symbol.st_name);
				if (name && !strcmp(name, wanted))
					return symbol.st_value;
			}
		}
	}
	return 0;
}
