/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What probes on functions of programs share: arguments and stack at an entry.
 */
#ifndef WHYIDLE_BPF_CALL_H
#define WHYIDLE_BPF_CALL_H

#include "common.bpf.h"

/* RETURN_POPS: bytes that a return takes off the stack. CALL_NEST_NS: a call inside another one follows
 * within this time, where the outer one's return is not probed. */
#if defined(__TARGET_ARCH_x86)
#define RETURN_POPS  8
#define CALL_NEST_NS 100000000
#else
#define RETURN_POPS  0
#define CALL_NEST_NS 20000 /* return addresses are in registers: only the time tells */
#endif

#if defined(__TARGET_ARCH_x86)
#define REGISTER_ARGUMENTS 6
#else
#define REGISTER_ARGUMENTS 8
#endif

/* Kept apart from its like: merged into one, they would read at an address that the verifier does not follow.
 */
#define READ_REGISTER(number, expression)                                                                    \
	case number:                                                                                         \
		value = (expression);                                                                        \
		asm volatile("" : "+r"(value) : "i"(number));                                                \
		break

static __always_inline __u64 register_argument(struct pt_regs *context, __u32 number)
{
	__u64 value = 0;

	switch (number) {
		READ_REGISTER(0, PT_REGS_PARM1(context));
		READ_REGISTER(1, PT_REGS_PARM2(context));
		READ_REGISTER(2, PT_REGS_PARM3(context));
		READ_REGISTER(3, PT_REGS_PARM4(context));
		READ_REGISTER(4, PT_REGS_PARM5(context));
#if defined(__TARGET_ARCH_x86)
		READ_REGISTER(5, context->r9);
#else
		READ_REGISTER(5, ((struct user_pt_regs *)context)->regs[5]);
		READ_REGISTER(6, ((struct user_pt_regs *)context)->regs[6]);
		READ_REGISTER(7, ((struct user_pt_regs *)context)->regs[7]);
#endif
	}
	return value;
}

/* Reads an argument at the entry of a function. What cannot be read is not known. */
static __always_inline bool argument_read(struct pt_regs *context, __u32 place, __u64 *value)
{
	__u64 first = PT_REGS_PARM1(context), stack = PT_REGS_SP(context), address;

	asm volatile("" : "+r"(first), "+r"(stack));
	if (place == CALL_PLACE_NONE)
		return false;
	if (place >= CALL_PLACE_FIELD) {
		address = first + place - CALL_PLACE_FIELD;
	} else {
		place -= CALL_PLACE_ARGUMENT;
		if (place < REGISTER_ARGUMENTS) {
			*value = register_argument(context, place);
			return true;
		}
		address = stack + RETURN_POPS + 8 * (place - REGISTER_ARGUMENTS);
	}
	return !bpf_probe_read_user(value, sizeof(*value), (void *)address);
}

static __always_inline __u64 hash_mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio, as in Knuth's hash */
	return hash ^ hash >> 29;
}

/* The return address that an entry at `stack` found there; 0 where it is not kept in memory. */
static __always_inline __u64 return_address(__u64 stack)
{
	__u64 address = 0;

	if (RETURN_POPS)
		bpf_probe_read_user(&address, sizeof(address), (void *)stack);
	return address;
}

/* Read at once: put off, it would be read at an address that the verifier does not follow. */
static __always_inline __u64 stack_pointer(struct pt_regs *context)
{
	__u64 stack = PT_REGS_SP(context);

	asm volatile("" : "+r"(stack));
	return stack;
}

#endif
