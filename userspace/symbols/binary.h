/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An ELF file that a process has mapped: names and source lines of its functions, and how to unwind them. All
 * of it is read when it is first asked for. The file is not trusted.
 *
 * "Address" here is one of the file itself, before it is loaded anywhere.
 */
#ifndef WHYIDLE_SYMBOLS_BINARY_H
#define WHYIDLE_SYMBOLS_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/source_places.h"
#include "symbols/unwind.h"

struct binary;

/*
 * Takes over `fd`, also on failure. NULL if memory ran out. A file that is no ELF file gives a binary that
 * knows nothing.
 */
struct binary *binary_open(int fd);

/* The same for an image in memory, which must stay there. */
struct binary *binary_open_memory(char *image, size_t size);

/* NULL is allowed. */
void binary_free(struct binary *binary);

/* Address of what lies at `offset` in the file; false if that is not loaded into memory. */
bool binary_address(const struct binary *binary, uint64_t offset, uint64_t *address);

/* Build id in hexadecimal, "" if the file has none. */
const char *binary_build_id(const struct binary *binary);

/*
 * Adds the file at `fd` (taken over) as the one with the debug information that was split off from this one,
 * if it has the same build id. To be called before anything is asked for.
 */
void binary_add_debug(struct binary *binary, int fd);

/* Name of the function that holds `address`, as the file has it; NULL if not known. */
const char *binary_function(struct binary *binary, uint64_t address);

/* True if `address` lies in a part of the file that is loaded into memory that can be written to. */
bool binary_in_memory(const struct binary *binary, uint64_t address);

/* Name of the variable that holds `address`; NULL if not known. */
const char *binary_object(struct binary *binary, uint64_t address);

/*
 * Functions and source lines of an address where there is debug information: see source_places.h. They live
 * as long as the binary.
 */
size_t binary_places(struct binary *binary, uint64_t address, struct source_place places[SOURCE_PLACES_MAX]);

/* Address of a symbol of any kind; 0 if there is none. */
uint64_t binary_symbol(struct binary *binary, const char *name);

/* How to unwind code at `address`; false if that is not known. */
bool binary_rule(struct binary *binary, uint64_t address, struct unwind_rule *rule);

#endif
