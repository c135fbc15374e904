/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/bridge.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cupti_bridge/clock.h"

#define STATUS_TEXT 1000 /* bytes of a text that are kept */

/*
 * A page that the kernel clears in every child (since Linux 4.14) tells a fork without a system call, which
 * getpid() would be twice for each NVTX range.
 */
void bridge_own(struct bridge *bridge)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint32_t *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	bridge->pid = getpid();
	if (page == MAP_FAILED)
		return;
	if (madvise(page, size, MADV_WIPEONFORK)) {
		munmap(page, size);
		return;
	}
	*page = 1;
	bridge->mark = page;
}

bool bridge_is_owner(const struct bridge *bridge)
{
	if (__atomic_load_n(&bridge->forked, __ATOMIC_RELAXED))
		return false;
	return bridge->mark ? *bridge->mark : getpid() == bridge->pid;
}

bool bridge_is_wanted(struct bridge *bridge)
{
	if (!bridge_is_owner(bridge) || __atomic_load_n(&bridge->muted, __ATOMIC_RELAXED))
		return false;
	if (!ring_writer_closed(&bridge->ring) && !collector_link_is_down(&bridge->link))
		return true;
	__atomic_store_n(&bridge->muted, 1, __ATOMIC_RELAXED);
	return false;
}

/* Copies `length` bytes behind a record of `fixed` bytes; the whole is padded with zeros to a multiple of 8.
 */
static void finish_record(struct ring_record *record, uint16_t type, size_t fixed, const char *text,
                          size_t length)
{
	size_t size = (fixed + length + 7) & ~(size_t)7;

	memset((char *)record + fixed, 0, size - fixed);
	memcpy((char *)record + fixed, text, length);
	record->size = (uint32_t)size;
	record->type = type;
	record->pad = 0;
}

bool bridge_cupti_is_taken(cupti_abi_result error)
{
	return error == CUPTI_ABI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
	       error == CUPTI_ABI_ERROR_OLD_PROFILER_API_INITIALIZED;
}

void bridge_set_phase(struct bridge *bridge, enum ring_phase phase, cupti_abi_result error, const char *text)
{
	union {
		struct ring_status status;
		char space[sizeof(struct ring_status) + STATUS_TEXT + 8];
	} record;
	size_t length = strnlen(text, STATUS_TEXT);

	record.status = (struct ring_status){
	    .time_ns = clock_monotonic_ns(),
	    .phase = phase,
	    .error = error,
	    .text_length = (uint32_t)length,
	};
	finish_record(&record.status.record, RING_STATUS, sizeof(record.status), text, length);
	bridge->phase = phase;
	ring_writer_put_state(
	    &bridge->ring, &record.status.record,
	    phase == RING_PHASE_STOPPED ||
	        (phase == RING_PHASE_FAILED && !(bridge->late && bridge_cupti_is_taken(error))));
	ring_writer_set_phase(&bridge->ring, phase);
}

void bridge_say_hello(struct bridge *bridge)
{
	union {
		struct ring_hello hello;
		char space[sizeof(struct ring_hello) + CUPTI_LIBRARY_PATH + 8];
	} record;
	size_t length = strnlen(bridge->cupti.path, CUPTI_LIBRARY_PATH - 1);

	record.hello = (struct ring_hello){
	    .pid = (uint32_t)bridge->pid,
	    .cupti_version = bridge->cupti.version,
	    .driver_version = bridge->driver.version,
	    .clock = bridge->clock,
	    .clock_error_ns = bridge->clock_error_ns,
	    .simulated = bridge->driver.simulated,
	    .path_length = (uint32_t)length,
	};
	finish_record(&record.hello.record, RING_HELLO, sizeof(record.hello), bridge->cupti.path, length);
	ring_writer_put_state(&bridge->ring, &record.hello.record, false);
}
