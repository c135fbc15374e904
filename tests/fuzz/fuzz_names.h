/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_FUZZ_NAMES_H
#define WHYIDLE_FUZZ_NAMES_H

#include <elf.h>

/* The first byte of an input, modulo this, says what the rest is: 0 an ELF file (or '*'), + 1 mappings, ',' 2
 * a perf map, - 3 a line table, . 4 a name, / 5 unwind tables. */
#define FUZZ_NAMES_KINDS 6

#if defined(__x86_64__)
#define FUZZ_NAMES_MACHINE EM_X86_64
#else
#define FUZZ_NAMES_MACHINE EM_AARCH64
#endif

#endif
