// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/cfi_rule.h"

#include <dwarf.h>

#define MAX_REMEMBERED 32
#define MAX_OPERATIONS (256u << 10) /* of one function */

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

/* How to find a value. */
struct source {
	enum {
		SOURCE_SAME = 0, /* it has not changed */
		SOURCE_NONE,     /* it is gone */
		SOURCE_FRAME,    /* in memory, `offset` from the frame's address */
		SOURCE_REGISTER, /* it is `offset` from a register; the frame's address only */
		SOURCE_PROGRAM,  /* by operations: where it lies in memory; of the frame's address: itself */
		SOURCE_OTHER,    /* cannot be said here */
	} kind;
	uint64_t number; /* of a register */
	int64_t offset;
	struct byte_reader program;
};

/* Those registers that are needed. */
struct state {
	struct source frame, bp, address;
};

struct machine {
	const struct cfi_table *table;
	const struct cfi_common *common;
	struct state state, initial; /* `initial`: after the common program */
	struct state remembered[MAX_REMEMBERED];
	unsigned depth, operations;
	uint64_t at; /* address that the state holds from */
};

static struct source *source_of(struct state *state, uint64_t number)
{
	return number == REGISTER_BP ? &state->bp : number == REGISTER_ADDRESS ? &state->address : NULL;
}

static void set_source(struct machine *machine, uint64_t number, struct source source)
{
	struct source *slot = source_of(&machine->state, number);

	if (slot)
		*slot = source;
}

static void set_offset(struct machine *machine, uint64_t number, int64_t units)
{
	int64_t offset;

	if (__builtin_mul_overflow(units, machine->common->data_unit, &offset))
		set_source(machine, number, (struct source){.kind = SOURCE_OTHER});
	else
		set_source(machine, number, (struct source){.kind = SOURCE_FRAME, .offset = offset});
}

static void restore(struct machine *machine, uint64_t number)
{
	const struct source *initial = source_of(&machine->initial, number);

	if (initial)
		set_source(machine, number, *initial);
}

/* The operations of an expression, which are passed. */
static struct byte_reader read_program(struct byte_reader *reader)
{
	uint64_t length = read_unsigned(reader);
	const uint8_t *bytes = read_bytes(reader, length);

	return bytes ? (struct byte_reader){bytes, bytes + length, false}
	             : (struct byte_reader){.wrong = true};
}

static void set_frame_register(struct machine *machine, uint64_t number, int64_t offset)
{
	machine->state.frame = (struct source){.kind = SOURCE_REGISTER, .number = number, .offset = offset};
}

static int64_t scaled(const struct machine *machine, int64_t units)
{
	int64_t value;

	return __builtin_mul_overflow(units, machine->common->data_unit, &value) ? INT64_MAX : value;
}

/* How the frame's address is found. False: it is another operation. */
static bool frame_operation(struct machine *machine, uint8_t operation, struct byte_reader *reader)
{
	struct source *frame = &machine->state.frame;
	uint64_t number;

	switch (operation) {
	case DW_CFA_def_cfa:
		number = read_unsigned(reader);
		set_frame_register(machine, number, (int64_t)read_unsigned(reader));
		return true;
	case DW_CFA_def_cfa_sf:
		number = read_unsigned(reader);
		set_frame_register(machine, number, scaled(machine, read_signed(reader)));
		return true;
	case DW_CFA_def_cfa_register:
		frame->number = read_unsigned(reader);
		return true;
	case DW_CFA_def_cfa_offset:
		frame->offset = (int64_t)read_unsigned(reader);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		frame->offset = scaled(machine, read_signed(reader));
		return true;
	case DW_CFA_def_cfa_expression:
		*frame = (struct source){.kind = SOURCE_PROGRAM, .program = read_program(reader)};
		return true;
	default:
		return false;
	}
}

/* How a register is found. False: it is another operation. */
static bool register_operation(struct machine *machine, uint8_t operation, struct byte_reader *reader)
{
	uint64_t number;

	switch (operation) {
	case DW_CFA_offset_extended:
		number = read_unsigned(reader);
		set_offset(machine, number, (int64_t)read_unsigned(reader));
		return true;
	case DW_CFA_offset_extended_sf:
		number = read_unsigned(reader);
		set_offset(machine, number, read_signed(reader));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		number = read_unsigned(reader);
		set_offset(machine, number, -(int64_t)(read_unsigned(reader) & INT64_MAX));
		return true;
	case DW_CFA_restore_extended:
		restore(machine, read_unsigned(reader));
		return true;
	case DW_CFA_undefined:
		set_source(machine, read_unsigned(reader), (struct source){.kind = SOURCE_NONE});
		return true;
	case DW_CFA_same_value:
		set_source(machine, read_unsigned(reader), (struct source){.kind = SOURCE_SAME});
		return true;
	case DW_CFA_expression:
		number = read_unsigned(reader);
		set_source(machine, number,
		           (struct source){.kind = SOURCE_PROGRAM, .program = read_program(reader)});
		return true;
	case DW_CFA_val_expression:
		number = read_unsigned(reader);
		read_program(reader);
		set_source(machine, number, (struct source){.kind = SOURCE_OTHER});
		return true;
	case DW_CFA_register:
	case DW_CFA_val_offset:
		number = read_unsigned(reader);
		read_unsigned(reader);
		set_source(machine, number, (struct source){.kind = SOURCE_OTHER});
		return true;
	case DW_CFA_val_offset_sf:
		number = read_unsigned(reader);
		read_signed(reader);
		set_source(machine, number, (struct source){.kind = SOURCE_OTHER});
		return true;
	default:
		return false;
	}
}

/* Reads by how much the address grows. False: it is another operation. */
static bool move_operation(struct machine *machine, uint8_t operation, struct byte_reader *reader,
                           uint64_t *next)
{
	uint64_t units;

	switch (operation) {
	case DW_CFA_advance_loc1:
		units = read_fixed(reader, 1);
		break;
	case DW_CFA_advance_loc2:
		units = read_fixed(reader, 2);
		break;
	case DW_CFA_advance_loc4:
		units = read_fixed(reader, 4);
		break;
	case DW_CFA_set_loc:
		return cfi_table_pointer(machine->table, reader, machine->common->encoding, next);
	default:
		return false;
	}
	*next = machine->at + units * machine->common->code_unit;
	return true;
}

static bool stack_operation(struct machine *machine, uint8_t operation)
{
	if (operation == DW_CFA_remember_state && machine->depth < MAX_REMEMBERED)
		machine->remembered[machine->depth++] = machine->state;
	else if (operation == DW_CFA_restore_state && machine->depth)
		machine->state = machine->remembered[--machine->depth];
	else
		return false;
	return true;
}

/* The other operations; false if it is not known. */
static bool other_operation(uint8_t operation, struct byte_reader *reader)
{
	switch (operation) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* arm64: return addresses are signed from here on, or no longer */
		return true;
	case DW_CFA_GNU_args_size:
		read_unsigned(reader);
		return true;
	default:
		return false;
	}
}

/* Runs a program up to an address. False if it makes no sense. */
static bool run(struct machine *machine, struct byte_reader reader, uint64_t address)
{
	while (byte_reader_left(&reader)) {
		uint8_t operation = (uint8_t)read_fixed(&reader, 1), operand = operation & 0x3f;
		uint64_t next = machine->at;

		if (++machine->operations > MAX_OPERATIONS)
			return false;
		if ((operation & 0xc0) == DW_CFA_advance_loc)
			next += operand * machine->common->code_unit;
		else if ((operation & 0xc0) == DW_CFA_offset)
			set_offset(machine, operand, (int64_t)read_unsigned(&reader));
		else if ((operation & 0xc0) == DW_CFA_restore)
			restore(machine, operand);
		else if (!move_operation(machine, operation, &reader, &next) &&
		         !frame_operation(machine, operation, &reader) &&
		         !register_operation(machine, operation, &reader) &&
		         !stack_operation(machine, operation) && !other_operation(operation, &reader))
			return false;
		if (next > address)
			return !reader.wrong;
		machine->at = next;
	}
	return !reader.wrong;
}

/* ---- as rules ---- */

static bool set_place(struct unwind_place *place, enum unwind_base base, int64_t offset)
{
	if (offset < INT32_MIN || offset > INT32_MAX)
		return false;
	*place = (struct unwind_place){.base = base, .offset = (int32_t)offset};
	return true;
}

static bool register_place(uint64_t number, int64_t offset, struct unwind_place *place)
{
	if (number == REGISTER_SP)
		return set_place(place, UNWIND_SP, offset);
	return number == REGISTER_BP && set_place(place, UNWIND_BP, offset);
}

/* "register + offset" at the start of a program; false if that begins otherwise. */
static bool program_place(struct byte_reader *program, struct unwind_place *place)
{
	uint8_t operation = (uint8_t)read_fixed(program, 1);
	uint64_t number = operation - DW_OP_breg0;

	if (operation == DW_OP_bregx)
		number = read_unsigned(program);
	else if (operation < DW_OP_breg0 || operation > DW_OP_breg31)
		return false;
	return register_place(number, read_signed(program), place) && !program->wrong;
}

/* The linkers of x86-64 describe linkage tables as sp + 8 + ((ip & 15) >= 11) * 8. */
static bool is_linkage(const struct byte_reader *program)
{
	static const uint8_t bytes[] = {DW_OP_breg7, 8,         DW_OP_breg16, 0,
	                                DW_OP_lit15, DW_OP_and, DW_OP_lit11,  DW_OP_ge,
	                                DW_OP_lit3,  DW_OP_shl, DW_OP_plus};

	return byte_reader_left(program) == sizeof(bytes) && !memcmp(program->at, bytes, sizeof(bytes));
}

static bool frame_place(const struct source *frame, struct unwind_place *place)
{
	struct byte_reader program = frame->program;

	if (frame->kind == SOURCE_REGISTER)
		return register_place(frame->number, frame->offset, place);
	if (frame->kind != SOURCE_PROGRAM)
		return false;
	if (is_linkage(&program)) {
		*place = (struct unwind_place){.base = UNWIND_PLT};
		return true;
	}
	if (!program_place(&program, place))
		return false;
	/* Signal frames keep the interrupted stack pointer in memory. */
	place->load = byte_reader_left(&program) == 1 && *program.at == DW_OP_deref;
	return place->load || !byte_reader_left(&program);
}

/* Where the caller's value of a register lies. */
static bool register_saved(const struct source *source, struct unwind_place *place)
{
	struct byte_reader program = source->program;

	switch (source->kind) {
	case SOURCE_NONE:
		*place = (struct unwind_place){.base = UNWIND_END};
		return true;
	case SOURCE_SAME:
		*place = (struct unwind_place){.base = UNWIND_SAME};
		return true;
	case SOURCE_FRAME:
		return set_place(place, UNWIND_CFA, source->offset);
	case SOURCE_PROGRAM:
		return program_place(&program, place) && !byte_reader_left(&program);
	default:
		return false;
	}
}

bool cfi_rule(const struct cfi_table *table, uint64_t address, struct unwind_rule *rule)
{
	struct machine machine = {.table = table};
	struct cfi_entry entry;
	bool good;

	*rule = (struct unwind_rule){0};
	if (!cfi_table_find(table, address, &entry))
		return false;
	machine.common = &entry.common;
	machine.at = entry.start;
	machine.state.frame.kind = SOURCE_OTHER;
	if (!run(&machine, entry.common.program, UINT64_MAX))
		return false;
	machine.initial = machine.state;
	machine.at = entry.start;
	if (!run(&machine, entry.program, address))
		return false;
	rule->signal = entry.common.signal;
	good = frame_place(&machine.state.frame, &rule->frame) &&
	       register_saved(&machine.state.address, &rule->address);
	/* Without the caller's frame pointer one can still go on where it is not needed. */
	if (!register_saved(&machine.state.bp, &rule->bp) || rule->bp.base == UNWIND_END)
		rule->bp = (struct unwind_place){.base = UNWIND_UNKNOWN};
	return good || rule->address.base == UNWIND_END;
}
