// SPDX-License-Identifier: GPL-2.0-only
/* Writes the inputs from which fuzz_debug starts into a directory: fuzz_debug_corpus DIRECTORY */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_debug.h"

static const char *const files[] = {"names.so",      "names-cxx.so",     "inlined-2.so", "inlined-4.so",
                                    "inlined-64.so", "inlined-whole.so", "inlined-gz.so"};

static int save(const char *directory, const char *name, Elf *elf)
{
	static uint8_t bytes[1 << 20];
	struct debug_sections sections;
	struct fuzz_debug_head head;
	size_t size = 0;
	int failed;

	debug_sections_read(&sections, elf);
	for (int i = 0; i < DEBUG_SECTIONS; i++) {
		const struct debug_bytes *section = &sections.items[i];

		head.sizes[i] = (uint32_t)section->size;
		if (section->size > sizeof(bytes) - size) {
			fprintf(stderr, "%s is too large\n", name);
			return 1;
		}
		if (section->size)
			memcpy(bytes + size, section->bytes, section->size);
		size += section->size;
	}
	failed = corpus_save(directory, name, &head, sizeof(head), bytes, size);
	debug_sections_free(&sections);
	return failed;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	elf_version(EV_CURRENT);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char path[600];
		int fd, failed;
		Elf *elf;

		snprintf(path, sizeof(path), "%s/%s", UNIT_FIXTURES, files[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
		if (!elf) {
			perror(path);
			return 1;
		}
		failed = save(argv[1], files[i], elf);
		elf_end(elf);
		close(fd);
		if (failed)
			return 1;
	}
	return 0;
}
