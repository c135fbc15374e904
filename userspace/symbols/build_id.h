/* SPDX-License-Identifier: GPL-2.0-only */
/* The build id of an ELF file, which linkers put into a note. The file is not trusted. */
#ifndef WHYIDLE_SYMBOLS_BUILD_ID_H
#define WHYIDLE_SYMBOLS_BUILD_ID_H

#include <libelf.h>

#define BUILD_ID_MAX  64 /* bytes; a longer one counts as none */
#define BUILD_ID_TEXT (BUILD_ID_MAX * 2 + 1)

/* In hexadecimal; "" if there is none. */
void build_id_read(Elf *elf, char text[BUILD_ID_TEXT]);

#endif
