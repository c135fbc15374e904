/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What system calls are about: the file, pipe or socket behind a descriptor, told apart by its inode, and
 * named once by a record of its own. A name is taken while the descriptor is in use: later it may be another
 * file's.
 */
#ifndef WHYIDLE_BPF_FILE_H
#define WHYIDLE_BPF_FILE_H

#include "common.bpf.h"

#define ANON_INODE_MAGIC 0x09041934 /* ANON_INODE_FS_MAGIC: eventfd, epoll, timerfd … share one inode */
#define SOCKFS_MAGIC     0x534f434b
#define PIPEFS_MAGIC     0x50495045
#define FAMILY_UNIX      1  /* AF_UNIX */
#define FAMILY_INET      2  /* AF_INET */
#define FAMILY_INET6     10 /* AF_INET6 */

static __always_inline __u64 inode_number(struct file *file)
{
	return file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
}

/* The file of the socket at the other end of a connected Unix socket; NULL for other sockets. */
static __always_inline struct file *peer_file(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sock = BPF_CORE_READ(socket, sk), *other;

	if (!bpf_core_field_exists(struct unix_sock, peer) ||
	    BPF_CORE_READ(sock, __sk_common.skc_family) != FAMILY_UNIX)
		return NULL;
	other = BPF_CORE_READ((struct unix_sock *)sock, peer);
	return other ? BPF_CORE_READ(other, sk_socket, file) : NULL;
}

/* Files that a record has named: their key → 1. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u8);
} named_files SEC(".maps") __weak;

/* Keeps the name of an entry as the next part of a path. False if there is no more room. */
static __always_inline bool file_part(struct wire_file *record, struct dentry *entry)
{
	/* The count lives in memory, where the verifier does not follow its value. */
	__u32 count = record->part_count;

	if (count >= WIRE_FILE_PARTS)
		return false;
	bpf_probe_read_kernel_str(record->parts[count], WIRE_FILE_PART, BPF_CORE_READ(entry, d_name.name));
	record->part_count = count + 1;
	return true;
}

/* Names of the file and of the folders it is in, the innermost first, across mount points. */
static __always_inline void file_path(struct file *file, struct wire_file *record)
{
	struct dentry *entry = BPF_CORE_READ(file, f_path.dentry), *first = entry, *parent;
	struct vfsmount *mounted = BPF_CORE_READ(file, f_path.mnt);
	struct mount *mount = (void *)mounted - bpf_core_field_offset(struct mount, mnt), *above;

	for (int i = 0; i < WIRE_FILE_PARTS * 2; i++) {
		parent = BPF_CORE_READ(entry, d_parent);
		if (entry == BPF_CORE_READ(mount, mnt.mnt_root) || entry == parent) {
			above = BPF_CORE_READ(mount, mnt_parent);
			if (above == mount)
				break;
			entry = BPF_CORE_READ(mount, mnt_mountpoint);
			mount = above;
			continue;
		}
		if (!file_part(record, entry)) {
			record->flags |= WIRE_FILE_CUT;
			break;
		}
		entry = parent;
	}
	if (!record->part_count) {
		/* What is in no folder ("[eventfd]", memory files) still has a name. */
		record->flags |= WIRE_FILE_BARE;
		file_part(record, first);
	}
}

/*
 * A connected Unix socket: the path that it or the one at its other end is bound to (clients have none of
 * their own), and the process that the kernel noted when they were connected. Of a pair made by socketpair,
 * which has no path, that is only the one that made it.
 */
static __always_inline void unix_peer(struct unix_sock *sock, struct wire_file *record)
{
	struct unix_address *address = BPF_CORE_READ(sock, addr);
	struct unix_sock *peer = (struct unix_sock *)BPF_CORE_READ(sock, peer);
	struct pid *pid = BPF_CORE_READ((struct sock *)sock, sk_peer_pid);

	if (address)
		record->flags |= WIRE_FILE_BOUND;
	else if (peer)
		address = BPF_CORE_READ(peer, addr);
	if (!address || BPF_CORE_READ(address, len) <= (int)sizeof(__u16))
		return;
	bpf_probe_read_kernel_str(record->parts[0], WIRE_FILE_PART, &address->name[0].sun_path);
	record->part_count = 1;
	if (!peer || !pid)
		return;
	record->peer = BPF_CORE_READ(pid, numbers[0].nr);
	if (settings.pid_namespace)
		record->peer = visible_id(pid, record->peer);
}

static __always_inline void socket_peer(struct file *file, struct wire_file *record)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sock = BPF_CORE_READ(socket, sk);
	__u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);

	if (family == FAMILY_UNIX) {
		record->kind = WIRE_FILE_UNIX;
		if (bpf_core_field_exists(struct unix_sock, peer))
			unix_peer((struct unix_sock *)sock, record);
	} else if (family == FAMILY_INET) {
		record->kind = WIRE_FILE_INET;
		BPF_CORE_READ_INTO((__u32 *)record->address, sock, __sk_common.skc_daddr);
		record->port = BPF_CORE_READ(sock, __sk_common.skc_dport);
	} else if (family == FAMILY_INET6) {
		record->kind = WIRE_FILE_INET6;
		BPF_CORE_READ_INTO((struct in6_addr *)record->address, sock, __sk_common.skc_v6_daddr);
		record->port = BPF_CORE_READ(sock, __sk_common.skc_dport);
	}
}

/*
 * Names the file behind a key, unless that was done. A function of its own, with plain numbers for arguments,
 * so that the verifier looks at it once. Returns nothing of use.
 */
__noinline int file_name(__u64 file_address, __u64 key, __u64 magic)
{
	struct file *file = (struct file *)file_address;
	struct wire_file *record;
	__u8 one = 1;

	if (bpf_map_lookup_elem(&named_files, &key))
		return 0;
	record = record_reserve(WIRE_FILE, sizeof(*record));
	if (!record)
		return 0;
	record->key = key;
	record->kind = WIRE_FILE_PATH;
	record->flags = 0;
	record->part_count = 0;
	record->port = 0;
	record->pad = 0;
	record->peer = record->pad2 = 0;
	bpf_probe_read_kernel_str(record->device, sizeof(record->device),
	                          BPF_CORE_READ(file, f_inode, i_sb, s_id));
	__builtin_memset(record->address, 0, sizeof(record->address));
	if (magic == PIPEFS_MAGIC)
		record->kind = WIRE_FILE_PIPE;
	else if (magic == SOCKFS_MAGIC)
		socket_peer(file, record);
	else
		file_path(file, record);
	record_submit(record);
	bpf_map_update_elem(&named_files, &key, &one, BPF_ANY);
	return 0;
}

/* What tells a file from all others, also from one that gets its inode number later. */
static __always_inline __u64 file_key(struct file *file)
{
	__u64 number = inode_number(file), device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	__u64 generation = BPF_CORE_READ(file, f_inode, i_generation);

	return (number * 0x9e3779b97f4a7c15ULL) ^ (device << 32 | generation) * 0xc2b2ae3d27d4eb4fULL;
}

/* Key of a file, which is named if it was not before. */
static __always_inline __u64 file_named(struct file *file)
{
	unsigned long magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
	__u64 key = magic == ANON_INODE_MAGIC ? (__u64)BPF_CORE_READ(file, f_op) : file_key(file);

	file_name((__u64)file, key, magic);
	return key;
}

/*
 * Identity of what descriptor `fd` of `task` refers to, 0 if there is nothing; with `peer`, for a Unix
 * socket, of the one at its other end. `key`, unless it is NULL, gets the key of a record that names it: with
 * `peer`, as who has the other end knows it, which of sockets other than Unix ones is not known.
 */
static __always_inline __u64 file_object(struct task_struct *task, __u32 fd, bool peer, __u64 *key)
{
	struct files_struct *files = task->files;
	struct file *file = NULL, *other, **table;
	unsigned long magic;
	__u64 private;

	if (!files || fd >= BPF_CORE_READ(files, fdt, max_fds))
		return 0;
	table = BPF_CORE_READ(files, fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	if (!file)
		return 0;
	magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
	if (magic == ANON_INODE_MAGIC) {
		/* These share one inode, and have a name that tells no more than their type. */
		private = (__u64)BPF_CORE_READ(file, private_data);
		if (key)
			*key = file_named(file);
		return private ?: (__u64)file;
	}
	if (peer && magic == SOCKFS_MAGIC) {
		other = peer_file(file);
		if (key)
			*key = other ? file_named(other) : 0;
		return inode_number(other) ?: inode_number(file);
	}
	if (key)
		*key = file_named(file);
	return inode_number(file);
}

static long area_seen(struct task_struct *task __attribute__((unused)), struct vm_area_struct *area,
                      struct file **file)
{
	*file = BPF_CORE_READ(area, vm_file);
	return 0;
}

/* Key of the file that is mapped at an address of the current task, 0 if there is none or it cannot be told.
 */
static __always_inline __u64 mapped_file(struct task_struct *task, __u64 address)
{
	struct file *file = NULL;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma))
		return 0;
	/* Fails where the mappings are being changed. */
	if (bpf_find_vma(task, address, area_seen, &file, 0) || !file)
		return 0;
	return file_named(file);
}

/* Key of the first file that is ready in the epoll of a wait that is just over, 0 if it cannot be told. */
static __always_inline __u64 epoll_ready(struct eventpoll *epoll)
{
	struct list_head *first = BPF_CORE_READ(epoll, rdllist.next);
	struct epitem *item = (void *)first - bpf_core_field_offset(struct epitem, rdllink);
	struct file *file;

	if (!first || (void *)first == (void *)epoll + bpf_core_field_offset(struct eventpoll, rdllist))
		return 0;
	file = BPF_CORE_READ(item, ffd.file);
	return file ? file_named(file) : 0;
}

static __always_inline enum syscall_kind syscall_kind(__s32 number)
{
	__u32 index = number;

	if (index >= SETTINGS_SYSCALLS)
		return SYSCALL_OTHER;
	/* Bounded once more where it is used: the verifier forgets a bound over a spill. */
	asm volatile("" : "+r"(index));
	index &= SETTINGS_SYSCALLS - 1;
	return settings.syscall_kinds[index];
}

/* Identity of the file that a system call of the current task is about. */
static __always_inline __u64 syscall_object(struct task_struct *task, __s32 number, const __u64 *args,
                                            bool peer, __u64 *key)
{
	__s32 fd = args[0];

	switch (syscall_kind(number)) {
	case SYSCALL_FD:
	case SYSCALL_EPOLL:
		return file_object(task, fd, peer, key);
	case SYSCALL_POLL:
		/* Only of one descriptor can be said what the wait is about. */
		if (args[1] != 1 || bpf_probe_read_user(&fd, sizeof(fd), (void *)args[0]))
			return 0;
		return file_object(task, fd, peer, key);
	default:
		return 0;
	}
}

#endif
