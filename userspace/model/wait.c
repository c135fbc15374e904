/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/wait.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/*
 * A rule matches a frame whose name without a ".constprop.0"-like suffix equals `function`, or begins with it
 * where `prefix` is set. Comments name the kernels: a range, or the one on which the entry was seen.
 */
struct rule {
	const char *function;
	int kind;
	bool prefix;
};

/* Helper kinds that a second look turns into one of enum wait_kind. */
enum {
	RULE_RWSEM = 1000, /* a kernel reader-writer semaphore: which one, the callers tell */
	RULE_DATAGRAM,     /* a socket, its family is told by the callers */
};

/* Looked up from the innermost frame outwards: the first frame that matches any rule decides. */
static const struct rule wait_rules[] = {
    {"futex_do_wait", WAIT_KIND_FUTEX, false},      /* 6.15+, seen on 6.18 */
    {"futex_wait_queue", WAIT_KIND_FUTEX, true},    /* 5.16–6.14; _me up to 5.15 */
    {"futex_wait_multiple", WAIT_KIND_FUTEX, true}, /* 5.16+ */
    {"futex_wait", WAIT_KIND_FUTEX, false},
    {"__futex_wait", WAIT_KIND_FUTEX, false}, /* 6.7+ */
    {"futex_lock_pi", WAIT_KIND_FUTEX, false},
    {"anon_pipe_read", WAIT_KIND_PIPE_READ, false}, /* 6.16+, seen on 6.18 */
    {"pipe_read", WAIT_KIND_PIPE_READ, false},      /* up to 6.15, FIFOs after that */
    {"fifo_pipe_read", WAIT_KIND_PIPE_READ, false},
    {"wait_for_partner", WAIT_KIND_PIPE_READ, false},
    {"anon_pipe_write", WAIT_KIND_PIPE_WRITE, false},
    {"pipe_write", WAIT_KIND_PIPE_WRITE, false},
    {"fifo_pipe_write", WAIT_KIND_PIPE_WRITE, false},
    {"poll_schedule_timeout", WAIT_KIND_POLL, false},
    {"do_poll", WAIT_KIND_POLL, false},
    {"do_sys_poll", WAIT_KIND_POLL, false},
    {"do_select", WAIT_KIND_POLL, false},
    {"ep_poll", WAIT_KIND_EPOLL, false},
    {"do_epoll_wait", WAIT_KIND_EPOLL, false},
    {"eventfd_read", WAIT_KIND_EVENTFD, false},
    {"unix_stream_data_wait", WAIT_KIND_UNIX_SOCKET, false},
    {"unix_stream_read_generic", WAIT_KIND_UNIX_SOCKET, false},
    {"unix_wait_for_peer", WAIT_KIND_UNIX_SOCKET, false},
    {"unix_accept", WAIT_KIND_UNIX_SOCKET, false},
    {"__skb_wait_for_more_packets", RULE_DATAGRAM, false},
    {"sock_alloc_send_pskb", RULE_DATAGRAM, false},
    {"sock_wait_for_wmem", RULE_DATAGRAM, false},
    {"sk_wait_data", WAIT_KIND_INET_SOCKET, false},
    {"tcp_recvmsg", WAIT_KIND_INET_SOCKET, true},
    {"inet_csk_accept", WAIT_KIND_INET_SOCKET, false},
    {"inet_csk_wait_for_connect", WAIT_KIND_INET_SOCKET, false},
    {"inet_wait_for_connect", WAIT_KIND_INET_SOCKET, false},
    {"sk_stream_wait_memory", WAIT_KIND_INET_SOCKET, false},
    {"rpc_wait_bit_killable", WAIT_KIND_INET_SOCKET, false}, /* NFS */
    {"nfs_wait_bit_killable", WAIT_KIND_INET_SOCKET, false},
    {"do_nanosleep", WAIT_KIND_SLEEP, false},
    {"hrtimer_nanosleep", WAIT_KIND_SLEEP, false},
    {"folio_wait_bit_common", WAIT_KIND_DISK, false},   /* 5.16+, seen on 6.18 */
    {"wait_on_page_bit_common", WAIT_KIND_DISK, false}, /* up to 5.15 */
    {"bit_wait_io", WAIT_KIND_DISK, false},
    {"rq_qos_wait", WAIT_KIND_DISK, false},
    {"blk_mq_get_tag", WAIT_KIND_DISK, false},
    {"blk_io_schedule", WAIT_KIND_DISK, false},
    {"submit_bio_wait", WAIT_KIND_DISK, false},
    {"__iomap_dio_rw", WAIT_KIND_DISK, false},
    {"__blkdev_direct_IO", WAIT_KIND_DISK, true},
    {"jbd2_log_wait_commit", WAIT_KIND_DISK, false},
    {"jbd2_", WAIT_KIND_DISK, true},
    {"xfs_buf_iowait", WAIT_KIND_DISK, false},
    {"balance_dirty_pages", WAIT_KIND_DISK, true},
    {"rwsem_down_read_slowpath", RULE_RWSEM, false},
    {"rwsem_down_write_slowpath", RULE_RWSEM, false},
    {"vma_start_write", WAIT_KIND_MMAP_LOCK, true}, /* per-VMA locks, 6.4+ */
    {"__vma_start_write", WAIT_KIND_MMAP_LOCK, false},
    {"__vma_enter_locked", WAIT_KIND_MMAP_LOCK, false},
    {"throttle_direct_reclaim", WAIT_KIND_RECLAIM, false},
    {"reclaim_throttle", WAIT_KIND_RECLAIM, false}, /* 5.16+ */
    {"try_to_free_pages", WAIT_KIND_RECLAIM, false},
    {"try_to_free_mem_cgroup_pages", WAIT_KIND_RECLAIM, false},
    {"__mem_cgroup_handle_over_high", WAIT_KIND_RECLAIM, false},
    {"mem_cgroup_handle_over_high", WAIT_KIND_RECLAIM, false},
    {"try_to_compact_pages", WAIT_KIND_RECLAIM, false},
    {"do_wait", WAIT_KIND_CHILD, false},
    {"kernel_wait4", WAIT_KIND_CHILD, false},
    {"do_sigtimedwait", WAIT_KIND_SIGNAL, false},
    {"sigsuspend", WAIT_KIND_SIGNAL, false},
    {"ptrace_stop", WAIT_KIND_SIGNAL, false},
    {"do_signal_stop", WAIT_KIND_SIGNAL, false},
    {"__do_sys_pause", WAIT_KIND_SIGNAL, true},
    {"flock_lock_inode", WAIT_KIND_FILE_LOCK, true},
    {"posix_lock_inode_wait", WAIT_KIND_FILE_LOCK, false},
    {"fcntl_setlk", WAIT_KIND_FILE_LOCK, false},
    {"os_schedule", WAIT_KIND_GPU_DRIVER, false}, /* nvidia 580, seen */
    {"os_acquire_", WAIT_KIND_GPU_DRIVER, true},
    {"nvidia_", WAIT_KIND_GPU_DRIVER, true},
    {"nv_", WAIT_KIND_GPU_DRIVER, true},
    {"uvm_", WAIT_KIND_GPU_DRIVER, true},
    {"handle_userfault", WAIT_KIND_FAULT, false},
    {"do_exit", WAIT_KIND_EXIT, false},
};

/* The first frame from inside out that matches decides. */
static const struct rule wake_rules[] = {
    {"hrtimer_wakeup", WAKE_KIND_TIMER, false},
    {"process_timeout", WAKE_KIND_TIMER, false},
    {"it_real_fn", WAKE_KIND_TIMER, false},
    {"posix_timer_fn", WAKE_KIND_TIMER, false},
    {"timerfd_", WAKE_KIND_TIMER, true},
    {"alarmtimer_fired", WAKE_KIND_TIMER, false},
    {"wake_page_function", WAKE_KIND_DISK, false},
    {"folio_wake_bit", WAKE_KIND_DISK, false},   /* 5.16+, seen on 6.18 */
    {"wake_up_page_bit", WAKE_KIND_DISK, false}, /* up to 5.15 */
    {"wake_up_bit", WAKE_KIND_DISK, false},
    {"bio_endio", WAKE_KIND_DISK, false},
    {"submit_bio_wait_endio", WAKE_KIND_DISK, false},
    {"iomap_dio_", WAKE_KIND_DISK, true},
    {"blkdev_bio_end_io", WAKE_KIND_DISK, true},
    {"blk_mq_end_request", WAKE_KIND_DISK, false},
    {"blk_mq_free_request", WAKE_KIND_DISK, false},
    {"blk_mq_put_tag", WAKE_KIND_DISK, false},
    {"rq_qos_wake_function", WAKE_KIND_DISK, false},
    {"wbt_", WAKE_KIND_DISK, true},
    {"jbd2_", WAKE_KIND_DISK, true},
    {"do_notify_parent", WAKE_KIND_CHILD_EXIT, true},
    {"child_wait_callback", WAKE_KIND_CHILD_EXIT, false},
    {"zap_other_threads", WAKE_KIND_SIGNAL, false},
    {"zap_process", WAKE_KIND_SIGNAL, true},
    {"signal_wake_up_state", WAKE_KIND_SIGNAL, false},
    {"complete_signal", WAKE_KIND_SIGNAL, false},
    {"nvidia_isr", WAKE_KIND_GPU, true}, /* nvidia 580 */
    {"rm_isr", WAKE_KIND_GPU, true},
    {"nv_post_event", WAKE_KIND_GPU, false},
    {"nvidia_", WAKE_KIND_GPU, true},
    {"uvm_", WAKE_KIND_GPU, true},
    {"futex_wake", WAKE_KIND_TASK, true},
    {"futex_requeue", WAKE_KIND_TASK, false},
    {"futex_unlock_pi", WAKE_KIND_TASK, false},
    {"anon_pipe_write", WAKE_KIND_TASK, false},
    {"pipe_write", WAKE_KIND_TASK, false},
    {"fifo_pipe_write", WAKE_KIND_TASK, false},
    {"anon_pipe_read", WAKE_KIND_TASK, false},
    {"pipe_read", WAKE_KIND_TASK, false},
    {"fifo_pipe_read", WAKE_KIND_TASK, false},
    {"pipe_release", WAKE_KIND_TASK, false},
    {"eventfd_write", WAKE_KIND_TASK, false},
    {"eventfd_signal", WAKE_KIND_TASK, true},
    {"unix_", WAKE_KIND_TASK, true},
    {"receiver_wake_function", WAKE_KIND_TASK, false},
    {"sock_def_", WAKE_KIND_TASK, true},
    {"sk_stream_write_space", WAKE_KIND_TASK, false},
    {"rwsem_", WAKE_KIND_TASK, true},
    {"up_write", WAKE_KIND_TASK, false},
    {"up_read", WAKE_KIND_TASK, false},
    {"__mutex_unlock_slowpath", WAKE_KIND_TASK, false},
    {"locks_", WAKE_KIND_TASK, true}, /* file locks */
    {"fuse_", WAKE_KIND_TASK, true},
};

/* Name equality up to the suffix that compilers add to clones. */
static bool name_matches(const char *name, const struct rule *rule)
{
	size_t length = strlen(rule->function);

	if (strncmp(name, rule->function, length))
		return false;
	return rule->prefix || name[length] == '\0' || name[length] == '.';
}

static const struct rule *rule_find(const struct rule *rules, size_t rule_count, const char *const *frames,
                                    size_t count, size_t *where)
{
	for (size_t f = 0; f < count; f++) {
		if (!frames[f])
			continue;
		for (size_t r = 0; r < rule_count; r++) {
			if (name_matches(frames[f], &rules[r])) {
				*where = f;
				return &rules[r];
			}
		}
	}
	return NULL;
}

/* True if any frame from `from` on begins with one of the names (NULL-terminated list). */
static bool frames_have(const char *const *frames, size_t count, size_t from, const char *const *names)
{
	for (size_t f = from; f < count; f++) {
		if (!frames[f])
			continue;
		for (const char *const *name = names; *name; name++) {
			if (!strncmp(frames[f], *name, strlen(*name)))
				return true;
		}
	}
	return false;
}

static const char *const fault_frames[] = {"exc_page_fault",
                                           "asm_exc_page_fault",
                                           "do_user_addr_fault",
                                           "handle_mm_fault",
                                           "faultin_page",
                                           "do_page_fault",
                                           NULL};
static const char *const address_space_frames[] = {"vm_mmap_pgoff", "ksys_mmap_pgoff", "__vm_munmap",
                                                   "__x64_sys_m",   "do_mprotect",     "do_madvise",
                                                   "__do_sys_brk",  "__do_sys_mremap", NULL};
static const char *const reclaim_frames[] = {"try_to_free_pages",    "try_to_free_mem_cgroup_pages",
                                             "shrink_node",          "shrink_lruvec",
                                             "try_to_compact_pages", NULL};
static const char *const interrupt_frames[] = {
    "asm_common_interrupt", "asm_sysvec_", "common_interrupt", "sysvec_", "__do_softirq",
    "handle_softirqs",      "irq_exit",    "__irq_exit",       NULL};
static const char *const network_frames[] = {"net_rx_action", "__napi_poll", "napi_",   "process_backlog",
                                             "tcp_v4_rcv",    "tcp_v6_rcv",  "udp_rcv", "__netif_receive_skb",
                                             "ip_rcv",        NULL};
static const char *const send_frames[] = {
    "tcp_sendmsg", "udp_sendmsg", "inet_sendmsg", "__sock_sendmsg", "sock_sendmsg", "sock_write_iter", NULL};
static const char *const unix_frames[] = {"unix_", "__unix_", NULL};
static const char *const exit_frames[] = {"do_exit", NULL}; /* also of a thread that a signal ends */
static const char *const worker_frames[] = {"worker_thread", "kthread", "rescuer_thread", NULL};

/* Without a usable stack: what the system call can block in. */
static enum wait_kind wait_by_syscall(int32_t syscall)
{
	switch (syscall) {
	case SYS_futex:
		return WAIT_KIND_FUTEX;
#ifdef SYS_poll
	case SYS_poll:
	case SYS_select:
#endif
	case SYS_ppoll:
	case SYS_pselect6:
		return WAIT_KIND_POLL;
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
		return WAIT_KIND_EPOLL;
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return WAIT_KIND_SLEEP;
	case SYS_wait4:
	case SYS_waitid:
		return WAIT_KIND_CHILD;
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync:
	case SYS_syncfs:
	case SYS_msync:
		return WAIT_KIND_DISK;
	case SYS_flock:
		return WAIT_KIND_FILE_LOCK;
#ifdef SYS_pause
	case SYS_pause:
#endif
	case SYS_rt_sigtimedwait:
	case SYS_rt_sigsuspend:
		return WAIT_KIND_SIGNAL;
	default:
		return WAIT_KIND_UNKNOWN;
	}
}

enum wait_kind wait_classify(const char *const *frames, size_t count, int32_t syscall)
{
	size_t at = 0;
	const struct rule *rule =
	    rule_find(wait_rules, sizeof(wait_rules) / sizeof(*wait_rules), frames, count, &at);
	bool fault = frames_have(frames, count, 0, fault_frames);

	if (!rule) {
		if (frames_have(frames, count, 0, reclaim_frames))
			return WAIT_KIND_RECLAIM;
		return fault ? WAIT_KIND_FAULT : wait_by_syscall(syscall);
	}
	if (rule->kind == RULE_RWSEM)
		return fault || frames_have(frames, count, at, address_space_frames) ? WAIT_KIND_MMAP_LOCK
		                                                                     : WAIT_KIND_FILE_LOCK;
	if (rule->kind == RULE_DATAGRAM)
		return frames_have(frames, count, at, unix_frames) ? WAIT_KIND_UNIX_SOCKET
		                                                   : WAIT_KIND_INET_SOCKET;
	if (rule->kind == WAIT_KIND_DISK && frames_have(frames, count, at, reclaim_frames))
		return WAIT_KIND_RECLAIM;
	if (rule->kind == WAIT_KIND_DISK && fault)
		return WAIT_KIND_DISK_FAULT;
	return rule->kind;
}

static enum wake_kind wake_by_syscall(uint32_t waker_tid, int32_t syscall)
{
	if (!waker_tid)
		return WAKE_KIND_UNKNOWN;
	switch (syscall) {
	case SYS_futex:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
		return WAKE_KIND_TASK;
	default:
		return WAKE_KIND_UNKNOWN;
	}
}

enum wake_kind wake_classify(const char *const *frames, size_t count, uint32_t waker_tid, uint32_t waker_pid,
                             int32_t waker_syscall)
{
	size_t at = 0;
	const struct rule *rule;
	bool network, interrupt;

	(void)waker_pid;
	if (!count)
		return wake_by_syscall(waker_tid, waker_syscall);
	rule = rule_find(wake_rules, sizeof(wake_rules) / sizeof(*wake_rules), frames, count, &at);
	if (rule && rule->kind != WAKE_KIND_TASK)
		return rule->kind;
	network = frames_have(frames, count, 0, network_frames);
	/* Loopback: the sender's own softirq delivers, on top of its send call. */
	if (network)
		return waker_tid && frames_have(frames, count, 0, send_frames) ? WAKE_KIND_TASK
		                                                               : WAKE_KIND_NETWORK;
	interrupt = frames_have(frames, count, at, interrupt_frames);
	if (interrupt || !waker_tid)
		return WAKE_KIND_UNKNOWN;
	if (rule)
		return frames_have(frames, count, at, worker_frames) ? WAKE_KIND_WORKER : WAKE_KIND_TASK;
	if (frames_have(frames, count, 0, worker_frames))
		return WAKE_KIND_WORKER;
	/* In a system call of its own and not in an interrupt: it did the waking, whatever the object is. */
	return waker_syscall >= 0 ? WAKE_KIND_TASK : WAKE_KIND_UNKNOWN;
}

bool wake_is_ending(const char *const *frames, size_t count, int32_t waker_syscall)
{
	bool exits = waker_syscall == SYS_exit || waker_syscall == SYS_exit_group;

	return (exits || frames_have(frames, count, 0, exit_frames)) &&
	       !frames_have(frames, count, 0, interrupt_frames);
}

enum sample_kind sample_classify(const char *const *frames, size_t count, bool user, int32_t syscall)
{
	if (user)
		return SAMPLE_USER;
	if (frames_have(frames, count, 0, interrupt_frames))
		return SAMPLE_IRQ;
	if (frames_have(frames, count, 0, reclaim_frames))
		return SAMPLE_RECLAIM;
	if (frames_have(frames, count, 0, fault_frames))
		return SAMPLE_FAULT;
	return syscall >= 0 ? SAMPLE_SYSCALL : SAMPLE_KERNEL;
}

const char *wait_kind_name(enum wait_kind kind)
{
	static const char *const names[WAIT_KIND_COUNT] = {
	    [WAIT_KIND_UNKNOWN] = "unknown",
	    [WAIT_KIND_FUTEX] = "futex",
	    [WAIT_KIND_PIPE_READ] = "pipe",
	    [WAIT_KIND_PIPE_WRITE] = "full pipe",
	    [WAIT_KIND_POLL] = "poll",
	    [WAIT_KIND_EPOLL] = "epoll",
	    [WAIT_KIND_EVENTFD] = "eventfd",
	    [WAIT_KIND_UNIX_SOCKET] = "Unix socket",
	    [WAIT_KIND_INET_SOCKET] = "network socket",
	    [WAIT_KIND_SLEEP] = "sleep",
	    [WAIT_KIND_DISK] = "storage",
	    [WAIT_KIND_DISK_FAULT] = "page fault from storage",
	    [WAIT_KIND_MMAP_LOCK] = "mmap_lock",
	    [WAIT_KIND_RECLAIM] = "memory reclaim",
	    [WAIT_KIND_FAULT] = "page fault",
	    [WAIT_KIND_CHILD] = "child process",
	    [WAIT_KIND_SIGNAL] = "signal",
	    [WAIT_KIND_GPU_DRIVER] = "GPU driver",
	    [WAIT_KIND_FILE_LOCK] = "file lock",
	    [WAIT_KIND_EXIT] = "exit",
	};

	return (unsigned int)kind < WAIT_KIND_COUNT ? names[kind] : "unknown";
}

const char *syscall_name(int32_t number)
{
	/* Made at build time from <sys/syscall.h>, so that no number is written here. */
	static const char *const names[] = {
#define SYSCALL(name) [SYS_##name] = #name,
#include "syscalls.inc"
#undef SYSCALL
	};
	static _Thread_local char unknown[32];

	if (number < 0)
		return NULL;
	if ((size_t)number < sizeof(names) / sizeof(*names) && names[number])
		return names[number];
	snprintf(unknown, sizeof(unknown), "syscall_%d", number);
	return unknown;
}
