/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/convert.h"

#include <string.h>

_Static_assert((int)RING_DOMAIN_DRIVER == (int)CUPTI_ABI_DOMAIN_DRIVER, "domains");
_Static_assert((int)RING_DOMAIN_RUNTIME == (int)CUPTI_ABI_DOMAIN_RUNTIME, "domains");

#define BEGIN(out, member, ring_type)                                                                        \
	memset(out, 0, sizeof(*(out)));                                                                      \
	(out)->record.size = sizeof((out)->member);                                                          \
	(out)->record.type = (ring_type)

static uint64_t convert_time(const struct converter *converter, uint64_t time)
{
	return time + (uint64_t)converter->clock_offset;
}

/* CUPTI leaves 0 where it has no time. A record that ends before it starts is as useless. */
static bool has_times(uint64_t start, uint64_t end)
{
	return start && end >= start;
}

static enum convert_result convert_kernel(const struct converter *converter,
                                          const struct cupti_abi_kernel *in, union converted *out)
{
	if (!has_times(in->start, in->end))
		return CONVERT_UNFINISHED;
	BEGIN(out, kernel, RING_KERNEL);
	out->kernel.start_ns = convert_time(converter, in->start);
	out->kernel.end_ns = convert_time(converter, in->end);
	out->kernel.device = in->device;
	out->kernel.context = in->context;
	out->kernel.stream = in->stream;
	out->kernel.correlation = in->correlation;
	out->kernel.name = converter->name(converter->context, in->name);
	out->kernel.graph = in->graph;
	out->kernel.graph_node = in->graph_node;
	for (int i = 0; i < 3; i++) {
		out->kernel.grid[i] = (uint32_t)in->grid[i];
		out->kernel.block[i] = (uint32_t)in->block[i];
	}
	return CONVERT_DONE;
}

/* Both kinds of copies have these fields, in structs of their own. */
#define CONVERT_COPY(out, in, converter)                                                                     \
	do {                                                                                                 \
		BEGIN(out, memcpy, RING_MEMCPY);                                                             \
		(out)->memcpy.start_ns = convert_time(converter, (in)->start);                               \
		(out)->memcpy.end_ns = convert_time(converter, (in)->end);                                   \
		(out)->memcpy.device = (in)->device;                                                         \
		(out)->memcpy.context = (in)->context;                                                       \
		(out)->memcpy.stream = (in)->stream;                                                         \
		(out)->memcpy.correlation = (in)->correlation;                                               \
		(out)->memcpy.bytes = (in)->bytes;                                                           \
		(out)->memcpy.graph = (in)->graph;                                                           \
		(out)->memcpy.copy_kind = (in)->copy_kind;                                                   \
		(out)->memcpy.source_kind = (in)->source_kind;                                               \
		(out)->memcpy.target_kind = (in)->target_kind;                                               \
		(out)->memcpy.flags = (in)->flags & CUPTI_ABI_FLAG_MEMCPY_ASYNC ? 1 : 0;                     \
	} while (0)

static enum convert_result convert_memcpy(const struct converter *converter,
                                          const struct cupti_abi_memcpy *in, union converted *out)
{
	if (!has_times(in->start, in->end))
		return CONVERT_UNFINISHED;
	CONVERT_COPY(out, in, converter);
	return CONVERT_DONE;
}

/* A copy between devices: device, context and stream are those that carry it out. */
static enum convert_result convert_memcpy_peer(const struct converter *converter,
                                               const struct cupti_abi_memcpy_peer *in, union converted *out)
{
	if (!has_times(in->start, in->end))
		return CONVERT_UNFINISHED;
	CONVERT_COPY(out, in, converter);
	return CONVERT_DONE;
}

static enum convert_result convert_memset(const struct converter *converter,
                                          const struct cupti_abi_memset *in, union converted *out)
{
	if (!has_times(in->start, in->end))
		return CONVERT_UNFINISHED;
	BEGIN(out, memset, RING_MEMSET);
	out->memset.start_ns = convert_time(converter, in->start);
	out->memset.end_ns = convert_time(converter, in->end);
	out->memset.device = in->device;
	out->memset.context = in->context;
	out->memset.stream = in->stream;
	out->memset.correlation = in->correlation;
	out->memset.bytes = in->bytes;
	out->memset.graph = in->graph;
	out->memset.memory_kind = in->memory_kind;
	return CONVERT_DONE;
}

/* A call that has not returned (the process exits inside it) has no end and is no loss: nothing waits for it.
 */
static enum convert_result convert_api(const struct converter *converter, const struct cupti_abi_api *in,
                                       union converted *out)
{
	uint32_t domain = in->kind == CUPTI_ABI_KIND_RUNTIME ? RING_DOMAIN_RUNTIME : RING_DOMAIN_DRIVER;
	const char *function = converter->function(converter->context, domain, in->cbid);

	if (!function || !has_times(in->start, in->end))
		return CONVERT_UNWANTED;
	BEGIN(out, api, RING_API);
	out->api.start_ns = convert_time(converter, in->start);
	out->api.end_ns = convert_time(converter, in->end);
	out->api.tid = converter->system_tids ? in->thread : 0;
	out->api.correlation = in->correlation;
	out->api.function = converter->name(converter->context, function);
	out->api.domain = domain;
	out->api.result = (int32_t)in->result;
	return CONVERT_DONE;
}

static enum convert_result convert_sync(const struct converter *converter, const struct cupti_abi_sync *in,
                                        union converted *out)
{
	if (!has_times(in->start, in->end))
		return CONVERT_UNWANTED;
	BEGIN(out, sync, RING_SYNC);
	out->sync.start_ns = convert_time(converter, in->start);
	out->sync.end_ns = convert_time(converter, in->end);
	out->sync.type = in->type;
	out->sync.context = in->context;
	out->sync.stream = in->stream;
	out->sync.correlation = in->correlation;
	out->sync.event = in->event;
	return CONVERT_DONE;
}

static enum convert_result convert_overhead(const struct converter *converter,
                                            const struct cupti_abi_overhead *in, union converted *out)
{
	if (!has_times(in->start, in->end))
		return CONVERT_UNWANTED;
	BEGIN(out, overhead, RING_OVERHEAD);
	out->overhead.start_ns = convert_time(converter, in->start);
	out->overhead.end_ns = convert_time(converter, in->end);
	out->overhead.kind = in->overhead_kind;
	if (in->object_kind == CUPTI_ABI_OBJECT_THREAD && converter->system_tids)
		out->overhead.tid = in->object.thread;
	return CONVERT_DONE;
}

static enum convert_result convert_device(const struct converter *converter,
                                          const struct cupti_abi_device *in, union converted *out)
{
	BEGIN(out, device, RING_DEVICE);
	out->device.device = in->id;
	out->device.sm_count = in->multiprocessors;
	out->device.name = converter->name(converter->context, in->name);
	out->device.compute_major = in->compute_major;
	out->device.compute_minor = in->compute_minor;
	out->device.memory_bytes = in->global_memory_size;
	memcpy(out->device.uuid, in->uuid, sizeof(out->device.uuid));
	return CONVERT_DONE;
}

static enum convert_result convert_any(const struct converter *converter,
                                       const struct cupti_abi_record *record, union converted *out)
{
	switch (record->kind) {
	case CUPTI_ABI_KIND_KERNEL:
	case CUPTI_ABI_KIND_CONCURRENT_KERNEL:
		return convert_kernel(converter, (const struct cupti_abi_kernel *)record, out);
	case CUPTI_ABI_KIND_MEMCPY:
		return convert_memcpy(converter, (const struct cupti_abi_memcpy *)record, out);
	case CUPTI_ABI_KIND_MEMCPY2:
		return convert_memcpy_peer(converter, (const struct cupti_abi_memcpy_peer *)record, out);
	case CUPTI_ABI_KIND_MEMSET:
		return convert_memset(converter, (const struct cupti_abi_memset *)record, out);
	case CUPTI_ABI_KIND_DRIVER:
	case CUPTI_ABI_KIND_RUNTIME:
		return convert_api(converter, (const struct cupti_abi_api *)record, out);
	case CUPTI_ABI_KIND_SYNCHRONIZATION:
		return convert_sync(converter, (const struct cupti_abi_sync *)record, out);
	case CUPTI_ABI_KIND_OVERHEAD:
		return convert_overhead(converter, (const struct cupti_abi_overhead *)record, out);
	case CUPTI_ABI_KIND_DEVICE:
		return convert_device(converter, (const struct cupti_abi_device *)record, out);
	default:
		return CONVERT_UNWANTED;
	}
}

enum convert_result converter_convert(const struct converter *converter,
                                      const struct cupti_abi_record *record, union converted *out,
                                      uint64_t *start_ns, uint64_t *end_ns)
{
	enum convert_result result = convert_any(converter, record, out);

	if (result != CONVERT_DONE)
		return result;
	*start_ns = *end_ns = 0;
	if (out->record.type != RING_DEVICE) { /* all others begin alike */
		*start_ns = out->kernel.start_ns;
		*end_ns = out->kernel.end_ns;
	}
	return CONVERT_DONE;
}
