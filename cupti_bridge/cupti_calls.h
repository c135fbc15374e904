/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CUDA API functions whose calls the bridge asks CUPTI to record: X(name, cbid), with the name that CUPTI
 * gives them. They put work on the GPU, wait for it, take or give back memory, load code, or mark what is to
 * be profiled; queries and the like are left out because torch makes several of those for each launch.
 *
 * Figures from cupti_runtime_cbid.h and cupti_driver_cbid.h of CUDA 13.0; `make check-abi` compares them.
 * Numbers are never reused, so older versions agree as far as they know the function. Functions of later
 * versions have numbers from CUPTI_ABI_*_CBID_END on: the bridge asks cuptiGetCallbackName for those.
 */
#ifndef WHYIDLE_CUPTI_CALLS_H
#define WHYIDLE_CUPTI_CALLS_H

#define CUPTI_ABI_RUNTIME_CBID_END 523 /* CUPTI_RUNTIME_TRACE_CBID_SIZE */
#define CUPTI_ABI_DRIVER_CBID_END  807 /* CUPTI_DRIVER_TRACE_CBID_SIZE */

/* clang-format off */
#define CUPTI_ABI_RUNTIME_CALLS(X) \
	X(cudaLaunch_v3020, 13) X(cudaMalloc_v3020, 20) X(cudaMallocPitch_v3020, 21) \
	X(cudaFree_v3020, 22) X(cudaMallocArray_v3020, 23) X(cudaFreeArray_v3020, 24) \
	X(cudaMallocHost_v3020, 25) X(cudaFreeHost_v3020, 26) X(cudaHostAlloc_v3020, 27) \
	X(cudaMemcpy_v3020, 31) X(cudaMemcpy2D_v3020, 32) X(cudaMemcpyToArray_v3020, 33) \
	X(cudaMemcpy2DToArray_v3020, 34) X(cudaMemcpyFromArray_v3020, 35) \
	X(cudaMemcpy2DFromArray_v3020, 36) X(cudaMemcpyArrayToArray_v3020, 37) \
	X(cudaMemcpy2DArrayToArray_v3020, 38) X(cudaMemcpyToSymbol_v3020, 39) \
	X(cudaMemcpyFromSymbol_v3020, 40) X(cudaMemcpyAsync_v3020, 41) \
	X(cudaMemcpyToArrayAsync_v3020, 42) X(cudaMemcpyFromArrayAsync_v3020, 43) \
	X(cudaMemcpy2DAsync_v3020, 44) X(cudaMemcpy2DToArrayAsync_v3020, 45) \
	X(cudaMemcpy2DFromArrayAsync_v3020, 46) X(cudaMemcpyToSymbolAsync_v3020, 47) \
	X(cudaMemcpyFromSymbolAsync_v3020, 48) X(cudaMemset_v3020, 49) X(cudaMemset2D_v3020, 50) \
	X(cudaMemsetAsync_v3020, 51) X(cudaMemset2DAsync_v3020, 52) \
	X(cudaThreadSynchronize_v3020, 126) X(cudaStreamSynchronize_v3020, 131) \
	X(cudaEventSynchronize_v3020, 137) X(cudaMalloc3D_v3020, 140) \
	X(cudaMalloc3DArray_v3020, 141) X(cudaMemset3D_v3020, 142) \
	X(cudaMemset3DAsync_v3020, 143) X(cudaMemcpy3D_v3020, 144) \
	X(cudaMemcpy3DAsync_v3020, 145) X(cudaHostRegister_v4000, 152) \
	X(cudaHostUnregister_v4000, 153) X(cudaMemcpyPeer_v4000, 160) \
	X(cudaMemcpyPeerAsync_v4000, 161) X(cudaMemcpy3DPeer_v4000, 162) \
	X(cudaProfilerStart_v4000, 171) X(cudaProfilerStop_v4000, 172) \
	X(cudaMemcpy3DPeerAsync_v4000, 163) X(cudaDeviceSynchronize_v3020, 165) \
	X(cudaMallocMipmappedArray_v5000, 192) X(cudaFreeMipmappedArray_v5000, 194) \
	X(cudaMallocManaged_v6000, 206) X(cudaLaunchKernel_v7000, 211) \
	X(cudaLaunch_ptsz_v7000, 213) X(cudaLaunchKernel_ptsz_v7000, 214) \
	X(cudaMemcpy_ptds_v7000, 215) X(cudaMemcpy2D_ptds_v7000, 216) \
	X(cudaMemcpyToArray_ptds_v7000, 217) X(cudaMemcpy2DToArray_ptds_v7000, 218) \
	X(cudaMemcpyFromArray_ptds_v7000, 219) X(cudaMemcpy2DFromArray_ptds_v7000, 220) \
	X(cudaMemcpyArrayToArray_ptds_v7000, 221) X(cudaMemcpy2DArrayToArray_ptds_v7000, 222) \
	X(cudaMemcpyToSymbol_ptds_v7000, 223) X(cudaMemcpyFromSymbol_ptds_v7000, 224) \
	X(cudaMemcpyAsync_ptsz_v7000, 225) X(cudaMemcpyToArrayAsync_ptsz_v7000, 226) \
	X(cudaMemcpyFromArrayAsync_ptsz_v7000, 227) X(cudaMemcpy2DAsync_ptsz_v7000, 228) \
	X(cudaMemcpy2DToArrayAsync_ptsz_v7000, 229) X(cudaMemcpy2DFromArrayAsync_ptsz_v7000, 230) \
	X(cudaMemcpyToSymbolAsync_ptsz_v7000, 231) X(cudaMemcpyFromSymbolAsync_ptsz_v7000, 232) \
	X(cudaMemset_ptds_v7000, 233) X(cudaMemset2D_ptds_v7000, 234) \
	X(cudaMemsetAsync_ptsz_v7000, 235) X(cudaMemset2DAsync_ptsz_v7000, 236) \
	X(cudaStreamSynchronize_ptsz_v7000, 239) X(cudaMemset3D_ptds_v7000, 243) \
	X(cudaMemset3DAsync_ptsz_v7000, 244) X(cudaMemcpy3D_ptds_v7000, 245) \
	X(cudaMemcpy3DAsync_ptsz_v7000, 246) X(cudaMemcpy3DPeer_ptds_v7000, 249) \
	X(cudaMemcpy3DPeerAsync_ptsz_v7000, 250) X(cudaLaunchCooperativeKernel_v9000, 269) \
	X(cudaLaunchCooperativeKernel_ptsz_v9000, 270) \
	X(cudaLaunchCooperativeKernelMultiDevice_v9000, 272) X(cudaLaunchHostFunc_v10000, 284) \
	X(cudaLaunchHostFunc_ptsz_v10000, 285) X(cudaGraphLaunch_v10000, 311) \
	X(cudaGraphLaunch_ptsz_v10000, 312) X(cudaMallocAsync_v11020, 373) \
	X(cudaMallocAsync_ptsz_v11020, 374) X(cudaFreeAsync_v11020, 375) \
	X(cudaFreeAsync_ptsz_v11020, 376) X(cudaMallocFromPoolAsync_v11020, 391) \
	X(cudaMallocFromPoolAsync_ptsz_v11020, 392) X(cudaLaunchKernelExC_v11060, 430) \
	X(cudaLaunchKernelExC_ptsz_v11060, 431) X(cudaLibraryLoadData_v12060, 470) \
	X(cudaLibraryLoadFromFile_v12060, 471) X(cudaMemcpyBatchAsync_v12080, 482) \
	X(cudaMemcpyBatchAsync_ptsz_v12080, 483) X(cudaMemcpy3DBatchAsync_v12080, 484) \
	X(cudaMemcpy3DBatchAsync_ptsz_v12080, 485) X(__cudaLaunchKernel_v13000, 505) \
	X(__cudaLaunchKernel_ptsz_v13000, 506) X(cudaMemcpyBatchAsync_v13000, 509) \
	X(cudaMemcpyBatchAsync_ptsz_v13000, 510) X(cudaMemcpy3DBatchAsync_v13000, 511) \
	X(cudaMemcpy3DBatchAsync_ptsz_v13000, 512)

#define CUPTI_ABI_DRIVER_CALLS(X) \
	X(cuCtxSynchronize, 17) X(cuModuleLoad, 18) X(cuModuleLoadData, 19) \
	X(cuModuleLoadDataEx, 20) X(cuModuleLoadFatBinary, 21) X(cuMemAlloc, 29) \
	X(cuMemAllocPitch, 31) X(cuMemFree, 33) X(cuMemAllocHost, 37) X(cuMemFreeHost, 38) \
	X(cuMemHostAlloc, 39) X(cuMemcpyHtoD, 43) X(cuMemcpyDtoH, 45) X(cuMemcpyDtoD, 47) \
	X(cuMemcpyDtoA, 49) X(cuMemcpyAtoD, 51) X(cuMemcpyHtoA, 53) X(cuMemcpyAtoH, 54) \
	X(cuMemcpyAtoA, 55) X(cuMemcpy2D, 56) X(cuMemcpy2DUnaligned, 57) X(cuMemcpy3D, 58) \
	X(cuMemcpyHtoDAsync, 60) X(cuMemcpyDtoHAsync, 62) X(cuMemcpyDtoDAsync, 64) \
	X(cuMemcpyHtoAAsync, 66) X(cuMemcpyAtoHAsync, 67) X(cuMemcpy2DAsync, 68) \
	X(cuMemcpy3DAsync, 69) X(cuMemsetD8, 71) X(cuMemsetD16, 73) X(cuMemsetD32, 75) \
	X(cuMemsetD2D8, 77) X(cuMemsetD2D16, 79) X(cuMemsetD2D32, 81) X(cuLaunch, 115) \
	X(cuLaunchGrid, 116) X(cuLaunchGridAsync, 117) X(cuEventSynchronize, 121) \
	X(cuStreamSynchronize, 126) X(cuMemsetD8Async, 216) X(cuMemsetD16Async, 218) \
	X(cuMemsetD32Async, 220) X(cuMemsetD2D8Async, 222) X(cuMemsetD2D16Async, 224) \
	X(cuMemsetD2D32Async, 226) X(cuMemAlloc_v2, 243) X(cuMemAllocPitch_v2, 244) \
	X(cuMemFree_v2, 245) X(cuMemcpy_v2, 248) X(cuMemsetD8_v2, 249) X(cuMemsetD16_v2, 250) \
	X(cuMemsetD32_v2, 251) X(cuMemsetD2D8_v2, 252) X(cuMemsetD2D16_v2, 253) \
	X(cuMemsetD2D32_v2, 254) X(cuMemHostAlloc_v2, 271) X(cuMemcpyHtoD_v2, 276) \
	X(cuMemcpyHtoDAsync_v2, 277) X(cuMemcpyDtoH_v2, 278) X(cuMemcpyDtoHAsync_v2, 279) \
	X(cuMemcpyDtoD_v2, 280) X(cuMemcpyDtoDAsync_v2, 281) X(cuMemcpyAtoH_v2, 282) \
	X(cuMemcpyAtoHAsync_v2, 283) X(cuMemcpyAtoD_v2, 284) X(cuMemcpyDtoA_v2, 285) \
	X(cuMemcpyAtoA_v2, 286) X(cuMemcpy2D_v2, 287) X(cuMemcpy2DUnaligned_v2, 288) \
	X(cuMemcpy2DAsync_v2, 289) X(cuMemcpy3D_v2, 290) X(cuMemcpy3DAsync_v2, 291) \
	X(cuMemcpyHtoA_v2, 292) X(cuMemcpyHtoAAsync_v2, 293) X(cuMemAllocHost_v2, 294) \
	X(cuMemHostRegister, 301) X(cuMemHostUnregister, 302) X(cuMemcpy, 305) \
	X(cuMemcpyAsync, 306) X(cuLaunchKernel, 307) X(cuProfilerStart, 308) \
	X(cuProfilerStop, 309) X(cuMemcpyPeer, 318) \
	X(cuMemcpyPeerAsync, 319) X(cuMemcpy3DPeer, 320) X(cuMemcpy3DPeerAsync, 321) \
	X(cuLinkComplete, 365) X(cuMemAllocManaged, 371) X(cuMemHostRegister_v2, 379) \
	X(cuMemcpyHtoD_v2_ptds, 397) X(cuMemcpyDtoH_v2_ptds, 398) X(cuMemcpyDtoD_v2_ptds, 399) \
	X(cuMemcpyDtoA_v2_ptds, 400) X(cuMemcpyAtoD_v2_ptds, 401) X(cuMemcpyHtoA_v2_ptds, 402) \
	X(cuMemcpyAtoH_v2_ptds, 403) X(cuMemcpyAtoA_v2_ptds, 404) X(cuMemcpy2D_v2_ptds, 405) \
	X(cuMemcpy2DUnaligned_v2_ptds, 406) X(cuMemcpy3D_v2_ptds, 407) X(cuMemcpy_ptds, 408) \
	X(cuMemcpyPeer_ptds, 409) X(cuMemcpy3DPeer_ptds, 410) X(cuMemsetD8_v2_ptds, 411) \
	X(cuMemsetD16_v2_ptds, 412) X(cuMemsetD32_v2_ptds, 413) X(cuMemsetD2D8_v2_ptds, 414) \
	X(cuMemsetD2D16_v2_ptds, 415) X(cuMemsetD2D32_v2_ptds, 416) X(cuMemcpyAsync_ptsz, 418) \
	X(cuMemcpyHtoAAsync_v2_ptsz, 419) X(cuMemcpyAtoHAsync_v2_ptsz, 420) \
	X(cuMemcpyHtoDAsync_v2_ptsz, 421) X(cuMemcpyDtoHAsync_v2_ptsz, 422) \
	X(cuMemcpyDtoDAsync_v2_ptsz, 423) X(cuMemcpy2DAsync_v2_ptsz, 424) \
	X(cuMemcpy3DAsync_v2_ptsz, 425) X(cuMemcpyPeerAsync_ptsz, 426) \
	X(cuMemcpy3DPeerAsync_ptsz, 427) X(cuMemsetD8Async_ptsz, 428) \
	X(cuMemsetD16Async_ptsz, 429) X(cuMemsetD32Async_ptsz, 430) \
	X(cuMemsetD2D8Async_ptsz, 431) X(cuMemsetD2D16Async_ptsz, 432) \
	X(cuMemsetD2D32Async_ptsz, 433) X(cuStreamSynchronize_ptsz, 440) \
	X(cuLaunchKernel_ptsz, 442) X(cuLaunchCooperativeKernel, 477) \
	X(cuLaunchCooperativeKernel_ptsz, 478) X(cuLaunchCooperativeKernelMultiDevice, 480) \
	X(cuGraphLaunch, 514) X(cuGraphLaunch_ptsz, 515) X(cuLaunchHostFunc, 527) \
	X(cuLaunchHostFunc_ptsz, 528) X(cuMemCreate, 549) X(cuMemRelease, 550) X(cuMemMap, 551) \
	X(cuMemUnmap, 552) X(cuMemAllocAsync, 598) X(cuMemAllocAsync_ptsz, 599) \
	X(cuMemFreeAsync, 600) X(cuMemFreeAsync_ptsz, 601) X(cuMemAllocFromPoolAsync, 611) \
	X(cuMemAllocFromPoolAsync_ptsz, 612) X(cuLaunchKernelEx, 652) \
	X(cuLaunchKernelEx_ptsz, 653) X(cuLibraryLoadData, 678) X(cuLibraryLoadFromFile, 679) \
	X(cuMemcpyBatchAsync, 776) X(cuMemcpyBatchAsync_ptsz, 777) X(cuMemcpy3DBatchAsync, 778) \
	X(cuMemcpy3DBatchAsync_ptsz, 779) X(cuMemcpyBatchAsync_v2, 796) \
	X(cuMemcpyBatchAsync_v2_ptsz, 797) X(cuMemcpy3DBatchAsync_v2, 798) \
	X(cuMemcpy3DBatchAsync_v2_ptsz, 799) X(cuCtxSynchronize_v2, 800)

/* clang-format on */

#endif
