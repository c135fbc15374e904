/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Initialisation, devices and contexts.
 */
#include "tests/sim/cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char whyidle_simulated_gpu[] = "Simulated GPU";

struct sim_options sim_options;

enum sim_state {
	STATE_NEW,
	STATE_READY,  /* also while the injected library starts */
	STATE_FAILED, /* no device */
	STATE_FORKED, /* child of a process that had initialised CUDA: unusable, as with the real driver */
};

static _Atomic enum sim_state state; /* changed under init_lock */
static pthread_mutex_t init_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_once_t options_once = PTHREAD_ONCE_INIT;
static const struct sim_tracer *attached_tracer;
static struct sim_context *contexts; /* engine lock */
static struct sim_context *primary[SIM_MAX_DEVICES];
static uint32_t last_context_id;
static uint32_t last_correlation;

static pthread_mutex_t api_lock = PTHREAD_MUTEX_INITIALIZER;

static __thread struct sim_context *current;
static __thread uint32_t call_depth, call_correlation;
static __thread uint32_t traced_depth; /* depth of the call that will make a record, 0 none */

/* Options */

uint64_t simOption(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	unsigned long long value;

	if (!text || !*text)
		return otherwise;
	value = strtoull(text, &end, 10);
	return *end ? otherwise : value;
}

static void read_options(void)
{
	const char *truth = getenv("SIM_TRUTH");
	uint64_t devices = simOption("SIM_DEVICES", 1);

	sim_options = (struct sim_options){
	    .devices = devices > SIM_MAX_DEVICES ? SIM_MAX_DEVICES : (uint32_t)devices,
	    .spin = simOption("SIM_SPIN", 0),
	    .truth = truth && *truth ? strdup(truth) : NULL,
	    .launch_ns = simOption("SIM_LAUNCH_NS", 4000),
	    .start_ns = simOption("SIM_START_NS", 3000),
	    .floor_ns = simOption("SIM_FLOOR_NS", 1000),
	    .alloc_ns = simOption("SIM_ALLOC_NS", 20000),
	    .free_ns = simOption("SIM_FREE_NS", 20000),
	    .copy_mbps = simOption("SIM_COPY_MBPS", 20000),
	    .sync_ns = simOption("SIM_SYNC_NS", 0),
	    .load_ns = simOption("SIM_LOAD_NS", 100000),
	    .memory_mb = simOption("SIM_MEMORY_MB", 16384),
	};
	if (!sim_options.copy_mbps)
		sim_options.copy_mbps = 1;
}

void sim_api_lock(void)
{
	pthread_mutex_lock(&api_lock);
}

void sim_api_unlock(void)
{
	pthread_mutex_unlock(&api_lock);
}

/* Tracing */

void simTraceAttach(const struct sim_tracer *tracer)
{
	__atomic_store_n(&attached_tracer, tracer, __ATOMIC_RELEASE);
}

const struct sim_tracer *sim_tracer(void)
{
	return __atomic_load_n(&attached_tracer, __ATOMIC_ACQUIRE);
}

uint32_t sim_correlation(void)
{
	return call_correlation;
}

void simCallEnter(struct sim_call *call, uint32_t domain, uint32_t cbid)
{
	const struct sim_tracer *tracer = sim_tracer();

	if (call_depth++ == 0)
		call_correlation = __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED);
	*call = (struct sim_call){.domain = domain, .cbid = cbid, .correlation = call_correlation};
	if (!traced_depth && tracer && tracer->wants_call(domain, cbid)) {
		traced_depth = call_depth;
		call->start = tracer->now();
	}
	if (tracer)
		tracer->callback(domain, cbid, CUPTI_ABI_API_ENTER);
}

int simCallExit(const struct sim_call *call, int result)
{
	const struct sim_tracer *tracer = sim_tracer();

	if (call->start && tracer)
		tracer->call(call, tracer->now(), result);
	if (traced_depth == call_depth)
		traced_depth = 0;
	call_depth--;
	if (tracer)
		tracer->callback(call->domain, call->cbid, CUPTI_ABI_API_EXIT);
	return result;
}

/* Initialisation */

static void after_fork_in_child(void)
{
	state = STATE_FORKED;
	attached_tracer = NULL;
	current = NULL;
	call_depth = traced_depth = 0;
}

/* Like the real driver: whatever goes wrong with the injected library is its own affair. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*initialize)(void);

	if (!library)
		return;
	*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		initialize();
}

static CUresult initialise(unsigned int flags)
{
	CUresult result = CUDA_SUCCESS;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (state == STATE_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	/* Recursive: the injected library may call cuInit, others wait until it has started. */
	pthread_mutex_lock(&init_lock);
	if (state == STATE_NEW) {
		pthread_once(&options_once, read_options);
		state = sim_options.devices ? STATE_READY : STATE_FAILED;
		if (state == STATE_READY && pthread_atfork(NULL, NULL, after_fork_in_child))
			state = STATE_FAILED;
		if (state == STATE_READY)
			inject();
	}
	if (state == STATE_FAILED)
		result = CUDA_ERROR_NO_DEVICE;
	pthread_mutex_unlock(&init_lock);
	return result;
}

bool sim_ready(void)
{
	return state == STATE_READY;
}

static __attribute__((destructor)) void write_truth(void)
{
	if (state == STATE_READY && sim_options.truth)
		account_write(sim_options.truth);
}

CUresult cuInit(unsigned int flags)
{
	SIM_TRACED(cuInit, initialise(flags));
}

static CUresult driver_version(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = SIM_CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	SIM_TRACED(cuDriverGetVersion, driver_version(version));
}

/* Newest form of a function: "cuMemAlloc" is cuMemAlloc_v2. */
static CUresult find_function(const char *symbol, void **function, int *status)
{
	static const char *const suffixes[] = {"_v4", "_v2", "", "WithFlags"};
	Dl_info self;
	void *library;
	char name[96];

	if (!symbol || !function)
		return CUDA_ERROR_INVALID_VALUE;
	*function = NULL;
	library =
	    dladdr(&whyidle_simulated_gpu, &self) ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
	for (size_t i = 0; library && !*function && i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", symbol, suffixes[i]);
		*function = dlsym(library, name);
	}
	if (library)
		dlclose(library);
	if (status)
		*status = *function ? 0 : 1;
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
	(void)version, (void)flags;
	SIM_TRACED(cuGetProcAddress, find_function(symbol, function, NULL));
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
	(void)version, (void)flags;
	SIM_TRACED(cuGetProcAddress_v2, find_function(symbol, function, status));
}

static const struct {
	CUresult error;
	const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the memory range is already registered"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

CUresult cuGetErrorName(CUresult error, const char **name)
{
	for (size_t i = 0; name && i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].error == error) {
			*name = errors[i].name;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	for (size_t i = 0; text && i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].error == error) {
			*text = errors[i].text;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* Devices */

uint32_t simDeviceCount(void)
{
	pthread_once(&options_once, read_options);
	return state == STATE_FORKED ? 0 : sim_options.devices;
}

/* Every process has devices of its own, so the UUID holds the process id. */
void simDeviceInfo(uint32_t device, struct sim_device_info *info)
{
	uint32_t pid = (uint32_t)getpid();

	pthread_once(&options_once, read_options);
	*info = (struct sim_device_info){
	    .memory_bytes = sim_options.memory_mb << 20,
	    .multiprocessors = 64,
	    .compute_major = 9,
	    .compute_minor = 0,
	    .clock_khz = 1500000,
	};
	snprintf(info->name, sizeof(info->name), "%s", whyidle_simulated_gpu);
	memcpy(info->uuid, "whyidle-sim", 11);
	memcpy(info->uuid + 11, &pid, sizeof(pid));
	info->uuid[15] = (uint8_t)device;
}

static CUresult check_device(CUdevice device, const void *target)
{
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!target)
		return CUDA_ERROR_INVALID_VALUE;
	return device >= 0 && (uint32_t)device < sim_options.devices ? CUDA_SUCCESS
	                                                             : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult device_get(CUdevice *device, int ordinal)
{
	CUresult error = check_device(ordinal, device);

	if (!error)
		*device = ordinal;
	return error;
}

static CUresult device_count(int *count)
{
	CUresult error = check_device(0, count);

	if (!error)
		*count = (int)sim_options.devices;
	return error;
}

static CUresult device_name(char *name, int length, CUdevice device)
{
	CUresult error = check_device(device, name);
	struct sim_device_info info;

	if (error)
		return error;
	if (length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	simDeviceInfo((uint32_t)device, &info);
	snprintf(name, (size_t)length, "%s", info.name);
	return CUDA_SUCCESS;
}

static CUresult device_uuid(CUuuid *uuid, CUdevice device)
{
	CUresult error = check_device(device, uuid);
	struct sim_device_info info;

	if (error)
		return error;
	simDeviceInfo((uint32_t)device, &info);
	memcpy(uuid->bytes, info.uuid, sizeof(info.uuid));
	return CUDA_SUCCESS;
}

static CUresult device_memory(size_t *bytes, CUdevice device)
{
	CUresult error = check_device(device, bytes);

	if (!error)
		*bytes = sim_options.memory_mb << 20;
	return error;
}

static CUresult device_attribute(int *value, int attribute, CUdevice device)
{
	CUresult error = check_device(device, value);
	struct sim_device_info info;

	if (error)
		return error;
	simDeviceInfo((uint32_t)device, &info);
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		*value = 32;
		break;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
		*value = (int)info.clock_khz;
		break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*value = (int)info.multiprocessors;
		break;
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
		*value = 1;
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*value = device + 1;
		break;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		*value = 2;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = (int)info.compute_major;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*value = (int)info.compute_minor;
		break;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	SIM_TRACED(cuDeviceGet, device_get(device, ordinal));
}

CUresult cuDeviceGetCount(int *count)
{
	SIM_TRACED(cuDeviceGetCount, device_count(count));
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	SIM_TRACED(cuDeviceGetName, device_name(name, length, device));
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	SIM_TRACED(cuDeviceGetUuid, device_uuid(uuid, device));
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	SIM_TRACED(cuDeviceGetUuid_v2, device_uuid(uuid, device));
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	SIM_TRACED(cuDeviceTotalMem_v2, device_memory(bytes, device));
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	SIM_TRACED(cuDeviceGetAttribute, device_attribute(value, attribute, device));
}

/* Contexts. Destroyed ones are emptied but not freed: the engine and stale handles may still look at them. */

static struct sim_context *new_context(CUdevice device, bool is_primary)
{
	struct sim_context *context;

	if (engine_start())
		return NULL;
	context = calloc(1, sizeof(*context));
	if (!context)
		return NULL;
	context->magic = SIM_MAGIC_CONTEXT;
	context->id = __atomic_add_fetch(&last_context_id, 1, __ATOMIC_RELAXED);
	context->device = device;
	context->primary = is_primary;
	context->next_stream_id = SIM_FIRST_ID;
	context->default_stream = sim_new_stream(context, CU_STREAM_DEFAULT);
	if (!context->default_stream) {
		free(context);
		return NULL;
	}
	context->default_stream->id = SIM_DEFAULT_ID;
	engine_lock();
	context->next = contexts;
	contexts = context;
	engine_unlock();
	return context;
}

struct sim_context *sim_current_context(CUresult *error)
{
	*error = CUDA_SUCCESS;
	if (!sim_ready())
		*error = CUDA_ERROR_NOT_INITIALIZED;
	else if (!current || current->magic != SIM_MAGIC_CONTEXT)
		*error = CUDA_ERROR_INVALID_CONTEXT;
	return *error ? NULL : current;
}

static CUresult primary_retain(CUcontext *context, CUdevice device)
{
	CUresult error = check_device(device, context);

	if (error)
		return error;
	pthread_mutex_lock(&init_lock);
	if (!primary[device])
		primary[device] = new_context(device, true);
	*context = primary[device];
	if (*context)
		(*context)->retained++;
	pthread_mutex_unlock(&init_lock);
	return *context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The primary context stays as it is when its last user leaves; its next user finds it again. */
static CUresult primary_release(CUdevice device)
{
	CUresult error = check_device(device, &device);

	if (error)
		return error;
	pthread_mutex_lock(&init_lock);
	if (primary[device] && primary[device]->retained)
		primary[device]->retained--;
	else
		error = CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_unlock(&init_lock);
	return error;
}

static CUresult context_create(CUcontext *context, CUdevice device)
{
	CUresult error = check_device(device, context);

	if (error)
		return error;
	*context = new_context(device, false);
	current = *context;
	return *context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult context_destroy(CUcontext context)
{
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!context || context->magic != SIM_MAGIC_CONTEXT || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	engine_wait_context(context);
	context->magic = 0;
	if (current == context)
		current = NULL;
	return CUDA_SUCCESS;
}

static CUresult context_get(CUcontext *context)
{
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = current;
	return CUDA_SUCCESS;
}

static CUresult context_set(CUcontext context)
{
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (context && context->magic != SIM_MAGIC_CONTEXT)
		return CUDA_ERROR_INVALID_CONTEXT;
	current = context;
	return CUDA_SUCCESS;
}

static CUresult context_device(CUdevice *device)
{
	CUresult error;
	struct sim_context *context = sim_current_context(&error);

	if (!context)
		return error;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = context->device;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	SIM_TRACED(cuDevicePrimaryCtxRetain, primary_retain(context, device));
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	SIM_TRACED(cuDevicePrimaryCtxRelease_v2, primary_release(device));
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	(void)flags;
	SIM_TRACED(cuCtxCreate_v2, context_create(context, device));
}

CUresult cuCtxCreate_v4(CUcontext *context, void *params, unsigned int flags, CUdevice device)
{
	(void)params, (void)flags;
	SIM_TRACED(cuCtxCreate_v4, context_create(context, device));
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	SIM_TRACED(cuCtxDestroy_v2, context_destroy(context));
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	SIM_TRACED(cuCtxGetCurrent, context_get(context));
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	SIM_TRACED(cuCtxSetCurrent, context_set(context));
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	SIM_TRACED(cuCtxGetDevice, context_device(device));
}
