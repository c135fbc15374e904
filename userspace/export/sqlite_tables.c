// SPDX-License-Identifier: GPL-2.0-only
#include "export/sqlite_tables.h"

/* What all operations on the GPU begin with. */
#define OPERATION_COLUMNS                                                                                    \
	"start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "                          \
	"contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, "                    \
	"correlationId INTEGER, globalPid INTEGER"

/*
 * Ours, behind nsys' own columns: which of the operations of a device that start in the same nanosecond came
 * first. Kinds have tables of their own, so nothing else tells.
 */
#define ORDER_COLUMN ", whyidleOrder INTEGER"

const struct sqlite_table_spec sqlite_tables[TABLE_COUNT] = {
    [TABLE_STRINGS] = {"StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL", true},
    [TABLE_KERNEL] =
        {"CUPTI_ACTIVITY_KIND_KERNEL",
         OPERATION_COLUMNS
         ", demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, "
         "launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, "
         "gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, "
         "blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, "
         "staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, "
         "localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, "
         "gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, "
         "sharedMemoryLimitConfig INTEGER, qmdBulkReleaseDone INTEGER, qmdPreexitDone INTEGER, "
         "qmdLastCtaDone INTEGER, graphId INTEGER, clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER, "
         "clusterSchedulingPolicy INTEGER, maxPotentialClusterSize INTEGER, maxActiveClusters INTEGER, "
         "sharedMemoryRequestedPercentage INTEGER" ORDER_COLUMN,
         true},
    [TABLE_MEMCPY] = {"CUPTI_ACTIVITY_KIND_MEMCPY",
                      OPERATION_COLUMNS
                      ", bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, "
                      "srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, "
                      "dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, "
                      "graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER" ORDER_COLUMN,
                      true},
    [TABLE_MEMSET] = {"CUPTI_ACTIVITY_KIND_MEMSET",
                      OPERATION_COLUMNS ", value INTEGER NOT NULL, bytes INTEGER NOT NULL, "
                                        "graphNodeId INTEGER, memKind INTEGER" ORDER_COLUMN,
                      true},
    [TABLE_GRAPH] = {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                     OPERATION_COLUMNS
                     ", graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL" ORDER_COLUMN,
                     false},
    [TABLE_RUNTIME] = {"CUPTI_ACTIVITY_KIND_RUNTIME",
                       "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
                       "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, "
                       "returnValue INTEGER NOT NULL, callchainId INTEGER",
                       true},
    [TABLE_SYNCHRONIZATION] = {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                               OPERATION_COLUMNS ", deprecatedSyncType INTEGER, syncType INTEGER NOT NULL, "
                                                 "eventId INTEGER NOT NULL, eventSyncId INTEGER",
                               false},
    [TABLE_OVERHEAD] = {"CUPTI_ACTIVITY_KIND_OVERHEAD",
                        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
                        "globalTid INTEGER, correlationId INTEGER, nameId INTEGER, "
                        "overheadType INTEGER NOT NULL",
                        false},
    [TABLE_NVTX] = {"NVTX_EVENTS",
                    "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, "
                    "category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, "
                    "textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, "
                    "doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, "
                    "jsonTextId INTEGER, jsonText TEXT, binaryData TEXT",
                    false},
    [TABLE_SCHED] = {"SCHED_EVENTS",
                     "start INTEGER NOT NULL, cpu INTEGER NOT NULL, isSchedIn INTEGER NOT NULL, "
                     "globalTid INTEGER, threadState INTEGER, threadBlock INTEGER",
                     false},
    [TABLE_OSRT] = {"OSRT_API",
                    "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
                    "globalTid INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, "
                    "nestingLevel INTEGER, callchainId INTEGER NOT NULL",
                    false},
    [TABLE_PROCESSES] = {"PROCESSES", "globalPid INTEGER, pid INTEGER, name TEXT", true},
    [TABLE_THREAD_NAMES] = {"ThreadNames", "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
                            true},
    [TABLE_GPU] = {"TARGET_INFO_GPU",
                   "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, "
                   "isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, "
                   "clockRate INTEGER, smCount INTEGER, pwGpuId INTEGER, uuid TEXT, luid INTEGER, "
                   "chipName TEXT, cuDevice INTEGER, ctxswDevPath TEXT, ctrlDevPath TEXT, revision INTEGER, "
                   "nodeMask INTEGER, constantMemory INTEGER, maxIPC INTEGER, maxRegistersPerBlock INTEGER, "
                   "maxShmemPerBlock INTEGER, maxShmemPerBlockOptin INTEGER, maxShmemPerSm INTEGER, "
                   "maxRegistersPerSm INTEGER, threadsPerWarp INTEGER, asyncEngines INTEGER, "
                   "maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, maxThreadsPerBlock INTEGER, "
                   "maxBlockDimX INTEGER, maxBlockDimY INTEGER, maxBlockDimZ INTEGER, maxGridDimX INTEGER, "
                   "maxGridDimY INTEGER, maxGridDimZ INTEGER, computeMajor INTEGER, computeMinor INTEGER, "
                   "smMajor INTEGER, smMinor INTEGER",
                   true},
    [TABLE_CUDA_DEVICE] = {"TARGET_INFO_CUDA_DEVICE",
                           "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, "
                           "numMultiprocessors INTEGER",
                           true},
    [TABLE_DETAILS] = {"ANALYSIS_DETAILS",
                       "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, "
                       "stopTime INTEGER NOT NULL",
                       true},
    [TABLE_EXPORT] = {"META_DATA_EXPORT", "name TEXT NOT NULL, value TEXT", true},
    [TABLE_CAPTURE] = {"META_DATA_CAPTURE", "name TEXT NOT NULL, value TEXT", true},
    [TABLE_OUR_GPUS] = {"WHYIDLE_GPUS",
                        "deviceId INTEGER NOT NULL, windowStart INTEGER NOT NULL, "
                        "windowEnd INTEGER NOT NULL, busy INTEGER NOT NULL, idle INTEGER NOT NULL, "
                        "gaps INTEGER NOT NULL, operations INTEGER NOT NULL, queued INTEGER NOT NULL, "
                        "late INTEGER NOT NULL, unknown INTEGER NOT NULL",
                        true},
    [TABLE_OUR_GAPS] = {"WHYIDLE_GAPS",
                        "id INTEGER NOT NULL PRIMARY KEY, deviceId INTEGER NOT NULL, "
                        "start INTEGER NOT NULL, end INTEGER NOT NULL, code TEXT NOT NULL, "
                        "role TEXT NOT NULL, confidence TEXT NOT NULL, causeNs INTEGER NOT NULL, "
                        "launched TEXT NOT NULL, endedBy INTEGER, launchNameId INTEGER, "
                        "launchGlobalTid INTEGER",
                        true},
    [TABLE_OUR_CAUSES] = {"WHYIDLE_CAUSES",
                          "gapId INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, "
                          "code TEXT NOT NULL, role TEXT NOT NULL, confidence TEXT NOT NULL, "
                          "state TEXT NOT NULL, globalTid INTEGER, holderGlobalTid INTEGER, "
                          "syscallId INTEGER, pathId INTEGER, functionId INTEGER, pythonId INTEGER, "
                          "lock INTEGER, chain TEXT",
                          true},
    [TABLE_OUR_WAITS] = {"WHYIDLE_WAITS",
                         "start INTEGER NOT NULL, wake INTEGER, end INTEGER NOT NULL, "
                         "globalTid INTEGER NOT NULL, wait TEXT NOT NULL, preempted INTEGER NOT NULL, "
                         "syscallId INTEGER, pathId INTEGER, wokenBy TEXT, wakerGlobalTid INTEGER",
                         false},
};

#define COPY   "ENUM_CUDA_MEMCPY_OPER"
#define MEMORY "ENUM_CUDA_MEM_KIND"
#define LAUNCH "ENUM_CUDA_KERNEL_LAUNCH_TYPE"
#define SYNC   "ENUM_CUPTI_SYNC_TYPE"
#define COST   "ENUM_CUPTI_OVERHEAD_TYPE"
#define CLASS  "ENUM_NSYS_EVENT_CLASS"
#define TYPE   "ENUM_NSYS_EVENT_TYPE"
#define STATE  "ENUM_SAMPLING_THREAD_STATE"

const struct sqlite_enum_value sqlite_enum_values[] = {
    {COPY, 0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},
    {COPY, 1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
    {COPY, 2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"},
    {COPY, 3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"},
    {COPY, 4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"},
    {COPY, 5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"},
    {COPY, 6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"},
    {COPY, 7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"},
    {COPY, 8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
    {COPY, 9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},
    {COPY, 10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"},
    {COPY, 11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"},
    {COPY, 12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"},
    {COPY, 13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"},
    {MEMORY, 0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
    {MEMORY, 1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
    {MEMORY, 2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
    {MEMORY, 3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"},
    {MEMORY, 4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
    {MEMORY, 5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"},
    {MEMORY, 6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"},
    {MEMORY, NSYS_MEMORY_UNKNOWN, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"},
    {LAUNCH, 0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown"},
    {LAUNCH, NSYS_LAUNCH_REGULAR, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"},
    {SYNC, 0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
    {SYNC, 1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"},
    {SYNC, 2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync"},
    {SYNC, 3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"},
    {SYNC, 4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"},
    {COST, NSYS_OVERHEAD_INSTRUMENTATION, "OVERHEAD_CUPTI_INSTRUMENTATION", "Instrumentation (Profiler)"},
    {COST, NSYS_OVERHEAD_FUNCTION_LOADING, "OVERHEAD_LAZY_FUNCTION_LOADING", "Lazy function loading (CUDA)"},
    {CLASS, NSYS_CLASS_CUDA_RUNTIME, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"},
    {CLASS, NSYS_CLASS_CUDA_DRIVER, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"},
    {CLASS, NSYS_CLASS_OS_RUNTIME, "TRACE_PROCESS_EVENT_OS_RUNTIME", "OSRT runtime"},
    {CLASS, NSYS_CLASS_CUDA_OVERHEAD, "TRACE_PROCESS_EVENT_CUDA_OVERHEAD", "CUDA overhead"},
    {TYPE, NSYS_TYPE_NVTX_CATEGORY, "NvtxCategory", "NvtxCategory"},
    {TYPE, NSYS_TYPE_NVTX_RANGE, "NvtxPushPopRange", "NvtxPushPopRange"},
    {STATE, 0, "Unknown", "Unknown"},
    {STATE, NSYS_THREAD_RUNNING, "Running", "Running"},
    {STATE, 2, "Interruptible", "Interruptible"},
    {STATE, 3, "Uninterruptible", "Uninterruptible"},
    {STATE, 4, "Stopped", "Stopped"},
    {STATE, 5, "Terminated", "Terminated"},
    {STATE, 6, "Unscheduled", "Unscheduled"},
    {STATE, NSYS_THREAD_WAITING, "Waiting", "Waiting"},
};

const size_t sqlite_enum_value_count = sizeof(sqlite_enum_values) / sizeof(*sqlite_enum_values);

const char *const sqlite_indices[] = {
    "CREATE INDEX WHYIDLE_KERNEL_START ON CUPTI_ACTIVITY_KIND_KERNEL(start)",
    "CREATE INDEX WHYIDLE_KERNEL_CORRELATION ON CUPTI_ACTIVITY_KIND_KERNEL(correlationId)",
    "CREATE INDEX WHYIDLE_MEMCPY_CORRELATION ON CUPTI_ACTIVITY_KIND_MEMCPY(correlationId)",
    "CREATE INDEX WHYIDLE_RUNTIME_CORRELATION ON CUPTI_ACTIVITY_KIND_RUNTIME(correlationId)",
    "CREATE INDEX WHYIDLE_CAUSES_GAP ON WHYIDLE_CAUSES(gapId)",
};

const size_t sqlite_index_count = sizeof(sqlite_indices) / sizeof(*sqlite_indices);
