// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/debug_sections.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>
#include <zlib.h>
#include <zstd.h>

#include "symbols/elf_file.h"

#define MAX_BYTES (1ULL << 30) /* of one section, as it is in the file and decompressed */

/* Not in all versions of <elf.h>. */
#define COMPRESSED_ZLIB 1
#define COMPRESSED_ZSTD 2

static const char *const names[DEBUG_SECTIONS] = {
    [DEBUG_INFO] = ".debug_info",         [DEBUG_ABBREV] = ".debug_abbrev",
    [DEBUG_STR] = ".debug_str",           [DEBUG_STR_OFFSETS] = ".debug_str_offsets",
    [DEBUG_ADDR] = ".debug_addr",         [DEBUG_RANGES] = ".debug_ranges",
    [DEBUG_RNGLISTS] = ".debug_rnglists", [DEBUG_LINE] = ".debug_line",
    [DEBUG_LINE_STR] = ".debug_line_str",
};

static size_t inflate_all(const uint8_t *from, size_t length, uint8_t *to, size_t size)
{
	uLongf done = size;

	return uncompress(to, &done, from, length) == Z_OK ? done : 0;
}

static void decompress(struct debug_bytes *section)
{
	const uint8_t *from = section->bytes;
	size_t length = section->size, size = 0;
	Elf64_Chdr head;

	*section = (struct debug_bytes){0};
	if (length <= sizeof(head))
		return;
	memcpy(&head, from, sizeof(head));
	from += sizeof(head);
	length -= sizeof(head);
	if (!head.ch_size || head.ch_size > MAX_BYTES)
		return;
	section->owned = malloc(head.ch_size);
	if (!section->owned)
		return;
	if (head.ch_type == COMPRESSED_ZLIB)
		size = inflate_all(from, length, section->owned, head.ch_size);
	else if (head.ch_type == COMPRESSED_ZSTD)
		size = ZSTD_decompress(section->owned, head.ch_size, from, length);
	if (size != head.ch_size)
		return;
	section->bytes = section->owned;
	section->size = size;
}

static void read_section(struct debug_bytes *section, Elf_Scn *scn, const GElf_Shdr *header)
{
	const Elf_Data *data;

	if (section->bytes || section->owned || header->sh_type != SHT_PROGBITS)
		return;
	data = elf_file_raw(scn, MAX_BYTES);
	if (!data || !data->d_buf || !data->d_size)
		return;
	section->bytes = data->d_buf;
	section->size = data->d_size;
	if (header->sh_flags & SHF_COMPRESSED)
		decompress(section);
}

void debug_sections_read(struct debug_sections *sections, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Ehdr file;
	size_t strings;

	*sections = (struct debug_sections){0};
	/* What has not been linked yet would have to be relocated first. */
	if (!gelf_getehdr(elf, &file) || file.e_ident[EI_CLASS] != ELFCLASS64 ||
	    file.e_ident[EI_DATA] != ELFDATA2LSB || file.e_type == ET_REL || elf_getshdrstrndx(elf, &strings))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(scn, &header))
			continue;
		name = elf_file_text(elf, strings, header.sh_name);
		for (int i = 0; name && i < DEBUG_SECTIONS; i++) {
			if (!strcmp(name, names[i]))
				read_section(&sections->items[i], scn, &header);
		}
	}
}

void debug_sections_free(struct debug_sections *sections)
{
	for (int i = 0; i < DEBUG_SECTIONS; i++)
		free(sections->items[i].owned);
	*sections = (struct debug_sections){0};
}
