/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call frame information of an ELF file (.eh_frame, which exceptions need and nearly every file has): which
 * entry is about an address. The file is not trusted.
 */
#ifndef WHYIDLE_SYMBOLS_CFI_TABLE_H
#define WHYIDLE_SYMBOLS_CFI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

#include "base/array.h"
#include "symbols/byte_reader.h"

struct cfi_table {
	const uint8_t *bytes; /* of the section */
	size_t size;
	uint64_t address; /* of its start */
	struct {
		ARRAY(struct cfi_span)
	} spans; /* by start */
};

struct cfi_span {
	uint64_t start, size; /* addresses of the code */
	uint64_t entry;       /* offset of what is said of it */
};

/* What is the same for many functions (a "common information entry"). */
struct cfi_common {
	uint64_t code_unit; /* bytes of code that a step of 1 stands for */
	int64_t data_unit;
	uint8_t encoding; /* of addresses */
	bool lengths;     /* entries say how long their own additions are */
	bool signal;      /* the functions were not called, but interrupted another */
	struct byte_reader program;
};

/* What is said of a function: where its code begins, and how registers change along it. */
struct cfi_entry {
	struct cfi_common common;
	uint64_t start, size;
	struct byte_reader program;
};

/* Reads which functions there are. `elf` must outlive the table. NULL if memory ran out or there is none. */
struct cfi_table *cfi_table_open(Elf *elf);

/* NULL is allowed. */
void cfi_table_free(struct cfi_table *table);

/* The entry about an address; false if there is none. */
bool cfi_table_find(const struct cfi_table *table, uint64_t address, struct cfi_entry *entry);

/* An address in one of the encodings (DW_EH_PE_…); false if it makes no sense. `reader` is within the
 * section. */
bool cfi_table_pointer(const struct cfi_table *table, struct byte_reader *reader, uint8_t encoding,
                       uint64_t *value);

#endif
