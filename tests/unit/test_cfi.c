// SPDX-License-Identifier: GPL-2.0-only
/* Unwind rules of real files, against another reader, and through a signal; tables made by hand. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/binary.h"
#include "symbols/cfi_rule.h"
#include "tests/unit/libdw_rule.h"

/* The C library's file: written in C and assembly, with signal frames. */
static const char *library(uint64_t *base)
{
	Dl_info info;

	cr_assert(dladdr(dlsym(RTLD_DEFAULT, "kill"), &info));
	if (base)
		*base = (uint64_t)info.dli_fbase;
	return info.dli_fname;
}

static size_t compare_section(const struct cfi_table *table, Dwarf_CFI *other, uint64_t start, uint64_t size,
                              uint64_t step, size_t *signals)
{
	size_t known = 0;

	for (uint64_t at = start; at < start + size; at += step) {
		struct unwind_rule rule, expected;
		bool has = cfi_rule(table, at, &rule), wanted = libdw_rule(other, at, &expected);

		known += has;
		if (has && !wanted && rule.signal) {
			++*signals;
			continue;
		}
		cr_assert_eq(has, wanted, "%lx", at);
		if (!has)
			continue;
		cr_assert(
		    !memcmp(&rule, &expected, sizeof(rule)),
		    "%lx: frame %d%+d, bp %d%+d, address %d%+d for frame %d%+d, bp %d%+d, address %d%+d", at,
		    rule.frame.base, rule.frame.offset, rule.bp.base, rule.bp.offset, rule.address.base,
		    rule.address.offset, expected.frame.base, expected.frame.offset, expected.bp.base,
		    expected.bp.offset, expected.address.base, expected.address.offset);
	}
	return known;
}

/* Every instruction and what lies between them; returns how many have rules. */
static size_t compare(const char *path, uint64_t step, size_t *signals)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = (elf_version(EV_CURRENT), elf_begin(fd, ELF_C_READ, NULL));
	struct cfi_table *table = cfi_table_open(elf);
	Dwarf_CFI *other = dwarf_getcfi_elf(elf);
	Elf_Scn *section = NULL;
	size_t known = 0;
	GElf_Shdr header;

	cr_assert(table && other, "%s", path);
	*signals = 0;
	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &header) && header.sh_flags & SHF_EXECINSTR)
			known += compare_section(table, other, header.sh_addr, header.sh_size, step, signals);
	}
	dwarf_cfi_end(other);
	cfi_table_free(table);
	elf_end(elf);
	close(fd);
	return known;
}

Test(cfi, as_another_reader_has_it)
{
	size_t signals, known = compare(UNIT_FIXTURES "/inlined-5.so", 1, &signals);

	cr_assert_gt(known, 400);
	known = compare(library(NULL), 7, &signals);
	cr_assert_gt(known, 50000);
	cr_assert(signals >= 1 && signals < 8, "%zu", signals);
}

/* ---- through a signal ---- */

static struct {
	struct unwind_input input;
	uint8_t stack[8192];
} seen;

static __attribute__((noinline, no_sanitize("address"))) void on_signal(int number)
{
	const uint64_t *frame = __builtin_frame_address(0);

	(void)number;
	/* Where it returns to, with the registers that it returns with. */
	seen.input.bp = frame[0];
	seen.input.ip = frame[1];
	seen.input.sp = (uint64_t)(frame + 2);
	for (size_t i = 0; i < sizeof(seen.stack) / 8; i++)
		((volatile uint64_t *)seen.stack)[i] = frame[2 + i];
}

struct files {
	struct binary *library;
	uint64_t base;
};

static bool library_rule(void *context, uint64_t address, struct unwind_rule *rule)
{
	const struct files *files = context;

	return binary_rule(files->library, address - files->base, rule);
}

static bool any_code(void *context, uint64_t address)
{
	(void)context;
	return address > 4096;
}

int cfi_interrupted(void);

__attribute__((noinline)) int cfi_interrupted(void)
{
	return kill(getpid(), SIGUSR1) + 1;
}

/* handler's caller (the kernel's return path), kill, and who called it. */
Test(cfi, through_a_signal)
{
	volatile uint8_t room[sizeof(seen.stack)];
	struct files files = {0};
	uint64_t addresses[3] = {0};
	bool complete;

	/* The handler copies as much of the stack as lies above it, and a process may have begun near its
	 * end. */
	memset((void *)room, 0, sizeof(room));
	signal(SIGUSR1, on_signal);
	cr_assert_eq(cfi_interrupted() + room[0], 1);
	files.library = binary_open(open(library(&files.base), O_RDONLY | O_CLOEXEC));
	seen.input.stack = seen.stack;
	seen.input.stack_bytes = sizeof(seen.stack);
	seen.input.rule = library_rule;
	seen.input.code = any_code;
	seen.input.context = &files;
	cr_assert_eq(unwind(&seen.input, addresses, NULL, 3, &complete), 3);
	cr_assert_str_eq(binary_function(files.library, addresses[1] - files.base), "kill");
	cr_assert(addresses[2] > (uint64_t)cfi_interrupted && addresses[2] < (uint64_t)cfi_interrupted + 256,
	          "%lx is not in %p", addresses[2], (void *)cfi_interrupted);
	binary_free(files.library);
}

/* ---- made by hand ---- */

#define CODE 0x100000
#define COMMON                                                                                               \
	"\x14\0\0\0"                                                                                         \
	"\0\0\0\0"                                                                                           \
	"\x01"                                                                                               \
	"\0"                                                                                                 \
	"\x01"                                                                                               \
	"\x78"                                                                                               \
	"\x10"                                                                                               \
	"\x0c\x07\x08"                                                                                       \
	"\x90\x01"                                                                                           \
	"\0\0\0\0\0\0"

/* A table with a common part and one function of 256 bytes with this program. */
static struct cfi_table *made(uint8_t bytes[512], const void *program, size_t length)
{
	struct cfi_table *table = calloc(1, sizeof(*table));
	const uint64_t place[] = {CODE, 256};
	uint32_t head[] = {(uint32_t)(4 + 16 + length), 28};
	struct cfi_span *span;

	cr_assert_not_null(table);
	memcpy(bytes, COMMON, 24);
	memcpy(bytes + 24, head, sizeof(head));
	memcpy(bytes + 32, place, sizeof(place));
	memcpy(bytes + 48, program, length);
	table->bytes = bytes;
	table->size = 48 + length;
	span = array_add(&table->spans);
	*span = (struct cfi_span){CODE, 256, 24};
	return table;
}

static bool made_rule(const void *program, size_t length, uint64_t at, struct unwind_rule *rule)
{
	uint8_t bytes[512] = {0};
	struct cfi_table *table = made(bytes, program, length);
	bool has = cfi_rule(table, CODE + at, rule);

	cfi_table_free(table);
	return has;
}

Test(cfi, programs)
{
	/* push %rbp; mov %rsp, %rbp; …; leave, and what comes behind has the state from before. */
	static const uint8_t plain[] = {0x41, 0x0e, 16,   0x86, 2, 0x43, 0x0d, 6,
	                                0x50, 0x0a, 0x0c, 7,    8, 0xc6, 0x41, 0x0b};
	struct unwind_rule rule;

	cr_assert(made_rule(plain, sizeof(plain), 0, &rule));
	cr_assert(rule.frame.base == UNWIND_SP && rule.frame.offset == 8 && rule.bp.base == UNWIND_SAME);
	cr_assert(rule.address.base == UNWIND_CFA && rule.address.offset == -8);
	cr_assert(made_rule(plain, sizeof(plain), 3, &rule));
	cr_assert(rule.frame.base == UNWIND_SP && rule.frame.offset == 16);
	cr_assert(rule.bp.base == UNWIND_CFA && rule.bp.offset == -16);
	cr_assert(made_rule(plain, sizeof(plain), 19, &rule));
	cr_assert(rule.frame.base == UNWIND_BP && rule.frame.offset == 16);
	cr_assert(made_rule(plain, sizeof(plain), 20, &rule));
	cr_assert(rule.frame.base == UNWIND_SP && rule.frame.offset == 8 && rule.bp.base == UNWIND_SAME);
	cr_assert(made_rule(plain, sizeof(plain), 21, &rule));
	cr_assert(rule.frame.base == UNWIND_BP && rule.bp.base == UNWIND_CFA);
	cr_assert_not(made_rule(plain, sizeof(plain), 256, &rule));
}

/* What cannot be said is no rule: not a wrong one. */
Test(cfi, programs_without_a_sense)
{
	static const struct {
		uint8_t bytes[20];
		size_t length;
	} programs[] = {
	    {{0x0b}, 1},                                              /* restores what was not remembered */
	    {{0x3f}, 1},                                              /* not known */
	    {{0x0e}, 1},                                              /* cut */
	    {{0x0c, 3, 8}, 3},                                        /* relative to another register */
	    {{0x0f, 0xff, 0xff, 0x03}, 4},                            /* an expression behind the end */
	    {{0x0f, 1, DW_OP_deref}, 3},                              /* one of another form */
	    {{0x0c, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 9}, /* too far */
	    {{0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, /* a number without an end */
	      0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0},
	     18},
	};
	struct unwind_rule rule;

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		cr_assert_not(made_rule(programs[i].bytes, programs[i].length, 8, &rule), "%zu", i);
	/* A register that no machine has is nothing: libdw made room for four thousand million. */
	cr_assert(made_rule("\x05\xff\xff\xff\xff\x0f\x01", 7, 8, &rule));
	cr_assert(rule.frame.base == UNWIND_SP && rule.address.offset == -8);
}
