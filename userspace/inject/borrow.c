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
#include "cupti_bridge/attach.h"
#include "inject/safe_point.h"

#define STOP_TIMEOUT_NS 2000000000ULL /* it has to get a CPU; it is not held up meanwhile */
#define WAIT_STEP_NS    50000
#define EVENT_STOP      128 /* PTRACE_EVENT_STOP, which <sys/ptrace.h> and <linux/ptrace.h> both have */
#define MAX_STACK       (16u << 20) /* bytes of a stack that are looked through */
#define STACK_CHUNK     65536
#define TRAP_FLAG       0x100
#define STACK_MARGIN    4096 /* bytes of stack that stay below what is lent */

#define NR_MMAP     9
#define PROT_ALL    7        /* read, write, run: only until it is filled */
#define MAP_FLAGS   0x104022 /* private, anonymous, no swap reserved, fails if something is there */
#define MAX_PAYLOAD ATTACH_CODE_BYTES

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

static void tell_step(const struct borrow *borrow, enum inject_step step)
{
	if (borrow->step)
		borrow->step(borrow->context, step);
}

/* ---- what is lent ---- */

/* The registers as they shall be again: in front of the system call, or behind it. */
static void fill_original(struct lent_frame *frame, const struct user_regs_struct *registers, uint64_t mask)
{
	*frame = (struct lent_frame){
	    .r8 = registers->r8,
	    .r9 = registers->r9,
	    .r10 = registers->r10,
	    .r11 = registers->r11,
	    .r12 = registers->r12,
	    .r13 = registers->r13,
	    .r14 = registers->r14,
	    .r15 = registers->r15,
	    .rdi = registers->rdi,
	    .rsi = registers->rsi,
	    .rbp = registers->rbp,
	    .rbx = registers->rbx,
	    .rdx = registers->rdx,
	    .rcx = registers->rcx,
	    .rsp = registers->rsp,
	    .eflags = registers->eflags & ~(uint64_t)TRAP_FLAG,
	    .mask = mask,
	};
}

/* True if there is room below the stack pointer that is this thread's stack, and nothing else. */
static bool is_own_stack(const struct borrow *borrow, const struct user_regs_struct *registers,
                         uint64_t address)
{
	const struct target_mapping *stack = target_maps_find(borrow->maps, registers->rsp);

	if (!stack || !stack->writable || address < stack->start + STACK_MARGIN || address > registers->rsp)
		return false;
	/* Not the stack of a coroutine, which may end anywhere: the C library keeps a thread's own data above
	 * it. */
	return !strcmp(stack->name, "[stack]") ||
	       (registers->fs_base > registers->rsp && registers->fs_base < stack->end);
}

/* Writes the frames below the stack. Returns their address, 0 if that cannot be. */
static uint64_t lend_stack(const struct borrow *borrow, uint32_t tid,
                           const struct user_regs_struct *registers, const struct safe_return *back,
                           uint64_t mask)
{
	const size_t head = offsetof(struct lent_stack, cpu_state);
	struct lent_places places = borrow->places;
	struct lent_stack *stack = calloc(1, sizeof(*stack)), *check = malloc(sizeof(*check));
	uint64_t address = 0, wanted;
	struct iovec part;
	size_t size = 0;

	if (stack && check) {
		part = (struct iovec){.iov_base = stack->cpu_state, .iov_len = sizeof(stack->cpu_state)};
		if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &part) == 0)
			size = lent_cpu_state(stack->cpu_state, part.iov_len);
	}
	if (size) {
		size += head;
		wanted = lent_stack_address(registers->rsp, size);
		places.left = places.region + ATTACH_AT_LEFT;
		fill_original(&stack->original, registers, mask);
		stack->original.rax = back->number;
		stack->original.rip = registers->rip - 2;
		lent_stack_fill(stack, wanted, &places);
		if (is_own_stack(borrow, registers, wanted) && write_memory(borrow, wanted, stack, size) &&
		    read_memory(borrow, wanted, check, size) && !memcmp(stack, check, size))
			address = wanted;
	}
	free(check);
	free(stack);
	return address;
}

/* The control page and the instructions. */
static bool fill_region(const struct borrow *borrow, const struct payload_constants *constants)
{
	const size_t code = (size_t)(payload_constants - payload_start);
	const size_t size = ATTACH_CODE + code + sizeof(*constants);
	unsigned char *all = calloc(1, ATTACH_CODE + MAX_PAYLOAD), *check = malloc(size);
	struct attach_control control = {.patience_ms = borrow->patience_ms,
	                                 .bytes = borrow->places.region_bytes};
	bool filled = false;

	if (all && check && code + sizeof(*constants) <= MAX_PAYLOAD) {
		memcpy(all, &control, sizeof(control));
		memcpy(all + ATTACH_CODE, payload_start, code);
		memcpy(all + ATTACH_CODE + code, constants, sizeof(*constants));
		filled = write_memory(borrow, borrow->places.region, all, size) &&
		         read_memory(borrow, borrow->places.region, check, size) && !memcmp(all, check, size);
	}
	free(check);
	free(all);
	return filled;
}

/* ---- on its way ---- */

/* Lets the thread go on to the next edge of a system call. 1, or what borrow_thread returns. */
static int next_stop(uint32_t tid)
{
	int status, result;

	if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) < 0)
		return -ESRCH;
	result = wait_for_stop(tid, &status);
	if (result <= 0)
		return result ? result : -ESRCH;
	/* Anything else, such as the whole program being stopped: it gets out of this by itself. */
	return WSTOPSIG(status) == (SIGTRAP | 0x80) ? 1 : 0;
}

static int tell_no_region(struct error *error, int64_t result)
{
	if (result == -EACCES || result == -EPERM)
		return error_set(error, -EACCES,
		                 "it may not have memory that can be written and run (a security module, or "
		                 "PR_SET_MDWE)");
	return error_set(error, -ENOMEM, "it got no memory: %s",
	                 strerror(result < 0 && result > -4096 ? (int)-result : ENOMEM));
}

/*
 * Step 1, with the frames at `stack`. Returns 1 with the region mapped and the thread stopped behind that, or
 * what borrow_thread returns; then the thread finds its way back by itself once it is let go.
 */
static int map_region(const struct borrow *borrow, uint32_t tid, const struct user_regs_struct *registers,
                      uint64_t stack, struct error *error)
{
	const struct lent_places *places = &borrow->places;
	struct user_regs_struct changed = *registers;
	uint64_t all = ~(uint64_t)0;
	int result;

	changed.orig_rax = ~0ULL; /* the kernel's own restart is off */
	changed.rax = NR_MMAP;
	changed.rdi = places->region;
	changed.rsi = places->region_bytes;
	changed.rdx = PROT_ALL;
	changed.r10 = MAP_FLAGS;
	changed.r8 = ~0ULL;
	changed.r9 = 0;
	changed.rip = places->call;
	changed.rsp = stack + offsetof(struct lent_stack, unmap);
	if (set_registers(tid, &changed))
		return 0;
	tell_step(borrow, INJECT_CALL_SET);
	ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all);
	tell_step(borrow, INJECT_SIGNALS_BLOCKED);
	result = next_stop(tid);
	if (result <= 0)
		return result;
	tell_step(borrow, INJECT_CALL_ENTERED);
	result = next_stop(tid);
	if (result <= 0)
		return result;
	tell_step(borrow, INJECT_REGION_MAPPED);
	if (get_registers(tid, &changed) || changed.rip != places->call + 2)
		return 0;
	if (changed.rax == places->region)
		return 1;
	/* What is there is not ours: it must not be unmapped. */
	result = tell_no_region(error, (int64_t)changed.rax);
	changed.orig_rax = ~0ULL;
	changed.rip = places->restorer;
	changed.rsp = LENT_SP(stack, original);
	set_registers(tid, &changed);
	return result;
}

/* Step 2. */
static int run_region(const struct borrow *borrow, uint32_t tid, struct user_regs_struct *registers,
                      const struct payload_constants *constants, struct error *error)
{
	const uint64_t region = borrow->places.region;

	if (!fill_region(borrow, constants))
		return error_set(error, -EIO, "its memory cannot be written to: %s", strerror(errno));
	tell_step(borrow, INJECT_REGION_FILLED);
	registers->orig_rax = ~0ULL;
	registers->rip = region + ATTACH_CODE + (uint64_t)(payload_borrow - payload_start);
	registers->rsp = region + ATTACH_STACK_END;
	registers->rbx = region;
	registers->rbp = 0;
	registers->rax = 0;
	if (set_registers(tid, registers))
		return 0;
	tell_step(borrow, INJECT_CODE_SET);
	return 1;
}

/* True if the thread, which is stopped, is where it may be borrowed; fills in what that needs. */
static bool is_safe(const struct borrow *borrow, const struct user_regs_struct *registers,
                    const struct target_status *status, struct safe_return *back)
{
	const long number = (long)registers->orig_rax;
	const uint64_t arguments[6] = {registers->rdi, registers->rsi, registers->rdx,
	                               registers->r10, registers->r8,  registers->r9};

	return safe_point_return(number, (int64_t)registers->rax, back) &&
	       safe_point_waits(number, arguments,
	                        number == 0 && target_fd_is_pipe(borrow->pid, arguments[0])) &&
	       in_c_library(borrow, registers->rip) && follows_syscall(borrow, registers->rip) &&
	       !status->shadow_stack && registers->fs_base && !may_be_in_handler(borrow, registers->rsp);
}

/* With the thread stopped. Returns as borrow_thread does. */
static int set_on_its_way(struct borrow *borrow, uint32_t tid, struct error *error)
{
	struct payload_constants constants = *borrow->calls;
	struct user_regs_struct registers, changed;
	struct target_status status;
	struct safe_return back;
	uint64_t mask, stack;
	int result;

	if (get_registers(tid, &registers) || (int64_t)registers.orig_rax < 0 ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(mask), &mask) < 0 ||
	    !target_status_read(borrow->pid, tid, &status) || (status.pending & ~mask))
		return 0;
	if (safe_point_is_repeatable((long)registers.orig_rax, (int64_t)registers.rax) &&
	    follows_syscall(borrow, registers.rip)) {
		/* It had gone into a call that our stop has ended: make the call again. */
		changed = registers;
		changed.rax = registers.orig_rax;
		changed.orig_rax = ~0ULL;
		changed.rip -= 2;
		set_registers(tid, &changed);
		return 0;
	}
	if (!is_safe(borrow, &registers, &status, &back))
		return 0;
	stack = lend_stack(borrow, tid, &registers, &back, mask);
	if (!stack)
		return 0;
	tell_step(borrow, INJECT_FRAMES_WRITTEN);
	result = map_region(borrow, tid, &registers, stack, error);
	if (result <= 0)
		return result;
	constants.restart = back.restart;
	constants.mask = mask;
	constants.rip_after = registers.rip;
	constants.sp_original = LENT_SP(stack, original);
	constants.sp_left = LENT_SP(stack, left);
	constants.sp_unmap = LENT_SP(stack, unmap);
	constants.restorer = borrow->places.restorer;
	return run_region(borrow, tid, &registers, &constants, error);
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

	/* Above all not PTRACE_O_EXITKILL. */
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(long)PTRACE_O_TRACESYSGOOD) < 0)
		return seize_error(tid, errno, error);
	tell_step(borrow, INJECT_SEIZED);
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		return error_set(error, -ESRCH, "thread %u has ended", tid);
	tell_step(borrow, INJECT_INTERRUPTED);
	result = wait_for_stop(tid, &status);
	if (result == -ETIMEDOUT)
		return error_set(error, -ETIMEDOUT, "it did not stop in time");
	if (result <= 0)
		return error_set(error, -ESRCH, "thread %u has ended", tid);
	if (status >> 16 != EVENT_STOP) { /* about to get a signal: hand it on */
		ptrace(PTRACE_DETACH, tid, NULL, (void *)(long)WSTOPSIG(status));
		return 0;
	}
	tell_step(borrow, INJECT_HELD);
	result = WSTOPSIG(status) == SIGTRAP ? set_on_its_way(borrow, tid, error) : 0;
	if (result == -ETIMEDOUT) /* it runs: nothing can be asked of it */
		return error_set(error, result, "it got no CPU in time");
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	borrow->stopped_ns = clock_ns(CLOCK_MONOTONIC) - begin;
	if (result == 1)
		tell_step(borrow, INJECT_LET_GO);
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
