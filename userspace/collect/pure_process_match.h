/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Texts of /proc/PID taken apart: what a process is, and whether it belongs to a control group or a
 * container. Pure; the texts come from the kernel, but names in them from the processes.
 */
#ifndef WHYIDLE_COLLECT_PROCESS_MATCH_H
#define WHYIDLE_COLLECT_PROCESS_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What /proc/PID/stat says. */
struct process_stat {
	uint32_t parent;
	uint64_t start_ticks;  /* since boot: with the pid it names a process for good */
	uint64_t memory_bytes; /* size of the address space: it changes when something is mapped; 0: a kernel
	                          thread */
};

/* A process and the program that it runs: a process id alone may come again, and exec keeps it. */
struct process_identity {
	uint32_t pid;
	uint64_t start_ticks; /* as in struct process_stat, 0 not known */
	uint64_t image;       /* process_image(), 0 not known */
};

/* What is not known of either of them says nothing. */
bool process_identity_same(const struct process_identity *a, const struct process_identity *b);

bool process_stat_parse(const char *text, struct process_stat *stat);

/*
 * `text` is a whole /proc/PID/cgroup. True if the process is in the group `path` or below it, in any
 * hierarchy;
 * "/sys/fs/cgroup" and the name of a version 1 hierarchy may come first in `path`.
 */
bool cgroup_is_below(const char *text, const char *path);

/*
 * True if a container with this id, or one that begins so, holds the process: the id stands in the name of
 * its group, by itself or after what container engines put before it ("docker-", "cri-containerd-", "crio-",
 * "libpod-").
 */
bool cgroup_in_container(const char *text, const char *id);

/*
 * The id of the container in the name of the innermost group that has one (64 hexadecimal digits, as all
 * engines write it). Returns false if there is none.
 */
bool cgroup_container(const char *text, char id[65]);

/*
 * The uid of the Kubernetes pod that holds the process, with dashes as the API has it (36 characters; of a
 * static pod 32 digits). It follows "pod" in the name of a group below one that begins with "kubepods". False
 * if there is none.
 */
bool cgroup_pod(const char *text, char uid[37]);

/* Name of a mapped file without the mark of a deleted one. True if it has that mark. */
bool mapped_path_deleted(const char *path, size_t *length);

/* "libc.so.6", "libpthread.so.0", "libc-2.31.so", "libpthread-2.31.so": glibc, not musl. */
bool is_c_library(const char *name);

/* "libcuda.so", "libcuda.so.1", "libcudart.so.13", "libcudart-0a1b2c.so.12.1" (as wheels rename it). */
bool is_cuda_library(const char *name);

/* "libnccl.so.2", also as wheels rename it; "libtorch_cuda.so", into which PyTorch may link it. */
bool is_nccl_library(const char *name);

/* True for the driver; a runtime alone, mapped by merely importing a framework, is not yet use of CUDA. */
bool is_cuda_driver(const char *name);

#endif
