/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lent to the target: payload.h. Position independent; it writes nowhere but into its region, whose control
 * page is in rbx, and into the frames below the borrowed thread's stack. x86-64 only; elsewhere the symbols are there and empty.
 */
#include "cupti_bridge/attach.h"
#include "userspace/inject/lent_stack.h"
#include "userspace/inject/payload.h"

	.section .rodata
	.balign 16
	.globl payload_start, payload_borrow, payload_constants
payload_start:

#ifdef __x86_64__
#define CONSTANT(name) (payload_constants + PAYLOAD_AT_##name)(%rip)
#define FIELD(name) ATTACH_AT_##name(%rbx)

#define NR_WRITE 1
#define NR_MPROTECT 10
#define NR_SIGACTION 13
#define NR_MADVISE 28
#define NR_DUP2 33
#define NR_NANOSLEEP 35
#define NR_CLOSE 3
#define NR_SIGPENDING 127
#define NR_GETTID 186
#define NR_FUTEX 202
#define NR_MEMFD_CREATE 319
#define NR_CLOSE_RANGE 436

#define SA_RESTART 0x10000000
#define EINTR 4
#define PROT_READ_WRITE 3
#define PROT_READ_EXEC 5
#define MADV_DONTFORK 10
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129
#define CLOSE_RANGE_UNSHARE 2
#define RTLD_NOW 2

/*
 * On the borrowed thread, with the control page in rbx, a stack in the region, and all signals blocked. What
 * has to be as before is in the frames. Every register is free for use.
 */
payload_borrow:
	cld
	/* Memory that can be written and run is needed for the moment only in which it was filled. */
	mov	$NR_MPROTECT, %eax
	mov	%rbx, %rdi
	mov	$ATTACH_CODE, %esi
	mov	$PROT_READ_WRITE, %edx
	syscall
	mov	$NR_MPROTECT, %eax
	lea	ATTACH_CODE(%rbx), %rdi
	mov	$ATTACH_CODE_BYTES, %esi
	mov	$PROT_READ_EXEC, %edx
	syscall
	mov	$NR_MPROTECT, %eax
	lea	ATTACH_CODE + ATTACH_CODE_BYTES(%rbx), %rdi
	mov	FIELD(BYTES), %rsi
	sub	$ATTACH_CODE + ATTACH_CODE_BYTES, %rsi
	mov	$PROT_READ_WRITE, %edx
	syscall
	mov	$NR_MADVISE, %eax	/* forked children shall not have it */
	mov	%rbx, %rdi
	mov	FIELD(BYTES), %rsi
	mov	$MADV_DONTFORK, %edx
	syscall
	movl	$ATTACH_STARTED, FIELD(STATE)

	/* What C functions may change, but for the registers: errno. */
	call	*CONSTANT(ERRNO)
	mov	%rax, %r14
	mov	(%r14), %r15d
	mov	CONSTANT(SP_LEFT), %r12
	lea	FIELD(THREAD), %rdi
	xor	%esi, %esi
	lea	payload_worker(%rip), %rdx
	mov	%rbx, %rcx
	call	*CONSTANT(PTHREAD_CREATE)
	test	%eax, %eax
	jz	1f
	mov	%eax, FIELD(ERROR)
	movl	$ATTACH_FAILED_THREAD, FIELD(STATE)
	mov	CONSTANT(SP_UNMAP), %r12	/* nobody else will */
1:	mov	%r15d, (%r14)

	/* Signals that came meanwhile, and are about to be handled: would they have ended the system call? */
	cmpl	$PAYLOAD_RESTART_ALWAYS, CONSTANT(RESTART)
	je	4f
	mov	$NR_SIGPENDING, %eax
	lea	FIELD(SCRATCH), %rdi
	mov	$8, %esi
	syscall
	mov	CONSTANT(MASK), %r13
	not	%r13
	and	FIELD(SCRATCH), %r13
2:	test	%r13, %r13
	jz	4f
	bsf	%r13, %rdi
	lea	-1(%r13), %rax
	and	%rax, %r13
	inc	%edi
	mov	$NR_SIGACTION, %eax
	xor	%esi, %esi
	lea	FIELD(SCRATCH), %rdx
	mov	$8, %r10d
	syscall
	test	%rax, %rax
	jnz	2b
	cmpq	$1, FIELD(SCRATCH)	/* SIG_DFL, SIG_IGN: no handler */
	jbe	2b
	cmpl	$PAYLOAD_RESTART_NEVER, CONSTANT(RESTART)
	je	3f
	testl	$SA_RESTART, ATTACH_AT_SCRATCH + 8(%rbx)
	jnz	2b
3:	mov	CONSTANT(SP_ORIGINAL), %rax	/* it returns, with EINTR */
	movq	$-EINTR, LENT_FRAME_RAX - LENT_FRAME_SP(%rax)
	mov	CONSTANT(RIP_AFTER), %rcx
	mov	%rcx, LENT_FRAME_RIP - LENT_FRAME_SP(%rax)
4:
	movl	$1, FIELD(BORROWED)
	mov	CONSTANT(RESTORER), %rax
	mov	%r12, %rsp
	jmp	*%rax

/*
 * The first thread of the bridge: starts the second, waits for the library, works in it, and unmaps the
 * region in the end. That is safe once the second thread has ended (the C library has that from the kernel)
 * and the borrowed thread is out of the region (the kernel has written `left`).
 */
payload_worker:
	push	%rbx
	mov	%rdi, %rbx
	call	detach
	mov	$NR_GETTID, %eax
	syscall
	mov	%eax, FIELD(WORK_TID)
	lea	FIELD(LINK_THREAD), %rdi
	xor	%esi, %esi
	lea	payload_link(%rip), %rdx
	mov	%rbx, %rcx
	call	*CONSTANT(PTHREAD_CREATE)
	test	%eax, %eax
	jz	1f
	mov	%eax, FIELD(ERROR)
	movl	$ATTACH_FAILED_THREAD, FIELD(STATE)
	call	linger
	jmp	4f
1:	mov	FIELD(STATE), %edx
	cmp	$ATTACH_LOADED, %edx
	jae	2f
	mov	$NR_FUTEX, %eax
	lea	FIELD(STATE), %rdi
	mov	$FUTEX_WAIT_PRIVATE, %esi
	xor	%r10d, %r10d
	syscall
	jmp	1b
2:	cmp	$ATTACH_FAILED, %edx
	jae	3f
	mov	%rbx, %rdi
	call	*FIELD(WORK_ENTRY)
3:	mov	FIELD(LINK_THREAD), %rdi
	xor	%esi, %esi
	call	*CONSTANT(PTHREAD_JOIN)
4:	cmpq	$0, FIELD(LEFT)
	jne	5f
	mov	$NR_NANOSLEEP, %eax
	lea	millisecond(%rip), %rdi
	xor	%esi, %esi
	syscall
	jmp	4b
5:	mov	%rbx, %rdi
	mov	FIELD(BYTES), %rsi
	mov	CONSTANT(MUNMAP), %rax
	pop	%rbx
	jmp	*%rax			/* munmap returns to where this thread ends */

/* Called, with the stack as a function has it. */
detach:
	push	%rax
	call	*CONSTANT(PTHREAD_SELF)
	mov	%rax, %rdi
	call	*CONSTANT(PTHREAD_DETACH)
	pop	%rax
	ret

/* The second thread: has a descriptor table of its own, loads the library, and keeps the link. */
payload_link:
	push	%rbx
	mov	%rdi, %rbx
	mov	$NR_CLOSE_RANGE, %eax
	xor	%edi, %edi
	mov	$-1, %esi
	mov	$CLOSE_RANGE_UNSHARE, %edx
	syscall
	mov	$ATTACH_FAILED_FILES, %edx
	test	%eax, %eax
	js	fail
	mov	$NR_GETTID, %eax
	syscall
	mov	%eax, FIELD(LINK_TID)
	movl	$ATTACH_WAITING, FIELD(STATE)

	mov	FIELD(PATIENCE), %eax
	mov	%eax, ATTACH_AT_SCRATCH + 48(%rbx)
1:	cmpl	$0, FIELD(GO)
	jne	2f
	mov	$NR_NANOSLEEP, %eax
	lea	millisecond(%rip), %rdi
	xor	%esi, %esi
	syscall
	decl	ATTACH_AT_SCRATCH + 48(%rbx)
	jnz	1b
	mov	$ATTACH_FAILED_PATIENCE, %edx
	xor	%eax, %eax
	jmp	fail
2:	cmpq	$0, FIELD(LINK_ENTRY)	/* it is loaded already */
	jne	loaded

	mov	$NR_MEMFD_CREATE, %eax
	lea	library_name(%rip), %rdi
	mov	FIELD(FD_FLAGS), %esi
	syscall
	mov	$ATTACH_FAILED_MEMFD, %edx
	test	%eax, %eax
	js	fail
	mov	%eax, %edi
	mov	%eax, ATTACH_AT_SCRATCH + 48(%rbx)
	mov	FIELD(FD_NUMBER), %esi
	mov	$NR_DUP2, %eax
	syscall
	mov	$ATTACH_FAILED_MEMFD, %edx
	test	%eax, %eax
	js	fail
	mov	ATTACH_AT_SCRATCH + 48(%rbx), %edi
	mov	$NR_CLOSE, %eax
	syscall
	lea	ATTACH_BLOB(%rbx), %rsi
	mov	FIELD(BLOB_BYTES), %rdx
3:	mov	FIELD(FD_NUMBER), %edi
	mov	$NR_WRITE, %eax
	syscall
	test	%rax, %rax
	jle	write_failed
	add	%rax, %rsi
	sub	%rax, %rdx
	jnz	3b

	lea	FIELD(PATH), %rdi
	mov	$RTLD_NOW, %esi
	call	*CONSTANT(DLOPEN)
	test	%rax, %rax
	jz	load_failed
	mov	%rax, ATTACH_AT_SCRATCH + 48(%rbx)
	mov	$NR_CLOSE, %eax
	mov	FIELD(FD_NUMBER), %edi
	syscall
	mov	ATTACH_AT_SCRATCH + 48(%rbx), %rdi
	lea	work_name(%rip), %rsi
	call	*CONSTANT(DLSYM)
	mov	%rax, FIELD(WORK_ENTRY)
	mov	ATTACH_AT_SCRATCH + 48(%rbx), %rdi
	lea	link_name(%rip), %rsi
	call	*CONSTANT(DLSYM)
	mov	%rax, FIELD(LINK_ENTRY)
	test	%rax, %rax
	mov	$0, %eax
	mov	$ATTACH_FAILED_DLSYM, %edx
	jz	fail
	cmpq	$0, FIELD(WORK_ENTRY)
	jz	fail

loaded:
	movl	$ATTACH_LOADED, FIELD(STATE)
	call	wake
	mov	%rbx, %rdi
	call	*FIELD(LINK_ENTRY)
	jmp	end

write_failed:
	mov	$ATTACH_FAILED_WRITE, %edx
	jmp	fail
load_failed:
	call	*CONSTANT(DLERROR)
	test	%rax, %rax
	jz	5f
	mov	%rax, %rsi
	lea	FIELD(TEXT), %rdi
	mov	$ATTACH_TEXT_BYTES - 1, %ecx
4:	mov	(%rsi), %al
	mov	%al, (%rdi)
	inc	%rsi
	inc	%rdi
	test	%al, %al
	jz	5f
	dec	%ecx
	jnz	4b
5:	mov	$ATTACH_FAILED_DLOPEN, %edx
	xor	%eax, %eax
/* eax: a negative errno or 0, edx: state. */
fail:
	neg	%eax
	mov	%eax, FIELD(ERROR)
	mov	%edx, FIELD(STATE)
	call	wake
	call	linger
end:
	xor	%eax, %eax
	pop	%rbx
	ret

/* A failure stays to be read for a while. */
linger:
	movl	$ATTACH_LINGER_MS, ATTACH_AT_SCRATCH + 48(%rbx)
1:	cmpl	$ATTACH_GO_SEEN, FIELD(GO)
	je	2f
	mov	$NR_NANOSLEEP, %eax
	lea	millisecond(%rip), %rdi
	xor	%esi, %esi
	syscall
	decl	ATTACH_AT_SCRATCH + 48(%rbx)
	jnz	1b
2:	ret

wake:
	mov	$NR_FUTEX, %eax
	lea	FIELD(STATE), %rdi
	mov	$FUTEX_WAKE_PRIVATE, %esi
	mov	$64, %edx
	syscall
	ret

	.balign 8
millisecond:
	.quad	0, 1000000
library_name:
	.asciz	"whyidle-bridge"
link_name:
	.asciz	ATTACH_LINK_NAME
work_name:
	.asciz	ATTACH_WORK_NAME
	.balign 8
#else
payload_borrow:
#endif
payload_constants:
	.section .note.GNU-stack, "", %progbits
