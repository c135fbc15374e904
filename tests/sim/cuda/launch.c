/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel launches and graphs.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cuda/driver.h"

struct sim_graph {
	uint32_t magic, id;
	struct sim_work *works;
	size_t count, capacity;
};

struct sim_graph_exec {
	uint32_t magic;
	struct sim_work *works;
	size_t count;
};

static uint32_t last_graph_id;

static CUfunction create_kernel(const char *name, uint64_t duration_ns, bool meets)
{
	struct sim_kernel *kernel = calloc(1, sizeof(*kernel));

	if (!kernel)
		return NULL;
	kernel->magic = SIM_MAGIC_KERNEL;
	kernel->duration_ns = duration_ns;
	kernel->meets = meets;
	kernel->name = strdup(name);
	if (!kernel->name) {
		free(kernel);
		return NULL;
	}
	return kernel;
}

CUfunction simKernelCreate(const char *name, uint64_t duration_ns)
{
	return create_kernel(name, duration_ns, false);
}

CUfunction simGridKernelCreate(const char *name, uint64_t duration_ns)
{
	CUfunction kernel = create_kernel(name, duration_ns, false);

	if (kernel)
		kernel->by_block = true;
	return kernel;
}

CUfunction simKernelCreateMeeting(const char *name)
{
	return create_kernel(name, 0, true);
}

static CUresult load_module(CUmodule *module, const void *image)
{
	CUresult error;

	if (!sim_current_context(&error))
		return error;
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	sim_spend(sim_options.load_ns);
	*module = (CUmodule)(uintptr_t)image;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	SIM_TRACED(cuModuleLoadData, load_module(module, image));
}

static CUresult launch(CUfunction kernel, const uint32_t grid[3], const uint32_t block[3],
                       uint32_t shared_bytes, CUstream handle, void **params)
{
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);
	struct sim_work work = {.kind = SIM_KERNEL, .floor_ns = sim_options.floor_ns};

	if (!stream)
		return error;
	if (!kernel || kernel->magic != SIM_MAGIC_KERNEL)
		return CUDA_ERROR_INVALID_HANDLE;
	for (int i = 0; i < 3; i++)
		if (!grid[i] || !block[i])
			return CUDA_ERROR_INVALID_VALUE;
	work.name = kernel->name;
	work.duration_ns =
	    kernel->duration_ns * (kernel->by_block ? (uint64_t)grid[0] * grid[1] * grid[2] : 1);
	if (kernel->meets) {
		/* A meeting is used once, and a graph would run it again. */
		if (!params || stream->capture)
			return CUDA_ERROR_NOT_SUPPORTED;
		work.meeting = params[0];
	}
	work.shared_bytes = shared_bytes;
	memcpy(work.grid, grid, sizeof(work.grid));
	memcpy(work.block, block, sizeof(work.block));
	sim_api_lock();
	sim_spend(sim_options.launch_ns);
	sim_api_unlock();
	if (stream->capture)
		return sim_capture(stream, &work);
	return engine_submit(stream, &work, sim_correlation(), NULL, (struct sim_point){0})
	           ? CUDA_SUCCESS
	           : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
	const uint32_t grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};

	(void)extra;
	SIM_TRACED(cuLaunchKernel, launch(function, grid, block, shared_bytes, stream, params));
}

/* Graphs */

CUresult sim_capture(struct sim_stream *stream, const struct sim_work *work)
{
	struct sim_graph *graph = stream->capture;

	if (graph->count == graph->capacity) {
		size_t capacity = graph->capacity ? 2 * graph->capacity : 16;
		struct sim_work *more = realloc(graph->works, capacity * sizeof(*more));

		if (!more)
			return CUDA_ERROR_OUT_OF_MEMORY;
		graph->works = more;
		graph->capacity = capacity;
	}
	graph->works[graph->count] = *work;
	graph->works[graph->count].graph = graph->id;
	graph->works[graph->count].graph_node = (uint64_t)graph->id << 32 | (graph->count + 1);
	if (graph->count)
		graph->works[graph->count].floor_ns = SIM_GRAPH_FLOOR_NS;
	graph->count++;
	return CUDA_SUCCESS;
}

static CUresult begin_capture(CUstream handle)
{
	CUresult error;
	struct sim_stream *stream = handle ? sim_find_stream(handle, &error) : NULL;

	if (!handle)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* the default stream cannot be captured */
	if (!stream)
		return error;
	if (stream->capture)
		return CUDA_ERROR_INVALID_VALUE;
	stream->capture = calloc(1, sizeof(*stream->capture));
	if (!stream->capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->capture->magic = SIM_MAGIC_GRAPH;
	stream->capture->id = __atomic_add_fetch(&last_graph_id, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

static CUresult end_capture(CUstream handle, CUgraph *graph)
{
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);

	if (!stream)
		return error;
	if (!graph || !stream->capture)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = stream->capture;
	stream->capture = NULL;
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream handle, int *status)
{
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);

	if (!stream)
		return error;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = stream->capture ? 1 : 0;
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph)
{
	if (!exec || !graph || graph->magic != SIM_MAGIC_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	*exec = calloc(1, sizeof(**exec));
	if (!*exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*exec)->magic = SIM_MAGIC_EXEC;
	(*exec)->works = calloc(graph->count + 1, sizeof(*graph->works));
	if (!(*exec)->works) {
		free(*exec);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*exec)->count = graph->count;
	if (graph->count)
		memcpy((*exec)->works, graph->works, graph->count * sizeof(*graph->works));
	return CUDA_SUCCESS;
}

static CUresult graph_launch(CUgraphExec exec, CUstream handle)
{
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);

	if (!stream)
		return error;
	if (!exec || exec->magic != SIM_MAGIC_EXEC)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_api_lock();
	sim_spend(2 * sim_options.launch_ns);
	sim_api_unlock();
	return engine_submit_all(stream, exec->works, exec->count, sim_correlation())
	           ? CUDA_SUCCESS
	           : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult exec_destroy(CUgraphExec exec)
{
	if (!exec || exec->magic != SIM_MAGIC_EXEC)
		return CUDA_ERROR_INVALID_VALUE;
	exec->magic = 0;
	free(exec->works);
	free(exec);
	return CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraph graph)
{
	if (!graph || graph->magic != SIM_MAGIC_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	graph->magic = 0;
	free(graph->works);
	free(graph);
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	(void)mode;
	SIM_TRACED(cuStreamBeginCapture_v2, begin_capture(stream));
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	SIM_TRACED(cuStreamEndCapture, end_capture(stream, graph));
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	SIM_TRACED(cuStreamIsCapturing, is_capturing(stream, status));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	(void)flags;
	SIM_TRACED(cuGraphInstantiateWithFlags, instantiate(exec, graph));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	SIM_TRACED(cuGraphLaunch, graph_launch(exec, stream));
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	SIM_TRACED(cuGraphExecDestroy, exec_destroy(exec));
}

CUresult cuGraphDestroy(CUgraph graph)
{
	SIM_TRACED(cuGraphDestroy, graph_destroy(graph));
}
