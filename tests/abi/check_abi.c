/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compares cupti_bridge/cupti_abi.h with the headers of the CUDA Toolkit. Compiling it is the test.
 *
 * The deprecated records stand for older versions of CUPTI: the common prefix must be the same in each of
 * them.
 */
#include <cuda.h>
#include <cupti.h>
#include <cupti_activity_deprecated.h>

#include "cupti_bridge/cupti_abi.h"
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#include <stdbool.h>

#include "cupti_bridge/nvtx_abi.h"
#define HAVE_NVTX
#endif

#define SAME_VALUE(ours, theirs) _Static_assert((uint64_t)(ours) == (uint64_t)(theirs), #ours)
#define SAME_SIZE(ours, theirs)  _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
#define SAME_FIELD(ours, field, theirs, their_field)                                                         \
	_Static_assert(offsetof(ours, field) == offsetof(theirs, their_field),                               \
	               #ours "." #field " " #theirs);                                                        \
	_Static_assert(sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->their_field),                     \
	               #ours "." #field " size " #theirs)
/* First and last of three fields that we declare as an array. */
#define SAME_TRIPLE(ours, field, theirs, first, last)                                                        \
	_Static_assert(offsetof(ours, field) == offsetof(theirs, first), #ours "." #field " " #theirs);      \
	_Static_assert(offsetof(ours, field) + 8 == offsetof(theirs, last), #ours "." #field " " #theirs);   \
	_Static_assert(sizeof(((ours *)0)->field) == 3 * sizeof(((theirs *)0)->first), #ours "." #field)

/* Results. */
#define RESULT(name) SAME_VALUE(CUPTI_ABI_ERROR_##name, CUPTI_ERROR_##name)
SAME_VALUE(CUPTI_ABI_SUCCESS, CUPTI_SUCCESS);
RESULT(INVALID_PARAMETER);
RESULT(INVALID_OPERATION);
RESULT(MAX_LIMIT_REACHED);
RESULT(NOT_READY);
RESULT(NOT_COMPATIBLE);
RESULT(NOT_INITIALIZED);
RESULT(INVALID_KIND);
RESULT(NOT_SUPPORTED);
RESULT(VIRTUALIZED_DEVICE_NOT_SUPPORTED);
RESULT(INSUFFICIENT_PRIVILEGES);
RESULT(OLD_PROFILER_API_INITIALIZED);
RESULT(LEGACY_PROFILER_NOT_SUPPORTED);
RESULT(MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
RESULT(VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
RESULT(CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
RESULT(MIG_DEVICE_NOT_SUPPORTED);
RESULT(WSL_DEVICE_NOT_SUPPORTED);
RESULT(UNKNOWN);
SAME_SIZE(cupti_abi_result, CUptiResult);

/* Kinds. */
#define KIND(name) SAME_VALUE(CUPTI_ABI_KIND_##name, CUPTI_ACTIVITY_KIND_##name)
KIND(MEMCPY);
KIND(MEMSET);
KIND(KERNEL);
KIND(DRIVER);
KIND(RUNTIME);
KIND(DEVICE);
KIND(CONCURRENT_KERNEL);
KIND(OVERHEAD);
KIND(MEMCPY2);
KIND(SYNCHRONIZATION);
SAME_SIZE(cupti_abi_kind, CUpti_ActivityKind);

/* Values inside records. */
SAME_VALUE(CUPTI_ABI_MEMCPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME_VALUE(CUPTI_ABI_MEMCPY_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME_VALUE(CUPTI_ABI_MEMCPY_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME_VALUE(CUPTI_ABI_MEMCPY_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME_VALUE(CUPTI_ABI_MEMCPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME_VALUE(CUPTI_ABI_MEMORY_UNKNOWN, CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN);
SAME_VALUE(CUPTI_ABI_MEMORY_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME_VALUE(CUPTI_ABI_MEMORY_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
SAME_VALUE(CUPTI_ABI_MEMORY_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME_VALUE(CUPTI_ABI_MEMORY_ARRAY, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
SAME_VALUE(CUPTI_ABI_MEMORY_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
SAME_VALUE(CUPTI_ABI_FLAG_MEMCPY_ASYNC, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
SAME_VALUE(CUPTI_ABI_FLAG_MEMSET_ASYNC, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
SAME_VALUE(CUPTI_ABI_SYNC_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
SAME_VALUE(CUPTI_ABI_SYNC_STREAM_WAIT_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
SAME_VALUE(CUPTI_ABI_SYNC_STREAM, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
SAME_VALUE(CUPTI_ABI_SYNC_CONTEXT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
SAME_VALUE(CUPTI_ABI_SYNC_INVALID_VALUE, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
SAME_VALUE(CUPTI_ABI_OVERHEAD_DRIVER_COMPILER, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
SAME_VALUE(CUPTI_ABI_OVERHEAD_BUFFER_FLUSH, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
SAME_VALUE(CUPTI_ABI_OVERHEAD_INSTRUMENTATION, CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION);
SAME_VALUE(CUPTI_ABI_OVERHEAD_RESOURCE, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);
#if CUPTI_API_VERSION >= 130000
SAME_VALUE(CUPTI_ABI_OVERHEAD_RUNTIME_MODULE_LOADING,
           CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING);
SAME_VALUE(CUPTI_ABI_OVERHEAD_LAZY_FUNCTION_LOADING, CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
SAME_VALUE(CUPTI_ABI_OVERHEAD_COMMAND_BUFFER_FULL, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
SAME_VALUE(CUPTI_ABI_OVERHEAD_BUFFER_REQUEST, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST);
#endif
SAME_VALUE(CUPTI_ABI_OBJECT_PROCESS, CUPTI_ACTIVITY_OBJECT_PROCESS);
SAME_VALUE(CUPTI_ABI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
SAME_VALUE(CUPTI_ABI_THREAD_ID_DEFAULT, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
SAME_VALUE(CUPTI_ABI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME_VALUE(CUPTI_ABI_ATTRIBUTE_ZEROED_BUFFERS, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME_VALUE(CUPTI_ABI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_VALUE(CUPTI_ABI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME_VALUE(CUPTI_ABI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME_VALUE(CUPTI_ABI_API_ENTER, CUPTI_API_ENTER);
SAME_VALUE(CUPTI_ABI_API_EXIT, CUPTI_API_EXIT);
SAME_FIELD(struct cupti_abi_callback_data, site, CUpti_CallbackData, callbackSite);

/* Kernels. */
#define KERNEL_PREFIX(theirs)                                                                                \
	SAME_FIELD(struct cupti_abi_kernel, kind, theirs, kind);                                             \
	SAME_FIELD(struct cupti_abi_kernel, start, theirs, start);                                           \
	SAME_FIELD(struct cupti_abi_kernel, end, theirs, end);                                               \
	SAME_FIELD(struct cupti_abi_kernel, device, theirs, deviceId);                                       \
	SAME_FIELD(struct cupti_abi_kernel, context, theirs, contextId);                                     \
	SAME_FIELD(struct cupti_abi_kernel, stream, theirs, streamId);                                       \
	SAME_TRIPLE(struct cupti_abi_kernel, grid, theirs, gridX, gridZ);                                    \
	SAME_TRIPLE(struct cupti_abi_kernel, block, theirs, blockX, blockZ);                                 \
	SAME_FIELD(struct cupti_abi_kernel, correlation, theirs, correlationId);                             \
	SAME_FIELD(struct cupti_abi_kernel, name, theirs, name);                                             \
	SAME_FIELD(struct cupti_abi_kernel, graph_node, theirs, graphNodeId);                                \
	SAME_FIELD(struct cupti_abi_kernel, graph, theirs, graphId)
KERNEL_PREFIX(CUpti_ActivityKernel6);
KERNEL_PREFIX(CUpti_ActivityKernel7);
KERNEL_PREFIX(CUpti_ActivityKernel8);
KERNEL_PREFIX(CUpti_ActivityKernel9);
#if CUPTI_API_VERSION >= 130000
KERNEL_PREFIX(CUpti_ActivityKernel10);
SAME_SIZE(struct cupti_abi_kernel, CUpti_ActivityKernel10);
SAME_FIELD(struct cupti_abi_kernel, cache_config, CUpti_ActivityKernel10, cacheConfig);
SAME_FIELD(struct cupti_abi_kernel, shared_memory_config, CUpti_ActivityKernel10, sharedMemoryConfig);
SAME_FIELD(struct cupti_abi_kernel, registers_per_thread, CUpti_ActivityKernel10, registersPerThread);
SAME_FIELD(struct cupti_abi_kernel, completed, CUpti_ActivityKernel10, completed);
SAME_FIELD(struct cupti_abi_kernel, static_shared_memory, CUpti_ActivityKernel10, staticSharedMemory);
SAME_FIELD(struct cupti_abi_kernel, dynamic_shared_memory, CUpti_ActivityKernel10, dynamicSharedMemory);
SAME_FIELD(struct cupti_abi_kernel, local_memory_total, CUpti_ActivityKernel10, localMemoryTotal);
SAME_FIELD(struct cupti_abi_kernel, grid_id, CUpti_ActivityKernel10, gridId);
SAME_FIELD(struct cupti_abi_kernel, queued, CUpti_ActivityKernel10, queued);
SAME_FIELD(struct cupti_abi_kernel, submitted, CUpti_ActivityKernel10, submitted);
SAME_FIELD(struct cupti_abi_kernel, launch_type, CUpti_ActivityKernel10, launchType);
SAME_FIELD(struct cupti_abi_kernel, shared_memory_executed, CUpti_ActivityKernel10, sharedMemoryExecuted);
SAME_FIELD(struct cupti_abi_kernel, access_policy_window, CUpti_ActivityKernel10, pAccessPolicyWindow);
SAME_FIELD(struct cupti_abi_kernel, channel, CUpti_ActivityKernel10, channelID);
SAME_FIELD(struct cupti_abi_kernel, channel_type, CUpti_ActivityKernel10, channelType);
SAME_TRIPLE(struct cupti_abi_kernel, cluster, CUpti_ActivityKernel10, clusterX, clusterZ);
SAME_FIELD(struct cupti_abi_kernel, local_memory_total_v2, CUpti_ActivityKernel10, localMemoryTotal_v2);
SAME_FIELD(struct cupti_abi_kernel, is_device_launched, CUpti_ActivityKernel10, isDeviceLaunched);
#endif

/* Copies. */
#define MEMCPY_PREFIX(ours, theirs)                                                                          \
	SAME_FIELD(ours, kind, theirs, kind);                                                                \
	SAME_FIELD(ours, copy_kind, theirs, copyKind);                                                       \
	SAME_FIELD(ours, source_kind, theirs, srcKind);                                                      \
	SAME_FIELD(ours, target_kind, theirs, dstKind);                                                      \
	SAME_FIELD(ours, flags, theirs, flags);                                                              \
	SAME_FIELD(ours, bytes, theirs, bytes);                                                              \
	SAME_FIELD(ours, start, theirs, start);                                                              \
	SAME_FIELD(ours, end, theirs, end);                                                                  \
	SAME_FIELD(ours, device, theirs, deviceId);                                                          \
	SAME_FIELD(ours, context, theirs, contextId);                                                        \
	SAME_FIELD(ours, stream, theirs, streamId);                                                          \
	SAME_FIELD(ours, correlation, theirs, correlationId);                                                \
	SAME_FIELD(ours, graph_node, theirs, graphNodeId);                                                   \
	SAME_FIELD(ours, graph, theirs, graphId)
MEMCPY_PREFIX(struct cupti_abi_memcpy, CUpti_ActivityMemcpy4);
MEMCPY_PREFIX(struct cupti_abi_memcpy, CUpti_ActivityMemcpy5);
MEMCPY_PREFIX(struct cupti_abi_memcpy_peer, CUpti_ActivityMemcpyPtoP3);
MEMCPY_PREFIX(struct cupti_abi_memcpy_peer, CUpti_ActivityMemcpyPtoP4);
SAME_SIZE(struct cupti_abi_memcpy_peer, CUpti_ActivityMemcpyPtoP4);
SAME_FIELD(struct cupti_abi_memcpy_peer, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME_FIELD(struct cupti_abi_memcpy_peer, target_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
#if CUPTI_API_VERSION >= 130000
MEMCPY_PREFIX(struct cupti_abi_memcpy, CUpti_ActivityMemcpy6);
SAME_SIZE(struct cupti_abi_memcpy, CUpti_ActivityMemcpy6);
SAME_FIELD(struct cupti_abi_memcpy, copy_count, CUpti_ActivityMemcpy6, copyCount);
#endif

/* Memsets. */
#define MEMSET_PREFIX(theirs)                                                                                \
	SAME_FIELD(struct cupti_abi_memset, kind, theirs, kind);                                             \
	SAME_FIELD(struct cupti_abi_memset, value, theirs, value);                                           \
	SAME_FIELD(struct cupti_abi_memset, bytes, theirs, bytes);                                           \
	SAME_FIELD(struct cupti_abi_memset, start, theirs, start);                                           \
	SAME_FIELD(struct cupti_abi_memset, end, theirs, end);                                               \
	SAME_FIELD(struct cupti_abi_memset, device, theirs, deviceId);                                       \
	SAME_FIELD(struct cupti_abi_memset, context, theirs, contextId);                                     \
	SAME_FIELD(struct cupti_abi_memset, stream, theirs, streamId);                                       \
	SAME_FIELD(struct cupti_abi_memset, correlation, theirs, correlationId);                             \
	SAME_FIELD(struct cupti_abi_memset, flags, theirs, flags);                                           \
	SAME_FIELD(struct cupti_abi_memset, memory_kind, theirs, memoryKind);                                \
	SAME_FIELD(struct cupti_abi_memset, graph, theirs, graphId)
MEMSET_PREFIX(CUpti_ActivityMemset3);
MEMSET_PREFIX(CUpti_ActivityMemset4);
SAME_SIZE(struct cupti_abi_memset, CUpti_ActivityMemset4);

/* API calls. */
SAME_SIZE(struct cupti_abi_api, CUpti_ActivityAPI);
SAME_FIELD(struct cupti_abi_api, kind, CUpti_ActivityAPI, kind);
SAME_FIELD(struct cupti_abi_api, cbid, CUpti_ActivityAPI, cbid);
SAME_FIELD(struct cupti_abi_api, start, CUpti_ActivityAPI, start);
SAME_FIELD(struct cupti_abi_api, end, CUpti_ActivityAPI, end);
SAME_FIELD(struct cupti_abi_api, process, CUpti_ActivityAPI, processId);
SAME_FIELD(struct cupti_abi_api, thread, CUpti_ActivityAPI, threadId);
SAME_FIELD(struct cupti_abi_api, correlation, CUpti_ActivityAPI, correlationId);
SAME_FIELD(struct cupti_abi_api, result, CUpti_ActivityAPI, returnValue);

/* Synchronisation. */
#define SYNC_PREFIX(theirs)                                                                                  \
	SAME_FIELD(struct cupti_abi_sync, kind, theirs, kind);                                               \
	SAME_FIELD(struct cupti_abi_sync, type, theirs, type);                                               \
	SAME_FIELD(struct cupti_abi_sync, start, theirs, start);                                             \
	SAME_FIELD(struct cupti_abi_sync, end, theirs, end);                                                 \
	SAME_FIELD(struct cupti_abi_sync, correlation, theirs, correlationId);                               \
	SAME_FIELD(struct cupti_abi_sync, context, theirs, contextId);                                       \
	SAME_FIELD(struct cupti_abi_sync, stream, theirs, streamId);                                         \
	SAME_FIELD(struct cupti_abi_sync, event, theirs, cudaEventId)
SYNC_PREFIX(CUpti_ActivitySynchronization);
#if CUPTI_API_VERSION >= 130000
SYNC_PREFIX(CUpti_ActivitySynchronization2);
SAME_SIZE(struct cupti_abi_sync, CUpti_ActivitySynchronization2);
SAME_FIELD(struct cupti_abi_sync, event_sync, CUpti_ActivitySynchronization2, cudaEventSyncId);
SAME_FIELD(struct cupti_abi_sync, result, CUpti_ActivitySynchronization2, returnValue);
#endif

/* Overhead. */
#define OVERHEAD_PREFIX(theirs)                                                                              \
	SAME_FIELD(struct cupti_abi_overhead, kind, theirs, kind);                                           \
	SAME_FIELD(struct cupti_abi_overhead, overhead_kind, theirs, overheadKind);                          \
	SAME_FIELD(struct cupti_abi_overhead, object_kind, theirs, objectKind);                              \
	SAME_FIELD(struct cupti_abi_overhead, object, theirs, objectId);                                     \
	SAME_FIELD(struct cupti_abi_overhead, object.process, theirs, objectId.pt.processId);                \
	SAME_FIELD(struct cupti_abi_overhead, object.thread, theirs, objectId.pt.threadId);                  \
	SAME_FIELD(struct cupti_abi_overhead, start, theirs, start);                                         \
	SAME_FIELD(struct cupti_abi_overhead, end, theirs, end)
OVERHEAD_PREFIX(CUpti_ActivityOverhead);
#if CUPTI_API_VERSION >= 130000
OVERHEAD_PREFIX(CUpti_ActivityOverhead3);
SAME_SIZE(struct cupti_abi_overhead, CUpti_ActivityOverhead3);
SAME_FIELD(struct cupti_abi_overhead, correlation, CUpti_ActivityOverhead3, correlationId);
#endif

/* Devices. */
#define DEVICE_PREFIX(theirs)                                                                                \
	SAME_FIELD(struct cupti_abi_device, kind, theirs, kind);                                             \
	SAME_FIELD(struct cupti_abi_device, global_memory_size, theirs, globalMemorySize);                   \
	SAME_FIELD(struct cupti_abi_device, multiprocessors, theirs, numMultiprocessors);                    \
	SAME_FIELD(struct cupti_abi_device, compute_major, theirs, computeCapabilityMajor);                  \
	SAME_FIELD(struct cupti_abi_device, compute_minor, theirs, computeCapabilityMinor);                  \
	SAME_FIELD(struct cupti_abi_device, id, theirs, id);                                                 \
	SAME_FIELD(struct cupti_abi_device, uuid, theirs, uuid);                                             \
	SAME_FIELD(struct cupti_abi_device, name, theirs, name)
DEVICE_PREFIX(CUpti_ActivityDevice3);
DEVICE_PREFIX(CUpti_ActivityDevice4);
#if CUPTI_API_VERSION >= 20
DEVICE_PREFIX(CUpti_ActivityDevice5);
SAME_SIZE(struct cupti_abi_device, CUpti_ActivityDevice5);
SAME_FIELD(struct cupti_abi_device, is_cuda_visible, CUpti_ActivityDevice5, isCudaVisible);
SAME_FIELD(struct cupti_abi_device, mig_uuid, CUpti_ActivityDevice5, migUuid);
SAME_FIELD(struct cupti_abi_device, numa_id, CUpti_ActivityDevice5, numaId);
#endif

/* Subscribing with a name. */
#if CUPTI_API_VERSION >= 130000
SAME_SIZE(struct cupti_abi_subscriber_params, CUpti_SubscriberParams);
SAME_FIELD(struct cupti_abi_subscriber_params, struct_size, CUpti_SubscriberParams, structSize);
SAME_FIELD(struct cupti_abi_subscriber_params, name, CUpti_SubscriberParams, subscriberName);
SAME_FIELD(struct cupti_abi_subscriber_params, old_name, CUpti_SubscriberParams, oldSubscriberName);
SAME_FIELD(struct cupti_abi_subscriber_params, old_size, CUpti_SubscriberParams, oldSubscriberSize);
SAME_VALUE(CUPTI_ABI_SUBSCRIBER_NAME_SIZE, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
#endif

/* Functions: numbers in the toolkit's enums, whose members a version older than the function lacks. */
#if CUPTI_API_VERSION >= 130000
#define SAME_RUNTIME_CBID(name, cbid) SAME_VALUE(cbid, CUPTI_RUNTIME_TRACE_CBID_##name);
#define SAME_DRIVER_CBID(name, cbid)  SAME_VALUE(cbid, CUPTI_DRIVER_TRACE_CBID_##name);
CUPTI_ABI_RUNTIME_CALLS(SAME_RUNTIME_CBID)
CUPTI_ABI_DRIVER_CALLS(SAME_DRIVER_CBID)
#endif
#if CUPTI_API_VERSION == CUPTI_ABI_VERSION
SAME_VALUE(CUPTI_ABI_RUNTIME_CBID_END, CUPTI_RUNTIME_TRACE_CBID_SIZE);
SAME_VALUE(CUPTI_ABI_DRIVER_CBID_END, CUPTI_DRIVER_TRACE_CBID_SIZE);
#endif

/*
 * Prototypes: handles, enums and record types differ in name only, so what can be compared is whether the
 * toolkit's function takes the same arguments with the toolkit's types, and whether those have the same
 * sizes.
 */
#define SAME_PARAMETERS(name, ...)                                                                           \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUptiResult (*)(__VA_ARGS__)), #name)
SAME_PARAMETERS(cuptiGetVersion, uint32_t *);
SAME_PARAMETERS(cuptiSubscribe, CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
SAME_PARAMETERS(cuptiUnsubscribe, CUpti_SubscriberHandle);
SAME_PARAMETERS(cuptiActivityRegisterCallbacks, CUpti_BuffersCallbackRequestFunc,
                CUpti_BuffersCallbackCompleteFunc);
SAME_PARAMETERS(cuptiActivityEnable, CUpti_ActivityKind);
SAME_PARAMETERS(cuptiActivityDisable, CUpti_ActivityKind);
SAME_PARAMETERS(cuptiActivityGetNextRecord, uint8_t *, size_t, CUpti_Activity **);
SAME_PARAMETERS(cuptiActivityGetNumDroppedRecords, CUcontext, uint32_t, size_t *);
SAME_PARAMETERS(cuptiActivityFlushAll, uint32_t);
SAME_PARAMETERS(cuptiGetTimestamp, uint64_t *);
SAME_PARAMETERS(cuptiActivitySetAttribute, CUpti_ActivityAttribute, size_t *, void *);
SAME_PARAMETERS(cuptiSetThreadIdType, CUpti_ActivityThreadIdType);
SAME_PARAMETERS(cuptiGetCallbackName, CUpti_CallbackDomain, uint32_t, const char **);
SAME_PARAMETERS(cuptiGetResultString, CUptiResult, const char **);
SAME_PARAMETERS(cuptiEnableDomain, uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain);
SAME_PARAMETERS(cuptiFinalize, void);
#if CUPTI_API_VERSION >= 18
SAME_PARAMETERS(cuptiActivityFlushPeriod, uint32_t);
SAME_PARAMETERS(cuptiActivityRegisterTimestampCallback, CUpti_TimestampCallbackFunc);
#endif
#if CUPTI_API_VERSION >= 130000
SAME_PARAMETERS(cuptiSubscribe_v2, CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *,
                CUpti_SubscriberParams *);
SAME_PARAMETERS(cuptiActivityEnableRuntimeApi, CUpti_CallbackId, uint8_t);
SAME_PARAMETERS(cuptiActivityEnableDriverApi, CUpti_CallbackId, uint8_t);
#endif
SAME_SIZE(cupti_abi_context, CUcontext);
SAME_SIZE(cupti_abi_subscriber, CUpti_SubscriberHandle);
SAME_SIZE(uint32_t, CUpti_CallbackId);
SAME_SIZE(uint32_t, CUpti_CallbackDomain);
SAME_SIZE(uint32_t, CUpti_ActivityThreadIdType);
_Static_assert(__builtin_types_compatible_p(cupti_abi_buffer_requested, CUpti_BuffersCallbackRequestFunc),
               "cupti_abi_buffer_requested");
_Static_assert(__builtin_types_compatible_p(CUpti_BuffersCallbackCompleteFunc,
                                            void (*)(CUcontext, uint32_t, uint8_t *, size_t, size_t)),
               "cupti_abi_buffer_completed");
_Static_assert(__builtin_types_compatible_p(cupti_abi_timestamp, CUpti_TimestampCallbackFunc),
               "cupti_abi_timestamp");
_Static_assert(__builtin_types_compatible_p(CUpti_CallbackFunc, void (*)(void *, CUpti_CallbackDomain,
                                                                         CUpti_CallbackId, const void *)),
               "cupti_abi_callback");

/* NVTX: what it hands to a tool, and the places of functions in its tables. */
#ifdef HAVE_NVTX
SAME_VALUE(NVTX_ABI_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME_VALUE(NVTX_ABI_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME_VALUE(NVTX_ABI_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME_VALUE(NVTX_ABI_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME_VALUE(NVTX_ABI_MESSAGE_WIDE, NVTX_MESSAGE_TYPE_UNICODE);
SAME_VALUE(NVTX_ABI_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME_VALUE(NVTX_ABI_NO_TRACKING, NVTX_NO_PUSH_POP_TRACKING);
#define SAME_CORE(name, theirs) SAME_VALUE(NVTX_ABI_##name, NVTX_CBID_CORE_##theirs)
SAME_CORE(RANGE_START_EX, RangeStartEx);
SAME_CORE(RANGE_START_A, RangeStartA);
SAME_CORE(RANGE_START_W, RangeStartW);
SAME_CORE(RANGE_END, RangeEnd);
SAME_CORE(RANGE_PUSH_EX, RangePushEx);
SAME_CORE(RANGE_PUSH_A, RangePushA);
SAME_CORE(RANGE_PUSH_W, RangePushW);
SAME_CORE(RANGE_POP, RangePop);
#define SAME_CORE2(name, theirs) SAME_VALUE(NVTX_ABI_##name, NVTX_CBID_CORE2_##theirs)
SAME_CORE2(DOMAIN_RANGE_START_EX, DomainRangeStartEx);
SAME_CORE2(DOMAIN_RANGE_END, DomainRangeEnd);
SAME_CORE2(DOMAIN_RANGE_PUSH_EX, DomainRangePushEx);
SAME_CORE2(DOMAIN_RANGE_POP, DomainRangePop);
SAME_CORE2(DOMAIN_REGISTER_STRING_A, DomainRegisterStringA);
SAME_CORE2(DOMAIN_REGISTER_STRING_W, DomainRegisterStringW);
SAME_CORE2(DOMAIN_CREATE_A, DomainCreateA);
SAME_CORE2(DOMAIN_CREATE_W, DomainCreateW);
SAME_SIZE(struct nvtx_abi_event, nvtxEventAttributes_t);
SAME_FIELD(struct nvtx_abi_event, version, nvtxEventAttributes_t, version);
SAME_FIELD(struct nvtx_abi_event, size, nvtxEventAttributes_t, size);
SAME_FIELD(struct nvtx_abi_event, category, nvtxEventAttributes_t, category);
SAME_FIELD(struct nvtx_abi_event, payload, nvtxEventAttributes_t, payload);
SAME_FIELD(struct nvtx_abi_event, message_type, nvtxEventAttributes_t, messageType);
SAME_FIELD(struct nvtx_abi_event, message, nvtxEventAttributes_t, message);
SAME_FIELD(struct nvtx_abi_callbacks, struct_size, NvtxExportTableCallbacks, struct_size);
SAME_FIELD(struct nvtx_abi_callbacks, get_table, NvtxExportTableCallbacks, GetModuleFunctionTable);
SAME_SIZE(int, NvtxCallbackModule);
_Static_assert(__builtin_types_compatible_p(nvtxRangePushA_impl_fntype, int (*)(const char *)), "push");
_Static_assert(__builtin_types_compatible_p(nvtxRangeStartA_impl_fntype, uint64_t (*)(const char *)),
               "start");
_Static_assert(__builtin_types_compatible_p(nvtxRangeEnd_impl_fntype, void (*)(uint64_t)), "end");
_Static_assert(__builtin_types_compatible_p(nvtxRangePop_impl_fntype, int (*)(void)), "pop");
#endif
