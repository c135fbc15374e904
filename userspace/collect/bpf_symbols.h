/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of kernel functions, from /proc/kallsyms.
 */
#ifndef WHYIDLE_COLLECT_BPF_SYMBOLS_H
#define WHYIDLE_COLLECT_BPF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct kernel_symbols {
	struct kernel_symbol {
		uint64_t address;
		uint32_t name;   /* offset in `text` */
		uint32_t module; /* offset in `text`, 0 the kernel itself */
	} * items;               /* by address */
	size_t count, capacity;
	char *text;
	size_t text_length, text_capacity;
};

/*
 * Reads all function symbols. Returns 0, -ENOMEM, -EACCES if the kernel hides the addresses (kptr_restrict,
 * no CAP_SYSLOG), or the errno of reading.
 */
int kernel_symbols_load(struct kernel_symbols *symbols);

/* The function that holds `address`, NULL if none is known. *module gets NULL for the kernel itself. */
const char *kernel_symbols_find(const struct kernel_symbols *symbols, uint64_t address, const char **module);

void kernel_symbols_free(struct kernel_symbols *symbols);

#endif
