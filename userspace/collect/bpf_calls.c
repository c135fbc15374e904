/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <gelf.h>
#include <libelf.h>

#include "bpf/settings.h"
#include "model/cuda_call.h"
#include "whyidle.skel.h"

#define MAX_FUNCTIONS 1024 /* of one file: the driver exports about 200 that are in the table */

/* A function to probe: where it is in the file, and what it is. */
struct function {
	uint64_t offset;
	const char *name; /* in the ELF's string table */
	bool blocks;
};

struct function_list {
	ARRAY(struct function)
};

/* Queries and events come in floods, take no time and explain nothing. */
static bool class_probed(enum cuda_class class)
{
	return class == CUDA_LAUNCH || class == CUDA_GRAPH_LAUNCH || class == CUDA_COPY ||
	       class == CUDA_MEMSET || class == CUDA_SYNC || class == CUDA_ALLOC ||
	       class == CUDA_HOST_ALLOC || class == CUDA_MODULE;
}

/* All functions of a class agree on whether they block. */
static bool class_blocks(enum cuda_class class)
{
	for (size_t i = 0; i < cuda_function_count; i++) {
		if (cuda_functions[i].class == class)
			return cuda_functions[i].blocks;
	}
	return false;
}

/* Place in the file of a symbol's value: uprobes are set by file offset. */
static bool file_offset(Elf *elf, uint64_t value, uint64_t *offset)
{
	GElf_Phdr segment;
	size_t count;

	if (elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, i, &segment) || segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
			continue;
		if (value >= segment.p_vaddr && value - segment.p_vaddr < segment.p_filesz) {
			*offset = value - segment.p_vaddr + segment.p_offset;
			return true;
		}
	}
	return false;
}

static int add_function(struct function_list *list, Elf *elf, const GElf_Sym *symbol, const char *name)
{
	enum cuda_class class;
	struct function *function;
	uint64_t offset;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF || !name)
		return 0;
	class = cuda_classify(name);
	if (!class_probed(class) || !file_offset(elf, symbol->st_value, &offset))
		return 0;
	/* Several names of one place are one function. */
	array_for_each (function, list) {
		if (function->offset == offset)
			return 0;
	}
	if (list->count == MAX_FUNCTIONS)
		return 0;
	function = array_add(list);
	if (!function)
		return -ENOMEM;
	function->offset = offset;
	function->name = name;
	function->blocks = class_blocks(class);
	return 0;
}

/* Functions of the file's table of exported symbols. The names belong to `elf`. */
static int list_functions(struct function_list *list, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf_Data *data;
	GElf_Sym symbol;
	int err = 0;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM || !header.sh_entsize)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && !err && gelf_getsym(data, i, &symbol); i++)
			err =
			    add_function(list, elf, &symbol, elf_strptr(elf, header.sh_link, symbol.st_name));
		break;
	}
	return err;
}

static int attach_one(struct bpf_calls *calls, struct bpf_program *program, const char *path,
                      const struct function *function, uint64_t cookie, bool at_return)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = cookie, .retprobe = at_return);
	struct bpf_link **slot, *link;

	if (bpf_program__fd(program) < 0)
		return -ENOTSUP;
	link = bpf_program__attach_uprobe_opts(program, -1, path, function->offset, &options);
	if (!link)
		return -errno;
	slot = array_add(&calls->links);
	if (!slot) {
		bpf_link__destroy(link);
		return -ENOMEM;
	}
	*slot = link;
	return 0;
}

static int attach_function(struct bpf_calls *calls, struct whyidle_bpf *programs, const char *path,
                           const struct function *function)
{
	uint64_t cookie = calls->names.count;
	char **name = array_add(&calls->names);
	int err;

	if (!name)
		return -ENOMEM;
	*name = strdup(function->name);
	if (!*name) {
		calls->names.count--;
		return -ENOMEM;
	}
	if (!function->blocks)
		return attach_one(calls, programs->progs.call_launches, path, function, cookie, false);
	/* The return first: no entry may be seen whose return is not. */
	err = attach_one(calls, programs->progs.call_returns, path, function, cookie, true);
	return err ? err : attach_one(calls, programs->progs.call_enters, path, function, cookie, false);
}

static int attach_file(struct bpf_calls *calls, struct whyidle_bpf *programs, int fd, const char *path,
                       struct error *error)
{
	struct function_list list = {0};
	int attached = 0, err = 0, first = 0;
	const struct function *function;
	Elf *elf;

	elf_version(EV_CURRENT);
	/* Read, not mapped: a file that is cut short meanwhile must not end this process. */
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		err = error_set(error, -ENOEXEC, "%s is not an ELF file", path);
	else if (list_functions(&list, elf))
		err = error_no_memory(error);
	if (!err) {
		array_for_each (function, &list) {
			int one = attach_function(calls, programs, path, function);

			attached += !one;
			if (one && !first)
				first = one;
		}
		if (first && !attached)
			err = error_set(
			    error, first, "cannot probe the functions of %s: %s%s", path, strerror(-first),
			    first == -EACCES || first == -EPERM ? " (CAP_SYS_ADMIN is needed)" : "");
	}
	array_free(&list);
	elf_end(elf);
	return err ? err : attached;
}

int bpf_calls_attach(struct bpf_calls *calls, struct whyidle_bpf *programs, const char *path,
                     struct error *error)
{
	struct calls_file *file;
	struct stat status;
	int result, fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return error_set(error, -EINVAL, "%s is not a file", path);
	}
	array_for_each (file, &calls->files) {
		if (file->device == status.st_dev && file->inode == status.st_ino) {
			close(fd);
			return 0;
		}
	}
	file = array_add(&calls->files);
	if (file) {
		file->device = status.st_dev;
		file->inode = status.st_ino;
		result = attach_file(calls, programs, fd, path, error);
	} else {
		result = error_no_memory(error);
	}
	close(fd);
	return result;
}

void bpf_calls_detach(struct bpf_calls *calls)
{
	struct bpf_link **link;

	array_for_each (link, &calls->links) {
		bpf_link__destroy(*link);
	}
	array_free(&calls->links);
}

void bpf_calls_free(struct bpf_calls *calls)
{
	char **name;

	bpf_calls_detach(calls);
	array_for_each (name, &calls->names) {
		free(*name);
	}
	array_free(&calls->names);
	array_free(&calls->files);
}
