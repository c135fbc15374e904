// SPDX-License-Identifier: GPL-2.0-only
#include "inject/elf_memory.h"

#include <elf.h>
#include <string.h>

#define MAX_HEADERS 64
#define MAX_DYNAMIC 256
#define MAX_SYMBOLS (1u << 20)
#define MAX_NAME    64
#define HIDDEN      0x8000 /* in a version index: not the default version */

static bool read_at(const struct elf_memory *elf, uint64_t address, void *to, size_t size)
{
	return elf->read(elf->context, address, to, size);
}

/* The loader turns the addresses in the dynamic section into absolute ones, but not in every library. */
static uint64_t absolute(const struct elf_memory *elf, uint64_t address)
{
	return address < elf->bias ? address + elf->bias : address;
}

static bool read_dynamic(struct elf_memory *elf, uint64_t address, uint64_t size)
{
	for (uint64_t i = 0; i < MAX_DYNAMIC && (i + 1) * sizeof(Elf64_Dyn) <= size; i++) {
		Elf64_Dyn entry;

		if (!read_at(elf, address + i * sizeof(entry), &entry, sizeof(entry)))
			return false;
		switch (entry.d_tag) {
		case DT_NULL:
			return elf->symbols && elf->strings && (elf->gnu_hash || elf->hash);
		case DT_SYMTAB:
			elf->symbols = absolute(elf, entry.d_un.d_ptr);
			break;
		case DT_STRTAB:
			elf->strings = absolute(elf, entry.d_un.d_ptr);
			break;
		case DT_STRSZ:
			elf->strings_size = entry.d_un.d_val;
			break;
		case DT_VERSYM:
			elf->versions = absolute(elf, entry.d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			elf->gnu_hash = absolute(elf, entry.d_un.d_ptr);
			break;
		case DT_HASH:
			elf->hash = absolute(elf, entry.d_un.d_ptr);
			break;
		}
	}
	return elf->symbols && elf->strings && (elf->gnu_hash || elf->hash);
}

bool elf_memory_open(struct elf_memory *elf, uint64_t base, elf_memory_read read, void *context)
{
	uint64_t dynamic = 0, dynamic_size = 0;
	Elf64_Ehdr header;
	bool loaded = false;

	*elf = (struct elf_memory){.read = read, .context = context, .base = base};
	if (!read_at(elf, base, &header, sizeof(header)) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
	    header.e_phnum > MAX_HEADERS)
		return false;
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;

		if (!read_at(elf, base + header.e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
			return false;
		if (segment.p_type == PT_LOAD && !loaded) {
			loaded = true;
			elf->bias = base - (segment.p_vaddr - segment.p_offset);
		}
		if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) &&
		    segment.p_filesz == segment.p_memsz)
			elf->code_end = elf->bias + segment.p_vaddr + segment.p_filesz;
		if (segment.p_type == PT_DYNAMIC) {
			dynamic = segment.p_vaddr;
			dynamic_size = segment.p_memsz;
		}
	}
	return loaded && dynamic && read_dynamic(elf, elf->bias + dynamic, dynamic_size);
}

/* True if symbol `index` is a function of that name. *is_default: in the version that a new program gets. */
static bool is_function(const struct elf_memory *elf, uint32_t index, const char *name, uint64_t *address,
                        bool *is_default)
{
	char found[MAX_NAME];
	size_t length = strlen(name) + 1;
	Elf64_Sym symbol;
	uint16_t version = 0;

	if (length > sizeof(found) ||
	    !read_at(elf, elf->symbols + index * sizeof(symbol), &symbol, sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
	    symbol.st_name >= elf->strings_size ||
	    !read_at(elf, elf->strings + symbol.st_name, found, length) || memcmp(found, name, length))
		return false;
	if (elf->versions &&
	    !read_at(elf, elf->versions + index * sizeof(version), &version, sizeof(version)))
		return false;
	*address = elf->bias + symbol.st_value;
	*is_default = !(version & HIDDEN);
	return true;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static uint64_t find_by_gnu_hash(const struct elf_memory *elf, const char *name)
{
	struct {
		uint32_t buckets, first, words, shift;
	} table;
	uint32_t hash = gnu_hash_of(name), index, link;
	uint64_t chains, buckets, address, any = 0;
	bool is_default;

	if (!read_at(elf, elf->gnu_hash, &table, sizeof(table)) || !table.buckets)
		return 0;
	buckets = elf->gnu_hash + sizeof(table) + (uint64_t)table.words * 8;
	chains = buckets + (uint64_t)table.buckets * 4;
	if (!read_at(elf, buckets + (uint64_t)(hash % table.buckets) * 4, &index, sizeof(index)) ||
	    index < table.first)
		return 0;
	for (uint32_t i = 0; i < MAX_SYMBOLS; i++, index++) {
		if (!read_at(elf, chains + (uint64_t)(index - table.first) * 4, &link, sizeof(link)))
			return any;
		if ((link | 1) == (hash | 1) && is_function(elf, index, name, &address, &is_default)) {
			if (is_default)
				return address;
			any = address;
		}
		if (link & 1)
			break;
	}
	return any;
}

static uint32_t old_hash_of(const char *name)
{
	uint32_t hash = 0;

	for (; *name; name++) {
		hash = (hash << 4) + (unsigned char)*name;
		hash = (hash ^ ((hash & 0xf0000000u) >> 24)) & 0x0fffffffu;
	}
	return hash;
}

static uint64_t find_by_hash(const struct elf_memory *elf, const char *name)
{
	uint32_t table[2], index;
	uint64_t address, any = 0;
	bool is_default;

	if (!read_at(elf, elf->hash, table, sizeof(table)) || !table[0] ||
	    !read_at(elf, elf->hash + 8 + (uint64_t)(old_hash_of(name) % table[0]) * 4, &index,
	             sizeof(index)))
		return 0;
	for (uint32_t i = 0; i < MAX_SYMBOLS && index; i++) {
		if (is_function(elf, index, name, &address, &is_default)) {
			if (is_default)
				return address;
			any = address;
		}
		if (!read_at(elf, elf->hash + 8 + (table[0] + (uint64_t)index) * 4, &index, sizeof(index)))
			break;
	}
	return any;
}

uint64_t elf_memory_function(const struct elf_memory *elf, const char *name)
{
	return elf->gnu_hash ? find_by_gnu_hash(elf, name) : find_by_hash(elf, name);
}

struct image {
	const unsigned char *bytes;
	size_t size;
};

static bool read_image(void *context, uint64_t address, void *to, size_t size)
{
	const struct image *image = context;

	if (address > image->size || size > image->size - address)
		return false;
	memcpy(to, image->bytes + address, size);
	return true;
}

/* Works because what is looked at lies in the first segment, where offsets and addresses are the same. */
uint64_t elf_memory_file_symbol(const void *file, size_t size, const char *name)
{
	const struct image whole = {file, size};
	struct image image = whole;
	const unsigned char *bytes = file;
	struct elf_memory elf = {.read = read_image, .context = &image};
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (!read_image(&image, 0, &header, sizeof(header)) || memcmp(bytes, ELFMAG, SELFMAG))
		return 0;
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		if (!read_image(&image, header.e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
			return 0;
		if (segment.p_type == PT_DYNAMIC && read_dynamic(&elf, segment.p_offset, segment.p_filesz))
			return elf_memory_function(&elf, name);
	}
	return 0;
}
