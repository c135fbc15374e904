/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies and memsets.
 *
 * Copies from pinned memory are queued as they are. Pageable memory goes through staging buffers of
 * STAGE_BYTES, two of which may be on the way: the caller fills (or empties) them itself, so that a large
 * pageable copy keeps it inside the call even if it is asynchronous, while the device works in bursts. Each
 * chunk is an operation of its own, all with the call's correlation id; as the real one, CUPTI makes one
 * record of them, from the start of the first to the end of the last.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cuda/driver.h"

#define STAGE_BYTES      (1u << 20)
#define STAGE_ONLY_BYTES (64u << 10) /* up to here even a synchronous copy is done once it is staged */
#define COPY_SETUP_NS    1500
#define DEVICE_SPEED     50 /* device memory is that much faster than the bus */

static uint64_t transfer_ns(uint64_t bytes, uint64_t speed)
{
	return COPY_SETUP_NS + bytes * 1000 / (sim_options.copy_mbps * speed);
}

static struct sim_work copy_work(uint8_t kind, void *target, const void *source, size_t bytes,
                                 bool asynchronous)
{
	return (struct sim_work){
	    .kind = SIM_COPY,
	    .duration_ns = transfer_ns(bytes, kind == CUPTI_ABI_MEMCPY_DTOD ? DEVICE_SPEED : 1),
	    .floor_ns = sim_options.floor_ns,
	    .target = target,
	    .source = source,
	    .bytes = bytes,
	    .copy_kind = kind,
	    .source_kind = CUPTI_ABI_MEMORY_DEVICE,
	    .target_kind = CUPTI_ABI_MEMORY_DEVICE,
	    .asynchronous = asynchronous,
	};
}

static CUresult submit(struct sim_stream *stream, const struct sim_work *work, struct sim_point *point)
{
	if (!engine_submit(stream, work, sim_correlation(), NULL, (struct sim_point){0}))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*point = engine_last(stream);
	return CUDA_SUCCESS;
}

static size_t chunk_size(size_t left)
{
	return left < STAGE_BYTES ? left : STAGE_BYTES;
}

/* Host to device from pageable memory. Afterwards the source may be changed; `last` is the last chunk. */
static CUresult stage_in(struct sim_stream *stream, char *target, const char *source, size_t bytes,
                         bool asynchronous, struct sim_point *last)
{
	struct sim_point before = {0};
	CUresult error = CUDA_SUCCESS;
	const size_t whole = bytes;

	for (size_t chunk; bytes && !error; target += chunk, source += chunk, bytes -= chunk) {
		struct sim_work work;
		void *stage;

		chunk = chunk_size(bytes);
		engine_wait(before);
		before = *last;
		stage = malloc(chunk);
		if (!stage)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(stage, source, chunk);
		work = copy_work(CUPTI_ABI_MEMCPY_HTOD, target, stage, chunk, asynchronous);
		work.source_kind = CUPTI_ABI_MEMORY_PAGEABLE;
		work.staging = stage;
		work.copy_offset = whole - bytes;
		work.copy_bytes = whole;
		error = submit(stream, &work, last);
	}
	return error;
}

/* Device to host into pageable memory: complete on return. */
static CUresult stage_out(struct sim_stream *stream, char *target, const char *source, size_t bytes,
                          bool asynchronous)
{
	char *stage = malloc(chunk_size(bytes));
	CUresult error = stage ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	const size_t whole = bytes;

	for (size_t chunk; bytes && !error; target += chunk, source += chunk, bytes -= chunk) {
		struct sim_point point;
		struct sim_work work;

		chunk = chunk_size(bytes);
		work = copy_work(CUPTI_ABI_MEMCPY_DTOH, stage, source, chunk, asynchronous);
		work.target_kind = CUPTI_ABI_MEMORY_PAGEABLE;
		work.copy_offset = whole - bytes;
		work.copy_bytes = whole;
		error = submit(stream, &work, &point);
		if (!error) {
			engine_wait(point);
			memcpy(target, stage, chunk);
		}
	}
	free(stage);
	return error;
}

static bool is_device(const void *pointer, size_t bytes)
{
	return sim_memory_kind(pointer, bytes) == SIM_MEMORY_DEVICE;
}

static CUresult copy(CUstream handle, uint8_t kind, void *target, const void *source, size_t bytes,
                     bool asynchronous)
{
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);
	const void *host = kind == CUPTI_ABI_MEMCPY_HTOD ? source : target;
	bool pageable = kind != CUPTI_ABI_MEMCPY_DTOD && sim_memory_kind(host, bytes) == SIM_MEMORY_NONE;
	struct sim_point point = {0};
	struct sim_work work;

	if (!stream)
		return error;
	if (!bytes)
		return CUDA_SUCCESS;
	if ((kind != CUPTI_ABI_MEMCPY_DTOH && !is_device(target, bytes)) ||
	    (kind != CUPTI_ABI_MEMCPY_HTOD && !is_device(source, bytes)))
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture && (pageable || !asynchronous))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_spend(sim_options.launch_ns);
	if (pageable && kind == CUPTI_ABI_MEMCPY_DTOH)
		return stage_out(stream, target, source, bytes, asynchronous);
	if (pageable) {
		error = stage_in(stream, target, source, bytes, asynchronous, &point);
		if (!error && !asynchronous && bytes > STAGE_ONLY_BYTES)
			engine_wait(point);
		return error;
	}
	work = copy_work(kind, target, source, bytes, asynchronous);
	if (kind == CUPTI_ABI_MEMCPY_HTOD)
		work.source_kind = CUPTI_ABI_MEMORY_PINNED;
	if (kind == CUPTI_ABI_MEMCPY_DTOH)
		work.target_kind = CUPTI_ABI_MEMORY_PINNED;
	if (stream->capture)
		return sim_capture(stream, &work);
	error = submit(stream, &work, &point);
	/* A synchronous copy inside the device does not make the host wait, in CUDA neither. */
	if (!error && !asynchronous && kind != CUPTI_ABI_MEMCPY_DTOD)
		engine_wait(point);
	return error;
}

static CUresult set(CUstream handle, void *target, uint8_t value, size_t bytes, bool asynchronous)
{
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);
	struct sim_point point;
	struct sim_work work = {
	    .kind = SIM_MEMSET,
	    .duration_ns = transfer_ns(bytes, DEVICE_SPEED),
	    .floor_ns = sim_options.floor_ns,
	    .target = target,
	    .bytes = bytes,
	    .value = value,
	    .target_kind = CUPTI_ABI_MEMORY_DEVICE,
	    .asynchronous = asynchronous,
	};

	if (!stream)
		return error;
	if (!bytes)
		return CUDA_SUCCESS;
	if (!is_device(target, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	sim_spend(sim_options.launch_ns);
	return stream->capture ? sim_capture(stream, &work) : submit(stream, &work, &point);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t bytes)
{
	SIM_TRACED(cuMemcpyHtoD_v2, copy(NULL, CUPTI_ABI_MEMCPY_HTOD, (void *)target, source, bytes, false));
}

CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t bytes)
{
	SIM_TRACED(cuMemcpyDtoH_v2,
	           copy(NULL, CUPTI_ABI_MEMCPY_DTOH, target, (const void *)source, bytes, false));
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
	SIM_TRACED(cuMemcpyDtoD_v2,
	           copy(NULL, CUPTI_ABI_MEMCPY_DTOD, (void *)target, (const void *)source, bytes, false));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t bytes, CUstream stream)
{
	SIM_TRACED(cuMemcpyHtoDAsync_v2,
	           copy(stream, CUPTI_ABI_MEMCPY_HTOD, (void *)target, source, bytes, true));
}

CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t bytes, CUstream stream)
{
	SIM_TRACED(cuMemcpyDtoHAsync_v2,
	           copy(stream, CUPTI_ABI_MEMCPY_DTOH, target, (const void *)source, bytes, true));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
	SIM_TRACED(cuMemcpyDtoDAsync_v2,
	           copy(stream, CUPTI_ABI_MEMCPY_DTOD, (void *)target, (const void *)source, bytes, true));
}

CUresult cuMemsetD8_v2(CUdeviceptr target, unsigned char value, size_t bytes)
{
	SIM_TRACED(cuMemsetD8_v2, set(NULL, (void *)target, value, bytes, false));
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes, CUstream stream)
{
	SIM_TRACED(cuMemsetD8Async, set(stream, (void *)target, value, bytes, true));
}
