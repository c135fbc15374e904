/* SPDX-License-Identifier: GPL-2.0-only */
/* From CUPTI records to ring records, and the ids of names. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cupti_bridge/call_table.h"
#include "cupti_bridge/convert.h"
#include "cupti_bridge/name_table.h"

static uint32_t test_name(void *context, const char *name)
{
	(void)context;
	return name ? (uint32_t)strlen(name) : 0;
}

static const char *test_function(void *context, uint32_t domain, uint32_t cbid)
{
	(void)context;
	return call_table_name(domain, cbid);
}

static const struct converter plain = {.name = test_name, .function = test_function, .system_tids = true};

static enum convert_result convert(const struct converter *converter, const void *record,
                                   union converted *out, uint64_t *start_ns, uint64_t *end_ns)
{
	memset(out, 0xa5, sizeof(*out)); /* nothing may be left as it was */
	*start_ns = *end_ns = 0;
	return converter_convert(converter, record, out, start_ns, end_ns);
}

Test(bridge_convert, kernel)
{
	struct cupti_abi_kernel in = {
	    .kind = CUPTI_ABI_KIND_CONCURRENT_KERNEL,
	    .start = 1000,
	    .end = 3000,
	    .device = 1,
	    .context = 2,
	    .stream = 7,
	    .grid = {3, 4, 5},
	    .block = {128, 2, 1},
	    .correlation = 99,
	    .name = "_Z3addPf",
	    .graph_node = 1ull << 40,
	    .graph = 12,
	};
	union converted out;
	uint64_t start_ns, end_ns;

	cr_assert_eq(convert(&plain, &in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.record.type, RING_KERNEL);
	cr_assert_eq(out.record.size, sizeof(struct ring_kernel));
	cr_assert_eq(out.record.pad, 0);
	cr_assert_eq(start_ns, 1000);
	cr_assert_eq(end_ns, 3000);
	cr_assert_eq(out.kernel.start_ns, 1000);
	cr_assert_eq(out.kernel.end_ns, 3000);
	cr_assert_eq(out.kernel.device, 1);
	cr_assert_eq(out.kernel.context, 2);
	cr_assert_eq(out.kernel.stream, 7);
	cr_assert_eq(out.kernel.correlation, 99);
	cr_assert_eq(out.kernel.name, 8);
	cr_assert_eq(out.kernel.graph, 12);
	cr_assert_eq(out.kernel.graph_node, 1ull << 40);
	cr_assert_eq(out.kernel.grid[0], 3);
	cr_assert_eq(out.kernel.grid[2], 5);
	cr_assert_eq(out.kernel.block[0], 128);
	cr_assert_eq(out.kernel.block[2], 1);
}

Test(bridge_convert, only_the_common_prefix_is_read)
{
	/* As CUDA 11.1 made it: 160 bytes and nothing behind. The sanitizer watches the rest. */
	size_t prefix = offsetof(struct cupti_abi_kernel, graph) + sizeof(uint32_t);
	struct cupti_abi_kernel full = {.kind = CUPTI_ABI_KIND_KERNEL, .start = 5, .end = 6, .name = "k"};
	void *in = malloc(prefix);
	union converted out;
	uint64_t start_ns, end_ns;

	cr_assert_not_null(in);
	memcpy(in, &full, prefix);
	cr_assert_eq(convert(&plain, in, &out, &start_ns, &end_ns), CONVERT_DONE);
	free(in);
}

Test(bridge_convert, clock_offset)
{
	struct converter shifted = plain;
	struct cupti_abi_sync in = {
	    .kind = CUPTI_ABI_KIND_SYNCHRONIZATION, .type = 3, .start = 5000, .end = 6000};
	union converted out;
	uint64_t start_ns, end_ns;

	shifted.clock_offset = -4000;
	cr_assert_eq(convert(&shifted, &in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.sync.start_ns, 1000);
	cr_assert_eq(end_ns, 2000);
}

Test(bridge_convert, copies)
{
	struct cupti_abi_memcpy in = {
	    .kind = CUPTI_ABI_KIND_MEMCPY,
	    .copy_kind = CUPTI_ABI_MEMCPY_HTOD,
	    .source_kind = CUPTI_ABI_MEMORY_PAGEABLE,
	    .target_kind = CUPTI_ABI_MEMORY_DEVICE,
	    .flags = CUPTI_ABI_FLAG_MEMCPY_ASYNC,
	    .bytes = 1ull << 33,
	    .start = 10,
	    .end = 20,
	    .stream = 7,
	    .correlation = 4,
	    .graph = 2,
	};
	struct cupti_abi_memcpy_peer peer = {
	    .kind = CUPTI_ABI_KIND_MEMCPY2,
	    .copy_kind = CUPTI_ABI_MEMCPY_PTOP,
	    .bytes = 77,
	    .start = 10,
	    .end = 20,
	    .device = 1,
	    .source_device = 2,
	    .target_device = 3,
	    .correlation = 5,
	};
	union converted out;
	uint64_t start_ns, end_ns;

	cr_assert_eq(convert(&plain, &in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.record.type, RING_MEMCPY);
	cr_assert_eq(out.memcpy.bytes, 1ull << 33);
	cr_assert_eq(out.memcpy.copy_kind, 1);
	cr_assert_eq(out.memcpy.source_kind, 1);
	cr_assert_eq(out.memcpy.target_kind, 3);
	cr_assert_eq(out.memcpy.flags, 1);
	cr_assert_eq(out.memcpy.graph, 2);
	cr_assert_eq(convert(&plain, &peer, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.record.type, RING_MEMCPY);
	cr_assert_eq(out.memcpy.device, 1);
	cr_assert_eq(out.memcpy.correlation, 5);
	cr_assert_eq(out.memcpy.bytes, 77);
	cr_assert_eq(out.memcpy.flags, 0);
}

Test(bridge_convert, calls)
{
	struct cupti_abi_api in = {
	    .kind = CUPTI_ABI_KIND_RUNTIME,
	    .cbid = 211,
	    .start = 10,
	    .end = 20,
	    .thread = 4321,
	    .correlation = 6,
	    .result = 700,
	};
	struct converter no_tids = plain;
	union converted out;
	uint64_t start_ns, end_ns;

	cr_assert_eq(convert(&plain, &in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.record.type, RING_API);
	cr_assert_eq(out.api.tid, 4321);
	cr_assert_eq(out.api.domain, RING_DOMAIN_RUNTIME);
	cr_assert_eq(out.api.function, strlen("cudaLaunchKernel_v7000"));
	cr_assert_eq(out.api.result, 700);
	in.kind = CUPTI_ABI_KIND_DRIVER;
	in.cbid = 307;
	cr_assert_eq(convert(&plain, &in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.api.domain, RING_DOMAIN_DRIVER);
	cr_assert_eq(out.api.function, strlen("cuLaunchKernel"));
	no_tids.system_tids = false;
	cr_assert_eq(convert(&no_tids, &in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.api.tid, 0, "half a pthread_t is no thread id");
	in.cbid = 1; /* cuInit, and whatever else a whole kind brings */
	cr_assert_eq(convert(&plain, &in, &out, &start_ns, &end_ns), CONVERT_UNWANTED);
	in.cbid = UINT32_MAX;
	cr_assert_eq(convert(&plain, &in, &out, &start_ns, &end_ns), CONVERT_UNWANTED);
}

Test(bridge_convert, overhead_and_memset)
{
	struct cupti_abi_overhead in = {
	    .kind = CUPTI_ABI_KIND_OVERHEAD,
	    .overhead_kind = CUPTI_ABI_OVERHEAD_BUFFER_FLUSH,
	    .object_kind = CUPTI_ABI_OBJECT_THREAD,
	    .object = {{.process = 1, .thread = 2}},
	    .start = 10,
	    .end = 20,
	};
	struct cupti_abi_memset memset_in = {.kind = CUPTI_ABI_KIND_MEMSET,
	                                     .bytes = 64,
	                                     .start = 10,
	                                     .end = 20,
	                                     .memory_kind = 3,
	                                     .correlation = 8};
	union converted out;
	uint64_t start_ns, end_ns;

	cr_assert_eq(convert(&plain, &in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.overhead.kind, 1 << 16);
	cr_assert_eq(out.overhead.tid, 2);
	in.object_kind = 4; /* a context: the union holds no thread */
	cr_assert_eq(convert(&plain, &in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.overhead.tid, 0);
	cr_assert_eq(convert(&plain, &memset_in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.record.type, RING_MEMSET);
	cr_assert_eq(out.memset.bytes, 64);
	cr_assert_eq(out.memset.memory_kind, 3);
}

Test(bridge_convert, device)
{
	struct cupti_abi_device in = {
	    .kind = CUPTI_ABI_KIND_DEVICE,
	    .global_memory_size = 1ull << 37,
	    .multiprocessors = 132,
	    .compute_major = 9,
	    .id = 3,
	    .uuid = {1, [15] = 16},
	    .name = "GPU",
	};
	union converted out;
	uint64_t start_ns, end_ns;

	cr_assert_eq(convert(&plain, &in, &out, &start_ns, &end_ns), CONVERT_DONE);
	cr_assert_eq(out.record.type, RING_DEVICE);
	cr_assert_eq(start_ns, 0, "a device has no time");
	cr_assert_eq(out.device.device, 3);
	cr_assert_eq(out.device.sm_count, 132);
	cr_assert_eq(out.device.name, 3);
	cr_assert_eq(out.device.compute_major, 9);
	cr_assert_eq(out.device.memory_bytes, 1ull << 37);
	cr_assert_eq(out.device.uuid[0], 1);
	cr_assert_eq(out.device.uuid[15], 16);
}

Test(bridge_convert, without_times)
{
	struct cupti_abi_kernel kernel = {.kind = CUPTI_ABI_KIND_CONCURRENT_KERNEL, .name = "k"};
	struct cupti_abi_memcpy copy = {.kind = CUPTI_ABI_KIND_MEMCPY, .start = 20, .end = 10};
	struct cupti_abi_api call = {.kind = CUPTI_ABI_KIND_RUNTIME, .cbid = 131, .start = 20};
	struct cupti_abi_record other = {.kind = 12};
	union converted out;
	uint64_t start_ns, end_ns;

	cr_assert_eq(convert(&plain, &kernel, &out, &start_ns, &end_ns), CONVERT_UNFINISHED);
	cr_assert_eq(convert(&plain, &copy, &out, &start_ns, &end_ns), CONVERT_UNFINISHED);
	cr_assert_eq(convert(&plain, &call, &out, &start_ns, &end_ns), CONVERT_UNWANTED);
	cr_assert_eq(convert(&plain, &other, &out, &start_ns, &end_ns), CONVERT_UNWANTED);
}

static cupti_abi_result later_name(uint32_t domain, uint32_t cbid, const char **name)
{
	static const char *const runtime[] = {"cudaMemcpyAsync_ptsz_v14000", "cudaGetSomething_v14000",
	                                      "cudaMemcpyAsyncNot_v14000"};
	uint32_t index = cbid - CUPTI_ABI_RUNTIME_CBID_END;

	if (domain != CUPTI_ABI_DOMAIN_RUNTIME || index >= 3)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	*name = runtime[index];
	return CUPTI_ABI_SUCCESS;
}

Test(bridge_convert, later_versions_of_known_functions)
{
	call_table_extend(NULL);
	cr_assert_null(call_table_name(CUPTI_ABI_DOMAIN_RUNTIME, CUPTI_ABI_RUNTIME_CBID_END));
	call_table_extend(later_name);
	cr_assert_str_eq(call_table_name(CUPTI_ABI_DOMAIN_RUNTIME, CUPTI_ABI_RUNTIME_CBID_END),
	                 "cudaMemcpyAsync_ptsz_v14000");
	cr_assert_null(call_table_name(CUPTI_ABI_DOMAIN_RUNTIME, CUPTI_ABI_RUNTIME_CBID_END + 1));
	cr_assert_null(call_table_name(CUPTI_ABI_DOMAIN_RUNTIME, CUPTI_ABI_RUNTIME_CBID_END + 2));
	cr_assert_null(call_table_name(CUPTI_ABI_DOMAIN_DRIVER, CUPTI_ABI_DRIVER_CBID_END));
}

struct definitions {
	uint32_t count, last_id;
	size_t last_length;
	char last[RING_MAX_NAME];
	bool refuse;
};

static bool define(void *context, uint32_t id, const char *name, size_t length)
{
	struct definitions *definitions = context;

	if (definitions->refuse)
		return false;
	definitions->count++;
	definitions->last_id = id;
	definitions->last_length = length;
	memcpy(definitions->last, name, length);
	return true;
}

Test(bridge_names, dense_ids_by_content)
{
	struct definitions definitions = {0};
	struct name_table *table = name_table_create(define, &definitions);
	char text[32];

	cr_assert_not_null(table);
	cr_assert_eq(name_table_id(table, NULL), 0);
	cr_assert_eq(name_table_id(table, ""), 0);
	for (uint32_t i = 1; i <= 3000; i++) {
		snprintf(text, sizeof(text), "kernel_%u", i); /* always at the same address */
		cr_assert_eq(name_table_id(table, text), i);
		cr_assert_eq(name_table_id(table, text), i);
		cr_assert_eq(definitions.last_id, i);
		cr_assert_eq(definitions.last_length, strlen(text));
		cr_assert_eq(memcmp(definitions.last, text, strlen(text)), 0);
	}
	snprintf(text, sizeof(text), "kernel_%u", 17);
	cr_assert_eq(name_table_id(table, text), 17);
	cr_assert_eq(definitions.count, 3000);
}

Test(bridge_names, refused_definition_is_tried_again)
{
	struct definitions definitions = {.refuse = true};
	struct name_table *table = name_table_create(define, &definitions);

	cr_assert_eq(name_table_id(table, "first"), 0);
	cr_assert_eq(name_table_id(table, "first"), 0);
	definitions.refuse = false;
	cr_assert_eq(name_table_id(table, "first"), 1);
	cr_assert_eq(definitions.count, 1);
}

Test(bridge_names, long_names_are_cut)
{
	struct definitions definitions = {0};
	struct name_table *table = name_table_create(define, &definitions);
	char *text = malloc(RING_MAX_NAME + 100);

	cr_assert_not_null(text);
	memset(text, 'x', RING_MAX_NAME + 99);
	text[RING_MAX_NAME + 99] = '\0';
	cr_assert_eq(name_table_id(table, text), 1);
	cr_assert_eq(definitions.last_length, RING_MAX_NAME);
	text[RING_MAX_NAME + 50] = '\0';
	cr_assert_eq(name_table_id(table, text), 1, "the same as far as it is kept");
	free(text);
}

Test(bridge_names, table_is_bounded)
{
	struct definitions definitions = {0};
	struct name_table *table = name_table_create(define, &definitions);
	char text[32];
	uint32_t id = 1;

	for (uint32_t i = 0; id && i < 200000; i++) {
		snprintf(text, sizeof(text), "%u", i);
		id = name_table_id(table, text);
	}
	cr_assert_eq(id, 0);
	cr_assert_gt(definitions.count, 40000);
	cr_assert_eq(name_table_id(table, "0"), 1, "known names stay known");
}
