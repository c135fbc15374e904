// SPDX-License-Identifier: GPL-2.0-only
#include "collect/bpf_nccl.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "bpf/settings.h"
#include "collect/bpf_exports.h"
#include "collect/bpf_uprobe.h"
#include "collect/process_info.h"
#include "collect/pure_nccl_calls.h"
#include "symbols/elf_file.h"
#include "whyidle.skel.h"

#define MAX_PLACES 32

/* Functions that are probed by the same programs. */
struct group {
	uint64_t offsets[MAX_PLACES], cookies[MAX_PLACES];
	uint32_t count;
};

struct functions {
	struct group called, creates;
};

/* Several names of one place are one function. */
static int add_function(void *context, const struct bpf_export *export)
{
	struct functions *functions = context;
	bool creates = false;
	uint64_t cookie = export->code ? nccl_call_cookie(export->name, &creates) : 0;
	struct group *group = creates ? &functions->creates : &functions->called;

	if (!cookie || group->count == MAX_PLACES)
		return 0;
	for (uint32_t i = 0; i < group->count; i++) {
		if (group->offsets[i] == export->offset)
			return 0;
	}
	group->offsets[group->count] = export->offset;
	group->cookies[group->count++] = cookie;
	return 0;
}

static int link_group(struct bpf_nccl *nccl, const struct bpf_program *program, int fd,
                      const struct group *group, bool at_return)
{
	struct bpf_uprobe_places places = {group->offsets, group->cookies, group->count};
	char path[32];
	int link, *slot;

	if (bpf_program__fd(program) < 0)
		return -ENOTSUP;
	link =
	    bpf_uprobe_multi_attach(bpf_program__fd(program), bpf_exports_path(fd, path), &places, at_return);
	slot = link < 0 ? NULL : array_add(&nccl->links);
	if (slot)
		*slot = link;
	else if (link >= 0)
		close(link);
	return slot ? 0 : link < 0 ? link : -ENOMEM;
}

/* All of them or none: operations that are counted only in part would have wrong numbers. */
static int link_functions(struct bpf_nccl *nccl, const struct whyidle_bpf *programs, int fd,
                          const struct functions *functions)
{
	size_t earlier = nccl->links.count;
	int err = 0;

	/* The return first: no entry may be seen whose return is not. And communicators before their use. */
	if (functions->creates.count) {
		err = link_group(nccl, programs->progs.nccl_created, fd, &functions->creates, true);
		err = err ?: link_group(nccl, programs->progs.nccl_creates, fd, &functions->creates, false);
	}
	if (!err && functions->called.count)
		err = link_group(nccl, programs->progs.nccl_called, fd, &functions->called, false);
	while (err && nccl->links.count > earlier)
		close(nccl->links.items[--nccl->links.count]);
	return err;
}

static int probe_file(struct bpf_nccl *nccl, const struct whyidle_bpf *programs, int fd, const char *name,
                      struct error *error)
{
	struct functions functions = {0};
	Elf *elf;
	int err;

	elf = elf_file_open(fd);
	if (elf) {
		bpf_exports_visit(elf, add_function, &functions);
		/* Linked statically it need not be exported. */
		if (!functions.called.count)
			bpf_symbols_visit(elf, add_function, &functions);
	}
	elf_end(elf);
	err = link_functions(nccl, programs, fd, &functions);
	if (err)
		return error_set(error, err, "cannot probe the functions of %s: %s%s", name, strerror(-err),
		                 err == -EACCES || err == -EPERM ? " (CAP_SYS_ADMIN is needed)" : "");
	return (int)(functions.called.count + functions.creates.count);
}

static int attach_library(struct bpf_nccl *nccl, const struct whyidle_bpf *programs,
                          const struct cuda_library *library, struct error *error)
{
	const struct nccl_file *known;
	struct nccl_file *file;
	struct stat status;
	int result, fd;

	array_for_each (known, &nccl->files) {
		if (known->device == library->device && known->inode == library->inode)
			return 0;
	}
	fd = bpf_exports_open(library->path, &status);
	if (fd < 0)
		return 0; /* it has gone with its process */
	file = array_add(&nccl->files);
	if (!file) {
		close(fd);
		return error_no_memory(error);
	}
	*file = (struct nccl_file){.device = status.st_dev, .inode = status.st_ino};
	result = probe_file(nccl, programs, fd, library->name, error);
	close(fd);
	return result;
}

int bpf_nccl_attach(struct bpf_nccl *nccl, const struct whyidle_bpf *programs, uint32_t pid,
                    struct error *error)
{
	enum { LIBRARIES = 8 };
	struct cuda_library libraries[LIBRARIES];
	size_t count = process_nccl_libraries(pid, libraries, LIBRARIES);
	int probed = 0, err = 0;

	for (size_t i = 0; i < count; i++) {
		int one = attach_library(nccl, programs, &libraries[i], err ? NULL : error);

		if (one < 0 && !err)
			err = one;
		probed += one > 0 ? one : 0;
	}
	return err ? err : probed;
}

void bpf_nccl_free(struct bpf_nccl *nccl)
{
	int *link;

	array_for_each (link, &nccl->links)
		close(*link);
	array_free(&nccl->links);
	array_free(&nccl->files);
}
