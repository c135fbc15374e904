// SPDX-License-Identifier: GPL-2.0-only
#include "inject/places.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "inject/elf_memory.h"

#define PAGE     4096u
#define DISTANCE (64u << 20) /* from the next mapping: stacks, heaps and new mappings grow into that */
#define LOWEST   0x10000000ULL
#define HIGHEST  0x7fff00000000ULL
#define MAX_CODE (64u << 20)   /* bytes of a C library */
#define SPREAD   (64ull << 30) /* bytes of a gap that are made use of */

static bool read_process(void *context, uint64_t address, void *to, size_t size)
{
	return pread(*(int *)context, to, size, (off_t)address) == (ssize_t)size;
}

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static const struct target_mapping *find_code(const struct target_maps *maps, const char *prefix)
{
	for (size_t i = 0; i < maps->count; i++)
		if (maps->items[i].executable && has_prefix(maps->items[i].name, prefix))
			return &maps->items[i];
	return NULL;
}

static uint64_t find_function(const struct target_maps *maps, int memory, const char *const *libraries,
                              const char *name)
{
	for (; *libraries; libraries++) {
		const struct target_mapping *code = find_code(maps, *libraries);
		uint64_t base = code ? target_maps_base(maps, code) : 0, address;
		const struct target_mapping *place;
		struct elf_memory elf;

		if (!base || !elf_memory_open(&elf, base, read_process, &memory))
			continue;
		address = elf_memory_function(&elf, name);
		place = address ? target_maps_find(maps, address) : NULL;
		if (place && place->executable)
			return address;
	}
	return 0;
}

/* A call with what returns from it, and the end of every signal handler: every glibc has both. */
static bool find_instructions(int memory, struct c_library *library)
{
	static const unsigned char call[] = {0x0f, 0x05, 0xc3};
	static const unsigned char restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
	const struct target_mapping *code = library->library;
	size_t size = (size_t)(code->end - code->start);
	unsigned char *bytes = size <= MAX_CODE ? malloc(size) : NULL, *found;

	if (bytes && read_process(&memory, code->start, bytes, size)) {
		found = memmem(bytes, size, call, sizeof(call));
		library->call = found ? code->start + (uint64_t)(found - bytes) : 0;
		found = memmem(bytes, size, restorer, sizeof(restorer));
		library->restorer = found ? code->start + (uint64_t)(found - bytes) : 0;
	}
	free(bytes);
	return library->call && library->restorer;
}

enum inject_reason places_c_library(const struct target_maps *maps, int memory, struct c_library *library,
                                    struct error *error)
{
	/* Before glibc 2.34 its parts were libraries of their own; "libc-2." is how files were named then. */
	static const char *const c[] = {"libc.so.6", "libc-2.", NULL};
	static const char *const threads[] = {"libc.so.6", "libpthread.so.0", "libpthread-2.", "libc-2.",
	                                      NULL};
	static const char *const loading[] = {"libc.so.6", "libdl.so.2", "libdl-2.", NULL};
	struct payload_constants *calls = &library->calls;
	const struct {
		const char *const *libraries;
		const char *name;
		uint64_t *address;
	} functions[] = {
	    {threads, "pthread_create", &calls->pthread_create},
	    {threads, "pthread_detach", &calls->pthread_detach},
	    {threads, "pthread_self", &calls->pthread_self},
	    {threads, "pthread_join", &calls->pthread_join},
	    {c, "munmap", &calls->munmap},
	    {c, "__errno_location", &calls->errno_location},
	    {loading, "dlopen", &calls->dlopen},
	    {loading, "dlsym", &calls->dlsym},
	    {loading, "dlerror", &calls->dlerror},
	};

	memset(library, 0, sizeof(*library));
	library->library = find_code(maps, "libc.so.6");
	if (!library->library)
		library->library = find_code(maps, "libc-2.");
	library->threads = find_code(maps, "libpthread");
	if (!library->library) {
		bool musl = find_code(maps, "ld-musl") || find_code(maps, "libc.musl");

		error_set(error, -1, "%s",
		          musl ? "its C library is musl; only glibc is supported"
		               : "it has no shared C library (linked statically)");
		return INJECT_NO_LIBC;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		*functions[i].address =
		    find_function(maps, memory, functions[i].libraries, functions[i].name);
		if (*functions[i].address)
			continue;
		error_set(error, -1, "no %s was found in its C library", functions[i].name);
		return INJECT_NO_LIBC;
	}
	if (!find_instructions(memory, library)) {
		error_set(error, -1, "its C library lacks the instructions that are to be borrowed");
		return INJECT_NO_LIBC;
	}
	return INJECT_OK;
}

bool places_has_cuda(const struct target_maps *maps)
{
	return find_code(maps, "libcuda.so") != NULL;
}

uint64_t places_free(const struct target_maps *maps, size_t size)
{
	for (size_t i = maps->count; i-- > 1;) {
		const struct target_mapping *above = &maps->items[i], *below = &maps->items[i - 1];
		uint64_t at, spare, offset = 0;

		/* Stacks grow down. */
		if (!strcmp(above->name, "[stack]") || above->start > HIGHEST || above->start < below->end ||
		    above->start - below->end < 2ull * DISTANCE + size)
			continue;
		/* Anywhere in there, so that nobody else who looks for a place comes upon the same. */
		spare = above->start - below->end - 2ull * DISTANCE - size;
		if (getrandom(&offset, sizeof(offset), GRND_NONBLOCK) != sizeof(offset))
			offset = 0;
		offset %= (spare < SPREAD ? spare : SPREAD) + 1;
		at = (above->start - DISTANCE - size - offset) & ~(uint64_t)(PAGE - 1);
		if (at >= LOWEST)
			return at;
	}
	return 0;
}

/* The code in the file, as its program headers tell. */
static const Elf64_Phdr *find_segment(const unsigned char *bytes, size_t size)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
	const Elf64_Phdr *segment = (const Elf64_Phdr *)(bytes + header->e_phoff);

	for (unsigned int i = 0; i < header->e_phnum; i++, segment++)
		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
		    segment->p_offset + segment->p_filesz <= size)
			return segment;
	return NULL;
}

uint64_t places_bridge(const struct target_maps *maps, int memory, const void *bridge, size_t bridge_bytes)
{
	const unsigned char *bytes = bridge;
	const Elf64_Phdr *code = find_segment(bytes, bridge_bytes);
	unsigned char *copy = code ? malloc(code->p_filesz) : NULL;
	uint64_t found = 0;

	for (size_t i = 0; copy && i < maps->count && !found; i++) {
		const struct target_mapping *mapping = &maps->items[i];
		uint64_t base;

		if (!mapping->executable || !has_prefix(mapping->name, PLACES_BRIDGE_NAME))
			continue;
		base = target_maps_base(maps, mapping);
		if (base && read_process(&memory, base + code->p_vaddr, copy, code->p_filesz) &&
		    !memcmp(copy, bytes + code->p_offset, code->p_filesz))
			found = base;
	}
	free(copy);
	return found;
}
