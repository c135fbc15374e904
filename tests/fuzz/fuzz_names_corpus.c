// SPDX-License-Identifier: GPL-2.0-only
/* Writes the inputs from which fuzz_names starts into a directory: fuzz_names_corpus DIRECTORY */
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/corpus.h"

static const char *const files[] = {"names.so", "names-stripped.so", "names-mini.so", "names-cxx.so"};

/* The first byte, modulo 5, says what the rest is: ) 1, * 2, + 3, ',' 4. */
static const char *const texts[] = {
    ")00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a program (deleted)\n",
    ")7f0000002000-7f0000003000 rwxp 00000000 00:00 0 \n7ffd0000-7ffe0000 r-xp 00000000 00:00 0 [vdso]\n",
    "*7f00 10 LazyCompile:*step /app.js:3\n7f20 8 old\n7f20 8 new\n",
    "+\x02\xe0\x08\x09\xd8\x08\x09\x88\x41\x89\x05\xf0\x05\x03\x09\x06",
    "+\x01\x02\x02\x06\x01\x04\xfe\x08\x04",
    ",_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIlEENS0_3arrIPcLm1EEEEEviT0_T1_",
    ",void at::native::f<int (*)(int)>(int)::{lambda(int)#1}::operator()(int) const [clone .isra.0]",
};

int main(int argc, char **argv)
{
	static char bytes[65536 - 1];
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
		if (corpus_save(argv[1], files[i], "\0", 1, bytes, size))
			return 1;
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		snprintf(name, sizeof(name), "text-%zu", i);
		if (corpus_save(argv[1], name, NULL, 0, texts[i], strlen(texts[i])))
			return 1;
	}
	return 0;
}
