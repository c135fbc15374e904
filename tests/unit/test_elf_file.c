/* SPDX-License-Identifier: GPL-2.0-only */
/* ELF files that say of their sections what would take all memory to believe: with holes, a file is that
 * long. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbols/binary.h"
#include "symbols/elf_file.h"

#define HUGE     (8ULL << 30)
#define TEXT     0x1000 /* places in the file */
#define SECTIONS 0x2000
#define NAMES    0x3000
#define CODE     0x4000

enum { NONE, SYMBOLS, STRINGS, SECTION_NAMES, COUNT };

static int file;

static void write_at(uint64_t at, const void *bytes, size_t size)
{
	cr_assert_eq(pwrite(file, bytes, size, (off_t)at), (ssize_t)size);
}

/* A file with one function, and tables of these sizes, of which only the first bytes are more than a hole. */
static void make_file(uint64_t symbols, uint64_t strings, unsigned sections)
{
	static const char names[] = "\0.symtab\0.strtab\0.shstrtab";
	const Elf64_Sym function = {.st_name = 1,
	                            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	                            .st_shndx = 1,
	                            .st_value = CODE,
	                            .st_size = 64};
	Elf64_Shdr headers[COUNT] = {
	    [SYMBOLS] = {.sh_name = 1,
	                 .sh_type = SHT_SYMTAB,
	                 .sh_offset = NAMES + 0x100,
	                 .sh_size = symbols,
	                 .sh_link = STRINGS,
	                 .sh_entsize = sizeof(Elf64_Sym)},
	    [STRINGS] = {.sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = TEXT, .sh_size = strings},
	    [SECTION_NAMES] = {.sh_name = 17,
	                       .sh_type = SHT_STRTAB,
	                       .sh_offset = NAMES,
	                       .sh_size = sizeof(names)},
	};
	Elf64_Ehdr head = {
	    .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	    .e_type = ET_DYN,
	    .e_machine = EM_X86_64,
	    .e_version = EV_CURRENT,
	    .e_ehsize = sizeof(head),
	    .e_shoff = SECTIONS,
	    .e_shentsize = sizeof(Elf64_Shdr),
	    .e_shnum = (uint16_t)sections,
	    .e_shstrndx = SECTION_NAMES};

	if (!sections)
		headers[NONE].sh_size = HUGE / sizeof(Elf64_Shdr);
	file = memfd_create("elf", MFD_CLOEXEC);
	cr_assert(file >= 0);
	cr_assert_eq(ftruncate(file, 2 * HUGE), 0);
	write_at(0, &head, sizeof(head));
	write_at(TEXT, "\0function", 10);
	write_at(SECTIONS, headers, sizeof(headers));
	write_at(NAMES, names, sizeof(names));
	write_at(headers[SYMBOLS].sh_offset + sizeof(function), &function, sizeof(function));
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* The function's name, read within some memory. */
static void assert_function(const char *wanted)
{
	long before = peak_kib();
	struct binary *binary = binary_open(file);
	const char *name;

	cr_assert_not_null(binary);
	name = binary_function(binary, CODE);
	if (wanted)
		cr_assert(name && !strcmp(name, wanted), "%s", name);
	else
		cr_assert_null(name, "%s", name);
	binary_free(binary);
	cr_assert_lt(peak_kib() - before, 16 << 10);
}

Test(elf_file, tables_that_are_small_are_read)
{
	make_file(2 * sizeof(Elf64_Sym), 16, COUNT);
	assert_function("function");
}

Test(elf_file, a_table_of_symbols_beyond_its_bound_is_not_read)
{
	make_file(HUGE, 16, COUNT);
	assert_function(NULL);
}

Test(elf_file, a_table_of_names_beyond_its_bound_is_not_read)
{
	make_file(2 * sizeof(Elf64_Sym), HUGE, COUNT);
	assert_function(NULL);
}

/* Their number in the first section, where it may be any. */
Test(elf_file, a_file_of_more_sections_than_its_header_holds_is_not_opened)
{
	make_file(2 * sizeof(Elf64_Sym), 16, 0);
	assert_function(NULL);
}

Test(elf_file, what_is_no_elf_file_is_not_opened)
{
	file = memfd_create("text", MFD_CLOEXEC);
	cr_assert_null(elf_file_open(file));
	cr_assert_eq(write(file, "#!/bin/sh\n", 10), 10);
	cr_assert_null(elf_file_open(file));
	close(file);
}
