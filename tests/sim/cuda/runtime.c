/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulated libcudart.so.13: a layer on libcuda's exported functions, as the real one is, so that each
 * runtime call has driver calls inside. CUDA is initialised by the first call that needs it, with the primary
 * context of the thread's device.
 */
#include <stdlib.h>

#include "tests/sim/calls.h"
#include "tests/sim/cuda_sim.h"
#include "tests/sim/trace.h"

static __thread int thread_device;
static __thread CUcontext bound; /* context that this thread's device stands for, NULL: not bound yet */
static __thread cudaError_t last_error;
static CUcontext primaries[16];

/* Body of an exported function. The error is kept for cudaGetLastError. */
#define TRACED(cbid, expression)                                                                             \
	do {                                                                                                 \
		struct sim_call call;                                                                        \
		int result;                                                                                  \
                                                                                                             \
		simCallEnter(&call, CUPTI_ABI_DOMAIN_RUNTIME, CBID_##cbid);                                  \
		result = (int)(expression);                                                                  \
		if (result && result != CUDA_ERROR_NOT_READY)                                                \
			last_error = (cudaError_t)result;                                                    \
		return (cudaError_t)simCallExit(&call, result);                                              \
	} while (0)

static CUresult bind_device(void)
{
	CUresult error;
	CUcontext context;

	if (bound)
		return CUDA_SUCCESS;
	error = cuInit(0);
	if (error)
		return error;
	context = __atomic_load_n(&primaries[thread_device], __ATOMIC_ACQUIRE);
	if (!context) {
		error = cuDevicePrimaryCtxRetain(&context, thread_device);
		if (error)
			return error;
		__atomic_store_n(&primaries[thread_device], context, __ATOMIC_RELEASE);
	}
	error = cuCtxSetCurrent(context);
	if (!error)
		bound = context;
	return error;
}

/* `expression` once the thread has its context. */
#define BOUND(expression)                                                                                    \
	({                                                                                                   \
		CUresult bind_error = bind_device();                                                         \
                                                                                                             \
		bind_error ? bind_error : (expression);                                                      \
	})

cudaError_t cudaDriverGetVersion(int *version)
{
	TRACED(cudaDriverGetVersion_v3020, cuDriverGetVersion(version));
}

static CUresult runtime_version(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = 13000;
	return CUDA_SUCCESS;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	TRACED(cudaRuntimeGetVersion_v3020, runtime_version(version));
}

static CUresult device_count(int *count)
{
	CUresult error = cuInit(0);

	return error ? error : cuDeviceGetCount(count);
}

cudaError_t cudaGetDeviceCount(int *count)
{
	TRACED(cudaGetDeviceCount_v3020, device_count(count));
}

static CUresult get_device(int *device)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = thread_device;
	return CUDA_SUCCESS;
}

cudaError_t cudaGetDevice(int *device)
{
	TRACED(cudaGetDevice_v3020, get_device(device));
}

static CUresult set_device(int device)
{
	int count, before = thread_device;
	CUresult error = device_count(&count);

	if (error)
		return error;
	if (device < 0 || device >= count)
		return CUDA_ERROR_INVALID_DEVICE;
	thread_device = device;
	bound = NULL;
	error = bind_device();
	if (error)
		thread_device = before;
	return error;
}

cudaError_t cudaSetDevice(int device)
{
	TRACED(cudaSetDevice_v3020, set_device(device));
}

cudaError_t cudaDeviceSynchronize(void)
{
	TRACED(cudaDeviceSynchronize_v3020, BOUND(cuCtxSynchronize()));
}

cudaError_t cudaGetLastError(void)
{
	struct sim_call call;
	cudaError_t error = last_error;

	simCallEnter(&call, CUPTI_ABI_DOMAIN_RUNTIME, CBID_cudaGetLastError_v3020);
	last_error = cudaSuccess;
	return (cudaError_t)simCallExit(&call, (int)error);
}

cudaError_t cudaPeekAtLastError(void)
{
	struct sim_call call;

	simCallEnter(&call, CUPTI_ABI_DOMAIN_RUNTIME, CBID_cudaPeekAtLastError_v3020);
	return (cudaError_t)simCallExit(&call, (int)last_error);
}

const char *cudaGetErrorString(cudaError_t error)
{
	const char *text;

	return cuGetErrorString((CUresult)error, &text) ? "unrecognized error code" : text;
}

/* The driver's name of the error: the runtime's own differ only in spelling. */
const char *cudaGetErrorName(cudaError_t error)
{
	const char *name;

	return cuGetErrorName((CUresult)error, &name) ? "unrecognized error code" : name;
}

/* Memory */

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
	TRACED(cudaMalloc_v3020, BOUND(cuMemAlloc_v2((CUdeviceptr *)pointer, bytes)));
}

cudaError_t cudaFree(void *pointer)
{
	TRACED(cudaFree_v3020, BOUND(cuMemFree_v2((CUdeviceptr)pointer)));
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
	TRACED(cudaMallocHost_v3020, BOUND(cuMemAllocHost_v2(pointer, bytes)));
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
	TRACED(cudaHostAlloc_v3020, BOUND(cuMemHostAlloc(pointer, bytes, flags)));
}

cudaError_t cudaFreeHost(void *pointer)
{
	TRACED(cudaFreeHost_v3020, BOUND(cuMemFreeHost(pointer)));
}

static CUresult copy(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoD_v2((CUdeviceptr)target, source, bytes);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoH_v2(target, (CUdeviceptr)source, bytes);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoD_v2((CUdeviceptr)target, (CUdeviceptr)source, bytes);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult copy_async(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
                           cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoDAsync_v2((CUdeviceptr)target, source, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoHAsync_v2(target, (CUdeviceptr)source, bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoDAsync_v2((CUdeviceptr)target, (CUdeviceptr)source, bytes, stream);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

cudaError_t cudaMemcpy(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind)
{
	TRACED(cudaMemcpy_v3020, BOUND(copy(target, source, bytes, kind)));
}

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
	TRACED(cudaMemcpyAsync_v3020, BOUND(copy_async(target, source, bytes, kind, stream)));
}

cudaError_t cudaMemset(void *target, int value, size_t bytes)
{
	TRACED(cudaMemset_v3020, BOUND(cuMemsetD8_v2((CUdeviceptr)target, (unsigned char)value, bytes)));
}

cudaError_t cudaMemsetAsync(void *target, int value, size_t bytes, cudaStream_t stream)
{
	TRACED(cudaMemsetAsync_v3020,
	       BOUND(cuMemsetD8Async((CUdeviceptr)target, (unsigned char)value, bytes, stream)));
}

/* Streams and events */

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	TRACED(cudaStreamCreate_v3020, BOUND(cuStreamCreate(stream, CU_STREAM_DEFAULT)));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	TRACED(cudaStreamCreateWithFlags_v5000, BOUND(cuStreamCreate(stream, flags)));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	TRACED(cudaStreamDestroy_v5050, BOUND(cuStreamDestroy_v2(stream)));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	TRACED(cudaStreamSynchronize_v3020, BOUND(cuStreamSynchronize(stream)));
}

/* They tell a profiler where to look, and do nothing else. */
cudaError_t cudaProfilerStart(void)
{
	TRACED(cudaProfilerStart_v4000, cudaSuccess);
}

cudaError_t cudaProfilerStop(void)
{
	TRACED(cudaProfilerStop_v4000, cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	TRACED(cudaStreamQuery_v3020, BOUND(cuStreamQuery(stream)));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	TRACED(cudaStreamWaitEvent_v3020, BOUND(cuStreamWaitEvent(stream, event, flags)));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	TRACED(cudaEventCreate_v3020, BOUND(cuEventCreate(event, CU_EVENT_DEFAULT)));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	TRACED(cudaEventCreateWithFlags_v3020, BOUND(cuEventCreate(event, flags)));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	TRACED(cudaEventDestroy_v3020, BOUND(cuEventDestroy_v2(event)));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	TRACED(cudaEventRecord_v3020, BOUND(cuEventRecord(event, stream)));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	TRACED(cudaEventSynchronize_v3020, BOUND(cuEventSynchronize(event)));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	TRACED(cudaEventQuery_v3020, BOUND(cuEventQuery(event)));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	TRACED(cudaEventElapsedTime_v3020, BOUND(cuEventElapsedTime_v2(milliseconds, start, end)));
}

/* Launches and graphs. The handle of a simulated kernel serves as host function and as CUfunction. */

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                             cudaStream_t stream)
{
	TRACED(cudaLaunchKernel_v7000,
	       BOUND(cuLaunchKernel((CUfunction)function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
	                            (unsigned int)shared_bytes, stream, args, NULL)));
}

/* What a launch in CUDA's own syntax calls since CUDA 13; there, too, it only jumps to the other. */
cudaError_t __cudaLaunchKernel(CUfunction kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                               cudaStream_t stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
	TRACED(cudaStreamBeginCapture_v10000, BOUND(cuStreamBeginCapture_v2(stream, mode)));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	TRACED(cudaStreamEndCapture_v10000, BOUND(cuStreamEndCapture(stream, graph)));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
	TRACED(cudaStreamIsCapturing_v10000, BOUND(cuStreamIsCapturing(stream, status)));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	TRACED(cudaGraphInstantiate_v12000, BOUND(cuGraphInstantiateWithFlags(exec, graph, flags)));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	TRACED(cudaGraphLaunch_v10000, BOUND(cuGraphLaunch(exec, stream)));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	TRACED(cudaGraphExecDestroy_v10000, BOUND(cuGraphExecDestroy(exec)));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	TRACED(cudaGraphDestroy_v10000, BOUND(cuGraphDestroy(graph)));
}
