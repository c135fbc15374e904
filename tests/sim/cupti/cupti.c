/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulated libcupti.so.13: the part of CUPTI that the bridge uses, with the real one's rules. Records
 * are made only for kinds and functions that are enabled.
 *
 * Known hazards of the real library are kept as checks: cuptiFinalize after functions were selected one by
 * one corrupts the heap there, so it aborts here; and so does what CUPTI's documentation does not allow: to
 * finalise twice at once, or in a callback at the beginning of a call.
 *
 * SIM_FINALIZE_MS: how long cuptiFinalize takes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/calls.h"
#include "tests/sim/clock.h"
#include "tests/sim/cupti/records.h"
#include "tests/sim/trace.h"

#define EXPORTED __attribute__((visibility("default")))
#define MAX_KIND 64
#define MAX_CBID 1024

static bool kind_enabled[MAX_KIND];
static bool call_enabled[3][MAX_CBID]; /* by domain */
static bool selected_functions;
static cupti_abi_timestamp client_clock;
static uint32_t thread_id_type;
static pthread_mutex_t subscriber_lock = PTHREAD_MUTEX_INITIALIZER;
static bool subscribed;
static char subscriber_name[CUPTI_ABI_SUBSCRIBER_NAME_SIZE];
static int subscriber_token;
static cupti_abi_callback subscriber_callback; /* with the next two, under subscriber_lock */
static void *subscriber_userdata;
static bool domain_enabled[3];
static uint32_t any_domain; /* one is enabled (atomic) */
static __thread bool in_callback;
static __thread uint32_t callback_site;
static bool forked;

/* Error 39 while another tool or a debugger holds CUPTI; nothing works in a forked child. */
static cupti_abi_result unusable(void)
{
	const char *taken = getenv("SIM_CUPTI_TAKEN");

	if (taken && !strcmp(taken, "1"))
		return CUPTI_ABI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	return forked ? CUPTI_ABI_ERROR_NOT_INITIALIZED : CUPTI_ABI_SUCCESS;
}

#define CHECK_USABLE()                                                                                       \
	do {                                                                                                 \
		cupti_abi_result unusable_error = unusable();                                                \
                                                                                                             \
		if (unusable_error)                                                                          \
			return unusable_error;                                                               \
	} while (0)

static bool enabled(uint32_t kind)
{
	return __atomic_load_n(&kind_enabled[kind], __ATOMIC_RELAXED);
}

/* Clocks */

/* The client's clock, or CUPTI's own: wall clock time. */
static uint64_t timestamp(void)
{
	cupti_abi_timestamp clock = client_clock;

	return clock ? clock() : clock_ns(CLOCK_REALTIME);
}

/* Device times are CLOCK_MONOTONIC; this moves them onto the clock of the records, by nothing if it is the
 * same. */
static int64_t clock_offset(void)
{
	uint64_t before = clock_ns(CLOCK_MONOTONIC);
	uint64_t client = timestamp();
	uint64_t after = clock_ns(CLOCK_MONOTONIC);

	if (client >= before && client <= after)
		return 0;
	return (int64_t)(client - (before + (after - before) / 2));
}

static uint32_t thread_id(void)
{
	return thread_id_type == CUPTI_ABI_THREAD_ID_SYSTEM ? (uint32_t)syscall(SYS_gettid)
	                                                    : (uint32_t)(uintptr_t)pthread_self();
}

/* What libcuda and libcudart tell */

static bool wants_call(uint32_t domain, uint32_t cbid)
{
	return cbid < MAX_CBID && __atomic_load_n(&call_enabled[domain][cbid], __ATOMIC_RELAXED);
}

static bool wants_synchronization(void)
{
	return enabled(CUPTI_ABI_KIND_SYNCHRONIZATION);
}

/* A callback that has been looked up may still run when its subscriber has gone: so it is with the real one.
 */
static void tell_subscriber(uint32_t domain, uint32_t cbid, uint32_t site)
{
	const struct cupti_abi_callback_data data = {.site = site};
	cupti_abi_callback callback = NULL;
	void *userdata;

	if (in_callback || !__atomic_load_n(&any_domain, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&subscriber_lock);
	if (domain_enabled[domain])
		callback = subscriber_callback;
	userdata = subscriber_userdata;
	pthread_mutex_unlock(&subscriber_lock);
	if (!callback)
		return;
	in_callback = true;
	callback_site = site;
	callback(userdata, domain, cbid, &data);
	in_callback = false;
}

static void put_call(const struct sim_call *call, uint64_t end, int result)
{
	struct cupti_abi_api record = {
	    .kind = call->domain == CUPTI_ABI_DOMAIN_DRIVER ? CUPTI_ABI_KIND_DRIVER : CUPTI_ABI_KIND_RUNTIME,
	    .cbid = call->cbid,
	    .start = call->start,
	    .end = end,
	    .process = (uint32_t)getpid(),
	    .thread = thread_id(),
	    .correlation = call->correlation,
	    .result = (uint32_t)result,
	};

	if (wants_call(call->domain, call->cbid))
		records_put(&record, sizeof(record));
}

static void put_synchronization(const struct sim_synchronization *sync)
{
	struct cupti_abi_sync record = {
	    .kind = CUPTI_ABI_KIND_SYNCHRONIZATION,
	    .type = sync->type,
	    .start = sync->start,
	    .end = sync->end,
	    .correlation = sync->correlation,
	    .context = sync->context,
	    .stream = sync->stream,
	    .event = sync->event,
	    .result = (uint32_t)sync->result,
	};

	if (enabled(CUPTI_ABI_KIND_SYNCHRONIZATION))
		records_put(&record, sizeof(record));
}

static void put_kernel(const struct sim_operation *operation, int64_t offset)
{
	const struct sim_work *work = operation->work;
	struct cupti_abi_kernel record = {
	    .kind = enabled(CUPTI_ABI_KIND_KERNEL) ? CUPTI_ABI_KIND_KERNEL : CUPTI_ABI_KIND_CONCURRENT_KERNEL,
	    .registers_per_thread = 32,
	    .start = operation->start_ns + (uint64_t)offset,
	    .end = operation->end_ns + (uint64_t)offset,
	    .completed = operation->end_ns + (uint64_t)offset,
	    .device = operation->device,
	    .context = operation->context,
	    .stream = operation->stream,
	    .dynamic_shared_memory = (int32_t)work->shared_bytes,
	    .correlation = operation->correlation,
	    .grid_id = operation->correlation,
	    .name = work->name,
	    .graph = work->graph,
	    .graph_node = work->graph_node,
	};

	for (int i = 0; i < 3; i++) {
		record.grid[i] = (int32_t)work->grid[i];
		record.block[i] = (int32_t)work->block[i];
	}
	records_put(&record, sizeof(record));
}

/* Copies of which some pieces are done and some are not, by correlation id. */
static struct {
	uint32_t correlation;
	uint64_t start_ns;
} begun[64];
static pthread_mutex_t begun_lock = PTHREAD_MUTEX_INITIALIZER;

/* True if this was the last piece of a copy: *start_ns is then that of its first, if that was seen. */
static bool is_whole(const struct sim_operation *operation, uint64_t *start_ns)
{
	const struct sim_work *work = operation->work;
	bool last = work->copy_offset + work->bytes >= work->copy_bytes;
	uint32_t wanted = work->copy_offset ? operation->correlation : 0;

	*start_ns = operation->start_ns;
	if (!work->copy_offset && last)
		return true;
	pthread_mutex_lock(&begun_lock);
	for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++) {
		if (begun[i].correlation != wanted)
			continue;
		if (!wanted) {
			begun[i].correlation = operation->correlation;
			begun[i].start_ns = operation->start_ns;
		} else if (last) {
			*start_ns = begun[i].start_ns;
			begun[i].correlation = 0;
		}
		break;
	}
	pthread_mutex_unlock(&begun_lock);
	return last;
}

static void put_copy(const struct sim_operation *operation, int64_t offset)
{
	const struct sim_work *work = operation->work;
	uint64_t start_ns;
	bool whole = is_whole(operation, &start_ns);
	struct cupti_abi_memcpy record = {
	    .kind = CUPTI_ABI_KIND_MEMCPY,
	    .copy_kind = work->copy_kind,
	    .source_kind = work->source_kind,
	    .target_kind = work->target_kind,
	    .flags = work->asynchronous ? CUPTI_ABI_FLAG_MEMCPY_ASYNC : 0,
	    .bytes = work->copy_bytes ? work->copy_bytes : work->bytes,
	    .start = start_ns + (uint64_t)offset,
	    .end = operation->end_ns + (uint64_t)offset,
	    .device = operation->device,
	    .context = operation->context,
	    .stream = operation->stream,
	    .correlation = operation->correlation,
	    .runtime_correlation = operation->correlation,
	    .graph = work->graph,
	    .graph_node = work->graph_node,
	    .copy_count = 1,
	};

	if (whole)
		records_put(&record, sizeof(record));
}

static void put_memset(const struct sim_operation *operation, int64_t offset)
{
	const struct sim_work *work = operation->work;
	struct cupti_abi_memset record = {
	    .kind = CUPTI_ABI_KIND_MEMSET,
	    .value = work->value,
	    .bytes = work->bytes,
	    .start = operation->start_ns + (uint64_t)offset,
	    .end = operation->end_ns + (uint64_t)offset,
	    .device = operation->device,
	    .context = operation->context,
	    .stream = operation->stream,
	    .correlation = operation->correlation,
	    .flags = work->asynchronous ? CUPTI_ABI_FLAG_MEMSET_ASYNC : 0,
	    .memory_kind = work->target_kind,
	    .graph = work->graph,
	    .graph_node = work->graph_node,
	};

	records_put(&record, sizeof(record));
}

static void put_operation(const struct sim_operation *operation)
{
	switch (operation->work->kind) {
	case SIM_KERNEL:
		if (enabled(CUPTI_ABI_KIND_CONCURRENT_KERNEL) || enabled(CUPTI_ABI_KIND_KERNEL))
			put_kernel(operation, clock_offset());
		break;
	case SIM_COPY:
		if (enabled(CUPTI_ABI_KIND_MEMCPY))
			put_copy(operation, clock_offset());
		break;
	case SIM_MEMSET:
		if (enabled(CUPTI_ABI_KIND_MEMSET))
			put_memset(operation, clock_offset());
		break;
	case SIM_MARKER:
		break;
	}
}

static const struct sim_tracer tracer = {
    .now = timestamp,
    .wants_call = wants_call,
    .wants_synchronization = wants_synchronization,
    .callback = tell_subscriber,
    .call = put_call,
    .synchronization = put_synchronization,
    .operation = put_operation,
};

static void after_fork_in_child(void)
{
	forked = true;
	memset(kind_enabled, 0, sizeof(kind_enabled));
	memset(call_enabled, 0, sizeof(call_enabled));
	records_forget();
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

static void attach(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	simTraceAttach(&tracer);
}

static void put_devices(void)
{
	static struct sim_device_info info[64]; /* names must stay */
	uint32_t count = simDeviceCount();

	for (uint32_t i = 0; i < count && i < sizeof(info) / sizeof(info[0]); i++) {
		struct cupti_abi_device record = {.kind = CUPTI_ABI_KIND_DEVICE, .id = i};

		simDeviceInfo(i, &info[i]);
		record.global_memory_size = info[i].memory_bytes;
		record.threads_per_warp = 32;
		record.core_clock_rate = info[i].clock_khz;
		record.memcpy_engines = 2;
		record.multiprocessors = info[i].multiprocessors;
		record.max_threads_per_block = 1024;
		record.compute_major = info[i].compute_major;
		record.compute_minor = info[i].compute_minor;
		memcpy(record.uuid, info[i].uuid, sizeof(record.uuid));
		record.name = info[i].name;
		record.is_cuda_visible = 1;
		records_put(&record, sizeof(record));
	}
}

/* Exported functions */

EXPORTED cupti_abi_result cuptiGetVersion(uint32_t *version)
{
	CHECK_USABLE();
	if (!version)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	*version = CUPTI_ABI_VERSION;
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiGetTimestamp(uint64_t *time)
{
	CHECK_USABLE();
	if (!time)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	*time = timestamp();
	return CUPTI_ABI_SUCCESS;
}

/* One subscriber a process. */
EXPORTED cupti_abi_result cuptiSubscribe_v2(cupti_abi_subscriber *subscriber, cupti_abi_callback callback,
                                            void *userdata, struct cupti_abi_subscriber_params *params)
{
	cupti_abi_result result = CUPTI_ABI_SUCCESS;

	CHECK_USABLE();
	if (!subscriber)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&subscriber_lock);
	if (subscribed) {
		if (params && params->old_name && params->old_size)
			snprintf(params->old_name, params->old_size, "%s", subscriber_name);
		result = CUPTI_ABI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	} else {
		subscribed = true;
		subscriber_callback = callback;
		subscriber_userdata = userdata;
		snprintf(subscriber_name, sizeof(subscriber_name), "%s",
		         params && params->name ? params->name : "");
		*subscriber = &subscriber_token;
	}
	pthread_mutex_unlock(&subscriber_lock);
	if (!result)
		attach();
	return result;
}

EXPORTED cupti_abi_result cuptiSubscribe(cupti_abi_subscriber *subscriber, cupti_abi_callback callback,
                                         void *userdata)
{
	return cuptiSubscribe_v2(subscriber, callback, userdata, NULL);
}

/* Lock held. */
static void forget_subscriber(void)
{
	subscribed = false;
	subscriber_callback = NULL;
	memset(domain_enabled, 0, sizeof(domain_enabled));
	__atomic_store_n(&any_domain, 0, __ATOMIC_RELEASE);
}

EXPORTED cupti_abi_result cuptiEnableDomain(uint32_t enable, cupti_abi_subscriber subscriber, uint32_t domain)
{
	CHECK_USABLE();
	if (domain != CUPTI_ABI_DOMAIN_DRIVER && domain != CUPTI_ABI_DOMAIN_RUNTIME)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER; /* the others have no callbacks here */
	pthread_mutex_lock(&subscriber_lock);
	if (subscriber != &subscriber_token || !subscribed) {
		pthread_mutex_unlock(&subscriber_lock);
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	}
	domain_enabled[domain] = enable;
	__atomic_store_n(&any_domain,
	                 domain_enabled[CUPTI_ABI_DOMAIN_DRIVER] || domain_enabled[CUPTI_ABI_DOMAIN_RUNTIME],
	                 __ATOMIC_RELEASE);
	pthread_mutex_unlock(&subscriber_lock);
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiUnsubscribe(cupti_abi_subscriber subscriber)
{
	CHECK_USABLE();
	if (subscriber != &subscriber_token || !subscribed)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&subscriber_lock);
	forget_subscriber();
	pthread_mutex_unlock(&subscriber_lock);
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiActivityRegisterCallbacks(cupti_abi_buffer_requested requested,
                                                         cupti_abi_buffer_completed completed)
{
	CHECK_USABLE();
	if (!requested || !completed)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	attach();
	records_register(requested, completed);
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiActivityRegisterTimestampCallback(cupti_abi_timestamp clock)
{
	CHECK_USABLE();
	if (!clock)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	client_clock = clock;
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiSetThreadIdType(uint32_t type)
{
	CHECK_USABLE();
	if (type > CUPTI_ABI_THREAD_ID_SYSTEM)
		return CUPTI_ABI_ERROR_NOT_SUPPORTED;
	thread_id_type = type;
	return CUPTI_ABI_SUCCESS;
}

static void enable_all_calls(uint32_t domain, bool enable)
{
	for (size_t i = 0; i < MAX_CBID; i++)
		__atomic_store_n(&call_enabled[domain][i], enable, __ATOMIC_RELAXED);
}

static cupti_abi_result set_kind(uint32_t kind, bool enable)
{
	CHECK_USABLE();
	if (!record_size(kind))
		return CUPTI_ABI_ERROR_INVALID_KIND;
	if (enable && ((kind == CUPTI_ABI_KIND_KERNEL && enabled(CUPTI_ABI_KIND_CONCURRENT_KERNEL)) ||
	               (kind == CUPTI_ABI_KIND_CONCURRENT_KERNEL && enabled(CUPTI_ABI_KIND_KERNEL))))
		return CUPTI_ABI_ERROR_NOT_COMPATIBLE;
	attach();
	__atomic_store_n(&kind_enabled[kind], enable, __ATOMIC_RELAXED);
	if (kind == CUPTI_ABI_KIND_RUNTIME)
		enable_all_calls(CUPTI_ABI_DOMAIN_RUNTIME, enable);
	if (kind == CUPTI_ABI_KIND_DRIVER)
		enable_all_calls(CUPTI_ABI_DOMAIN_DRIVER, enable);
	if (kind == CUPTI_ABI_KIND_DEVICE && enable)
		put_devices();
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiActivityEnable(cupti_abi_kind kind)
{
	return set_kind(kind, true);
}

EXPORTED cupti_abi_result cuptiActivityDisable(cupti_abi_kind kind)
{
	return set_kind(kind, false);
}

static cupti_abi_result set_call(uint32_t domain, uint32_t cbid, uint32_t end, bool enable)
{
	CHECK_USABLE();
	if (!cbid || cbid >= end)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	attach();
	selected_functions = true;
	__atomic_store_n(&call_enabled[domain][cbid], enable, __ATOMIC_RELAXED);
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
	return set_call(CUPTI_ABI_DOMAIN_RUNTIME, cbid, CUPTI_ABI_RUNTIME_CBID_END, enable);
}

EXPORTED cupti_abi_result cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
	return set_call(CUPTI_ABI_DOMAIN_DRIVER, cbid, CUPTI_ABI_DRIVER_CBID_END, enable);
}

/* All records are complete when they are put, so both kinds of flush hand over everything. */
EXPORTED cupti_abi_result cuptiActivityFlushAll(uint32_t flag)
{
	struct cupti_abi_overhead record = {
	    .kind = CUPTI_ABI_KIND_OVERHEAD,
	    .overhead_kind = CUPTI_ABI_OVERHEAD_BUFFER_FLUSH,
	    .object_kind = CUPTI_ABI_OBJECT_THREAD,
	};

	(void)flag;
	CHECK_USABLE();
	if (!records_registered())
		return CUPTI_ABI_ERROR_INVALID_OPERATION;
	record.start = timestamp();
	if (records_flush() && enabled(CUPTI_ABI_KIND_OVERHEAD)) {
		record.end = timestamp();
		record.object.process = (uint32_t)getpid();
		record.object.thread = thread_id();
		records_put(&record, sizeof(record));
	}
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiActivityFlushPeriod(uint32_t milliseconds)
{
	CHECK_USABLE();
	records_flush_period(milliseconds);
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_size,
                                                     struct cupti_abi_record **record)
{
	uint8_t *next;
	size_t size;

	CHECK_USABLE();
	if (!buffer || !record)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	next = buffer;
	if (*record)
		next = (uint8_t *)*record + record_size((*record)->kind);
	if (next < buffer || (size_t)(next - buffer) + sizeof(**record) > valid_size)
		return CUPTI_ABI_ERROR_MAX_LIMIT_REACHED;
	size = record_size(((struct cupti_abi_record *)next)->kind);
	if (!size || (size_t)(next - buffer) + size > valid_size)
		return CUPTI_ABI_ERROR_INVALID_KIND;
	*record = (struct cupti_abi_record *)next;
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiActivityGetNumDroppedRecords(cupti_abi_context context, uint32_t stream,
                                                            size_t *dropped)
{
	(void)context, (void)stream;
	CHECK_USABLE();
	if (!dropped)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	*dropped = records_take_dropped();
	return CUPTI_ABI_SUCCESS;
}

struct call_name {
	uint32_t cbid;
	const char *name;
};

#define CALL_NAME(name, cbid) {cbid, #name},
static const struct call_name driver_names[] = {SIM_DRIVER_CALLS(CALL_NAME)
                                                    CUPTI_ABI_DRIVER_CALLS(CALL_NAME)};
static const struct call_name runtime_names[] = {SIM_RUNTIME_CALLS(CALL_NAME)
                                                     CUPTI_ABI_RUNTIME_CALLS(CALL_NAME)};

static const char *find_name(const struct call_name *names, size_t count, uint32_t cbid)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].cbid == cbid)
			return names[i].name;
	return NULL;
}

EXPORTED cupti_abi_result cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name)
{
	const char *found = NULL;

	CHECK_USABLE();
	if (domain == CUPTI_ABI_DOMAIN_DRIVER)
		found = find_name(driver_names, sizeof(driver_names) / sizeof(driver_names[0]), cbid);
	else if (domain == CUPTI_ABI_DOMAIN_RUNTIME)
		found = find_name(runtime_names, sizeof(runtime_names) / sizeof(runtime_names[0]), cbid);
	if (!name || !found)
		return CUPTI_ABI_ERROR_INVALID_PARAMETER;
	*name = found;
	return CUPTI_ABI_SUCCESS;
}

EXPORTED cupti_abi_result cuptiGetResultString(cupti_abi_result result, const char **text)
{
	static const struct {
		cupti_abi_result result;
		const char *text;
	} texts[] = {
	    {CUPTI_ABI_SUCCESS, "CUPTI_SUCCESS"},
	    {CUPTI_ABI_ERROR_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER"},
	    {CUPTI_ABI_ERROR_INVALID_OPERATION, "CUPTI_ERROR_INVALID_OPERATION"},
	    {CUPTI_ABI_ERROR_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
	    {CUPTI_ABI_ERROR_NOT_COMPATIBLE, "CUPTI_ERROR_NOT_COMPATIBLE"},
	    {CUPTI_ABI_ERROR_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED"},
	    {CUPTI_ABI_ERROR_INVALID_KIND, "CUPTI_ERROR_INVALID_KIND"},
	    {CUPTI_ABI_ERROR_NOT_SUPPORTED, "CUPTI_ERROR_NOT_SUPPORTED"},
	    {CUPTI_ABI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
	     "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
	    {CUPTI_ABI_ERROR_UNKNOWN, "CUPTI_ERROR_UNKNOWN"},
	};

	for (size_t i = 0; text && i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].result == result) {
			*text = texts[i].text;
			return CUPTI_ABI_SUCCESS;
		}
	}
	return CUPTI_ABI_ERROR_INVALID_PARAMETER;
}

static void refuse(const char *what)
{
	fprintf(stderr, "simulated CUPTI: cuptiFinalize %s\n", what);
	abort();
}

EXPORTED cupti_abi_result cuptiFinalize(void)
{
	static uint32_t finalizing;

	CHECK_USABLE();
	if (selected_functions)
		refuse("after cuptiActivityEnableRuntimeApi or …DriverApi corrupts the heap of the real one");
	if (in_callback && callback_site == CUPTI_ABI_API_ENTER)
		refuse("in a callback belongs at the end of a call");
	if (__atomic_exchange_n(&finalizing, 1, __ATOMIC_ACQ_REL))
		refuse("runs in another thread already");
	memset(kind_enabled, 0, sizeof(kind_enabled));
	enable_all_calls(CUPTI_ABI_DOMAIN_RUNTIME, false);
	enable_all_calls(CUPTI_ABI_DOMAIN_DRIVER, false);
	simTraceAttach(NULL);
	usleep((useconds_t)simOption("SIM_FINALIZE_MS", 0) * 1000);
	if (records_registered()) {
		records_flush();
		records_end();
	}
	client_clock = NULL;
	pthread_mutex_lock(&subscriber_lock);
	forget_subscriber();
	pthread_mutex_unlock(&subscriber_lock);
	__atomic_store_n(&finalizing, 0, __ATOMIC_RELEASE);
	return CUPTI_ABI_SUCCESS;
}
