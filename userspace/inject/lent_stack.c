// SPDX-License-Identifier: GPL-2.0-only
#include "inject/lent_stack.h"

#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* uapi/asm/sigcontext.h */
#define SW_BYTES          464 /* of the legacy area: for software */
#define XSTATE_HEADER     512
#define LEGACY_AND_HEADER 576
#define FP_XSTATE_MAGIC1  0x46505853u
#define FP_XSTATE_MAGIC2  0x46505845u
#define FEATURES_AMX      (3ULL << 17) /* only who asked for it may have it in a frame */

#define UC_FP_XSTATE         1
#define UC_SIGCONTEXT_SS     2
#define UC_STRICT_RESTORE_SS 4
/* No valid flags: the kernel leaves the alternate stack as it is, for it ignores that error. */
#define ALTERNATE_UNCHANGED 0x7fff

#define RED_ZONE       128
#define USER_CS        0x33
#define USER_SS        0x2b
#define FLAGS          0x202 /* interrupts on, nothing else */
#define NR_SIGPROCMASK 14
#define NR_MUNMAP      11

struct software_bytes {
	uint32_t magic, extended_bytes;
	uint64_t features;
	uint32_t state_bytes, pad;
};

/* Bytes up to the end of the last part of the state, in the form that is not compacted. */
static size_t state_bytes(uint64_t features)
{
	size_t end = LEGACY_AND_HEADER;

#ifdef __x86_64__
	for (unsigned int i = 2; i < 63; i++) {
		unsigned int size, offset, c, d;

		if (!(features >> i & 1) || !__get_cpuid_count(0xd, i, &size, &offset, &c, &d))
			continue;
		if (offset + size > end)
			end = offset + size;
	}
#else
	(void)features;
#endif
	return end;
}

size_t lent_cpu_state(unsigned char state[LENT_CPU_STATE_BYTES], size_t size)
{
	struct software_bytes software = {.magic = FP_XSTATE_MAGIC1};
	const uint32_t end = FP_XSTATE_MAGIC2;
	uint64_t features, in_use;
	size_t bytes;

	if (size < LEGACY_AND_HEADER)
		return 0;
	memcpy(&features, state + SW_BYTES, sizeof(features));
	memcpy(&in_use, state + XSTATE_HEADER, sizeof(in_use));
	if (in_use & FEATURES_AMX)
		return 0;
	features &= ~FEATURES_AMX;
	bytes = state_bytes(features);
	if (bytes > size || bytes + sizeof(end) > LENT_CPU_STATE_BYTES)
		return 0;
	software.features = features;
	software.state_bytes = (uint32_t)bytes;
	software.extended_bytes = (uint32_t)(bytes + sizeof(end));
	memset(state + SW_BYTES, 0, 512 - SW_BYTES);
	memcpy(state + SW_BYTES, &software, sizeof(software));
	memcpy(state + bytes, &end, sizeof(end));
	return bytes + sizeof(end);
}

uint64_t lent_stack_address(uint64_t sp, size_t bytes)
{
	return (sp - RED_ZONE - bytes) & ~(uint64_t)63;
}

static void complete(struct lent_frame *frame, uint64_t address, const struct lent_places *places)
{
	frame->restorer = places->restorer;
	frame->flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	frame->alternate_flags = ALTERNATE_UNCHANGED;
	frame->cs = USER_CS;
	frame->ss = USER_SS;
	frame->cpu_state = address + offsetof(struct lent_stack, cpu_state);
}

/* A system call between two frames; the next one is `original`. */
static void make_call(struct lent_frame *frame, uint64_t address, const struct lent_places *places)
{
	complete(frame, address, places);
	frame->eflags = FLAGS;
	frame->rip = places->call;
	frame->rsp = address + offsetof(struct lent_stack, original);
	frame->mask = ~(uint64_t)0;
}

void lent_stack_fill(struct lent_stack *stack, uint64_t address, const struct lent_places *places)
{
	stack->unmap =
	    (struct lent_frame){.rax = NR_MUNMAP, .rdi = places->region, .rsi = places->region_bytes};
	make_call(&stack->unmap, address, places);
	/* SIG_BLOCK of nothing: all that it does is to write down the mask, in which everything is blocked.
	 */
	stack->left = (struct lent_frame){.rax = NR_SIGPROCMASK, .rdx = places->left, .r10 = 8};
	make_call(&stack->left, address, places);
	complete(&stack->original, address, places);
}
