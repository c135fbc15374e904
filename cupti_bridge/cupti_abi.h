/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The small part of the CUPTI binary interface that whyidle uses, declared anew so that building needs no
 * CUDA Toolkit. The bridge reads these records, the simulated CUPTI of tests/sim produces them, and `make
 * check-abi` compares every size, offset and value here with the toolkit's own headers where they are
 * installed.
 *
 * Figures are those of CUDA 13.0 (CUPTI_API_VERSION 130001). CUPTI appends fields to its records and never
 * moves them: cupti_activity_deprecated.h shows that every field up to the mark "common prefix" below has had
 * the same offset since CUDA 11.1 (CUpti_ActivityKernel6, Memcpy4, Memset3, Device3, Overhead,
 * Synchronization). The bridge reads nothing behind that mark, so that one reader serves CUPTI 11.1 to 13.x.
 *
 * 64-bit Linux only: pointers are 8 bytes.
 */
#ifndef WHYIDLE_CUPTI_ABI_H
#define WHYIDLE_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "cupti_bridge/cupti_calls.h"

/* cuptiGetVersion as of CUDA 13.0 update 1, and the oldest that this header describes (cupti_version.h). */
#define CUPTI_ABI_VERSION     130001
#define CUPTI_ABI_VERSION_MIN 14 /* CUDA 11.1 */

/* cupti_result.h: CUptiResult */
enum {
	CUPTI_ABI_SUCCESS = 0,
	CUPTI_ABI_ERROR_INVALID_PARAMETER = 1,
	CUPTI_ABI_ERROR_INVALID_OPERATION = 7,
	CUPTI_ABI_ERROR_MAX_LIMIT_REACHED = 12,
	CUPTI_ABI_ERROR_NOT_READY = 13,
	CUPTI_ABI_ERROR_NOT_COMPATIBLE = 14,
	CUPTI_ABI_ERROR_NOT_INITIALIZED = 15,
	CUPTI_ABI_ERROR_INVALID_KIND = 21,
	CUPTI_ABI_ERROR_NOT_SUPPORTED = 27,
	CUPTI_ABI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED = 33,
	CUPTI_ABI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
	CUPTI_ABI_ERROR_OLD_PROFILER_API_INITIALIZED = 36,
	CUPTI_ABI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED = 38,
	CUPTI_ABI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
	CUPTI_ABI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES = 40,
	CUPTI_ABI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED = 41,
	CUPTI_ABI_ERROR_MIG_DEVICE_NOT_SUPPORTED = 43,
	CUPTI_ABI_ERROR_WSL_DEVICE_NOT_SUPPORTED = 45,
	CUPTI_ABI_ERROR_UNKNOWN = 999,
};
typedef int32_t cupti_abi_result;

/* cupti_activity.h: CUpti_ActivityKind */
enum {
	CUPTI_ABI_KIND_MEMCPY = 1,
	CUPTI_ABI_KIND_MEMSET = 2,
	CUPTI_ABI_KIND_KERNEL = 3, /* serialises kernels: never enabled, but its records look like 10 */
	CUPTI_ABI_KIND_DRIVER = 4,
	CUPTI_ABI_KIND_RUNTIME = 5,
	CUPTI_ABI_KIND_DEVICE = 8,
	CUPTI_ABI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_ABI_KIND_OVERHEAD = 17,
	CUPTI_ABI_KIND_MEMCPY2 = 22, /* peer to peer copies */
	CUPTI_ABI_KIND_SYNCHRONIZATION = 38,
};
typedef uint32_t cupti_abi_kind;

/* cupti_activity.h: CUpti_ActivityMemcpyKind */
enum {
	CUPTI_ABI_MEMCPY_HTOD = 1,
	CUPTI_ABI_MEMCPY_DTOH = 2,
	CUPTI_ABI_MEMCPY_DTOD = 8,
	CUPTI_ABI_MEMCPY_HTOH = 9,
	CUPTI_ABI_MEMCPY_PTOP = 10,
};

/* cupti_activity.h: CUpti_ActivityMemoryKind */
enum {
	CUPTI_ABI_MEMORY_UNKNOWN = 0,
	CUPTI_ABI_MEMORY_PAGEABLE = 1,
	CUPTI_ABI_MEMORY_PINNED = 2,
	CUPTI_ABI_MEMORY_DEVICE = 3,
	CUPTI_ABI_MEMORY_ARRAY = 4,
	CUPTI_ABI_MEMORY_MANAGED = 5,
};

/* cupti_activity.h: CUpti_ActivityFlag, as used in memcpy and memset records */
#define CUPTI_ABI_FLAG_MEMCPY_ASYNC 1
#define CUPTI_ABI_FLAG_MEMSET_ASYNC 1

/* cupti_activity.h: CUpti_ActivitySynchronizationType */
enum {
	CUPTI_ABI_SYNC_EVENT = 1,
	CUPTI_ABI_SYNC_STREAM_WAIT_EVENT = 2,
	CUPTI_ABI_SYNC_STREAM = 3,
	CUPTI_ABI_SYNC_CONTEXT = 4,
};
#define CUPTI_ABI_SYNC_INVALID_VALUE 0xffffffffu /* stream or event that does not apply */

/*
 * cupti_activity.h: CUpti_ActivityOverheadKind. Only flush, instrumentation, resource and buffer request are
 * CUPTI's own cost; compiling, loading and a full command buffer (a launch that waits because the GPU is
 * behind) are the program's and would be there without CUPTI.
 */
enum {
	CUPTI_ABI_OVERHEAD_DRIVER_COMPILER = 1,
	CUPTI_ABI_OVERHEAD_BUFFER_FLUSH = 1 << 16,
	CUPTI_ABI_OVERHEAD_INSTRUMENTATION = 2 << 16,
	CUPTI_ABI_OVERHEAD_RESOURCE = 3 << 16,
	CUPTI_ABI_OVERHEAD_RUNTIME_MODULE_LOADING = 4 << 16,
	CUPTI_ABI_OVERHEAD_LAZY_FUNCTION_LOADING = 5 << 16,
	CUPTI_ABI_OVERHEAD_COMMAND_BUFFER_FULL = 6 << 16,
	CUPTI_ABI_OVERHEAD_BUFFER_REQUEST = 7 << 16,
};

/* cupti_activity.h: CUpti_ActivityObjectKind */
enum {
	CUPTI_ABI_OBJECT_PROCESS = 1,
	CUPTI_ABI_OBJECT_THREAD = 2,
};

/* cupti_activity.h: CUpti_ActivityThreadIdType. DEFAULT is pthread_self() cut to 32 bits, SYSTEM is gettid().
 */
enum {
	CUPTI_ABI_THREAD_ID_DEFAULT = 0,
	CUPTI_ABI_THREAD_ID_SYSTEM = 1,
};

/* cupti_activity.h: CUpti_ActivityAttribute. A uint8_t: not 0 promises that buffers are handed out all zero.
 */
#define CUPTI_ABI_ATTRIBUTE_ZEROED_BUFFERS 5

/* cupti_activity.h: CUpti_ActivityFlag, the argument of cuptiActivityFlushAll */
#define CUPTI_ABI_FLUSH_FORCED 1 /* also hand over buffers that are not full and hold unfinished records */

/* cupti_callbacks.h: CUpti_CallbackDomain */
enum {
	CUPTI_ABI_DOMAIN_DRIVER = 1,
	CUPTI_ABI_DOMAIN_RUNTIME = 2,
};

/* cupti_callbacks.h: CUpti_ApiCallbackSite */
enum {
	CUPTI_ABI_API_ENTER = 0,
	CUPTI_ABI_API_EXIT = 1,
};

/* cupti_callbacks.h: CUpti_CallbackData, as far as it is read */
struct cupti_abi_callback_data {
	uint32_t site;
};

/* cupti_activity.h: CUpti_Activity, the head of all records */
struct cupti_abi_record {
	uint32_t kind;
};

/* cupti_activity.h: CUpti_ActivityKernel10 (kinds KERNEL and CONCURRENT_KERNEL) */
struct cupti_abi_kernel {
	uint32_t kind;
	uint8_t cache_config;
	uint8_t shared_memory_config;
	uint16_t registers_per_thread;
	uint32_t partitioned_cache_requested;
	uint32_t partitioned_cache_executed;
	uint64_t start, end; /* both 0: not known */
	uint64_t completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared_memory;
	int32_t dynamic_shared_memory;
	uint32_t local_memory_per_thread;
	uint32_t local_memory_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name; /* mangled; owned by CUPTI, valid as long as the module is loaded */
	void *reserved0;
	uint64_t queued, submitted;
	uint8_t launch_type;
	uint8_t carveout_requested;
	uint8_t carveout_value;
	uint8_t padding;
	uint32_t shared_memory_executed;
	uint64_t graph_node;
	uint32_t shared_memory_limit_config;
	uint32_t graph;
	/* end of the common prefix */
	void *access_policy_window;
	uint32_t channel;
	uint32_t channel_type;
	uint32_t cluster[3];
	uint32_t cluster_scheduling_policy;
	uint64_t local_memory_total_v2;
	uint32_t max_potential_cluster_size;
	uint32_t max_active_clusters;
	uint8_t is_device_launched;
	uint8_t padding3[7];
};

/* cupti_activity.h: CUpti_ActivityMemcpy6 */
struct cupti_abi_memcpy {
	uint32_t kind;
	uint8_t copy_kind;
	uint8_t source_kind, target_kind;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation;
	uint32_t runtime_correlation;
	uint32_t pad;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph;
	/* end of the common prefix */
	uint32_t channel;
	uint32_t channel_type;
	uint8_t is_device_launched;
	uint8_t pad2[3];
	uint64_t copy_count;
};

/* cupti_activity.h: CUpti_ActivityMemcpyPtoP4 (kind MEMCPY2) */
struct cupti_abi_memcpy_peer {
	uint32_t kind;
	uint8_t copy_kind;
	uint8_t source_kind, target_kind;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t source_device, source_context;
	uint32_t target_device, target_context;
	uint32_t correlation;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph;
	/* end of the common prefix */
	uint32_t channel;
	uint32_t channel_type;
	uint32_t padding;
};

/* cupti_activity.h: CUpti_ActivityMemset4 */
struct cupti_abi_memset {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation;
	uint16_t flags;
	uint16_t memory_kind;
	uint32_t pad;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph;
	/* end of the common prefix */
	uint32_t channel;
	uint32_t channel_type;
	uint8_t is_device_launched;
	uint8_t pad2[3];
};

/* cupti_activity.h: CUpti_ActivityAPI (kinds DRIVER and RUNTIME); unchanged since CUDA 4 */
struct cupti_abi_api {
	uint32_t kind;
	uint32_t cbid;
	uint64_t start, end; /* both 0: not known */
	uint32_t process;
	uint32_t thread;
	uint32_t correlation;
	uint32_t result;
	/* end of the common prefix */
};

/* cupti_activity.h: CUpti_ActivitySynchronization2 */
struct cupti_abi_sync {
	uint32_t kind;
	uint32_t type;
	uint64_t start, end;
	uint32_t correlation;
	uint32_t context;
	uint32_t stream; /* CUPTI_ABI_SYNC_INVALID_VALUE if it does not apply */
	uint32_t event;  /* CUPTI_ABI_SYNC_INVALID_VALUE if it does not apply */
	/* end of the common prefix */
	uint64_t event_sync;
	uint32_t result;
	uint32_t pad;
};

/* cupti_activity.h: CUpti_ActivityOverhead3 */
struct cupti_abi_overhead {
	uint32_t kind;
	uint32_t overhead_kind;
	uint32_t object_kind;
	union {
		struct {
			uint32_t process, thread;
		};
		uint32_t device_context_stream[3];
	} object;
	uint64_t start, end;
	/* end of the common prefix */
	uint32_t correlation;
	uint32_t reserved0;
	void *data;
};

/* cupti_activity.h: CUpti_ActivityDevice5 */
struct cupti_abi_device {
	uint32_t kind;
	uint32_t flags;
	uint64_t global_memory_bandwidth;
	uint64_t global_memory_size; /* bytes */
	uint32_t constant_memory_size;
	uint32_t l2_cache_size;
	uint32_t threads_per_warp;
	uint32_t core_clock_rate;
	uint32_t memcpy_engines;
	uint32_t multiprocessors;
	uint32_t max_ipc;
	uint32_t max_warps_per_multiprocessor;
	uint32_t max_blocks_per_multiprocessor;
	uint32_t max_shared_memory_per_multiprocessor;
	uint32_t max_registers_per_multiprocessor;
	uint32_t max_registers_per_block;
	uint32_t max_shared_memory_per_block;
	uint32_t max_threads_per_block;
	uint32_t max_block[3];
	uint32_t max_grid[3];
	uint32_t compute_major, compute_minor;
	uint32_t id; /* CUDA ordinal in this process */
	uint32_t ecc_enabled;
	uint8_t uuid[16];
	const char *name; /* owned by CUPTI, valid for the life of the process */
	/* end of the common prefix */
	uint8_t is_cuda_visible;
	uint8_t is_mig_enabled;
	uint8_t reserved[6];
	uint32_t gpu_instance;
	uint32_t compute_instance;
	uint8_t mig_uuid[16];
	uint32_t is_numa_node;
	uint32_t numa_id;
};

/* cupti_callbacks.h: CUpti_SubscriberParams, the argument of cuptiSubscribe_v2 (CUDA 12.6 and later) */
struct cupti_abi_subscriber_params {
	size_t struct_size;
	const char *name; /* who we are */
	char *old_name;   /* receives who holds CUPTI already */
	size_t old_size;  /* at least CUPTI_ABI_SUBSCRIBER_NAME_SIZE */
};
#define CUPTI_ABI_SUBSCRIBER_NAME_SIZE 64

/* Opaque handles of CUDA and CUPTI. */
typedef void *cupti_abi_context;
typedef void *cupti_abi_subscriber;

/* cupti_activity.h and cupti_callbacks.h: what CUPTI calls. */
typedef void (*cupti_abi_buffer_requested)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_abi_buffer_completed)(cupti_abi_context context, uint32_t stream, uint8_t *buffer,
                                           size_t size, size_t valid_size);
typedef uint64_t (*cupti_abi_timestamp)(void);
typedef void (*cupti_abi_callback)(void *userdata, uint32_t domain, uint32_t cbid, const void *data);

/*
 * Functions of libcupti.so, under their exported names. X(name, result type, parameters). Each list names the
 * CUPTI function, its type is cupti_abi_<name>.
 * Those of the first list exist in all versions, those of the second may be missing.
 */
#define CUPTI_ABI_REQUIRED_FUNCTIONS(X)                                                                      \
	X(cuptiGetVersion, (uint32_t * version))                                                             \
	X(cuptiSubscribe, (cupti_abi_subscriber * subscriber, cupti_abi_callback callback, void *userdata))  \
	X(cuptiUnsubscribe, (cupti_abi_subscriber subscriber))                                               \
	X(cuptiActivityRegisterCallbacks,                                                                    \
	  (cupti_abi_buffer_requested requested, cupti_abi_buffer_completed completed))                      \
	X(cuptiActivityEnable, (cupti_abi_kind kind))                                                        \
	X(cuptiActivityDisable, (cupti_abi_kind kind))                                                       \
	X(cuptiActivityGetNextRecord,                                                                        \
	  (uint8_t * buffer, size_t valid_size, struct cupti_abi_record * *record))                          \
	X(cuptiActivityGetNumDroppedRecords, (cupti_abi_context context, uint32_t stream, size_t * dropped)) \
	X(cuptiActivityFlushAll, (uint32_t flag))                                                            \
	X(cuptiGetTimestamp, (uint64_t * timestamp))

#define CUPTI_ABI_OPTIONAL_FUNCTIONS(X)                                                                      \
	X(cuptiSubscribe_v2, (cupti_abi_subscriber * subscriber, cupti_abi_callback callback,                \
	                      void *userdata, struct cupti_abi_subscriber_params *params))                   \
	X(cuptiActivityRegisterTimestampCallback, (cupti_abi_timestamp timestamp))                           \
	X(cuptiActivitySetAttribute, (uint32_t attribute, size_t * size, void *value))                       \
	X(cuptiSetThreadIdType, (uint32_t type))                                                             \
	X(cuptiActivityFlushPeriod, (uint32_t milliseconds))                                                 \
	X(cuptiActivityEnableRuntimeApi, (uint32_t cbid, uint8_t enable))                                    \
	X(cuptiActivityEnableDriverApi, (uint32_t cbid, uint8_t enable))                                     \
	X(cuptiGetCallbackName, (uint32_t domain, uint32_t cbid, const char **name))                         \
	X(cuptiGetResultString, (cupti_abi_result result, const char **text))                                \
	X(cuptiEnableDomain, (uint32_t enable, cupti_abi_subscriber subscriber, uint32_t domain))            \
	X(cuptiFinalize, (void))

/* NOLINTNEXTLINE(bugprone-macro-parentheses): `parameters` brings its own */
#define CUPTI_ABI_DECLARE(name, parameters) typedef cupti_abi_result(*cupti_abi_##name) parameters;
CUPTI_ABI_REQUIRED_FUNCTIONS(CUPTI_ABI_DECLARE)
CUPTI_ABI_OPTIONAL_FUNCTIONS(CUPTI_ABI_DECLARE)
#undef CUPTI_ABI_DECLARE

/* Offsets that the reader of records relies on: sizes first, then the fields behind a possible hole. */
_Static_assert(sizeof(void *) == 8, "64-bit only");
_Static_assert(sizeof(struct cupti_abi_kernel) == 216, "CUpti_ActivityKernel10");
_Static_assert(sizeof(struct cupti_abi_memcpy) == 96, "CUpti_ActivityMemcpy6");
_Static_assert(sizeof(struct cupti_abi_memcpy_peer) == 96, "CUpti_ActivityMemcpyPtoP4");
_Static_assert(sizeof(struct cupti_abi_memset) == 88, "CUpti_ActivityMemset4");
_Static_assert(sizeof(struct cupti_abi_api) == 40, "CUpti_ActivityAPI");
_Static_assert(sizeof(struct cupti_abi_sync) == 56, "CUpti_ActivitySynchronization2");
_Static_assert(sizeof(struct cupti_abi_overhead) == 56, "CUpti_ActivityOverhead3");
_Static_assert(sizeof(struct cupti_abi_device) == 184, "CUpti_ActivityDevice5");
_Static_assert(offsetof(struct cupti_abi_kernel, start) == 16, "kernel start");
_Static_assert(offsetof(struct cupti_abi_kernel, correlation) == 92, "kernel correlation");
_Static_assert(offsetof(struct cupti_abi_kernel, name) == 104, "kernel name");
_Static_assert(offsetof(struct cupti_abi_kernel, graph_node) == 144, "kernel graph node");
_Static_assert(offsetof(struct cupti_abi_kernel, graph) == 156, "kernel graph");
_Static_assert(offsetof(struct cupti_abi_memcpy, graph) == 72, "memcpy graph");
_Static_assert(offsetof(struct cupti_abi_memcpy_peer, graph) == 80, "peer memcpy graph");
_Static_assert(offsetof(struct cupti_abi_memset, graph) == 72, "memset graph");
_Static_assert(offsetof(struct cupti_abi_overhead, start) == 24, "overhead start");
_Static_assert(offsetof(struct cupti_abi_device, uuid) == 120, "device uuid");
_Static_assert(offsetof(struct cupti_abi_device, name) == 136, "device name");

#endif
