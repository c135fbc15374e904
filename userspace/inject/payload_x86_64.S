/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lent to the target: payload.h. Position independent; it writes nowhere but into its region, whose control
 * page is in rbx. x86-64 only; elsewhere the symbols are there and empty.
 */
#include "cupti_bridge/attach.h"
#include "userspace/inject/payload.h"

	.section .rodata
	.balign 16
	.globl payload_start, payload_borrow, payload_constants
payload_start:

#ifdef __x86_64__
#define CONSTANT(name) (payload_constants + PAYLOAD_AT_##name)(%rip)
#define FIELD(name) ATTACH_AT_##name(%rbx)

#define NR_WRITE 1
#define NR_MMAP 9
#define NR_MUNMAP 11
#define NR_SIGACTION 13
#define NR_SIGPROCMASK 14
#define NR_MADVISE 28
#define NR_DUP2 33
#define NR_NANOSLEEP 35
#define NR_CLOSE 3
#define NR_SIGPENDING 127
#define NR_GETTID 186
#define NR_FUTEX 202
#define NR_MEMFD_CREATE 319
#define NR_CLOSE_RANGE 436

#define SIG_BLOCK 0
#define SIG_SETMASK 2
#define SA_RESTART 0x10000000
#define EINTR 4
#define PROT_READ_WRITE 3
#define MAP_FLAGS 0x104022 /* PRIVATE | ANONYMOUS | NORESERVE | FIXED_NOREPLACE */
#define MADV_DONTFORK 10
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129
#define CLOSE_RANGE_UNSHARE 2
#define RTLD_NOW 2

/*
 * On the borrowed thread. Nothing is saved: all that has to be as before is in the constants. Every register
 * is free for use, the stack is not touched.
 */
payload_borrow:
	/* No signals from here on. (The tracer has blocked them already, if it lived long enough.) */
	mov	$NR_SIGPROCMASK, %eax
	xor	%edi, %edi
	lea	all_signals(%rip), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	cld
	xor	%r12d, %r12d		/* 1: the system call shall fail with EINTR */

	/* The region, at the address that the collector knows, or not at all. */
	mov	$NR_MMAP, %eax
	mov	CONSTANT(REGION), %rdi
	mov	CONSTANT(REGION_BYTES), %rsi
	mov	$PROT_READ_WRITE, %edx
	mov	$MAP_FLAGS, %r10d
	mov	$-1, %r8
	xor	%r9d, %r9d
	syscall
	cmp	CONSTANT(REGION), %rax
	jne	go_back
	mov	%rax, %rbx
	mov	$NR_MADVISE, %eax	/* forked children shall not have it */
	mov	%rbx, %rdi
	mov	CONSTANT(REGION_BYTES), %rsi
	mov	$MADV_DONTFORK, %edx
	syscall
	mov	CONSTANT(REGION_BYTES), %rax
	mov	%rax, FIELD(BYTES)
	movl	$2, FIELD(USERS)	/* this thread and the worker */
	movl	$ATTACH_STARTED, FIELD(STATE)

	/* What C functions may change: the state of the vector units, and errno. */
	lea	ATTACH_STACK_END(%rbx), %rsp
	xor	%ebp, %ebp
	mov	$-1, %eax
	mov	$-1, %edx
	xsave64	ATTACH_CPU_STATE(%rbx)
	call	*CONSTANT(ERRNO)
	mov	%rax, %r14
	mov	(%r14), %r15d

	lea	FIELD(THREAD), %rdi
	xor	%esi, %esi
	lea	payload_worker(%rip), %rdx
	mov	%rbx, %rcx
	call	*CONSTANT(PTHREAD_CREATE)
	test	%eax, %eax
	jz	1f
	mov	%eax, FIELD(ERROR)
	movl	$ATTACH_FAILED_THREAD, FIELD(STATE)
	lock decl FIELD(USERS)
1:	mov	%r15d, (%r14)
	mov	$-1, %eax
	mov	$-1, %edx
	xrstor64 ATTACH_CPU_STATE(%rbx)

	/* Signals that came meanwhile, and are about to be handled: would they have ended the system call? */
	cmpl	$PAYLOAD_RESTART_ALWAYS, CONSTANT(RESTART)
	je	3f
	mov	$NR_SIGPENDING, %eax
	lea	FIELD(SCRATCH), %rdi
	mov	$8, %esi
	syscall
	mov	CONSTANT(MASK), %r13
	not	%r13
	and	FIELD(SCRATCH), %r13
2:	test	%r13, %r13
	jz	3f
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
	mov	$1, %r12d
	cmpl	$PAYLOAD_RESTART_NEVER, CONSTANT(RESTART)
	je	3f
	testl	$SA_RESTART, ATTACH_AT_SCRATCH + 8(%rbx)
	jz	3f
	xor	%r12d, %r12d
	jmp	2b
3:
	movl	$1, FIELD(BORROWED)
	lock decl FIELD(USERS)
	jnz	go_back
	mov	$NR_MUNMAP, %eax
	mov	%rbx, %rdi
	mov	CONSTANT(REGION_BYTES), %rsi
	syscall

go_back:
	mov	$NR_SIGPROCMASK, %eax
	mov	$SIG_SETMASK, %edi
	lea	CONSTANT(MASK), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	mov	CONSTANT(RSP), %rsp
	lea	-128(%rsp), %rsp	/* the red zone */
	mov	CONSTANT(RBX), %rbx
	mov	CONSTANT(RBP), %rbp
	mov	CONSTANT(R13), %r13
	mov	CONSTANT(R14), %r14
	mov	CONSTANT(R15), %r15
	mov	CONSTANT(RDI), %rdi
	mov	CONSTANT(RSI), %rsi
	mov	CONSTANT(RDX), %rdx
	mov	CONSTANT(R8), %r8
	mov	CONSTANT(R9), %r9
	mov	CONSTANT(R10), %r10
	mov	CONSTANT(FLAGS), %r11
	mov	CONSTANT(RIP_AFTER), %rcx	/* as behind a system call */
	test	%r12d, %r12d
	mov	CONSTANT(R12), %r12
	jnz	interrupted
	push	%r11
	popfq
	lea	128(%rsp), %rsp
	mov	CONSTANT(RAX), %rax
	jmp	*CONSTANT(RIP)
interrupted:
	push	%r11
	popfq
	lea	128(%rsp), %rsp
	mov	$-EINTR, %rax
	jmp	*CONSTANT(RIP_AFTER)

/* The first thread of the bridge: starts the second, waits for the library, and works in it. */
payload_worker:
	push	%rbx
	mov	%rdi, %rbx
	call	detach
	mov	$NR_GETTID, %eax
	syscall
	mov	%eax, FIELD(WORK_TID)
	lock incl FIELD(USERS)
	lea	FIELD(THREAD), %rdi
	xor	%esi, %esi
	lea	payload_link(%rip), %rdx
	mov	%rbx, %rcx
	call	*CONSTANT(PTHREAD_CREATE)
	test	%eax, %eax
	jz	1f
	lock decl FIELD(USERS)
	mov	%eax, FIELD(ERROR)
	movl	$ATTACH_FAILED_THREAD, FIELD(STATE)
	call	linger
	jmp	leave
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
	jae	leave
	mov	%rbx, %rdi
	call	*FIELD(WORK_ENTRY)

/* Both threads: leaves the region, which the last one unmaps, and ends the thread. */
leave:
	mov	FIELD(BYTES), %rsi
	lock decl FIELD(USERS)
	jnz	1f
	mov	$NR_MUNMAP, %eax
	mov	%rbx, %rdi
	syscall
1:	xor	%eax, %eax
	pop	%rbx
	ret

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
	call	detach
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

	movl	$ATTACH_PATIENCE_MS, ATTACH_AT_SCRATCH + 48(%rbx)
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
	jmp	leave

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
	jmp	leave

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
all_signals:
	.quad	-1
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
