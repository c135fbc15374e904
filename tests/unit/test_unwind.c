// SPDX-License-Identifier: GPL-2.0-only
/* Unwinding of made-up stacks by made-up rules: code 0x1000 to 0x1fff has some, 0x2000 to 0x2fff has none. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/unwind.h"

#define SP 0x7000

static bool code(void *context, uint64_t address)
{
	(void)context;
	return address >= 0x1000 && address < 0x3000;
}

/* 0x10xx: the frame is sp + 16. 0x11xx: bp was pushed. 0x12xx: a signal. 0x13xx: outermost. 0x14xx: a circle.
 */
static bool rule(void *context, uint64_t address, struct unwind_rule *rule)
{
	(void)context;
	*rule =
	    (struct unwind_rule){.address = {.base = UNWIND_CFA, .offset = -8}, .bp = {.base = UNWIND_SAME}};
	switch (address >> 8) {
	case 0x10:
		rule->frame = (struct unwind_place){.base = UNWIND_SP, .offset = 16};
		return true;
	case 0x11:
		rule->frame = (struct unwind_place){.base = UNWIND_BP, .offset = 16};
		rule->bp = (struct unwind_place){.base = UNWIND_CFA, .offset = -16};
		return true;
	case 0x12:
		rule->frame = (struct unwind_place){.base = UNWIND_SP, .load = 1, .offset = 8};
		rule->address = (struct unwind_place){.base = UNWIND_SP, .offset = 16};
		rule->signal = true;
		return true;
	case 0x13:
		rule->address.base = UNWIND_END;
		return true;
	case 0x14:
		rule->frame = (struct unwind_place){.base = UNWIND_SP, .offset = 0};
		return true;
	default:
		return false;
	}
}

static uint64_t pointers[300];

static size_t walk(const uint64_t *stack, size_t words, uint64_t ip, uint64_t bp, uint64_t *addresses,
                   size_t max, bool *complete)
{
	struct unwind_input input = {.ip = ip,
	                             .sp = SP,
	                             .bp = bp,
	                             .stack = (const uint8_t *)stack,
	                             .stack_bytes = words * sizeof(*stack),
	                             .rule = rule,
	                             .code = code};

	return unwind(&input, addresses, pointers, max, complete);
}

static void check_walk(const uint64_t *stack, size_t words, uint64_t ip, uint64_t bp, const uint64_t *wanted,
                       size_t count, bool whole)
{
	uint64_t got[16];
	bool complete;
	size_t length = walk(stack, words, ip, bp, got, 16, &complete);

	cr_assert_eq(length, count, "%zu frames, not %zu", length, count);
	cr_assert_arr_eq(got, wanted, count * sizeof(*got));
	cr_assert_eq(complete, whole);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(unwind, by_rules)
{
	/*                       sp: 0x7000 0x7008  0x7010  0x7018  0x7020 */
	const uint64_t stack[] = {1, 0x1140, 0x7030, 0x1050, 2, 0x1350};
	const uint64_t wanted[] = {0x1000, 0x1140, 0x1050, 0x1350};

	check_walk(stack, COUNT(stack), 0x1000, 0x7010, wanted, COUNT(wanted), true);
}

/* A frame lies between its stack pointer and that of its caller. */
Test(unwind, frames_lie_one_after_the_other)
{
	const uint64_t stack[] = {1, 0x1140, 0x7030, 0x1050, 2, 0x1350};
	const uint64_t wanted[] = {SP, SP + 0x10, SP + 0x20, SP + 0x30};
	uint64_t got[16];
	bool complete;

	cr_assert_eq(walk(stack, COUNT(stack), 0x1000, 0x7010, got, 16, &complete), COUNT(wanted));
	cr_assert_arr_eq(pointers, wanted, sizeof(wanted));
}

Test(unwind, by_frame_pointers_where_there_is_no_rule)
{
	const uint64_t stack[] = {1, 2, 0x7020, 0x2100, 0x7000, 0x1350};
	const uint64_t wanted[] = {0x2000, 0x2100, 0x1350};

	check_walk(stack, COUNT(stack), 0x2000, 0x7010, wanted, COUNT(wanted), true);
}

/* The interrupted place may be the first of its function: it is looked up as it is, not one before. */
Test(unwind, through_a_signal)
{
	const uint64_t stack[] = {1, 0x7020, 0x1100, 3, 4, 5, 0x7000, 0x1300 + 1};
	const uint64_t wanted[] = {0x1200, 0x1100, 0x1301};

	check_walk(stack, COUNT(stack), 0x1200, 0x7030, wanted, COUNT(wanted), true);
}

Test(unwind, return_address_0_is_the_end)
{
	const uint64_t stack[] = {1, 0};
	const uint64_t wanted[] = {0x1000};

	check_walk(stack, COUNT(stack), 0x1000, 0, wanted, COUNT(wanted), true);
}

Test(unwind, what_ends_early_is_not_complete)
{
	const uint64_t short_stack[] = {1, 0x1050};
	const uint64_t nowhere[] = {1, 0x9999};
	const uint64_t two[] = {0x1000, 0x1050}, one[] = {0x1000};
	const uint64_t circle[] = {0x1400};

	check_walk(short_stack, COUNT(short_stack), 0x1000, 0, two, COUNT(two), false);
	check_walk(nowhere, COUNT(nowhere), 0x1000, 0, one, COUNT(one), false);
	check_walk(nowhere, 0, 0x1000, 0, one, COUNT(one), false);
	check_walk(short_stack, COUNT(short_stack), 0x1400, 0, circle, COUNT(circle), false);
}

Test(unwind, no_more_than_there_is_room_for)
{
	uint64_t stack[64], got[8];
	bool complete;

	for (size_t i = 0; i < 64; i++)
		stack[i] = 0x1050;
	cr_assert_eq(walk(stack, 64, 0x1000, 0, got, 8, &complete), 8);
	cr_assert_not(complete);
}

/* Whatever a stack holds, nothing outside it is read (the sanitizers watch) and the walk ends. */
Test(unwind, any_bytes)
{
	uint64_t got[300];
	bool complete;

	srand(1);
	for (int round = 0; round < 20000; round++) {
		size_t words = rand() % 24;
		uint64_t *stack = malloc(words * sizeof(*stack) + 1);

		for (size_t i = 0; i < words; i++)
			stack[i] = rand() % 2 ? 0x1000 + rand() % 0x2000 : SP - 16 + rand() % 256;
		walk(stack, words, 0x1000 + rand() % 0x2000, SP - 16 + rand() % 256, got, 300, &complete);
		free(stack);
	}
}
