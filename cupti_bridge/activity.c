/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/activity.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti_bridge/buffer_pool.h"
#include "cupti_bridge/call_table.h"
#include "cupti_bridge/clock.h"
#include "cupti_bridge/finalize.h"

#define CALIBRATION_READS  16
#define CALIBRATION_PERIOD 100000000u /* ns */
/* CLOCK_REALTIME, CUPTI's own clock, is slewed by at most 500 ppm; records are younger than a second. */
#define CALIBRATION_DRIFT 500000u /* ns */
#define LEAVE_TIMEOUT_MS  3000
#define FINALIZE_MAJOR    13   /* finalising in a callback was tried with CUDA 13.0 only (docs/results.md) */
#define FINALIZE_CALL_MS  2000 /* the program has so long for a call in which CUPTI is finalised */
#define FINALIZE_END_MS   2000 /* and that call so long; the collector waits for five seconds in all */

enum activity_choice {
	CHOOSE_KERNEL,
	CHOOSE_MEMCPY,
	CHOOSE_PEER,
	CHOOSE_MEMSET,
	CHOOSE_SYNC,
	CHOOSE_OVERHEAD,
	CHOOSE_DEVICE,
	CHOOSE_RUNTIME,
	CHOOSE_DRIVER,
	CHOOSE_RUNTIME_ALL,
	CHOOSE_DRIVER_ALL,
	CHOOSE_CUPTI_FLUSH,
	CHOOSE_CUPTI_ZERO,
	CHOICES,
};

static const char *const choice_words[CHOICES] = {
    [CHOOSE_KERNEL] = "kernel",
    [CHOOSE_MEMCPY] = "memcpy",
    [CHOOSE_PEER] = "peer",
    [CHOOSE_MEMSET] = "memset",
    [CHOOSE_SYNC] = "sync",
    [CHOOSE_OVERHEAD] = "overhead",
    [CHOOSE_DEVICE] = "device",
    [CHOOSE_RUNTIME] = "runtime",
    [CHOOSE_DRIVER] = "driver",
    [CHOOSE_RUNTIME_ALL] = "runtime-all",
    [CHOOSE_DRIVER_ALL] = "driver-all",
    [CHOOSE_CUPTI_FLUSH] = "cupti-flush",
    [CHOOSE_CUPTI_ZERO] = "cupti-zero",
};

/* Kinds of records, in the order in which they are switched on; the kernels come first because all depends on
 * them. */
static const struct {
	enum activity_choice choice;
	cupti_abi_kind kind;
	const char *missing; /* what cannot be told without it */
} activity_kinds[] = {
    {CHOOSE_KERNEL, CUPTI_ABI_KIND_CONCURRENT_KERNEL, "kernels"},
    {CHOOSE_MEMCPY, CUPTI_ABI_KIND_MEMCPY, "copies"},
    {CHOOSE_PEER, CUPTI_ABI_KIND_MEMCPY2, "copies between GPUs"},
    {CHOOSE_MEMSET, CUPTI_ABI_KIND_MEMSET, "memsets"},
    {CHOOSE_DEVICE, CUPTI_ABI_KIND_DEVICE, "descriptions of the GPUs"},
    {CHOOSE_SYNC, CUPTI_ABI_KIND_SYNCHRONIZATION, "synchronisation records"},
    {CHOOSE_OVERHEAD, CUPTI_ABI_KIND_OVERHEAD, "CUPTI's own cost"},
};

/* CUPTI gives its callbacks no context. NULL: there is nobody to work for (atomic). */
static struct bridge *active;
static uint32_t inside;   /* callbacks that may be using it (atomic) */
static uint32_t chosen;   /* a bit for each enum activity_choice */
static pthread_t flusher; /* thread in activity_flush: its cost is counted there */
static uint32_t flushing; /* 1: flusher is valid (atomic) */

static bool is_chosen(enum activity_choice choice)
{
	return chosen & (1u << choice);
}

static void choose(const struct bridge *bridge)
{
	const char *words = secure_getenv(ACTIVITY_KINDS_ENV);

	chosen = (1u << (CHOOSE_DRIVER + 1)) - 1;
	if (bridge->late) {
		/* Whole kinds can be taken back, without a trap for whoever uses CUPTI next (activity.h). */
		chosen &= ~(1u << CHOOSE_RUNTIME | 1u << CHOOSE_DRIVER);
		chosen |= 1u << CHOOSE_RUNTIME_ALL | 1u << CHOOSE_DRIVER_ALL;
		return;
	}
	if (!words || !*words)
		return;
	chosen = 0;
	while (*words) {
		size_t length = strcspn(words, ",");

		for (int i = 0; i < CHOICES; i++)
			if (strlen(choice_words[i]) == length && !strncmp(words, choice_words[i], length))
				chosen |= 1u << i;
		words += length + (words[length] == ',');
	}
}

/* The bridge to work for, which then stays until leave_callback; NULL if there is none. */
static struct bridge *enter_callback(void)
{
	struct bridge *bridge;

	__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	bridge = __atomic_load_n(&active, __ATOMIC_SEQ_CST);
	/* A child could find a lock taken for good. */
	return bridge && bridge_is_owner(bridge) ? bridge : NULL;
}

static void leave_callback(void)
{
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

static uint64_t read_timestamp(void)
{
	return clock_monotonic_ns();
}

/* Reads CUPTI's clock between two readings of ours, several times, and keeps the narrowest pair. */
static void calibrate(struct bridge *bridge)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < CALIBRATION_READS; i++) {
		uint64_t theirs = 0, before = clock_monotonic_ns(), after;

		if (bridge->cupti.call.cuptiGetTimestamp(&theirs) != CUPTI_ABI_SUCCESS)
			continue;
		after = clock_monotonic_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		bridge->converter.clock_offset = (int64_t)(before + best / 2 - theirs);
	}
	bridge->calibrated_ns = clock_monotonic_ns();
	if (best != UINT64_MAX)
		bridge->clock_error_ns = best / 2 + CALIBRATION_DRIFT;
}

static uint32_t intern_name(void *context, const char *name)
{
	struct bridge *bridge = context;

	return name_table_id(bridge->names, name);
}

static const char *wanted_function(void *context, uint32_t domain, uint32_t cbid)
{
	(void)context;
	return call_table_name(domain, cbid);
}

void activity_prepare(struct bridge *bridge)
{
	struct cupti_functions *call = &bridge->cupti.call;
	uint8_t zeroed = 1;
	size_t size = sizeof(zeroed);

	choose(bridge);
	bridge->converter = (struct converter){
	    .name = intern_name,
	    .function = wanted_function,
	    .context = bridge,
	};
	if (call->cuptiSetThreadIdType)
		bridge->converter.system_tids =
		    call->cuptiSetThreadIdType(CUPTI_ABI_THREAD_ID_SYSTEM) == CUPTI_ABI_SUCCESS;
	if (call->cuptiActivitySetAttribute && !is_chosen(CHOOSE_CUPTI_ZERO))
		call->cuptiActivitySetAttribute(CUPTI_ABI_ATTRIBUTE_ZEROED_BUFFERS, &size, &zeroed);
	bridge->clock = RING_CLOCK_MONOTONIC;
	if (!call->cuptiActivityRegisterTimestampCallback ||
	    call->cuptiActivityRegisterTimestampCallback(read_timestamp) != CUPTI_ABI_SUCCESS) {
		bridge->clock = RING_CLOCK_OFFSET;
		calibrate(bridge);
	}
	bridge->delivered_ns = clock_monotonic_ns();
}

static void buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
	int saved = errno;

	*buffer = NULL;
	*size = 0;
	*max_records = 0;
	if (enter_callback())
		*buffer = buffer_pool_take(size);
	leave_callback();
	errno = saved;
}

/* Operations that ended between the previous delivery and now are missing. */
static void note_missing(struct bridge *bridge, uint64_t since_ns, uint64_t now_ns, uint64_t count)
{
	ring_writer_note_loss(&bridge->ring, RING_LOSS_CUPTI, since_ns, now_ns, count);
}

static void convert_buffer(struct bridge *bridge, uint8_t *buffer, size_t valid_size, uint64_t since_ns,
                           uint64_t now_ns)
{
	struct converter converter = bridge->converter;
	struct cupti_abi_record *record = NULL;
	uint64_t unfinished = 0, start_ns, end_ns;
	union converted out;
	cupti_abi_result result;

	while ((result = bridge->cupti.call.cuptiActivityGetNextRecord(buffer, valid_size, &record)) ==
	       CUPTI_ABI_SUCCESS) {
		switch (converter_convert(&converter, record, &out, &start_ns, &end_ns)) {
		case CONVERT_DONE:
			if (!start_ns) /* no time of its own: a device */
				start_ns = end_ns = now_ns;
			ring_writer_put(&bridge->ring, &out.record, start_ns, end_ns);
			break;
		case CONVERT_UNFINISHED:
			unfinished++;
			break;
		case CONVERT_UNWANTED:
			break;
		}
	}
	if (result != CUPTI_ABI_ERROR_MAX_LIMIT_REACHED)
		unfinished++; /* the rest of the buffer cannot be read: at least one */
	if (unfinished)
		note_missing(bridge, since_ns, now_ns, unfinished);
}

static void deliver(struct bridge *bridge, cupti_abi_context context, uint32_t stream, uint8_t *buffer,
                    size_t valid_size)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t since_ns = __atomic_exchange_n(&bridge->delivered_ns, now_ns, __ATOMIC_RELAXED);
	size_t dropped = 0;

	if (bridge->clock == RING_CLOCK_OFFSET && now_ns - bridge->calibrated_ns > CALIBRATION_PERIOD)
		calibrate(bridge);
	if (valid_size)
		convert_buffer(bridge, buffer, valid_size, since_ns, now_ns);
	if (bridge->cupti.call.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) ==
	        CUPTI_ABI_SUCCESS &&
	    dropped)
		note_missing(bridge, since_ns, now_ns, dropped);
}

static void buffer_completed(cupti_abi_context context, uint32_t stream, uint8_t *buffer, size_t size,
                             size_t valid_size)
{
	struct bridge *bridge = enter_callback();
	int saved = errno;
	uint64_t cpu_ns;

	(void)size;
	if (!buffer || !bridge)
		goto out;
	cpu_ns = clock_thread_cpu_ns();
	if (bridge_is_wanted(bridge))
		deliver(bridge, context, stream, buffer, valid_size);
	buffer_pool_give(buffer, valid_size);
	if (!__atomic_load_n(&flushing, __ATOMIC_ACQUIRE) || !pthread_equal(flusher, pthread_self()))
		ring_writer_add_cost(&bridge->ring, clock_thread_cpu_ns() - cpu_ns);
out:
	leave_callback();
	errno = saved;
}

/* Domains are enabled only to finalise CUPTI in here; in a forked child it is none of ours. */
static void on_callback(void *userdata, uint32_t domain, uint32_t cbid, const void *data)
{
	const struct cupti_abi_callback_data *call = data;
	const struct bridge *bridge = userdata;
	int saved = errno;

	(void)cbid;
	if ((domain == CUPTI_ABI_DOMAIN_DRIVER || domain == CUPTI_ABI_DOMAIN_RUNTIME) && call &&
	    call->site == CUPTI_ABI_API_EXIT && finalize_is_asked() && bridge_is_owner(bridge))
		finalize_now(bridge->cupti.call.cuptiFinalize);
	errno = saved;
}

__attribute__((format(printf, 3, 4))) static void add_text(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}

static const char *result_name(const struct bridge *bridge, cupti_abi_result result)
{
	const char *name = NULL;

	if (!bridge->cupti.call.cuptiGetResultString ||
	    bridge->cupti.call.cuptiGetResultString(result, &name) != CUPTI_ABI_SUCCESS || !name)
		return "unnamed";
	return name;
}

static const char *remedy(cupti_abi_result result)
{
	switch (result) {
	case CUPTI_ABI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
	case CUPTI_ABI_ERROR_OLD_PROFILER_API_INITIALIZED:
		return "another tool has CUPTI in this process: stop it (a profiler such as nsys or "
		       "torch.profiler, "
		       "or cuda-gdb) or record without the GPU timeline";
	case CUPTI_ABI_ERROR_INSUFFICIENT_PRIVILEGES:
	case CUPTI_ABI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
		return "the NVIDIA driver lets only administrators profile: run the program as root, or load "
		       "the module "
		       "with NVreg_RestrictProfilingToAdminUsers=0";
	case CUPTI_ABI_ERROR_NOT_COMPATIBLE:
	case CUPTI_ABI_ERROR_NOT_INITIALIZED:
		return "this CUPTI does not fit the driver: name one of the driver's CUDA version in "
		       "WHYIDLE_CUPTI";
	case CUPTI_ABI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED:
	case CUPTI_ABI_ERROR_NOT_SUPPORTED:
	case CUPTI_ABI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
	case CUPTI_ABI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
	case CUPTI_ABI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
	case CUPTI_ABI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
		return "this GPU, or the way it is virtualised, does not let CUPTI trace";
	default:
		return "record without the GPU timeline, or try another CUPTI (WHYIDLE_CUPTI)";
	}
}

/*
 * Holding the one subscription of a process costs nothing by itself (no callback is enabled) and is the only
 * way to notice another tool, and to be noticed by it. A torch.profiler that starts later in the program then
 * says that CUPTI is taken and goes on without GPU activities. Without the subscription it would take our
 * buffers over and call cuptiFinalize when it stops, which corrupts the heap where functions were selected
 * (activity.h).
 */
static cupti_abi_subscriber subscriber;

static cupti_abi_result subscribe(struct bridge *bridge, char *holder, size_t size)
{
	struct cupti_functions *call = &bridge->cupti.call;
	struct cupti_abi_subscriber_params params = {
	    .struct_size = sizeof(params),
	    .name = "whyidle",
	    .old_name = holder,
	    .old_size = size,
	};

	holder[0] = '\0';
	if (call->cuptiSubscribe_v2)
		return call->cuptiSubscribe_v2(&subscriber, on_callback, bridge, &params);
	return call->cuptiSubscribe(&subscriber, on_callback, bridge);
}

/* Selects the functions of one domain. False if none could be: the caller then takes the whole kind. */
static bool select_calls(uint32_t domain, cupti_abi_result (*enable)(uint32_t cbid, uint8_t enable))
{
	bool any = false;

	for (uint32_t cbid = 1; enable && cbid < CALL_TABLE_SIZE; cbid++)
		if (call_table_name(domain, cbid) && enable(cbid, 1) == CUPTI_ABI_SUCCESS)
			any = true; /* an older CUPTI refuses what it does not know yet */
	return any;
}

static void start_calls(struct bridge *bridge, char *text, size_t size)
{
	struct cupti_functions *call = &bridge->cupti.call;
	static bool extended;
	const struct {
		enum activity_choice some, all;
		uint32_t domain;
		cupti_abi_kind kind;
		cupti_abi_result (*enable)(uint32_t cbid, uint8_t enable);
		const char *name;
	} domains[] = {
	    {CHOOSE_RUNTIME, CHOOSE_RUNTIME_ALL, CUPTI_ABI_DOMAIN_RUNTIME, CUPTI_ABI_KIND_RUNTIME,
	     call->cuptiActivityEnableRuntimeApi, "runtime"},
	    {CHOOSE_DRIVER, CHOOSE_DRIVER_ALL, CUPTI_ABI_DOMAIN_DRIVER, CUPTI_ABI_KIND_DRIVER,
	     call->cuptiActivityEnableDriverApi, "driver"},
	};

	if (!extended) /* once a process */
		call_table_extend(call->cuptiGetCallbackName);
	extended = true;
	for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
		bool all = is_chosen(domains[i].all);
		cupti_abi_result result;

		if (!all && !is_chosen(domains[i].some))
			continue;
		if (!all && select_calls(domains[i].domain, domains[i].enable))
			continue;
		result = call->cuptiActivityEnable(domains[i].kind);
		if (result != CUPTI_ABI_SUCCESS)
			add_text(text, size, "%sCUDA %s calls are not recorded (CUPTI error %d)",
			         *text ? "; " : "", domains[i].name, result);
	}
}

static cupti_abi_result start_kinds(struct bridge *bridge, char *text, size_t size)
{
	for (size_t i = 0; i < sizeof(activity_kinds) / sizeof(activity_kinds[0]); i++) {
		cupti_abi_result result;

		if (!is_chosen(activity_kinds[i].choice))
			continue;
		result = bridge->cupti.call.cuptiActivityEnable(activity_kinds[i].kind);
		if (result == CUPTI_ABI_SUCCESS)
			continue;
		if (activity_kinds[i].choice == CHOOSE_KERNEL)
			return result;
		add_text(text, size, "%s%s are not recorded (CUPTI error %d)", *text ? "; " : "",
		         activity_kinds[i].missing, result);
	}
	return CUPTI_ABI_SUCCESS;
}

static void describe_failure(struct bridge *bridge, cupti_abi_result error, const char *holder, char *text,
                             size_t size)
{
	snprintf(text, size, "CUPTI does not start (error %d, %s)%s%s: %s", error, result_name(bridge, error),
	         *holder ? ", held by " : "", holder, remedy(error));
}

/* One thread of our own does all of it: measured clean (docs/attach.md), and it needs no call of the program.
 */
static void disable_kinds(struct bridge *bridge)
{
	struct cupti_functions *call = &bridge->cupti.call;

	for (size_t i = 0; i < sizeof(activity_kinds) / sizeof(activity_kinds[0]); i++)
		if (is_chosen(activity_kinds[i].choice))
			call->cuptiActivityDisable(activity_kinds[i].kind);
	if (is_chosen(CHOOSE_DRIVER_ALL))
		call->cuptiActivityDisable(CUPTI_ABI_KIND_DRIVER);
	if (is_chosen(CHOOSE_RUNTIME_ALL))
		call->cuptiActivityDisable(CUPTI_ABI_KIND_RUNTIME);
	activity_flush(bridge, true);
}

/* What follows the subscription, if there is one: *error. */
static bool start_recording(struct bridge *bridge, cupti_abi_result *error, const char *holder, char *text,
                            size_t size)
{
	struct cupti_functions *call = &bridge->cupti.call;

	text[0] = '\0';
	if (*error == CUPTI_ABI_SUCCESS) {
		__atomic_store_n(&active, bridge, __ATOMIC_SEQ_CST);
		*error = call->cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
	}
	if (*error == CUPTI_ABI_SUCCESS)
		*error = start_kinds(bridge, text, size);
	if (*error != CUPTI_ABI_SUCCESS) {
		describe_failure(bridge, *error, holder, text, size);
		if (bridge->late && __atomic_load_n(&active, __ATOMIC_SEQ_CST)) {
			disable_kinds(bridge);
			call->cuptiUnsubscribe(subscriber);
		}
		return false;
	}
	start_calls(bridge, text, size);
	if (!bridge->converter.system_tids)
		add_text(text, size, "%scalls carry no thread (this CUPTI cannot give kernel thread ids)",
		         *text ? "; " : "");
	if (bridge->link.flush_period_ms && !activity_needs_flush(bridge))
		call->cuptiActivityFlushPeriod(bridge->link.flush_period_ms);
	return true;
}

bool activity_start(struct bridge *bridge, cupti_abi_result *error, char *text, size_t size)
{
	char holder[CUPTI_ABI_SUBSCRIBER_NAME_SIZE + 1] = "";

	*error = bridge->cupti.error;
	if (*error == CUPTI_ABI_SUCCESS)
		*error = subscribe(bridge, holder, CUPTI_ABI_SUBSCRIBER_NAME_SIZE);
	return start_recording(bridge, error, holder, text, size);
}

bool activity_start_again(struct bridge *bridge, cupti_abi_result *error, char *text, size_t size)
{
	char holder[CUPTI_ABI_SUBSCRIBER_NAME_SIZE + 1] = "";

	*error = bridge->cupti.call.cuptiGetVersion(&bridge->cupti.version); /* fails under a debugger */
	if (*error == CUPTI_ABI_SUCCESS)
		*error = subscribe(bridge, holder, CUPTI_ABI_SUBSCRIBER_NAME_SIZE);
	if (*error != CUPTI_ABI_SUCCESS)
		return false;
	bridge->cupti.error = CUPTI_ABI_SUCCESS;
	activity_prepare(bridge);
	return start_recording(bridge, error, holder, text, size);
}

/*
 * cuptiActivityFlushPeriod only hands over full buffers (cupti_activity.h), of which a slow program may take
 * minutes to fill one, in each of its threads. cuptiActivityFlushAll(0) also hands over those that are partly
 * filled, so that a program that is killed has lost no more than the last period.
 */
bool activity_needs_flush(const struct bridge *bridge)
{
	return !is_chosen(CHOOSE_CUPTI_FLUSH) || !bridge->cupti.call.cuptiActivityFlushPeriod;
}

void activity_flush(struct bridge *bridge, bool forced)
{
	uint64_t cpu_ns = clock_thread_cpu_ns();

	flusher = pthread_self();
	__atomic_store_n(&flushing, 1, __ATOMIC_RELEASE);
	bridge->cupti.call.cuptiActivityFlushAll(forced ? CUPTI_ABI_FLUSH_FORCED : 0);
	__atomic_store_n(&flushing, 0, __ATOMIC_RELEASE);
	ring_writer_add_cost(&bridge->ring, clock_thread_cpu_ns() - cpu_ns);
}

static void enable_domains(struct bridge *bridge, uint32_t enable)
{
	bridge->cupti.call.cuptiEnableDomain(enable, subscriber, CUPTI_ABI_DOMAIN_DRIVER);
	bridge->cupti.call.cuptiEnableDomain(enable, subscriber, CUPTI_ABI_DOMAIN_RUNTIME);
}

/* True if nothing of CUPTI may be touched afterwards. False: `text` says why it was not finalised. */
static bool finalize(struct bridge *bridge, char *text, size_t size)
{
	struct cupti_functions *call = &bridge->cupti.call;
	enum finalize_result result;

	if (!call->cuptiFinalize || !call->cuptiEnableDomain ||
	    cupti_library_major(bridge->cupti.version) < FINALIZE_MAJOR) {
		snprintf(text, size, "CUPTI was not finalised: that was not tried with its version (%u)",
		         bridge->cupti.version);
		return false;
	}
	if (!finalize_ask())
		return true; /* the process exits */
	enable_domains(bridge, 1);
	result = finalize_wait(FINALIZE_CALL_MS, FINALIZE_END_MS);
	if (result == FINALIZE_UNDER_WAY)
		snprintf(text, size, "CUPTI takes longer than %d s to finalise", FINALIZE_END_MS / 1000);
	if (result != FINALIZE_NO_CALL && result != FINALIZE_FAILED)
		return true;
	enable_domains(bridge, 0);
	if (result == FINALIZE_NO_CALL)
		snprintf(text, size, "CUPTI was not finalised: the program made no CUDA call for %d s",
		         FINALIZE_CALL_MS / 1000);
	else
		snprintf(text, size, "CUPTI was not finalised: cuptiFinalize failed");
	return false;
}

void activity_stop(struct bridge *bridge, char *text, size_t size)
{
	disable_kinds(bridge);
	if (!bridge->finalize || !finalize(bridge, text, size))
		bridge->cupti.call.cuptiUnsubscribe(subscriber);
}

void activity_forbid_finalize(void)
{
	finalize_forbid(FINALIZE_END_MS);
}

bool activity_leave(void)
{
	const struct timespec step = {.tv_nsec = 1000000};

	__atomic_store_n(&active, NULL, __ATOMIC_SEQ_CST);
	for (int i = 0; i < LEAVE_TIMEOUT_MS; i++) {
		if (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}
