/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the inputs from which fuzz_ring starts into a directory: fuzz_ring_corpus DIRECTORY */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_bridge/ring.h"
#include "tests/fuzz/corpus.h"

#define CAPACITY 65536

struct ring {
	uint64_t head;
	uint8_t bytes[CAPACITY];
};

static int save(const char *directory, const char *name, const struct ring *ring)
{
	size_t size = ring->head < CAPACITY ? ring->head : CAPACITY;

	return corpus_save(directory, name, &ring->head, sizeof(ring->head), ring->bytes, size);
}

/* Adds a record, and `length` bytes of text behind it. */
static void add(struct ring *ring, const void *record, size_t size, uint16_t type, const char *text,
                size_t length)
{
	struct ring_record header = {.size = (size + length + 7) / 8 * 8, .type = type};
	uint8_t *at = ring->bytes + ring->head;

	memcpy(at, record, size);
	memcpy(at, &header, sizeof(header));
	if (length)
		memcpy(at + size, text, length);
	ring->head += header.size;
}

/* What a bridge writes first: hello, status, a name, a device. */
static void add_opening(struct ring *ring)
{
	static const char path[] = "/opt/lib/libcupti.so.13", text[] = "CUPTI runs", name[] = "_Z6kernelPf";
	struct ring_hello hello = {.pid = 1234, .cupti_version = 130000, .path_length = sizeof(path) - 1};
	struct ring_status status = {
	    .time_ns = 1500, .phase = RING_PHASE_RUNNING, .text_length = sizeof(text) - 1};
	struct ring_name first = {.id = 1, .length = sizeof(name) - 1};
	struct ring_device device = {.name = 1, .sm_count = 132, .uuid = {1, 2, 3}};

	add(ring, &hello, sizeof(hello), RING_HELLO, path, sizeof(path) - 1);
	add(ring, &status, sizeof(status), RING_STATUS, text, sizeof(text) - 1);
	add(ring, &first, sizeof(first), RING_NAME, name, sizeof(name) - 1);
	add(ring, &device, sizeof(device), RING_DEVICE, NULL, 0);
}

static void add_events(struct ring *ring)
{
	struct ring_kernel kernel = {.start_ns = 2000, .end_ns = 3000, .name = 1, .correlation = 5};
	struct ring_memcpy copy = {.start_ns = 3000, .end_ns = 3500, .bytes = 4096, .copy_kind = 1};
	struct ring_memset set = {.start_ns = 3500, .end_ns = 3600, .bytes = 64};
	struct ring_api api = {
	    .start_ns = 1900, .end_ns = 1950, .tid = 1234, .correlation = 5, .function = 1};
	struct ring_sync sync = {.start_ns = 3600, .end_ns = 3700, .type = 3};
	struct ring_overhead overhead = {.start_ns = 1600, .end_ns = 1700, .kind = 1};
	struct ring_range range = {.start_ns = 1700, .end_ns = 3800, .tid = 1234, .name = 1, .kind = 1};
	struct ring_loss loss = {.start_ns = 4000, .end_ns = 5000, .count = 3, .cause = RING_LOSS_RING};

	add(ring, &api, sizeof(api), RING_API, NULL, 0);
	add(ring, &kernel, sizeof(kernel), RING_KERNEL, NULL, 0);
	add(ring, &copy, sizeof(copy), RING_MEMCPY, NULL, 0);
	add(ring, &set, sizeof(set), RING_MEMSET, NULL, 0);
	add(ring, &sync, sizeof(sync), RING_SYNC, NULL, 0);
	add(ring, &overhead, sizeof(overhead), RING_OVERHEAD, NULL, 0);
	add(ring, &range, sizeof(range), RING_RANGE, NULL, 0);
	add(ring, &loss, sizeof(loss), RING_LOSS, NULL, 0);
}

int main(int argc, char **argv)
{
	static struct ring opening, all, padded;
	struct ring_record pad = {.size = CAPACITY, .type = RING_PAD};

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	add_opening(&opening);
	add_opening(&all);
	add_events(&all);
	add_opening(&padded);
	pad.size -= padded.head;
	memcpy(padded.bytes + padded.head, &pad, sizeof(pad));
	padded.head = CAPACITY;
	return save(argv[1], "ring-opening", &opening) || save(argv[1], "ring-all", &all) ||
	       save(argv[1], "ring-padded", &padded);
}
