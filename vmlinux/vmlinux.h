/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that bpf/ uses, with the fields that it uses and no others.
 *
 * Offsets here mean nothing: preserve_access_index makes the loader take each from the BTF of the kernel that
 * runs (CO-RE). Types and names must agree with the kernel's; `make check-vmlinux` compiles bpf/ against the
 * full header of the kernel at hand to prove it. Fields that only some kernels have are asked for with
 * bpf_core_field_exists(). Values of enumerations are part of the kernel's ABI.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __s16 s16;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
typedef int pid_t;

enum {
	false = 0,
	true = 1,
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum bpf_func_id {
	BPF_FUNC_find_vma = 180, /* since 5.17 */
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum {
	BPF_F_NO_PREALLOC = 1,
};

enum {
	BPF_F_FAST_STACK_CMP = 512,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long sp;
};
typedef struct pt_regs bpf_user_pt_regs_t;
struct thread_struct {
	unsigned long fsbase;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			u64 regs[31];
			u64 sp;
			u64 pc;
			u64 pstate;
		};
	};
	u64 orig_x0;
	s32 syscallno;
};
typedef struct user_pt_regs bpf_user_pt_regs_t;
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#else
#error "no registers known for this architecture"
#endif

struct thread_info {
	u32 status;
};

struct rq;

struct cfs_rq {
	int throttle_count; /* CONFIG_CFS_BANDWIDTH */
	struct rq *rq;      /* CONFIG_FAIR_GROUP_SCHED */
};

struct rq {
	u64 prev_steal_time_rq; /* CONFIG_PARAVIRT_TIME_ACCOUNTING */
};

struct cpumask {
	unsigned long bits[1]; /* in truth as many as there are CPUs */
};

struct sched_entity {
	unsigned char sched_delayed; /* since 6.12 */
	u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq; /* CONFIG_FAIR_GROUP_SCHED */
};

struct sched_info { /* CONFIG_SCHED_INFO */
	unsigned long long run_delay;
};

struct task_io_accounting { /* CONFIG_TASK_IO_ACCOUNTING */
	u64 read_bytes;
	u64 write_bytes;
};

struct signal_struct {
	atomic_t live;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[];
};

struct super_block {
	u32 s_dev;
	char s_id[32];
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_generation;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	void *private_data;
	struct inode *f_inode;
	struct path f_path;
	const void *f_op;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct mm_struct {
	unsigned long start_stack;
	unsigned long arg_start;
	unsigned long arg_end;
};

struct vm_area_struct {
	struct file *vm_file;
};

struct list_head {
	struct list_head *next;
};

struct epoll_filefd {
	struct file *file;
};

struct epitem {
	struct list_head rdllink;
	struct epoll_filefd ffd;
};

struct eventpoll {
	struct list_head rdllist;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	int on_rq;
	struct sched_entity se;
	int nr_cpus_allowed;
	struct sched_info sched_info;
	const struct cpumask *cpus_ptr;
	bool throttled; /* CONFIG_CFS_BANDWIDTH, since 6.18 */
	int exit_code;
	unsigned in_iowait : 1;
	pid_t pid;
	pid_t tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct pid *thread_pid;
	u64 start_time;
	unsigned long min_flt;
	unsigned long maj_flt;
	char comm[16];
	struct files_struct *files;
	struct signal_struct *signal;
	struct task_io_accounting ioac;
	int pagefault_disabled;
	struct mm_struct *mm;
	struct thread_struct thread;
};

struct linux_binprm {
	const char *filename;
};

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	u32 skc_daddr;
	u16 skc_dport;
	struct in6_addr skc_v6_daddr;
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
	struct pid *sk_peer_pid;
	struct socket *sk_socket;
};

struct socket {
	struct file *file;
	struct sock *sk;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
};

struct seq_file {
	void *private;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#endif
