// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/build_id.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_NOTES (1u << 20) /* bytes of one part of the file with notes */
#define NOTE_ID   3          /* NT_GNU_BUILD_ID */

static bool find_note(Elf_Data *data, char *text)
{
	size_t at = 0, next, name, bytes;
	GElf_Nhdr note;

	for (; data && data->d_buf && (next = gelf_getnote(data, at, &note, &name, &bytes)); at = next) {
		const uint8_t *id = (const uint8_t *)data->d_buf + bytes;

		if (note.n_type != NOTE_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp((const char *)data->d_buf + name, "GNU", sizeof("GNU")) || !note.n_descsz ||
		    note.n_descsz > BUILD_ID_MAX)
			continue;
		for (size_t i = 0; i < note.n_descsz; i++)
			sprintf(text + i * 2, "%02x", id[i]);
		return true;
	}
	return false;
}

static bool find_part(Elf *elf, uint64_t offset, uint64_t size, uint64_t alignment, char *text)
{
	if (!size || size > MAX_NOTES || offset > INT64_MAX)
		return false;
	return find_note(
	    elf_getdata_rawchunk(elf, (int64_t)offset, size, alignment == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
	    text);
}

void build_id_read(Elf *elf, char text[BUILD_ID_TEXT])
{
	Elf_Scn *section = NULL;
	size_t segments;

	*text = '\0';
	if (elf_getphdrnum(elf, &segments))
		segments = 0;
	for (size_t i = 0; i < segments; i++) {
		GElf_Phdr segment;

		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_NOTE &&
		    find_part(elf, segment.p_offset, segment.p_filesz, segment.p_align, text))
			return;
	}
	/* Split debug information may have it only here. */
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE &&
		    find_part(elf, header.sh_offset, header.sh_size, header.sh_addralign, text))
			return;
	}
}
