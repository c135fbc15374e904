/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/nvtx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cupti_bridge/clock.h"
#include "cupti_bridge/nvtx_abi.h"

#define DEPTH_MOST   64                        /* open ranges of a thread that are told apart */
#define STARTED_MOST 4096                      /* open ranges of the process that were started, not pushed */
#define TEXT_BYTES   ((size_t)4 * 1024 * 1024) /* names that must be kept; pages are taken as touched */

/* A range that is open. Its name is an id, or a text where there was no ring yet. */
struct open_range {
	const void *domain;
	uint64_t start_ns;
	const char *text;
	uint32_t name;
	uint32_t tid;
};

/* Of a thread; small, for the C library may have to find room for it when the thread first calls. */
static __thread struct {
	uint32_t tid;
	uint32_t depth; /* may be larger than DEPTH_MOST: those above are not told */
	bool inside;    /* a signal handler that calls NVTX meets itself: it is not recorded */
	struct open_range open[DEPTH_MOST];
} mine;

static struct bridge *owner; /* NULL: there is no ring yet (atomic) */

/*
 * No locks here: a program may fork while another thread holds one, and its child would wait for it for ever.
 * A slot's id is SLOT_FREE, SLOT_TAKEN while its range is written or read, or the number that was given out.
 */
#define SLOT_FREE  0
#define SLOT_TAKEN UINT64_MAX
static struct {
	uint64_t last; /* number that was given last */
	struct {
		uint64_t id;
		struct open_range range;
	} open[STARTED_MOST];
} started;

static struct {
	char *memory; /* NULL: not mapped yet */
	size_t used;  /* may be beyond the end: what did not fit */
} texts;

void nvtx_begin(struct bridge *bridge)
{
	__atomic_store_n(&owner, bridge, __ATOMIC_RELEASE);
}

/* The bridge if it can be written to, NULL if there is none (yet), or not any more. */
static struct bridge *ready(void)
{
	struct bridge *bridge = __atomic_load_n(&owner, __ATOMIC_ACQUIRE);

	/* A bridge that was put in late takes its ring away again when it leaves. */
	if (!bridge || bridge->late || !bridge_is_owner(bridge) ||
	    __atomic_load_n(&bridge->muted, __ATOMIC_RELAXED))
		return NULL;
	return bridge;
}

static uint32_t my_tid(void)
{
	if (!mine.tid)
		mine.tid = (uint32_t)syscall(SYS_gettid);
	return mine.tid;
}

/* ---- texts ---- */

/* The first thread that needs it maps it; NULL if there is none. */
static char *text_memory(void)
{
	char *memory = __atomic_load_n(&texts.memory, __ATOMIC_ACQUIRE), *mapped;
	int saved = errno;

	if (memory)
		return memory;
	mapped = mmap(NULL, TEXT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	              -1, 0);
	if (mapped == MAP_FAILED)
		mapped = NULL;
	else if (__atomic_compare_exchange_n(&texts.memory, &memory, mapped, false, __ATOMIC_ACQ_REL,
	                                     __ATOMIC_ACQUIRE))
		memory = mapped;
	else
		munmap(mapped, TEXT_BYTES); /* another thread was first: memory is what it mapped */
	errno = saved;
	return memory;
}

/* A copy that stays for good; NULL if there is no room. */
static const char *keep_text(const char *text)
{
	size_t length = strnlen(text, RING_MAX_NAME), at;
	char *memory = text_memory();

	if (!memory || __atomic_load_n(&texts.used, __ATOMIC_RELAXED) >= TEXT_BYTES)
		return NULL;
	at = __atomic_fetch_add(&texts.used, length + 1, __ATOMIC_RELAXED);
	if (at + length + 1 > TEXT_BYTES)
		return NULL;
	memcpy(memory + at, text, length); /* the memory is zero: it ends there */
	return memory + at;
}

/* UTF-8 of a text of 32-bit characters, cut to what fits; what is no character becomes '?'. */
static const char *narrow(char *buffer, size_t size, const wchar_t *wide)
{
	size_t used = 0;

	for (; wide && *wide && used + 5 <= size; wide++) {
		uint32_t point = (uint32_t)*wide;

		if (point < 0x80) {
			buffer[used++] = (char)point;
		} else if (point < 0x800) {
			buffer[used++] = (char)(0xc0 | point >> 6);
			buffer[used++] = (char)(0x80 | (point & 0x3f));
		} else if (point < 0x10000) {
			buffer[used++] = (char)(0xe0 | point >> 12);
			buffer[used++] = (char)(0x80 | (point >> 6 & 0x3f));
			buffer[used++] = (char)(0x80 | (point & 0x3f));
		} else if (point < 0x110000) {
			buffer[used++] = (char)(0xf0 | point >> 18);
			buffer[used++] = (char)(0x80 | (point >> 12 & 0x3f));
			buffer[used++] = (char)(0x80 | (point >> 6 & 0x3f));
			buffer[used++] = (char)(0x80 | (point & 0x3f));
		} else {
			buffer[used++] = '?';
		}
	}
	buffer[used] = '\0';
	return buffer;
}

#define NARROW_SIZE (RING_MAX_NAME / 4)

/* The text of an event, perhaps in `buffer`; NULL: it has none. */
static const char *event_text(const struct nvtx_abi_event *event, char buffer[NARROW_SIZE])
{
	if (!event || event->size < sizeof(*event) || !event->message.ascii)
		return NULL;
	switch (event->message_type) {
	case NVTX_ABI_MESSAGE_ASCII:
		return event->message.ascii;
	case NVTX_ABI_MESSAGE_WIDE:
		return narrow(buffer, NARROW_SIZE, event->message.wide);
	case NVTX_ABI_MESSAGE_REGISTERED:
		return event->message.registered; /* keep_text's */
	default:
		return NULL;
	}
}

/* ---- ranges ---- */

static void range_open(struct open_range *range, const void *domain, const char *text)
{
	struct bridge *bridge = ready();

	*range = (struct open_range){.domain = domain, .tid = my_tid()};
	if (bridge)
		range->name = name_table_id(bridge->names, text);
	else if (!__atomic_load_n(&owner, __ATOMIC_RELAXED))
		range->text = text ? keep_text(text) : NULL;
	range->start_ns = clock_monotonic_ns();
}

static void range_close(const struct open_range *range, uint32_t kind)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct bridge *bridge = ready();
	struct ring_range record = {
	    .record = {.size = sizeof(record), .type = RING_RANGE},
	    .start_ns = range->start_ns,
	    .end_ns = now_ns,
	    .tid = range->tid,
	    .name = range->name,
	    .domain = 0,
	    .kind = kind,
	};

	if (!bridge)
		return;
	if (!record.name && range->text)
		record.name = name_table_id(bridge->names, range->text);
	if (range->domain)
		record.domain = name_table_id(bridge->names, range->domain);
	ring_writer_put(&bridge->ring, &record.record, range->start_ns, now_ns);
}

/* Number of ranges of this domain that the thread has open. */
static int level_of(const void *domain)
{
	int level = 0;

	for (uint32_t i = 0; i < mine.depth && i < DEPTH_MOST; i++)
		level += mine.open[i].domain == domain;
	return level;
}

static int push(const void *domain, const char *text)
{
	int level;

	if (mine.inside)
		return NVTX_ABI_NO_TRACKING;
	mine.inside = true;
	level = level_of(domain);
	if (mine.depth < DEPTH_MOST)
		range_open(&mine.open[mine.depth], domain, text);
	mine.depth++;
	mine.inside = false;
	return level;
}

/* Ends the innermost range of the domain: ranges of two domains need not be nested. */
static int pop(const void *domain)
{
	uint32_t at;
	int level;

	if (mine.inside || !mine.depth)
		return NVTX_ABI_NO_TRACKING;
	if (mine.depth > DEPTH_MOST) {
		mine.depth--;
		return NVTX_ABI_NO_TRACKING;
	}
	mine.inside = true;
	level = level_of(domain) - 1;
	for (at = mine.depth; at && mine.open[at - 1].domain != domain; at--)
		;
	if (at) {
		range_close(&mine.open[at - 1], RING_RANGE_PUSH_POP);
		memmove(&mine.open[at - 1], &mine.open[at], (mine.depth - at) * sizeof(mine.open[0]));
		mine.depth--;
	}
	mine.inside = false;
	return at ? level : NVTX_ABI_NO_TRACKING;
}

/* The id is a number that was not given before; its slot is that of the number. */
static uint64_t start(const void *domain, const char *text)
{
	struct open_range range;
	uint64_t id = 0;

	if (mine.inside)
		return 0;
	mine.inside = true;
	range_open(&range, domain, text);
	for (uint32_t tries = 0; tries < STARTED_MOST && !id; tries++) {
		uint64_t number = __atomic_add_fetch(&started.last, 1, __ATOMIC_RELAXED),
		         free_slot = SLOT_FREE;
		uint64_t *slot = &started.open[number % STARTED_MOST].id;

		if (!__atomic_compare_exchange_n(slot, &free_slot, SLOT_TAKEN, false, __ATOMIC_ACQUIRE,
		                                 __ATOMIC_RELAXED))
			continue;
		started.open[number % STARTED_MOST].range = range;
		__atomic_store_n(slot, number, __ATOMIC_RELEASE);
		id = number;
	}
	mine.inside = false;
	return id;
}

static void end(uint64_t id)
{
	uint64_t *slot = &started.open[id % STARTED_MOST].id, expected = id;
	struct open_range range;

	/* A number that was never given, or was ended before, is in no slot. */
	if (mine.inside || id == SLOT_FREE || id == SLOT_TAKEN)
		return;
	mine.inside = true;
	if (__atomic_compare_exchange_n(slot, &expected, SLOT_TAKEN, false, __ATOMIC_ACQUIRE,
	                                __ATOMIC_RELAXED)) {
		range = started.open[id % STARTED_MOST].range;
		__atomic_store_n(slot, SLOT_FREE, __ATOMIC_RELEASE);
		range_close(&range, RING_RANGE_START_END);
	}
	mine.inside = false;
}

/* ---- what NVTX calls ---- */

static int push_event(const struct nvtx_abi_event *event)
{
	char buffer[NARROW_SIZE];

	return push(NULL, event_text(event, buffer));
}

static int push_ascii(const char *text)
{
	return push(NULL, text);
}

static int push_wide(const wchar_t *text)
{
	char buffer[NARROW_SIZE];

	return push(NULL, narrow(buffer, sizeof(buffer), text));
}

static int pop_default(void)
{
	return pop(NULL);
}

static uint64_t start_event(const struct nvtx_abi_event *event)
{
	char buffer[NARROW_SIZE];

	return start(NULL, event_text(event, buffer));
}

static uint64_t start_ascii(const char *text)
{
	return start(NULL, text);
}

static uint64_t start_wide(const wchar_t *text)
{
	char buffer[NARROW_SIZE];

	return start(NULL, narrow(buffer, sizeof(buffer), text));
}

static int domain_push(const void *domain, const struct nvtx_abi_event *event)
{
	char buffer[NARROW_SIZE];

	return push(domain, event_text(event, buffer));
}

static uint64_t domain_start(const void *domain, const struct nvtx_abi_event *event)
{
	char buffer[NARROW_SIZE];

	return start(domain, event_text(event, buffer));
}

static void domain_end(const void *domain, uint64_t id)
{
	(void)domain;
	end(id);
}

/* Handles of domains and registered strings are the texts themselves. */
static const void *keep_ascii(const char *text)
{
	return text ? keep_text(text) : NULL;
}

static const void *keep_wide(const wchar_t *text)
{
	char buffer[NARROW_SIZE];

	return text ? keep_text(narrow(buffer, sizeof(buffer), text)) : NULL;
}

static const void *register_ascii(const void *domain, const char *text)
{
	(void)domain;
	return keep_ascii(text);
}

static const void *register_wide(const void *domain, const wchar_t *text)
{
	(void)domain;
	return keep_wide(text);
}

struct entry {
	unsigned int id;
	nvtx_abi_function function;
};

#define ENTRY(id, function)                                                                                  \
	{                                                                                                    \
		id, (nvtx_abi_function)(function)                                                            \
	}

static bool fill_in(const struct nvtx_abi_callbacks *callbacks, int module, const struct entry *entries,
                    size_t count)
{
	nvtx_abi_function **table = NULL;
	unsigned int size = 0;

	if (!callbacks->get_table(module, &table, &size) || !table)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (entries[i].id < size && table[entries[i].id])
			*table[entries[i].id] = entries[i].function;
	}
	return true;
}

/* 1: the functions are filled in; 0: NVTX goes on as if we were not there. */
__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(nvtx_abi_get_export_table get_export_table)
{
	static const struct entry core[] = {
	    ENTRY(NVTX_ABI_RANGE_START_EX, start_event), ENTRY(NVTX_ABI_RANGE_START_A, start_ascii),
	    ENTRY(NVTX_ABI_RANGE_START_W, start_wide),   ENTRY(NVTX_ABI_RANGE_END, end),
	    ENTRY(NVTX_ABI_RANGE_PUSH_EX, push_event),   ENTRY(NVTX_ABI_RANGE_PUSH_A, push_ascii),
	    ENTRY(NVTX_ABI_RANGE_PUSH_W, push_wide),     ENTRY(NVTX_ABI_RANGE_POP, pop_default),
	};
	static const struct entry core2[] = {
	    ENTRY(NVTX_ABI_DOMAIN_RANGE_START_EX, domain_start),
	    ENTRY(NVTX_ABI_DOMAIN_RANGE_END, domain_end),
	    ENTRY(NVTX_ABI_DOMAIN_RANGE_PUSH_EX, domain_push),
	    ENTRY(NVTX_ABI_DOMAIN_RANGE_POP, pop),
	    ENTRY(NVTX_ABI_DOMAIN_REGISTER_STRING_A, register_ascii),
	    ENTRY(NVTX_ABI_DOMAIN_REGISTER_STRING_W, register_wide),
	    ENTRY(NVTX_ABI_DOMAIN_CREATE_A, keep_ascii),
	    ENTRY(NVTX_ABI_DOMAIN_CREATE_W, keep_wide),
	};
	const char *socket_name = secure_getenv(RING_SOCKET_ENV);
	const struct nvtx_abi_callbacks *callbacks;

	if (!socket_name || !*socket_name)
		return 0;
	callbacks = get_export_table(NVTX_ABI_TABLE_CALLBACKS);
	if (!callbacks || callbacks->struct_size < sizeof(*callbacks) || !callbacks->get_table)
		return 0;
	if (!fill_in(callbacks, NVTX_ABI_MODULE_CORE, core, sizeof(core) / sizeof(core[0])))
		return 0;
	/* Without domains those ranges are not there; nothing else depends on it. */
	fill_in(callbacks, NVTX_ABI_MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
	return 1;
}
