/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * API functions of the stand-ins and the numbers that CUPTI gives them, X(name, cbid): facts from
 * cupti_driver_cbid.h and cupti_runtime_cbid.h of CUDA 13.0.
 */
#ifndef WHYIDLE_SIM_CALLS_H
#define WHYIDLE_SIM_CALLS_H

/* clang-format off */
#define SIM_DRIVER_CALLS(X) \
	X(cuInit, 1) \
	X(cuDriverGetVersion, 2) \
	X(cuGetProcAddress, 626) \
	X(cuGetProcAddress_v2, 677) \
	X(cuDeviceGet, 3) \
	X(cuDeviceGetCount, 4) \
	X(cuDeviceGetName, 5) \
	X(cuDeviceGetUuid, 482) \
	X(cuDeviceGetUuid_v2, 647) \
	X(cuDeviceTotalMem_v2, 259) \
	X(cuDeviceGetAttribute, 9) \
	X(cuDevicePrimaryCtxRetain, 386) \
	X(cuDevicePrimaryCtxRelease_v2, 544) \
	X(cuCtxCreate_v2, 235) \
	X(cuCtxCreate_v4, 757) \
	X(cuCtxDestroy_v2, 322) \
	X(cuCtxGetCurrent, 304) \
	X(cuCtxSetCurrent, 303) \
	X(cuCtxGetDevice, 16) \
	X(cuCtxSynchronize, 17) \
	X(cuMemAlloc_v2, 243) \
	X(cuMemFree_v2, 245) \
	X(cuMemAllocHost_v2, 294) \
	X(cuMemHostAlloc, 39) \
	X(cuMemFreeHost, 38) \
	X(cuMemHostRegister_v2, 379) \
	X(cuMemHostUnregister, 302) \
	X(cuMemcpyHtoD_v2, 276) \
	X(cuMemcpyDtoH_v2, 278) \
	X(cuMemcpyDtoD_v2, 280) \
	X(cuMemcpyHtoDAsync_v2, 277) \
	X(cuMemcpyDtoHAsync_v2, 279) \
	X(cuMemcpyDtoDAsync_v2, 281) \
	X(cuMemsetD8_v2, 249) \
	X(cuMemsetD8Async, 216) \
	X(cuStreamCreate, 124) \
	X(cuStreamDestroy_v2, 326) \
	X(cuStreamSynchronize, 126) \
	X(cuStreamQuery, 125) \
	X(cuStreamWaitEvent, 295) \
	X(cuEventCreate, 118) \
	X(cuEventDestroy_v2, 325) \
	X(cuEventRecord, 119) \
	X(cuEventSynchronize, 121) \
	X(cuEventQuery, 120) \
	X(cuEventElapsedTime, 123) \
	X(cuEventElapsedTime_v2, 780) \
	X(cuModuleLoadData, 19) \
	X(cuLaunchKernel, 307) \
	X(cuStreamBeginCapture_v2, 539) \
	X(cuStreamEndCapture, 497) \
	X(cuStreamIsCapturing, 499) \
	X(cuGraphInstantiateWithFlags, 643) \
	X(cuGraphLaunch, 514) \
	X(cuGraphExecDestroy, 516) \
	X(cuGraphDestroy, 517)

#define SIM_RUNTIME_CALLS(X) \
	X(cudaDriverGetVersion_v3020, 1) \
	X(cudaRuntimeGetVersion_v3020, 2) \
	X(cudaGetDeviceCount_v3020, 3) \
	X(cudaGetDevice_v3020, 17) \
	X(cudaSetDevice_v3020, 16) \
	X(cudaDeviceSynchronize_v3020, 165) \
	X(cudaGetLastError_v3020, 10) \
	X(cudaPeekAtLastError_v3020, 11) \
	X(cudaMalloc_v3020, 20) \
	X(cudaFree_v3020, 22) \
	X(cudaMallocHost_v3020, 25) \
	X(cudaHostAlloc_v3020, 27) \
	X(cudaFreeHost_v3020, 26) \
	X(cudaMemcpy_v3020, 31) \
	X(cudaMemcpyAsync_v3020, 41) \
	X(cudaMemset_v3020, 49) \
	X(cudaMemsetAsync_v3020, 51) \
	X(cudaStreamCreate_v3020, 129) \
	X(cudaStreamCreateWithFlags_v5000, 198) \
	X(cudaStreamDestroy_v5050, 201) \
	X(cudaStreamSynchronize_v3020, 131) \
	X(cudaStreamQuery_v3020, 132) \
	X(cudaStreamWaitEvent_v3020, 147) \
	X(cudaEventCreate_v3020, 133) \
	X(cudaEventCreateWithFlags_v3020, 134) \
	X(cudaEventDestroy_v3020, 136) \
	X(cudaEventRecord_v3020, 135) \
	X(cudaEventSynchronize_v3020, 137) \
	X(cudaEventQuery_v3020, 138) \
	X(cudaEventElapsedTime_v3020, 139) \
	X(cudaLaunchKernel_v7000, 211) \
	X(cudaStreamBeginCapture_v10000, 315) \
	X(cudaStreamEndCapture_v10000, 319) \
	X(cudaStreamIsCapturing_v10000, 317) \
	X(cudaGraphInstantiate_v12000, 443) \
	X(cudaGraphLaunch_v10000, 311) \
	X(cudaGraphExecDestroy_v10000, 313) \
	X(cudaGraphDestroy_v10000, 314) \
	X(cudaProfilerStart_v4000, 171) \
	X(cudaProfilerStop_v4000, 172)
/* clang-format on */

enum {
#define SIM_CBID(name, cbid) CBID_##name = (cbid),
	SIM_DRIVER_CALLS(SIM_CBID) SIM_RUNTIME_CALLS(SIM_CBID)
#undef SIM_CBID
};

#endif
