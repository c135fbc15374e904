/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/bpf_exports.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <unistd.h>

#include "symbols/elf_file.h"

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

static int visit_table(Elf *elf, uint32_t type, int (*visit)(void *context, const struct bpf_export *export),
                       void *context)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf_Data *data;
	GElf_Sym symbol;
	int result = 0;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != type || !header.sh_entsize)
			continue;
		data = elf_file_data(section, ELF_FILE_SYMBOLS);
		for (int i = 0; data && !result && gelf_getsym(data, i, &symbol); i++) {
			struct bpf_export export = {.name =
			                                elf_file_text(elf, header.sh_link, symbol.st_name)};

			if (!export.name || symbol.st_shndx == SHN_UNDEF)
				continue;
			export.code = GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
			              file_offset(elf, symbol.st_value, &export.offset);
			result = visit(context, &export);
		}
		break;
	}
	return result;
}

int bpf_exports_visit(Elf *elf, int (*visit)(void *context, const struct bpf_export *export), void *context)
{
	return visit_table(elf, SHT_DYNSYM, visit, context);
}

int bpf_symbols_visit(Elf *elf, int (*visit)(void *context, const struct bpf_export *export), void *context)
{
	return visit_table(elf, SHT_SYMTAB, visit, context);
}

int bpf_exports_open(const char *path, struct stat *status)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (!fstat(fd, status) && S_ISREG(status->st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

const char *bpf_exports_path(int fd, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return path;
}
