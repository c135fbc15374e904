// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/elf_file.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* libelf makes room for as many sections as the header says, before anything is asked for. */
static bool is_within_bounds(int fd)
{
	Elf64_Ehdr head;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	/* With 0 the number stands in the first section, and may be any. */
	return !head.e_shoff || (head.e_shnum && head.e_shnum <= ELF_FILE_SECTIONS);
}

Elf *elf_file_open(int fd)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	/* Not mapped: who can write to the file could cut it, and reading a mapping would then end us. */
	elf = is_within_bounds(fd) ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	if (!elf || elf_kind(elf) == ELF_K_ELF)
		return elf;
	elf_end(elf);
	return NULL;
}

static bool has_at_most(Elf_Scn *section, uint64_t most)
{
	GElf_Shdr header;

	return section && gelf_getshdr(section, &header) && header.sh_size <= most;
}

Elf_Data *elf_file_data(Elf_Scn *section, uint64_t most)
{
	return has_at_most(section, most) ? elf_getdata(section, NULL) : NULL;
}

Elf_Data *elf_file_raw(Elf_Scn *section, uint64_t most)
{
	return has_at_most(section, most) ? elf_rawdata(section, NULL) : NULL;
}

const char *elf_file_text(Elf *elf, size_t section, size_t offset)
{
	return has_at_most(elf_getscn(elf, section), ELF_FILE_TEXT) ? elf_strptr(elf, section, offset) : NULL;
}
