/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions and lines of Python code objects, read from the memory of the process that runs them. What is
 * read is not trusted: a code object may have gone meanwhile, and another thing be in its place.
 */
#ifndef WHYIDLE_COLLECT_PYTHON_CODE_H
#define WHYIDLE_COLLECT_PYTHON_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/hash.h"
#include "collect/python_process.h"

#define PYTHON_TEXT_MAX 1024 /* bytes of a name in UTF-8, NUL included */

struct python_code {
	uint64_t read_ns;  /* when it was last compared with the process's memory */
	uint64_t identity; /* hash of the object's fields */
	char *name, *file; /* NULL: it could not be read */
	uint32_t first_line;
	uint8_t *table;
	size_t table_length;
};

/* Code objects of one process. */
struct python_codes {
	struct {
		ARRAY(struct python_code)
	} codes;
	struct index_map by_address;
};

/* A Python text as UTF-8, cut to fit; NULL if it makes no sense. The caller frees it. */
char *python_text_read(uint32_t pid, const struct python_code_layout *layout, uint64_t address);

/* The code object at `address` of process `pid`; NULL if it cannot be read. Valid until the next call. */
const struct python_code *python_code_get(struct python_codes *codes, uint32_t pid,
                                          const struct python_code_layout *layout, uint64_t address,
                                          uint64_t now_ns);

/* Line that is executed; `position` as in struct wire_python_frame. 0 if not known. */
uint32_t python_code_line(const struct python_code *code, const struct python_code_layout *layout,
                          uint64_t address, uint64_t position);

void python_codes_free(struct python_codes *codes);

#endif
