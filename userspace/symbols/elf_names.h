/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions or variables of an ELF file: .symtab, .dynsym, and the symbols that some distributions keep
 * compressed in .gnu_debugdata. Files are not trusted.
 */
#ifndef WHYIDLE_SYMBOLS_ELF_NAMES_H
#define WHYIDLE_SYMBOLS_ELF_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

enum elf_names_kind {
	ELF_NAMES_FUNCTIONS,
	ELF_NAMES_OBJECTS, /* variables */
};

struct elf_names {
	enum elf_names_kind kind; /* which are added */
	struct elf_name {
		uint64_t address;
		uint64_t size;    /* bytes, 0 not known (written in assembly) */
		const char *name; /* in a string table of `elf` or `inner` */
	} * items;                /* by address */
	size_t count, capacity;
	Elf *inner; /* what .gnu_debugdata holds, NULL */
	void *inner_bytes;
};

/* Adds all functions, or variables, of `elf`, which must outlive `names`. Returns 0 or -ENOMEM; a file that
 * makes no sense has no functions. Call elf_names_sort after the last one. */
int elf_names_add(struct elf_names *names, Elf *elf);
void elf_names_sort(struct elf_names *names);

/* The one that holds `address`, NULL if none does. */
const struct elf_name *elf_names_find(const struct elf_names *names, uint64_t address);

void elf_names_free(struct elf_names *names);

/* Address of a symbol of any kind, by its exact name; 0 if there is none. */
uint64_t elf_symbol_address(Elf *elf, const char *name);

#endif
