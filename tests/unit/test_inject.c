/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a thread may be borrowed, and what is written below its stack. */
#include <criterion/criterion.h>
#include <string.h>

#include "inject/lent_stack.h"
#include "inject/payload.h"
#include "inject/safe_point.h"

#define NR_POLL            7
#define NR_NANOSLEEP       35
#define NR_FUTEX           202
#define NR_CLOCK_NANOSLEEP 230
#define NR_EPOLL_WAIT      232

Test(inject, only_waits_that_can_be_made_again)
{
	uint64_t forever[6] = {1, 1, (uint32_t)-1}, a_while[6] = {1, 1, 25}, absolute[6] = {1, 1},
	         relative[6] = {1, 0};
	uint64_t bitset[6] = {0, 128 | 256 | 9}, lock[6] = {0, 128};

	cr_assert(safe_point_waits(NR_POLL, forever, false));
	cr_assert_not(safe_point_waits(NR_POLL, a_while, false));
	cr_assert(safe_point_waits(NR_CLOCK_NANOSLEEP, absolute, false));
	cr_assert_not(safe_point_waits(NR_CLOCK_NANOSLEEP, relative, false));
	cr_assert_not(safe_point_waits(NR_NANOSLEEP, forever, false));
	cr_assert(safe_point_waits(NR_FUTEX, bitset, false));
	cr_assert_not(safe_point_waits(NR_FUTEX, lock, false), "a lock of the allocator");
	cr_assert_not(safe_point_waits(NR_EPOLL_WAIT, forever, false));
	cr_assert(safe_point_waits(0, forever, true) && !safe_point_waits(0, forever, false));
}

Test(inject, how_a_wait_goes_on)
{
	struct safe_return back;

	cr_assert(safe_point_return(NR_FUTEX, -516, &back));
	cr_assert(back.number == NR_FUTEX && back.restart == PAYLOAD_RESTART_NEVER);
	cr_assert(safe_point_return(0, -512, &back) && back.restart == PAYLOAD_RESTART_HANDLER);
	cr_assert(safe_point_return(0, -513, &back) && back.restart == PAYLOAD_RESTART_ALWAYS);
	cr_assert_not(safe_point_return(0, -4, &back), "it has ended");
	cr_assert_not(safe_point_return(0, 1, &back));
}

#ifdef __x86_64__
static size_t make_state(unsigned char *state, uint64_t features, uint64_t in_use, size_t size)
{
	memset(state, 0, LENT_CPU_STATE_BYTES);
	memcpy(state + 464, &features, sizeof(features));
	memcpy(state + 512, &in_use, sizeof(in_use));
	return lent_cpu_state(state, size);
}

Test(inject, state_of_the_vector_units)
{
	static unsigned char state[LENT_CPU_STATE_BYTES];
	uint32_t head[2], end;
	uint64_t features;

	cr_assert_eq(make_state(state, 3, 3, 576), 576 + 4);
	memcpy(head, state + 464, sizeof(head));
	memcpy(&features, state + 472, sizeof(features));
	memcpy(&end, state + 576, sizeof(end));
	cr_assert(head[0] == 0x46505853 && head[1] == 580 && features == 3 && end == 0x46505845);
	cr_assert_eq(make_state(state, 3 | 3ull << 17, 3, 576), 576 + 4, "AMX is there, and not in use");
	memcpy(&features, state + 472, sizeof(features));
	cr_assert_eq(features, 3);
	cr_assert_eq(make_state(state, 3 | 3ull << 17, 3 | 1ull << 18, 11008), 0, "AMX in use");
	cr_assert_eq(make_state(state, 3, 3, 512), 0, "too short");
}
#endif

Test(inject, frames_lead_back)
{
	const struct lent_places places = {
	    .call = 0x1000, .restorer = 0x2000, .region = 0x300000, .region_bytes = 0x8000, .left = 0x300438};
	static struct lent_stack stack;
	const uint64_t sp = 0x7ffd12345678, address = lent_stack_address(sp, 4000);

	cr_assert(address % 64 == 0 && address + 4000 <= sp - 128, "the red zone belongs to the program");
	stack.original.rip = 0x4242;
	stack.original.rax = 202;
	stack.original.mask = 5;
	lent_stack_fill(&stack, address, &places);
	cr_assert(stack.unmap.rip == 0x1000 && stack.unmap.rax == 11 && stack.unmap.rdi == 0x300000 &&
	          stack.unmap.rsi == 0x8000);
	cr_assert(stack.left.rip == 0x1000 && stack.left.rax == 14 && stack.left.rsi == 0 &&
	          stack.left.rdx == 0x300438 && stack.left.r10 == 8);
	/* What they return to is the restorer, with the original frame right behind. */
	cr_assert(stack.unmap.rsp + LENT_FRAME_SP == LENT_SP(address, original) &&
	          stack.left.rsp == stack.unmap.rsp);
	cr_assert(stack.original.restorer == 0x2000 && stack.unmap.restorer == 0x2000);
	cr_assert(stack.original.rip == 0x4242 && stack.original.rax == 202 && stack.original.mask == 5);
	cr_assert(stack.original.cpu_state % 64 == 0 && stack.unmap.mask == ~0ULL);
}
