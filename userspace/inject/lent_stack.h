/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is written below a borrowed thread's stack pointer, beyond the red zone, where nothing of the program
 * can be: signal frames, as the kernel makes them for a handler. A thread that is set onto rt_sigreturn with
 * one of them gets all its registers, the state of its vector units and its signal mask from it in one step,
 * which needs neither instructions of ours nor anybody who traces.
 *
 *	unmap     munmap(region), then `original`
 *	left      writes the word in the region that says "no thread of the program is in here any more" (the
 *	          kernel writes it, when the thread already is outside), then `original`
 *	original  the system call that it waited in is made again, as the kernel would
 *
 * x86-64 Linux. Pure: numbers in, bytes out.
 */
#ifndef WHYIDLE_INJECT_LENT_STACK_H
#define WHYIDLE_INJECT_LENT_STACK_H

/* Offsets in a frame, for the assembler: the stack pointer points behind the first word at rt_sigreturn. */
#define LENT_FRAME_SP  8
#define LENT_FRAME_RAX 152
#define LENT_FRAME_RIP 176

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LENT_CPU_STATE_BYTES 16384 /* of the vector units; larger ones are refused */

/* arch/x86/include/asm/sigframe.h and uapi/asm/sigcontext.h */
struct lent_frame {
	uint64_t restorer; /* what a call that returns into the frame finds: rt_sigreturn */
	uint64_t flags, link;
	uint64_t alternate_stack, alternate_flags, alternate_bytes;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, cr2;
	uint64_t cpu_state; /* address, a multiple of 64 */
	uint64_t reserved[8];
	uint64_t mask;
};

_Static_assert(offsetof(struct lent_frame, flags) == LENT_FRAME_SP, "stack pointer");
_Static_assert(offsetof(struct lent_frame, rax) == LENT_FRAME_RAX, "rax");
_Static_assert(offsetof(struct lent_frame, rip) == LENT_FRAME_RIP, "rip");
_Static_assert(sizeof(struct lent_frame) == 312, "frame");

struct lent_stack {
	struct lent_frame unmap, left, original;
	uint64_t pad[3];
	unsigned char cpu_state[LENT_CPU_STATE_BYTES]; /* as long as needed; then comes a magic number */
};

_Static_assert(offsetof(struct lent_stack, cpu_state) % 64 == 0, "cpu_state");

struct lent_places {
	uint64_t call;     /* address of "syscall; ret" */
	uint64_t restorer; /* address of "mov $15, %rax; syscall" */
	uint64_t region, region_bytes;
	uint64_t left; /* address of the word */
};

/*
 * Makes the state of the vector units in `state`, as ptrace gives it (NT_X86_XSTATE, `size` bytes), one that
 * rt_sigreturn takes. Returns the bytes to be written, 0 if it has a part that does not go there (AMX in use,
 * or too large).
 */
size_t lent_cpu_state(unsigned char state[LENT_CPU_STATE_BYTES], size_t size);

/*
 * Address for a lent stack of `bytes` below the stack pointer. The caller checks that this is stack.
 */
uint64_t lent_stack_address(uint64_t sp, size_t bytes);

/*
 * Fills in the frames for a stack that will be at `address`. `original` holds the registers and the mask that
 * the thread shall have at last; the rest of it, and the other frames, are filled in.
 */
void lent_stack_fill(struct lent_stack *stack, uint64_t address, const struct lent_places *places);

/* Address of the words to be in rsp at rt_sigreturn. */
#define LENT_SP(address, frame) ((address) + offsetof(struct lent_stack, frame) + LENT_FRAME_SP)

#endif
#endif
