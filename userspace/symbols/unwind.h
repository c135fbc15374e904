/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unwinding a copy of a thread's stack by rules: one for each place in the code, made from the tables of its
 * file (binary.h).
 */
#ifndef WHYIDLE_SYMBOLS_UNWIND_H
#define WHYIDLE_SYMBOLS_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unwind_base {
	UNWIND_UNKNOWN = 0, /* cannot be told */
	UNWIND_SAME,        /* the register has its caller's value */
	UNWIND_CFA,         /* in memory, relative to the frame's address */
	UNWIND_SP,          /* relative to the stack pointer */
	UNWIND_BP,          /* relative to the frame pointer */
	UNWIND_PLT,         /* sp + 8, or + 16 in the second half of an entry of the linkage table */
	UNWIND_END,         /* there is no caller: the outermost frame */
};

struct unwind_place {
	uint8_t base; /* enum unwind_base */
	uint8_t load; /* frame address only: it is what lies in memory there */
	uint8_t pad[2];
	int32_t offset;
};

struct unwind_rule {
	struct unwind_place frame;   /* of the frame's address: UNWIND_SP, UNWIND_BP, UNWIND_PLT */
	struct unwind_place bp;      /* where the caller's frame pointer lies, UNWIND_SAME */
	struct unwind_place address; /* where the return address lies, UNWIND_END */
	bool signal;                 /* the caller was interrupted, not in a call */
};

struct unwind_input {
	uint64_t ip, sp, bp;
	uint64_t link;        /* return address in a register of the innermost frame, 0 none */
	const uint8_t *stack; /* copy of the memory from `sp` on */
	size_t stack_bytes;
	/* The rule for code at `address`; false: there is none. */
	bool (*rule)(void *context, uint64_t address, struct unwind_rule *rule);
	/* True if code may be at `address`. */
	bool (*code)(void *context, uint64_t address);
	void *context;
};

/*
 * Fills in up to `max` addresses, the innermost first: `ip`, then return addresses; and, unless NULL, the
 * stack pointer in each of these frames: the frame lies from there up to the next one's. Where there is no
 * rule it goes on by the frame pointer. *complete is true if the outermost frame was reached. Never fails:
 * returns how many were found, at least one. The stack may hold anything.
 */
size_t unwind(const struct unwind_input *input, uint64_t *addresses, uint64_t *pointers, size_t max,
              bool *complete);

#endif
