/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plants that wait for storage: reads past the page cache, and faults on a mapped file that is not in it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

#define PLACES (1u << PLACE_LAUNCHER | 1u << PLACE_THREAD | 1u << PLACE_WORKER | 1u << PLACE_PROCESS)
/*
 * Large blocks, few waits: the end of each is blurred by what it takes to wake an idle CPU, which the kernel
 * counts as the thread's CPU time (where a wake skips the next clock update) and the report as the wait's.
 */
#define READ_BYTES  (1u << 20)
#define BLOCK_BYTES 65536
#define PAGE_BYTES  4096

struct storage {
	int file;
	size_t bytes, at;
	char *buffer, *map;
	uint64_t sum;
};

static struct storage *open_scratch(struct plant *plant, int flags)
{
	struct storage *storage = calloc(1, sizeof(*storage));
	struct stat status = {0};

	check(storage, "calloc");
	check(plant->scratch, "a plant on storage without --scratch");
	plant->state = storage;
	storage->file = open(plant->scratch, O_RDONLY | O_CLOEXEC | flags);
	check(storage->file >= 0 && !fstat(storage->file, &status), plant->scratch);
	storage->bytes = (size_t)status.st_size / READ_BYTES * READ_BYTES;
	check(storage->bytes > 0, "size of the scratch file");
	return storage;
}

static void open_uncached(struct plant *plant)
{
	struct storage *storage = open_scratch(plant, O_DIRECT);

	storage->buffer = aligned_alloc(PAGE_BYTES, READ_BYTES);
	check(storage->buffer, "aligned_alloc");
	storage->buffer[0] = 0;
}

static void read_uncached(struct plant *plant)
{
	struct storage *storage = plant->state;
	uint64_t end = now_ns() + plant->duration_ns;

	do {
		check(pread(storage->file, storage->buffer, READ_BYTES, (off_t)storage->at) == READ_BYTES,
		      "pread");
		storage->at = (storage->at + READ_BYTES) % storage->bytes;
	} while (now_ns() < end);
}

static void close_storage(struct plant *plant)
{
	struct storage *storage = plant->state;

	if (storage->map)
		munmap(storage->map, storage->bytes);
	close(storage->file);
	free(storage->buffer);
	free(storage);
}

/* Unmaps the file, drops it from the page cache and maps it again; no read-ahead. */
static void map_anew(struct storage *storage)
{
	if (storage->map)
		munmap(storage->map, storage->bytes);
	posix_fadvise(storage->file, 0, 0, POSIX_FADV_DONTNEED);
	storage->map = mmap(NULL, storage->bytes, PROT_READ, MAP_SHARED, storage->file, 0);
	check(storage->map != MAP_FAILED, "mmap of the scratch file");
	madvise(storage->map, storage->bytes, MADV_RANDOM);
	storage->at = 0;
}

static void map_uncached(struct plant *plant)
{
	map_anew(open_scratch(plant, 0));
}

/* Pages are taken BLOCK_BYTES apart, so that none brings its neighbours along; later laps take those between.
 */
static void read_mapped(struct plant *plant)
{
	struct storage *storage = plant->state;
	uint64_t end = now_ns() + plant->duration_ns;

	do {
		storage->sum += *(volatile unsigned char *)(storage->map + storage->at);
		storage->at += BLOCK_BYTES;
		if (storage->at >= storage->bytes)
			storage->at = storage->at % BLOCK_BYTES + PAGE_BYTES;
	} while (now_ns() < end && storage->at < storage->bytes);
}

/* Before the last lap ends the file is dropped from the cache; that is not part of a stall. */
static void renew_map(struct plant *plant)
{
	struct storage *storage = plant->state;

	if (storage->at % BLOCK_BYTES == BLOCK_BYTES - PAGE_BYTES)
		map_anew(storage);
}

const struct plant_kind kinds_of_storage[] = {
    {.name = "disk",
     .code = "wait.disk",
     .measure = MEASURE_BLOCKED,
     .places = PLACES,
     .set_up = open_uncached,
     .run = read_uncached,
     .tear_down = close_storage},
    {.name = "major_fault",
     .code = "memory.major_fault",
     .measure = MEASURE_BLOCKED,
     .places = PLACES,
     .set_up = map_uncached,
     .prepare = renew_map,
     .run = read_mapped,
     .tear_down = close_storage},
    {.name = NULL},
};
