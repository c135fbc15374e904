/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sections of an ELF file that hold debug information (DWARF), decompressed. The file is not trusted:
 * what is larger than a limit, or damaged, is left out.
 */
#ifndef WHYIDLE_SYMBOLS_DEBUG_SECTIONS_H
#define WHYIDLE_SYMBOLS_DEBUG_SECTIONS_H

#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

enum debug_section {
	DEBUG_INFO,
	DEBUG_ABBREV,
	DEBUG_STR,
	DEBUG_STR_OFFSETS,
	DEBUG_ADDR,
	DEBUG_RANGES,
	DEBUG_RNGLISTS,
	DEBUG_LINE,
	DEBUG_LINE_STR,
	DEBUG_SECTIONS,
};

struct debug_sections {
	struct debug_bytes {
		const uint8_t *bytes; /* NULL: there is none */
		size_t size;
		void *owned; /* what was decompressed, NULL */
	} items[DEBUG_SECTIONS];
};

/* Fills in the sections of `elf`, which must outlive them. 64-bit little-endian files only: others have none.
 * Call debug_sections_free afterwards. */
void debug_sections_read(struct debug_sections *sections, Elf *elf);

void debug_sections_free(struct debug_sections *sections);

#endif
