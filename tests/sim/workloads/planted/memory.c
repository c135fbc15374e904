/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plants in memory management.
 */
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/sim/workloads/planted/planted.h"

#define PLACES      (1u << PLACE_LAUNCHER | 1u << PLACE_WORKER)
#define PAGE_BYTES  ((size_t)4096)
#define CHUNK_BYTES (256 * PAGE_BYTES)

/* Touches fresh pages for so long; making and unmaking the mappings is not counted. */
static void touch_fresh_pages(struct plant *plant)
{
	uint64_t begin = cpu_ns(), touched = 0;

	do {
		char *chunk =
		    mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint64_t start;

		check(chunk != MAP_FAILED, "mmap");
		madvise(chunk, CHUNK_BYTES, MADV_NOHUGEPAGE);
		start = cpu_ns();
		for (size_t at = 0; at < CHUNK_BYTES; at += PAGE_BYTES)
			*(volatile char *)(chunk + at) = 1;
		touched += cpu_ns() - start;
		munmap(chunk, CHUNK_BYTES);
	} while (cpu_ns() - begin < plant->duration_ns);
	plant->aside_ns = cpu_ns() - begin - touched;
}

/*
 * Another thread fills a big mapping, with the lock of the address space held for reading, while the runner
 * wants a mapping of its own, for which the lock is needed for writing.
 */
struct filler {
	pthread_t thread;
	sem_t wanted, begun;
	size_t bytes;
	char *area; /* address space that is kept: filled, emptied, filled again */
	uint32_t finished, asked;
	bool over;
};

#define FILL_BYTES_PER_MS (3ull << 20) /* a page takes about a microsecond */

static void *fill_areas(void *argument)
{
	struct filler *filler = argument;

	for (;;) {
		while (sem_wait(&filler->wanted))
			;
		if (__atomic_load_n(&filler->over, __ATOMIC_ACQUIRE))
			return NULL;
		sem_post(&filler->begun);
		check(!madvise(filler->area, filler->bytes, MADV_POPULATE_WRITE), "madvise");
		__atomic_add_fetch(&filler->finished, 1, __ATOMIC_RELEASE);
		madvise(filler->area, filler->bytes, MADV_DONTNEED);
	}
}

static void start_filler(struct plant *plant)
{
	struct filler *filler = calloc(1, sizeof(*filler));

	check(filler, "calloc");
	plant->state = filler;
	filler->bytes =
	    (plant->duration_ns * FILL_BYTES_PER_MS / 1000000 + CHUNK_BYTES) / PAGE_BYTES * PAGE_BYTES;
	filler->area = mmap(NULL, filler->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(filler->area != MAP_FAILED, "mmap");
	madvise(filler->area, filler->bytes, MADV_NOHUGEPAGE);
	sem_init(&filler->wanted, 0, 0);
	sem_init(&filler->begun, 0, 0);
	/* On CPUs of their own: else the filler, woken by the runner, would keep it from running. */
	pin_to(cpu_allowed(false));
	filler->thread = start_thread("filler", fill_areas, filler);
	pin_to(cpu_allowed(true));
}

static void begin_filling(struct plant *plant)
{
	struct filler *filler = plant->state;

	filler->asked++;
	sem_post(&filler->wanted);
	while (sem_wait(&filler->begun))
		;
}

static void want_mapping(struct plant *plant)
{
	struct filler *filler = plant->state;

	do {
		void *mapping = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		check(mapping != MAP_FAILED, "mmap");
		munmap(mapping, PAGE_BYTES);
	} while (__atomic_load_n(&filler->finished, __ATOMIC_ACQUIRE) != filler->asked);
}

static void end_filler(struct plant *plant)
{
	struct filler *filler = plant->state;

	__atomic_store_n(&filler->over, true, __ATOMIC_RELEASE);
	sem_post(&filler->wanted);
	pthread_join(filler->thread, NULL);
	munmap(filler->area, filler->bytes);
	free(filler);
}

const struct plant_kind kinds_of_memory[] = {
    {.name = "minor_fault",
     .code = "memory.minor_fault",
     .places = PLACES,
     .never_blocks = true,
     .run = touch_fresh_pages},
    {.name = "mmap_lock",
     .code = "memory.mmap_lock",
     .measure = MEASURE_BLOCKED,
     .places = 1u << PLACE_LAUNCHER,
     .set_up = start_filler,
     .prepare = begin_filling,
     .run = want_mapping,
     .tear_down = end_filler},
    {.name = NULL},
};
