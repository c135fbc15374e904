// SPDX-License-Identifier: GPL-2.0-only
/* Writes the inputs from which fuzz_names starts into a directory: fuzz_names_corpus DIRECTORY */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_names.h"

static const char *const files[] = {"names.so", "names-stripped.so", "names-mini.so", "names-cxx.so",
                                    "inlined-whole.so"};

/* fuzz_names.h says what the first byte means. */
static const char *const texts[] = {
    "+00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a program (deleted)\n",
    "+7f0000002000-7f0000003000 rwxp 00000000 00:00 0 \n7ffd0000-7ffe0000 r-xp 00000000 00:00 0 [vdso]\n",
    ",7f00 10 LazyCompile:*step /app.js:3\n7f20 8 old\n7f20 8 new\n",
    "-\x02\xe0\x08\x09\xd8\x08\x09\x88\x41\x89\x05\xf0\x05\x03\x09\x06",
    "-\x01\x02\x02\x06\x01\x04\xfe\x08\x04",
    "._ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIlEENS0_3arrIPcLm1EEEEEviT0_T1_",
    ".void at::native::f<int (*)(int)>(int)::{lambda(int)#1}::operator()(int) const [clone .isra.0]",
};

/* From the start of .eh_frame_hdr to the end of .eh_frame. */
static int save_unwind_tables(const char *directory, const char *name, const char *bytes, size_t size)
{
	const Elf64_Ehdr *file = (const void *)bytes;
	const Elf64_Phdr *segments = (const void *)(bytes + file->e_phoff);

	if (size < sizeof(*file) || file->e_phoff > size - file->e_phnum * sizeof(*segments))
		return 0;
	for (int i = 0; i < file->e_phnum; i++) {
		uint64_t start = segments[i].p_offset, end = 0;

		/* Of the segment that it lies in. */
		for (int j = 0; j < file->e_phnum; j++) {
			if (segments[j].p_type == PT_LOAD && start >= segments[j].p_offset)
				end = segments[j].p_offset + segments[j].p_filesz;
		}
		if (segments[i].p_type == PT_GNU_EH_FRAME && end > start && end <= size)
			return corpus_save(directory, name, "/", 1, bytes + start, end - start);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static _Alignas(8) char bytes[65536 - 1];
	char name[600];

	if (argc != 2)
		return 2;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		FILE *file;
		size_t size;

		snprintf(name, sizeof(name), "%s/%s", UNIT_FIXTURES, files[i]);
		file = fopen(name, "r");
		if (!file) {
			perror(name);
			return 1;
		}
		size = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
		snprintf(name, sizeof(name), "%s-unwind", files[i]);
		if (corpus_save(argv[1], files[i], "\0", 1, bytes, size) ||
		    save_unwind_tables(argv[1], name, bytes, size))
			return 1;
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		snprintf(name, sizeof(name), "text-%zu", i);
		if (corpus_save(argv[1], name, NULL, 0, texts[i], strlen(texts[i])))
			return 1;
	}
	return 0;
}
