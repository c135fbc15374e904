/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opening ELF files that a target can write, and reading their sections, by libelf with bounds: what it is
 * asked for it reads into memory as a whole, and a file with holes can say that it is of any size.
 */
#ifndef WHYIDLE_SYMBOLS_ELF_FILE_H
#define WHYIDLE_SYMBOLS_ELF_FILE_H

#include <gelf.h>
#include <stdint.h>

/* Of one file; libraries have some 40. */
#define ELF_FILE_SECTIONS 65279 /* what fits in the header; more are counted elsewhere */
/* Bytes of one section. The largest tables of PyTorch have 15 MB of symbols and 100 MB of names. */
#define ELF_FILE_SYMBOLS (100u << 20)
#define ELF_FILE_TEXT    (256u << 20)

/* NULL: no ELF file of 64 bits, or one beyond these bounds. The descriptor stays the caller's, and must
 * outlive it. */
Elf *elf_file_open(int fd);

/* The content of a section, as libelf's elf_getdata and elf_rawdata give it; NULL if it has more than `most`
 * bytes. */
Elf_Data *elf_file_data(Elf_Scn *section, uint64_t most);
Elf_Data *elf_file_raw(Elf_Scn *section, uint64_t most);

/* A string of a table of strings; NULL if there is none, or the table is beyond its bound. */
const char *elf_file_text(Elf *elf, size_t section, size_t offset);

#endif
