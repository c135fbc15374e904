// SPDX-License-Identifier: GPL-2.0-only
/* Unwind rules as libdw reads them, to compare with. Of files that can be trusted. */
#include "tests/unit/libdw_rule.h"

#include <stdlib.h>

#include <dwarf.h>

/* Numbers of registers in DWARF. */
#if defined(__x86_64__)
#define REGISTER_SP      7
#define REGISTER_BP      6
#define REGISTER_ADDRESS 16
#elif defined(__aarch64__)
#define REGISTER_SP      31
#define REGISTER_BP      29
#define REGISTER_ADDRESS 30
#else
#error "no registers known for this architecture"
#endif

static bool set_place(struct unwind_place *place, enum unwind_base base, int64_t offset)
{
	if (offset < INT32_MIN || offset > INT32_MAX)
		return false;
	*place = (struct unwind_place){.base = base, .offset = (int32_t)offset};
	return true;
}

/* "register + offset" as one operation. */
static bool register_place(const Dwarf_Op *op, struct unwind_place *place)
{
	uint64_t number;
	int64_t offset;

	if (op->atom == DW_OP_bregx) {
		number = op->number;
		offset = (int64_t)op->number2;
	} else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		number = op->atom - DW_OP_breg0;
		offset = (int64_t)op->number;
	} else {
		return false;
	}
	if (number == REGISTER_SP)
		return set_place(place, UNWIND_SP, offset);
	return number == REGISTER_BP && set_place(place, UNWIND_BP, offset);
}

/* The linkers of x86-64 describe linkage tables as sp + 8 + ((ip & 15) >= 11) * 8. */
static bool is_linkage(const Dwarf_Op *ops, size_t count)
{
	static const uint8_t atoms[] = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, DW_OP_lit11,
	                                DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus};

	if (count != sizeof(atoms))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (ops[i].atom != atoms[i])
			return false;
	}
	return ops[0].number == 8;
}

static bool frame_place(Dwarf_Frame *frame, struct unwind_place *place)
{
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_frame_cfa(frame, &ops, &count) || !count)
		return false;
	if (is_linkage(ops, count)) {
		*place = (struct unwind_place){.base = UNWIND_PLT};
		return true;
	}
	if (!register_place(ops, place))
		return false;
	/* Signal frames keep the interrupted stack pointer in memory. */
	place->load = count == 2 && ops[1].atom == DW_OP_deref;
	return count == 1 || place->load;
}

/* Where the caller's value of a register lies. */
static bool register_saved(Dwarf_Frame *frame, int number, struct unwind_place *place)
{
	Dwarf_Op memory[3], *ops;
	size_t count;

	if (dwarf_frame_register(frame, number, memory, &ops, &count))
		return false;
	if (!count) {
		/* What libdw gives then tells "undefined" from "unchanged". */
		*place = (struct unwind_place){.base = ops == memory ? UNWIND_END : UNWIND_SAME};
		return true;
	}
	if (ops[0].atom == DW_OP_call_frame_cfa && count == 1)
		return set_place(place, UNWIND_CFA, 0);
	if (ops[0].atom == DW_OP_call_frame_cfa && count == 2 && ops[1].atom == DW_OP_plus_uconst)
		return set_place(place, UNWIND_CFA, (int64_t)ops[1].number);
	return count == 1 && register_place(ops, place);
}

bool libdw_rule(Dwarf_CFI *cfi, uint64_t address, struct unwind_rule *rule)
{
	Dwarf_Frame *frame;
	Dwarf_Addr start, end;
	bool good;

	*rule = (struct unwind_rule){0};
	if (dwarf_cfi_addrframe(cfi, address, &frame))
		return false;
	dwarf_frame_info(frame, &start, &end, &rule->signal);
	good = frame_place(frame, &rule->frame) && register_saved(frame, REGISTER_ADDRESS, &rule->address);
	/* Without the caller's frame pointer one can still go on where it is not needed. */
	if (!register_saved(frame, REGISTER_BP, &rule->bp) || rule->bp.base == UNWIND_END)
		rule->bp = (struct unwind_place){.base = UNWIND_UNKNOWN};
	free(frame);
	return good || rule->address.base == UNWIND_END;
}
