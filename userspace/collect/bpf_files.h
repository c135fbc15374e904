/* SPDX-License-Identifier: GPL-2.0-only */
/* Files, pipes and sockets that the BPF programs name (struct wire_file) → strings of the session. */
#ifndef WHYIDLE_COLLECT_BPF_FILES_H
#define WHYIDLE_COLLECT_BPF_FILES_H

#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "bpf/events.h"
#include "trace/session.h"

struct bpf_files {
	struct index_map names;   /* key → id of the string */
	struct index_map devices; /* the same for what its file system is on */
};

/* Keeps a name. Returns 0 or -ENOMEM, with `error`. */
int bpf_files_add(struct bpf_files *files, const struct wire_file *wire, struct session_writer *writer,
                  struct error *error);

/* Id of the string that names the file with this key, 0 if there is none. */
uint32_t bpf_files_name(const struct bpf_files *files, uint64_t key);

/* Id of the string that names the device or kind of its file system; 0 for what is in no folder. */
uint32_t bpf_files_device(const struct bpf_files *files, uint64_t key);

void bpf_files_free(struct bpf_files *files);

#endif
