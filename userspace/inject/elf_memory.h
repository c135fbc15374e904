/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ELF file behind a mapping, read from the memory of the process that has it mapped: no file is opened,
 * so mount namespaces and deleted files make no difference. What is read is not trusted: every table has a
 * bound, and nothing read is used as more than an address to read at.
 */
#ifndef WHYIDLE_INJECT_ELF_MEMORY_H
#define WHYIDLE_INJECT_ELF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads all of `size` bytes at an address of the process, or returns false. */
typedef bool (*elf_memory_read)(void *context, uint64_t address, void *to, size_t size);

struct elf_memory {
	elf_memory_read read;
	void *context;
	uint64_t base;                                       /* where the ELF header is */
	uint64_t bias;                                       /* to be added to the file's own addresses */
	uint64_t symbols, strings, versions, gnu_hash, hash; /* tables, 0 none */
	uint64_t strings_size;
	uint64_t code_end; /* of the last executable segment as the file has it, 0 none */
};

/* `base` is where the start of the file is mapped. False if that is no ELF file with dynamic symbols. */
bool elf_memory_open(struct elf_memory *elf, uint64_t base, elf_memory_read read, void *context);

/* Address of a function of that name in its default version (or any, if it has no default), 0 none. */
uint64_t elf_memory_function(const struct elf_memory *elf, const char *name);

/* Value of a dynamic symbol in a library that is no process's memory yet (a file image as a whole). */
uint64_t elf_memory_file_symbol(const void *file, size_t size, const char *name);

#endif
