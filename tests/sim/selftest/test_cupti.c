/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulated CUPTI seen by a client: which records appear, what is in them, and what happens to buffers.
 */
#include "tests/sim/selftest/selftest.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cupti_bridge/cupti_abi.h"
#include "tests/sim/calls.h"

#define DECLARE(name, parameters) cupti_abi_result name parameters;
CUPTI_ABI_REQUIRED_FUNCTIONS(DECLARE)
CUPTI_ABI_OPTIONAL_FUNCTIONS(DECLARE)
#undef DECLARE

#define MAX_RECORDS 4096

/* What the client received, in order. Written by CUPTI's thread, read after a flush. */
static struct {
	union record {
		struct cupti_abi_record head;
		struct cupti_abi_kernel kernel;
		struct cupti_abi_memcpy copy;
		struct cupti_abi_memset set;
		struct cupti_abi_api api;
		struct cupti_abi_sync sync;
		struct cupti_abi_overhead overhead;
		struct cupti_abi_device device;
	} records[MAX_RECORDS];
	size_t count, buffers;
	pthread_t thread;
} received;

static struct {
	size_t size, max_records;
	int left; /* buffers still given, -1: any number */
} supply = {64 << 10, 0, -1};

static const size_t sizes[64] = {
    [CUPTI_ABI_KIND_MEMCPY] = sizeof(struct cupti_abi_memcpy),
    [CUPTI_ABI_KIND_MEMSET] = sizeof(struct cupti_abi_memset),
    [CUPTI_ABI_KIND_DRIVER] = sizeof(struct cupti_abi_api),
    [CUPTI_ABI_KIND_RUNTIME] = sizeof(struct cupti_abi_api),
    [CUPTI_ABI_KIND_DEVICE] = sizeof(struct cupti_abi_device),
    [CUPTI_ABI_KIND_CONCURRENT_KERNEL] = sizeof(struct cupti_abi_kernel),
    [CUPTI_ABI_KIND_OVERHEAD] = sizeof(struct cupti_abi_overhead),
    [CUPTI_ABI_KIND_SYNCHRONIZATION] = sizeof(struct cupti_abi_sync),
};

static void give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = NULL;
	*size = 0;
	*max_records = supply.max_records;
	if (!supply.left)
		return;
	supply.left -= supply.left > 0;
	*size = supply.size;
	*buffer = aligned_alloc(8, supply.size);
}

static void take_buffer(cupti_abi_context context, uint32_t stream, uint8_t *buffer, size_t size,
                        size_t valid_size)
{
	struct cupti_abi_record *record = NULL;

	(void)context, (void)stream;
	CHECK(valid_size <= size);
	while (!cuptiActivityGetNextRecord(buffer, valid_size, &record)) {
		CHECK(record->kind < 64 && sizes[record->kind] && received.count < MAX_RECORDS);
		memcpy(&received.records[received.count++], record, sizes[record->kind]);
	}
	received.thread = pthread_self();
	__atomic_add_fetch(&received.buffers, 1, __ATOMIC_RELEASE); /* some tests poll it */
	free(buffer);
}

static uint64_t client_clock(void)
{
	return now_ns();
}

static void start_client(void)
{
	CHECK_EQUAL(cuptiSetThreadIdType(CUPTI_ABI_THREAD_ID_SYSTEM), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cuptiActivityRegisterTimestampCallback(client_clock), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), CUPTI_ABI_SUCCESS);
}

static void enable(uint32_t kind)
{
	CHECK_EQUAL(cuptiActivityEnable(kind), CUPTI_ABI_SUCCESS);
}

static void flush(void)
{
	CHECK_EQUAL(cuptiActivityFlushAll(0), CUPTI_ABI_SUCCESS);
}

static size_t count_kind(uint32_t kind)
{
	size_t count = 0;

	for (size_t i = 0; i < received.count; i++)
		count += received.records[i].head.kind == kind;
	return count;
}

static const union record *nth(uint32_t kind, size_t n)
{
	for (size_t i = 0; i < received.count; i++)
		if (received.records[i].head.kind == kind && n-- == 0)
			return &received.records[i];
	CHECK(!"enough records");
	return NULL;
}

/* A bit of everything: kernels, copies both ways, a memset, an event, synchronisations. */
static void use_everything(int kernels)
{
	static char pageable[1000];
	char *pinned, *device;
	cudaEvent_t event;

	CHECK_EQUAL(cudaMallocHost((void **)&pinned, 1000), cudaSuccess);
	CHECK_EQUAL(cudaMalloc((void **)&device, 1000), cudaSuccess);
	CHECK_EQUAL(cudaEventCreate(&event), cudaSuccess);
	CHECK_EQUAL(cudaMemcpyAsync(device, pinned, 1000, cudaMemcpyHostToDevice, NULL), cudaSuccess);
	CHECK_EQUAL(cudaMemset(device, 3, 500), cudaSuccess);
	for (int i = 0; i < kernels; i++)
		launch(kernel(10000 + (uint64_t)i), NULL);
	CHECK_EQUAL(cudaEventRecord(event, NULL), cudaSuccess);
	CHECK_EQUAL(cudaEventSynchronize(event), cudaSuccess);
	CHECK_EQUAL(cudaMemcpy(pageable, device, 1000, cudaMemcpyDeviceToHost), cudaSuccess);
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
}

static void nothing_enabled_nothing_recorded(void)
{
	size_t dropped;

	start_client();
	use_everything(10);
	flush();
	CHECK_EQUAL(received.count, 0);
	CHECK_EQUAL(received.buffers, 0);
	CHECK_EQUAL(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(dropped, 0);
}

static void each_kind_alone(void)
{
	static const struct {
		uint32_t kind;
		size_t expected;
	} kinds[] = {
	    {CUPTI_ABI_KIND_CONCURRENT_KERNEL, 7}, {CUPTI_ABI_KIND_MEMCPY, 2}, {CUPTI_ABI_KIND_MEMSET, 1},
	    {CUPTI_ABI_KIND_SYNCHRONIZATION, 2},   {CUPTI_ABI_KIND_DEVICE, 1},
	};

	start_client();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		received.count = 0;
		enable(kinds[i].kind);
		use_everything(7);
		CHECK_EQUAL(cuptiActivityDisable(kinds[i].kind), CUPTI_ABI_SUCCESS);
		use_everything(7);
		flush();
		CHECK_EQUAL(count_kind(kinds[i].kind), kinds[i].expected);
		CHECK_EQUAL(received.count, kinds[i].expected);
	}
	CHECK_EQUAL(cuptiActivityEnable(99), CUPTI_ABI_ERROR_INVALID_KIND);
	CHECK_EQUAL(cuptiActivityEnable(21), CUPTI_ABI_ERROR_INVALID_KIND);
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	CHECK_EQUAL(cuptiActivityEnable(CUPTI_ABI_KIND_KERNEL), CUPTI_ABI_ERROR_NOT_COMPATIBLE);
}

static void selected_functions_only(void)
{
	uint64_t start = now_ns(), last = 0;

	start_client();
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	CHECK_EQUAL(cuptiActivityEnableRuntimeApi(CBID_cudaLaunchKernel_v7000, 1), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cuptiActivityEnableDriverApi(CBID_cuCtxSynchronize, 1), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cuptiActivityEnableRuntimeApi(100000, 1), CUPTI_ABI_ERROR_INVALID_PARAMETER);
	use_everything(100);
	flush();
	CHECK(!pthread_equal(received.thread, pthread_self()));
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL), 100);
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_RUNTIME), 100);
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_DRIVER), 1);
	CHECK_EQUAL(received.count, 201);
	for (size_t i = 0; i < 100; i++) {
		const struct cupti_abi_kernel *k = &nth(CUPTI_ABI_KIND_CONCURRENT_KERNEL, i)->kernel;
		const struct cupti_abi_api *call = &nth(CUPTI_ABI_KIND_RUNTIME, i)->api;

		CHECK_EQUAL(call->cbid, CBID_cudaLaunchKernel_v7000);
		CHECK_EQUAL(call->thread, syscall(SYS_gettid));
		CHECK_EQUAL(call->process, getpid());
		CHECK_EQUAL(call->result, 0);
		CHECK_EQUAL(k->correlation, call->correlation);
		CHECK_EQUAL(k->end - k->start, 10000 + i);
		CHECK(call->start >= start && call->end > call->start && k->start > call->start);
		CHECK(k->start > last && k->end <= now_ns());
		last = k->end;
		CHECK(!strcmp(k->name, "_Z6kernelPf"));
		CHECK(k->grid[0] == 4 && k->grid[1] == 2 && k->block[0] == 32);
		CHECK(k->device == 0 && k->context > 0 && k->stream > 0 && k->graph == 0);
	}
	/* The call that waits covers the end of the work; the driver call lies inside the runtime's. */
	CHECK_EQUAL(nth(CUPTI_ABI_KIND_DRIVER, 0)->api.cbid, CBID_cuCtxSynchronize);
	CHECK_EQUAL(cuptiActivityEnableRuntimeApi(CBID_cudaLaunchKernel_v7000, 0), CUPTI_ABI_SUCCESS);
	received.count = 0;
	use_everything(5);
	flush();
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_RUNTIME), 0);
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL), 5);
}

static void launch_and_wait(void)
{
	received.count = 0;
	launch(kernel(5000), NULL);
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	flush();
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL), 1);
}

/* A runtime call and the driver call inside it make one record, the outermost that is wanted. */
static void nested_calls_make_one_record(void)
{
	const struct cupti_abi_kernel *k;
	const struct cupti_abi_api *call;

	start_client();
	CHECK_EQUAL(cudaSetDevice(0), cudaSuccess);
	enable(CUPTI_ABI_KIND_RUNTIME);
	enable(CUPTI_ABI_KIND_DRIVER);
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	launch_and_wait();
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_RUNTIME), 2);
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_DRIVER), 0);
	k = &nth(CUPTI_ABI_KIND_CONCURRENT_KERNEL, 0)->kernel;
	call = &nth(CUPTI_ABI_KIND_RUNTIME, 0)->api;
	CHECK_EQUAL(k->correlation, call->correlation);
	call = &nth(CUPTI_ABI_KIND_RUNTIME, 1)->api;
	CHECK(call->correlation != k->correlation && call->end >= k->end);
	/* A driver call that the program makes itself has no runtime call around it. */
	received.count = 0;
	CHECK_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
	flush();
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_DRIVER), 1);
	/* Selection after the kind takes single functions out again: then the call inside is the outermost.
	 */
	CHECK_EQUAL(cuptiActivityEnableRuntimeApi(CBID_cudaDeviceSynchronize_v3020, 0), CUPTI_ABI_SUCCESS);
	launch_and_wait();
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_RUNTIME), 1);
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_DRIVER), 1);
	CHECK_EQUAL(nth(CUPTI_ABI_KIND_DRIVER, 0)->api.cbid, CBID_cuCtxSynchronize);
	CHECK_EQUAL(cuptiActivityDisable(CUPTI_ABI_KIND_DRIVER), CUPTI_ABI_SUCCESS);
	launch_and_wait();
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_RUNTIME), 1);
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_DRIVER), 0);
}

/* Without the runtime's records every driver call is there, with the id of what it submits. */
static void driver_kind_alone_has_every_call(void)
{
	start_client();
	CHECK_EQUAL(cudaSetDevice(0), cudaSuccess);
	enable(CUPTI_ABI_KIND_DRIVER);
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	launch_and_wait();
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_DRIVER), 2);
	CHECK_EQUAL(nth(CUPTI_ABI_KIND_DRIVER, 0)->api.cbid, CBID_cuLaunchKernel);
	CHECK_EQUAL(nth(CUPTI_ABI_KIND_DRIVER, 0)->api.correlation,
	            nth(CUPTI_ABI_KIND_CONCURRENT_KERNEL, 0)->kernel.correlation);
}

static void copies_and_synchronisations_say_what_they_are(void)
{
	const struct cupti_abi_memcpy *copy;
	const struct cupti_abi_sync *sync;
	const struct cupti_abi_memset *set;

	start_client();
	enable(CUPTI_ABI_KIND_MEMCPY);
	enable(CUPTI_ABI_KIND_MEMSET);
	enable(CUPTI_ABI_KIND_SYNCHRONIZATION);
	use_everything(1);
	flush();
	copy = &nth(CUPTI_ABI_KIND_MEMCPY, 0)->copy;
	CHECK_EQUAL(copy->copy_kind, CUPTI_ABI_MEMCPY_HTOD);
	CHECK_EQUAL(copy->source_kind, CUPTI_ABI_MEMORY_PINNED);
	CHECK_EQUAL(copy->target_kind, CUPTI_ABI_MEMORY_DEVICE);
	CHECK_EQUAL(copy->flags, CUPTI_ABI_FLAG_MEMCPY_ASYNC);
	CHECK_EQUAL(copy->bytes, 1000);
	copy = &nth(CUPTI_ABI_KIND_MEMCPY, 1)->copy;
	CHECK_EQUAL(copy->copy_kind, CUPTI_ABI_MEMCPY_DTOH);
	CHECK_EQUAL(copy->target_kind, CUPTI_ABI_MEMORY_PAGEABLE);
	CHECK_EQUAL(copy->flags, 0);
	set = &nth(CUPTI_ABI_KIND_MEMSET, 0)->set;
	CHECK_EQUAL(set->value, 3);
	CHECK_EQUAL(set->bytes, 500);
	sync = &nth(CUPTI_ABI_KIND_SYNCHRONIZATION, 0)->sync;
	CHECK_EQUAL(sync->type, CUPTI_ABI_SYNC_EVENT);
	CHECK(sync->event != CUPTI_ABI_SYNC_INVALID_VALUE);
	sync = &nth(CUPTI_ABI_KIND_SYNCHRONIZATION, 1)->sync;
	CHECK_EQUAL(sync->type, CUPTI_ABI_SYNC_CONTEXT);
	CHECK_EQUAL(sync->stream, CUPTI_ABI_SYNC_INVALID_VALUE);
	CHECK(sync->end >= sync->start && sync->correlation);
}

static void graph_launch_shares_one_id(void)
{
	cudaStream_t stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUfunction k = kernel(20000);
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	start_client();
	CHECK_EQUAL(cudaStreamBeginCapture(stream, 0), cudaSuccess);
	for (int i = 0; i < 5; i++)
		launch(k, stream);
	CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	CHECK_EQUAL(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	CHECK_EQUAL(cuptiActivityEnableRuntimeApi(CBID_cudaGraphLaunch_v10000, 1), CUPTI_ABI_SUCCESS);
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(cudaGraphLaunch(exec, stream), cudaSuccess);
	CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
	flush();
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_RUNTIME), 3);
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL), 15);
	for (size_t i = 0; i < 15; i++) {
		const struct cupti_abi_kernel *record = &nth(CUPTI_ABI_KIND_CONCURRENT_KERNEL, i)->kernel;

		CHECK_EQUAL(record->correlation, nth(CUPTI_ABI_KIND_RUNTIME, i / 5)->api.correlation);
		CHECK(record->graph > 0);
		CHECK_EQUAL(record->graph_node,
		            nth(CUPTI_ABI_KIND_CONCURRENT_KERNEL, i % 5)->kernel.graph_node);
	}
}

static void without_buffers_records_are_dropped_and_counted(void)
{
	size_t dropped;

	supply.left = 2;
	supply.size = 20 * sizeof(struct cupti_abi_kernel);
	start_client();
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	use_everything(100);
	flush();
	CHECK_EQUAL(received.count, 40);
	CHECK_EQUAL(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(dropped, 60);
	CHECK_EQUAL(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(dropped, 0);
	supply.left = -1; /* it goes on as soon as there are buffers again */
	use_everything(30);
	flush();
	CHECK_EQUAL(received.count, 70);
	supply.size = 64; /* too small for a record is as good as none */
	use_everything(5);
	flush();
	CHECK_EQUAL(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(dropped, 5);
}

static void full_buffers_come_without_a_flush(void)
{
	supply.max_records = 10;
	start_client();
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	use_everything(35);
	for (uint64_t end = now_ns() + 2000 * MS; __atomic_load_n(&received.buffers, __ATOMIC_ACQUIRE) < 3;)
		CHECK(now_ns() < end);
	CHECK_EQUAL(received.count, 30);
	flush();
	CHECK_EQUAL(received.count, 35);
	CHECK_EQUAL(received.buffers, 4);
}

static void flush_period_hands_over_in_time(void)
{
	start_client();
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	CHECK_EQUAL(cuptiActivityFlushPeriod(20), CUPTI_ABI_SUCCESS);
	use_everything(3);
	for (uint64_t end = now_ns() + 2000 * MS; !__atomic_load_n(&received.buffers, __ATOMIC_ACQUIRE);)
		CHECK(now_ns() < end);
	CHECK(received.count >= 1);
}

static void own_clock_is_wall_clock(void)
{
	const struct cupti_abi_kernel *record;
	struct timespec wall;
	uint64_t now, time;

	CHECK_EQUAL(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), CUPTI_ABI_SUCCESS);
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	use_everything(1);
	flush();
	clock_gettime(CLOCK_REALTIME, &wall);
	now = (uint64_t)wall.tv_sec * 1000000000ULL + (uint64_t)wall.tv_nsec;
	record = &nth(CUPTI_ABI_KIND_CONCURRENT_KERNEL, 0)->kernel;
	CHECK(record->end <= now + MS && now - record->end < 5000 * MS);
	CHECK_EQUAL(record->end - record->start, 10000);
	CHECK_EQUAL(cuptiGetTimestamp(&time), CUPTI_ABI_SUCCESS);
	CHECK(time >= now && time - now < 5000 * MS);
}

static void flushes_are_overhead(void)
{
	start_client();
	enable(CUPTI_ABI_KIND_OVERHEAD);
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	use_everything(3);
	flush(); /* makes a record of itself… */
	flush(); /* …which this one brings, without making another */
	flush();
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_OVERHEAD), 1);
	CHECK_EQUAL(nth(CUPTI_ABI_KIND_OVERHEAD, 0)->overhead.overhead_kind, CUPTI_ABI_OVERHEAD_BUFFER_FLUSH);
	CHECK_EQUAL(nth(CUPTI_ABI_KIND_OVERHEAD, 0)->overhead.object.thread, syscall(SYS_gettid));
}

static void one_subscriber_only(void)
{
	struct cupti_abi_subscriber_params params = {.struct_size = sizeof(params), .name = "first"};
	char holder[CUPTI_ABI_SUBSCRIBER_NAME_SIZE] = "";
	cupti_abi_subscriber first, second;

	CHECK_EQUAL(cuptiSubscribe_v2(&first, NULL, NULL, &params), CUPTI_ABI_SUCCESS);
	params = (struct cupti_abi_subscriber_params){sizeof(params), "second", holder, sizeof(holder)};
	CHECK_EQUAL(cuptiSubscribe(&second, NULL, NULL), 39);
	CHECK_EQUAL(cuptiSubscribe_v2(&second, NULL, NULL, &params), 39);
	CHECK(!strcmp(holder, "first"));
	CHECK_EQUAL(cuptiUnsubscribe(first), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cuptiSubscribe(&second, NULL, NULL), CUPTI_ABI_SUCCESS);
}

static void taken_by_environment(void)
{
	cupti_abi_subscriber subscriber;
	uint32_t version;

	CHECK_EQUAL(cuptiGetVersion(&version), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(version, CUPTI_ABI_VERSION);
	setenv("SIM_CUPTI_TAKEN", "1", 1);
	CHECK_EQUAL(cuptiSubscribe(&subscriber, NULL, NULL), 39);
	CHECK_EQUAL(cuptiActivityEnable(CUPTI_ABI_KIND_CONCURRENT_KERNEL), 39);
	use_everything(2); /* the program does not notice */
}

static void misuse_is_an_error(void)
{
	struct cupti_abi_record *record = NULL;
	const char *text;

	CHECK_EQUAL(cuptiActivityFlushAll(0), CUPTI_ABI_ERROR_INVALID_OPERATION);
	CHECK_EQUAL(cuptiActivityRegisterCallbacks(NULL, take_buffer), CUPTI_ABI_ERROR_INVALID_PARAMETER);
	CHECK_EQUAL(cuptiActivityGetNextRecord(NULL, 0, &record), CUPTI_ABI_ERROR_INVALID_PARAMETER);
	CHECK_EQUAL(cuptiGetCallbackName(CUPTI_ABI_DOMAIN_RUNTIME, 211, &text), CUPTI_ABI_SUCCESS);
	CHECK(!strcmp(text, "cudaLaunchKernel_v7000"));
	CHECK_EQUAL(cuptiGetCallbackName(CUPTI_ABI_DOMAIN_DRIVER, 307, &text), CUPTI_ABI_SUCCESS);
	CHECK(!strcmp(text, "cuLaunchKernel"));
	CHECK_EQUAL(cuptiGetCallbackName(CUPTI_ABI_DOMAIN_DRIVER, 9999, &text),
	            CUPTI_ABI_ERROR_INVALID_PARAMETER);
	CHECK_EQUAL(cuptiGetResultString(39, &text), CUPTI_ABI_SUCCESS);
	CHECK(!strcmp(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"));
}

static void finalize_ends_recording(void)
{
	start_client();
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	use_everything(4);
	CHECK_EQUAL(cuptiFinalize(), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(received.count, 4);
	use_everything(4);
	flush();
	CHECK_EQUAL(received.count, 4);
}

/* What corrupts the heap of the real library must not go unnoticed here. */
static void finalize_after_selection_aborts(void)
{
	start_client();
	CHECK_EQUAL(cuptiActivityEnableRuntimeApi(CBID_cudaLaunchKernel_v7000, 1), CUPTI_ABI_SUCCESS);
	CHECK(freopen("/dev/null", "w", stderr));
	cuptiFinalize();
}

static struct {
	size_t calls[3][2]; /* by domain and site */
	cupti_abi_subscriber subscriber;
	bool finalize;
} heard;

static void hear_call(void *userdata, uint32_t domain, uint32_t cbid, const void *data)
{
	const struct cupti_abi_callback_data *call = data;

	(void)cbid;
	CHECK(userdata == &heard && domain < 3 && call->site < 2);
	heard.calls[domain][call->site]++;
	if (heard.finalize && call->site == CUPTI_ABI_API_EXIT)
		CHECK_EQUAL(cuptiFinalize(), CUPTI_ABI_SUCCESS);
}

static void hear(uint32_t domain)
{
	CHECK_EQUAL(cuptiSubscribe(&heard.subscriber, hear_call, &heard), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cuptiEnableDomain(1, heard.subscriber, domain), CUPTI_ABI_SUCCESS);
}

static void domains_call_back_once_enabled(void)
{
	hear(CUPTI_ABI_DOMAIN_RUNTIME);
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	CHECK_EQUAL(heard.calls[CUPTI_ABI_DOMAIN_RUNTIME][CUPTI_ABI_API_ENTER], 1);
	CHECK_EQUAL(heard.calls[CUPTI_ABI_DOMAIN_RUNTIME][CUPTI_ABI_API_EXIT], 1);
	CHECK_EQUAL(heard.calls[CUPTI_ABI_DOMAIN_DRIVER][CUPTI_ABI_API_EXIT], 0);
	CHECK_EQUAL(cuptiEnableDomain(1, heard.subscriber, CUPTI_ABI_DOMAIN_DRIVER), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	CHECK(heard.calls[CUPTI_ABI_DOMAIN_DRIVER][CUPTI_ABI_API_EXIT] > 0); /* inside that of the runtime */
	CHECK_EQUAL(cuptiEnableDomain(0, heard.subscriber, CUPTI_ABI_DOMAIN_DRIVER), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cuptiEnableDomain(0, heard.subscriber, CUPTI_ABI_DOMAIN_RUNTIME), CUPTI_ABI_SUCCESS);
	memset(heard.calls, 0, sizeof(heard.calls));
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	CHECK_EQUAL(heard.calls[CUPTI_ABI_DOMAIN_RUNTIME][CUPTI_ABI_API_EXIT], 0);
	CHECK_EQUAL(cuptiEnableDomain(1, heard.subscriber, 77), CUPTI_ABI_ERROR_INVALID_PARAMETER);
	CHECK_EQUAL(cuptiUnsubscribe(heard.subscriber), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cuptiEnableDomain(1, heard.subscriber, CUPTI_ABI_DOMAIN_DRIVER),
	            CUPTI_ABI_ERROR_INVALID_PARAMETER);
}

static void finalize_in_a_callback_frees_the_slot(void)
{
	cupti_abi_subscriber other;

	start_client();
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	use_everything(4);
	hear(CUPTI_ABI_DOMAIN_RUNTIME);
	heard.finalize = true;
	use_everything(4); /* the end of its first call is the end of CUPTI */
	CHECK_EQUAL(heard.calls[CUPTI_ABI_DOMAIN_RUNTIME][CUPTI_ABI_API_EXIT], 1);
	CHECK_EQUAL(received.count, 4);
	CHECK_EQUAL(cuptiUnsubscribe(heard.subscriber), CUPTI_ABI_ERROR_INVALID_PARAMETER);
	CHECK_EQUAL(cuptiSubscribe(&other, hear_call, &heard), CUPTI_ABI_SUCCESS);
	heard.finalize = false;
	start_client();
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	use_everything(3);
	flush();
	CHECK_EQUAL(received.count, 7);
}

static void finalize_at_entry(void *userdata, uint32_t domain, uint32_t cbid, const void *data)
{
	(void)userdata, (void)domain, (void)cbid, (void)data;
	cuptiFinalize();
}

static void finalize_at_the_beginning_of_a_call_aborts(void)
{
	CHECK_EQUAL(cuptiSubscribe(&heard.subscriber, finalize_at_entry, NULL), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(cuptiEnableDomain(1, heard.subscriber, CUPTI_ABI_DOMAIN_RUNTIME), CUPTI_ABI_SUCCESS);
	CHECK(freopen("/dev/null", "w", stderr));
	cudaDeviceSynchronize();
}

static void *launch_from_thread(void *unused)
{
	cudaStream_t stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUfunction k = kernel(3000);

	for (int i = 0; i < 200; i++)
		launch(k, stream);
	CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
	return unused;
}

static void threads_lose_nothing(void)
{
	size_t dropped, correlations[MAX_RECORDS] = {0};
	pthread_t threads[4];

	supply.size = 10000;
	start_client();
	enable(CUPTI_ABI_KIND_CONCURRENT_KERNEL);
	CHECK_EQUAL(cuptiActivityEnableRuntimeApi(CBID_cudaLaunchKernel_v7000, 1), CUPTI_ABI_SUCCESS);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, launch_from_thread, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	flush();
	CHECK_EQUAL(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), CUPTI_ABI_SUCCESS);
	CHECK_EQUAL(dropped, 0);
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_CONCURRENT_KERNEL), 800);
	CHECK_EQUAL(count_kind(CUPTI_ABI_KIND_RUNTIME), 800);
	for (size_t i = 0; i < 800; i++) {
		uint32_t id = nth(CUPTI_ABI_KIND_CONCURRENT_KERNEL, i)->kernel.correlation;

		CHECK(id < MAX_RECORDS && !correlations[id]); /* each id once */
		correlations[id]++;
	}
	for (size_t i = 0; i < 800; i++)
		CHECK_EQUAL(correlations[nth(CUPTI_ABI_KIND_RUNTIME, i)->api.correlation], 1);
}

const struct selftest cupti_tests[] = {
    {"nothing_enabled_nothing_recorded", nothing_enabled_nothing_recorded, 0},
    {"each_kind_alone", each_kind_alone, 0},
    {"selected_functions_only", selected_functions_only, 0},
    {"nested_calls_make_one_record", nested_calls_make_one_record, 0},
    {"driver_kind_alone_has_every_call", driver_kind_alone_has_every_call, 0},
    {"copies_and_synchronisations_say_what_they_are", copies_and_synchronisations_say_what_they_are, 0},
    {"graph_launch_shares_one_id", graph_launch_shares_one_id, 0},
    {"without_buffers_records_are_dropped_and_counted", without_buffers_records_are_dropped_and_counted, 0},
    {"full_buffers_come_without_a_flush", full_buffers_come_without_a_flush, 0},
    {"flush_period_hands_over_in_time", flush_period_hands_over_in_time, 0},
    {"own_clock_is_wall_clock", own_clock_is_wall_clock, 0},
    {"flushes_are_overhead", flushes_are_overhead, 0},
    {"one_subscriber_only", one_subscriber_only, 0},
    {"taken_by_environment", taken_by_environment, 0},
    {"misuse_is_an_error", misuse_is_an_error, 0},
    {"finalize_ends_recording", finalize_ends_recording, 0},
    {"finalize_after_selection_aborts", finalize_after_selection_aborts, SIGABRT},
    {"domains_call_back_once_enabled", domains_call_back_once_enabled, 0},
    {"finalize_in_a_callback_frees_the_slot", finalize_in_a_callback_frees_the_slot, 0},
    {"finalize_at_the_beginning_of_a_call_aborts", finalize_at_the_beginning_of_a_call_aborts, SIGABRT},
    {"threads_lose_nothing", threads_lose_nothing, 0},
    {NULL, NULL, 0},
};
