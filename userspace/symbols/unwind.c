// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/unwind.h"

#include <string.h>

struct registers {
	uint64_t ip, sp, bp;
};

static bool load(const struct unwind_input *input, uint64_t address, uint64_t *value)
{
	uint64_t at = address - input->sp;

	*value = 0;
	if (address < input->sp || at > input->stack_bytes || input->stack_bytes - at < sizeof(*value))
		return false;
	memcpy(value, input->stack + at, sizeof(*value));
	return true;
}

/* Address of a place, `frame` being the frame's own. */
static bool place_address(const struct unwind_place *place, const struct registers *registers, uint64_t frame,
                          uint64_t *address)
{
	switch (place->base) {
	case UNWIND_CFA:
		*address = frame + place->offset;
		return true;
	case UNWIND_SP:
		*address = registers->sp + place->offset;
		return true;
	case UNWIND_BP:
		*address = registers->bp + place->offset;
		return true;
	case UNWIND_PLT:
		*address = registers->sp + ((registers->ip & 15) >= 11 ? 16 : 8);
		return true;
	default:
		return false;
	}
}

/* The frame pointer points to the caller's, above which the return address lies: on x86-64 and on arm64. */
static bool step_by_frame_pointer(const struct unwind_input *input, struct registers *registers)
{
	uint64_t bp, ip;

	if (registers->bp < registers->sp || registers->bp & 7 || !load(input, registers->bp, &bp) ||
	    !load(input, registers->bp + 8, &ip))
		return false;
	registers->sp = registers->bp + 16;
	registers->bp = bp;
	registers->ip = ip;
	return true;
}

static bool step_by_rule(const struct unwind_input *input, const struct unwind_rule *rule,
                         struct registers *registers)
{
	uint64_t frame, place, ip, bp = registers->bp;

	if (!place_address(&rule->frame, registers, 0, &frame) ||
	    (rule->frame.load && !load(input, frame, &frame)))
		return false;
	/* Callers lie at higher addresses; this is also what ends a circle. */
	if (frame <= registers->sp)
		return false;
	if (!place_address(&rule->address, registers, frame, &place) || !load(input, place, &ip))
		return false;
	if (rule->bp.base != UNWIND_SAME &&
	    (!place_address(&rule->bp, registers, frame, &place) || !load(input, place, &bp)))
		bp = 0;
	*registers = (struct registers){.ip = ip, .sp = frame, .bp = bp};
	return true;
}

size_t unwind(const struct unwind_input *input, uint64_t *addresses, uint64_t *pointers, size_t max,
              bool *complete)
{
	struct registers registers = {input->ip, input->sp, input->bp};
	bool exact = true; /* ip is where it was interrupted, not behind a call */
	size_t count = 0;

	*complete = false;
	while (count < max) {
		struct unwind_rule rule;

		if (pointers)
			pointers[count] = registers.sp;
		addresses[count++] = registers.ip;
		if (input->rule(input->context, registers.ip - !exact, &rule)) {
			if (rule.address.base == UNWIND_END) {
				*complete = true;
				break;
			}
			exact = rule.signal;
			if (!step_by_rule(input, &rule, &registers))
				break;
		} else {
			exact = false;
			if (!step_by_frame_pointer(input, &registers))
				break;
		}
		/* The C library's outermost functions have no return address, or 0. */
		if (!registers.ip) {
			*complete = true;
			break;
		}
		if (!input->code(input->context, registers.ip))
			break;
	}
	return count;
}
