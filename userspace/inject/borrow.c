// SPDX-License-Identifier: GPL-2.0-only
#include "inject/borrow.h"

#ifdef __x86_64__

#include <elf.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/safe_point.h"

#define STOP_TIMEOUT_NS 300000000ULL
#define WAIT_STEP_NS    50000
#define EVENT_STOP      128 /* PTRACE_EVENT_STOP, which <sys/ptrace.h> and <linux/ptrace.h> both have */
#define MAX_STACK       (16u << 20) /* bytes of a stack that are looked through */
#define STACK_CHUNK     65536
#define TRAP_FLAG       0x100

/* What sigreturn looks like in every C library: mov $15, %rax; syscall. */
static const unsigned char restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
/* The same through eax, as some others have it. */
static const unsigned char short_restorer[] = {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

static bool read_memory(const struct borrow *borrow, uint64_t address, void *to, size_t size)
{
	return pread(borrow->memory, to, size, (off_t)address) == (ssize_t)size;
}

static bool write_memory(const struct borrow *borrow, uint64_t address, const void *from, size_t size)
{
	return pwrite(borrow->memory, from, size, (off_t)address) == (ssize_t)size;
}

static bool in_c_library(const struct borrow *borrow, uint64_t pc)
{
	const struct target_mapping *mapping = target_maps_find(borrow->maps, pc);

	for (size_t i = 0; mapping && mapping->executable && i < 2; i++)
		if (borrow->c_library[i].inode && mapping->inode == borrow->c_library[i].inode &&
		    mapping->device == borrow->c_library[i].device)
			return true;
	return false;
}

static bool shares_files(const struct borrow *borrow, uint32_t tid)
{
	return borrow->pid == tid || syscall(SYS_kcmp, borrow->pid, tid, KCMP_FILES, 0, 0) <= 0;
}

bool borrow_is_candidate(const struct borrow *borrow, uint32_t tid, uint32_t *rank)
{
	struct target_status status;
	struct target_wait wait;
	int policy;

	if (!target_wait_read(borrow->pid, tid, &wait) ||
	    !safe_point_waits(wait.number, wait.arguments,
	                      wait.number == 0 && target_fd_is_pipe(borrow->pid, wait.arguments[0])) ||
	    !in_c_library(borrow, wait.pc) || !target_status_read(borrow->pid, tid, &status) ||
	    status.state != 'S' || status.tracer || status.shadow_stack)
		return false;
	/* An allocator's own thread may wait with locks of the allocator; ours have their own descriptors. */
	if (!strcmp(status.name, "jemalloc_bg_thd") || !strcmp(status.name, "whyidle") ||
	    !shares_files(borrow, tid))
		return false;
	policy = sched_getscheduler((pid_t)tid); /* threads made there inherit it */
	if (policy != SCHED_OTHER && policy != SCHED_BATCH)
		return false;
	if (!(status.caught & ~status.blocked))
		*rank = 0; /* no signal handler can run on it */
	else
		*rank = tid == borrow->pid ? 2 : 1;
	return true;
}

/* Waits until the thread has stopped. Returns 1 with *status, 0 if it has ended, -ETIMEDOUT. */
static int wait_for_stop(uint32_t tid, int *status)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + STOP_TIMEOUT_NS;
	const struct timespec step = {.tv_nsec = WAIT_STEP_NS};

	for (;;) {
		pid_t got = waitpid((pid_t)tid, status, __WALL | WNOHANG);

		if (got == (pid_t)tid)
			return WIFSTOPPED(*status) ? 1 : 0;
		if (got < 0 && errno != EINTR)
			return 0;
		if (clock_ns(CLOCK_MONOTONIC) > deadline)
			return -ETIMEDOUT;
		nanosleep(&step, NULL);
	}
}

static bool is_restorer(const struct borrow *borrow, uint64_t address)
{
	unsigned char bytes[sizeof(restorer)];

	return read_memory(borrow, address, bytes, sizeof(bytes)) &&
	       (!memcmp(bytes, restorer, sizeof(restorer)) ||
	        !memcmp(bytes, short_restorer, sizeof(short_restorer)));
}

/*
 * True if a signal handler may be running on the thread: it could have come while the thread was in the
 * allocator, and wait itself. Looks for return addresses into sigreturn on the whole stack: what is left
 * there of older calls may be taken for one, none that is there is missed.
 */
static bool may_be_in_handler(const struct borrow *borrow, uint64_t sp)
{
	const struct target_mapping *stack = target_maps_find(borrow->maps, sp), *code = NULL;
	uint64_t *words, end, last = 0;
	bool found = false;

	if (!stack || !stack->writable || stack->end - sp > MAX_STACK || sp % 8)
		return true;
	words = malloc(STACK_CHUNK);
	if (!words)
		return true;
	end = stack->end;
	while (sp < end && !found) {
		size_t size = end - sp < STACK_CHUNK ? end - sp : STACK_CHUNK;

		if (!read_memory(borrow, sp, words, size)) {
			found = true;
			break;
		}
		for (size_t i = 0; i < size / 8 && !found; i++) {
			if (words[i] == last || words[i] < 4096)
				continue;
			if (!code || words[i] < code->start || words[i] >= code->end)
				code = target_maps_find(borrow->maps, words[i]);
			if (!code || !code->executable)
				continue;
			last = words[i];
			found = is_restorer(borrow, words[i]);
		}
		sp += size;
	}
	free(words);
	return found;
}

static int get_registers(uint32_t tid, struct user_regs_struct *registers)
{
	struct iovec part = {.iov_base = registers, .iov_len = sizeof(*registers)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &part) < 0)
		return -errno;
	return part.iov_len == sizeof(*registers) && registers->cs == 0x33 ? 0 : -EINVAL; /* 64 bits */
}

static int set_registers(uint32_t tid, struct user_regs_struct *registers)
{
	struct iovec part = {.iov_base = registers, .iov_len = sizeof(*registers)};

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &part) < 0 ? -errno : 0;
}

static bool follows_syscall(const struct borrow *borrow, uint64_t pc)
{
	unsigned char bytes[2];

	return read_memory(borrow, pc - 2, bytes, 2) && bytes[0] == 0x0f && bytes[1] == 0x05;
}

static void fill_constants(struct payload_constants *constants, const struct user_regs_struct *registers,
                           const struct safe_return *back, uint64_t mask)
{
	constants->rbx = registers->rbx;
	constants->rbp = registers->rbp;
	constants->r12 = registers->r12;
	constants->r13 = registers->r13;
	constants->r14 = registers->r14;
	constants->r15 = registers->r15;
	constants->rdi = registers->rdi;
	constants->rsi = registers->rsi;
	constants->rdx = registers->rdx;
	constants->r8 = registers->r8;
	constants->r9 = registers->r9;
	constants->r10 = registers->r10;
	constants->rsp = registers->rsp;
	constants->flags = registers->eflags & ~(uint64_t)TRAP_FLAG;
	constants->rax = back->number;
	constants->rip = registers->rip - 2;
	constants->rip_after = registers->rip;
	constants->mask = mask;
	constants->restart = back->restart;
}

static bool write_payload(struct borrow *borrow, const struct payload_constants *constants)
{
	size_t code = (size_t)(payload_constants - payload_start);
	unsigned char all[4096], check[4096];
	size_t size = code + sizeof(*constants);

	if (size > sizeof(all))
		return false;
	memcpy(all, payload_start, code);
	memcpy(all + code, constants, sizeof(*constants));
	borrow->written = true;
	return write_memory(borrow, borrow->code, all, size) &&
	       read_memory(borrow, borrow->code, check, size) && !memcmp(all, check, size);
}

/* With the thread stopped. Returns as borrow_thread does. */
static int set_on_its_way(struct borrow *borrow, uint32_t tid, struct error *error)
{
	struct payload_constants constants = *borrow->calls;
	struct user_regs_struct registers, changed;
	struct target_status status;
	struct safe_return back;
	uint64_t arguments[6], mask, all = ~(uint64_t)0;
	int64_t result;
	long number;

	if (get_registers(tid, &registers) || (int64_t)registers.orig_rax < 0 ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(mask), &mask) < 0 ||
	    !target_status_read(borrow->pid, tid, &status) || (status.pending & ~mask))
		return 0;
	number = (long)registers.orig_rax;
	result = (int64_t)registers.rax;
	changed = registers;
	changed.orig_rax = ~0ULL; /* the kernel's own restart is off */
	if (safe_point_is_repeatable(number, result) && follows_syscall(borrow, registers.rip)) {
		/* It had gone into a call that our stop has ended: make the call again. */
		changed.rax = (uint64_t)number;
		changed.rip -= 2;
		set_registers(tid, &changed);
		return 0;
	}
	memcpy(arguments,
	       (uint64_t[]){registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8,
	                    registers.r9},
	       sizeof(arguments));
	if (!safe_point_return(number, result, &back) ||
	    !safe_point_waits(number, arguments,
	                      number == 0 && target_fd_is_pipe(borrow->pid, arguments[0])) ||
	    !in_c_library(borrow, registers.rip) || !follows_syscall(borrow, registers.rip) ||
	    status.shadow_stack || !registers.fs_base || may_be_in_handler(borrow, registers.rsp))
		return 0;
	fill_constants(&constants, &registers, &back, mask);
	if (!write_payload(borrow, &constants))
		return error_set(
		    error, -EIO,
		    "its code cannot be written to: %s (a security module, or proc_mem.force_override)",
		    strerror(errno));
	changed.rip = borrow->code + (uint64_t)(payload_borrow - payload_start);
	changed.rax = 0;
	/* From here on the payload takes care of itself, also if we die on the next line. */
	if (set_registers(tid, &changed))
		return 0;
	ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all);
	return 1;
}

static int seize_error(uint32_t tid, int number, struct error *error)
{
	if (number == ESRCH)
		return error_set(error, -ESRCH, "thread %u has ended", tid);
	return error_set(error, -EPERM, "ptrace is refused: %s", strerror(number));
}

int borrow_thread(struct borrow *borrow, uint32_t tid, struct error *error)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	int status, result;

	/* No options: above all not PTRACE_O_EXITKILL. */
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return seize_error(tid, errno, error);
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		return error_set(error, -ESRCH, "thread %u has ended", tid);
	result = wait_for_stop(tid, &status);
	if (result == -ETIMEDOUT)
		return error_set(error, -ETIMEDOUT, "it did not stop in time");
	if (result <= 0)
		return error_set(error, -ESRCH, "thread %u has ended", tid);
	if (status >> 16 != EVENT_STOP) { /* about to get a signal: hand it on */
		ptrace(PTRACE_DETACH, tid, NULL, (void *)(long)WSTOPSIG(status));
		return 0;
	}
	result = WSTOPSIG(status) == SIGTRAP ? set_on_its_way(borrow, tid, error) : 0;
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	borrow->stopped_ns = clock_ns(CLOCK_MONOTONIC) - begin;
	return result;
}

#else

#include <errno.h>

/* check.c has refused already. */
bool borrow_is_candidate(const struct borrow *borrow, uint32_t tid, uint32_t *rank)
{
	(void)borrow, (void)tid, (void)rank;
	return false;
}

int borrow_thread(struct borrow *borrow, uint32_t tid, struct error *error)
{
	(void)borrow, (void)tid;
	return error_set(error, -ENOSYS, "attaching works on x86-64 only");
}

#endif
