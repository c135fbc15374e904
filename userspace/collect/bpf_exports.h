/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions that a library exports, and where they lie in its file, for uprobes. The file is not trusted. */
#ifndef WHYIDLE_COLLECT_BPF_EXPORTS_H
#define WHYIDLE_COLLECT_BPF_EXPORTS_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct bpf_export {
	const char *name; /* without version, in memory of the Elf */
	bool code;        /* a function that lies in the file */
	uint64_t offset;  /* of code, in the file */
};

/*
 * Visits what the table of exported symbols defines. A function may come several times, under several names
 * or versions. Ends early when `visit` returns anything but 0, and returns that.
 */
int bpf_exports_visit(Elf *elf, int (*visit)(void *context, const struct bpf_export *export), void *context);

/* The same for all symbols of a file that was not stripped. */
int bpf_symbols_visit(Elf *elf, int (*visit)(void *context, const struct bpf_export *export), void *context);

/* Opens a regular file; never waits for it. Returns a descriptor or a negative errno (-EINVAL: no file). */
int bpf_exports_open(const char *path, struct stat *status);

/* A path that leads to an open file, whatever has become of the one it was opened by. */
const char *bpf_exports_path(int fd, char path[32]);

#endif
