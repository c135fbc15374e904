/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Order, durations, waiting, memory and initialisation, seen from the program.
 */
#include "tests/sim/selftest/selftest.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How late the host may learn of something on a busy machine. */
#define NOISE (300 * MS)

static void one_stream_runs_in_order_for_exact_times(void)
{
	CUfunction k = kernel(2 * MS);
	cudaStream_t stream = new_stream(CU_STREAM_NON_BLOCKING);
	uint64_t start = now_ns(), end;
	struct sim_interval *busy;
	size_t count;

	for (int i = 0; i < 10; i++)
		launch(k, stream);
	CHECK(now_ns() - start < 2 * MS + NOISE); /* launches do not wait */
	CHECK_EQUAL(cudaStreamQuery(stream), cudaErrorNotReady);
	CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
	end = now_ns();
	CHECK_EQUAL(cudaStreamQuery(stream), cudaSuccess);
	busy = busy_intervals(&count);
	CHECK_EQUAL(count, 10);
	for (size_t i = 0; i < count; i++) {
		CHECK_EQUAL(busy[i].end_ns - busy[i].start_ns, 2 * MS);
		if (i) /* queued back to back: the floor between them, unless the launch itself came late */
			CHECK(busy[i].start_ns >= busy[i - 1].end_ns + 1000);
	}
	CHECK_EQUAL(busy[9].start_ns - busy[8].end_ns, 1000);
	CHECK(busy[0].start_ns > start);
	CHECK(end >= busy[9].end_ns && end < busy[9].end_ns + NOISE);
}

static void streams_overlap_unless_they_are_blocking(void)
{
	CUfunction k = kernel(20 * MS);
	cudaStream_t a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);

	launch(k, a);
	launch(k, b);
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	CHECK(busy_sum() < 30 * MS); /* apart by the time between the launches */
	launch(k, a);
	launch(k, NULL);
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	CHECK(busy_sum() < 60 * MS); /* the default stream does not wait for non-blocking ones */
}

static void default_stream_waits_for_blocking_streams(void)
{
	CUfunction k = kernel(5 * MS);
	cudaStream_t a = new_stream(CU_STREAM_DEFAULT), b = new_stream(CU_STREAM_DEFAULT);
	size_t count;

	launch(k, a);
	launch(k, NULL);
	launch(k, b);
	CHECK_EQUAL(cudaStreamSynchronize(b), cudaSuccess);
	free(busy_intervals(&count));
	CHECK_EQUAL(count, 3); /* one after the other, with the floor between */
	CHECK_EQUAL(busy_sum(), 15 * MS);
}

static void loading_a_module_keeps_its_caller(void)
{
	CUmodule module = NULL;
	uint64_t start;

	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess); /* makes the context */
	start = now_ns();
	CHECK_EQUAL(cuModuleLoadData(&module, "code"), CUDA_SUCCESS);
	CHECK(now_ns() - start >= MS / 10); /* SIM_LOAD_NS */
	CHECK(module != NULL);
	CHECK_EQUAL(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuModuleLoadData(NULL, "code"), CUDA_ERROR_INVALID_VALUE);
}

static void streams_wait_for_events(void)
{
	CUfunction k = kernel(6 * MS);
	cudaStream_t a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	cudaEvent_t start, middle, end;
	float first, second;

	CHECK_EQUAL(cudaEventCreate(&start), cudaSuccess);
	CHECK_EQUAL(cudaEventCreate(&middle), cudaSuccess);
	CHECK_EQUAL(cudaEventCreate(&end), cudaSuccess);
	CHECK_EQUAL(cudaEventQuery(end), cudaSuccess); /* never recorded */
	launch(k, a);
	CHECK_EQUAL(cudaEventRecord(start, a), cudaSuccess);
	launch(k, a);
	CHECK_EQUAL(cudaEventRecord(middle, a), cudaSuccess);
	CHECK_EQUAL(cudaStreamWaitEvent(b, middle, 0), cudaSuccess);
	launch(k, b);
	CHECK_EQUAL(cudaEventRecord(end, b), cudaSuccess);
	CHECK_EQUAL(cudaEventQuery(end), cudaErrorNotReady);
	CHECK_EQUAL(cudaEventElapsedTime(&first, start, end), cudaErrorNotReady);
	CHECK_EQUAL(cudaEventSynchronize(end), cudaSuccess);
	CHECK_EQUAL(cudaEventQuery(middle), cudaSuccess);
	CHECK_EQUAL(cudaEventElapsedTime(&first, start, middle), cudaSuccess);
	CHECK_EQUAL(cudaEventElapsedTime(&second, middle, end), cudaSuccess);
	CHECK(first > 6.0009F && first < 6.0011F); /* the kernel and the floor before it */
	CHECK(second > 6.0009F && second < 6.0011F);
	CHECK_EQUAL(busy_sum(), 18 * MS);
	CHECK_EQUAL(cudaEventDestroy(end), cudaSuccess);
	CHECK_EQUAL(cudaStreamDestroy(b), cudaSuccess);
}

static uint64_t cpu_of_a_wait(void)
{
	CUfunction k = kernel(60 * MS);
	uint64_t cpu;

	launch(k, NULL);
	cpu = thread_cpu_ns();
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	return thread_cpu_ns() - cpu;
}

static void waiting_blocks(void)
{
	CHECK(cpu_of_a_wait() < 5 * MS);
}

static void waiting_spins_if_asked(void)
{
	setenv("SIM_SPIN", "1", 1);
	CHECK(cpu_of_a_wait() > 8 * MS); /* of 60 ms, on a machine that others use too */
}

static void check_round_trip(char *host, char *back, char *device, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		host[i] = (char)(i * 7 + bytes);
	memset(back, 0, bytes);
	CHECK_EQUAL(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), cudaSuccess);
	CHECK_EQUAL(cudaMemcpy(back, device, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
	CHECK(!memcmp(host, back, bytes));
}

static void copies_move_bytes(void)
{
	const size_t sizes[] = {1, 4096, 65536, 65537, 3 << 20, (5 << 20) + 3}, most = 6 << 20;
	char *host = malloc(most), *back = malloc(most), *pinned, *device, *other;

	CHECK(host && back);
	CHECK_EQUAL(cudaHostAlloc((void **)&pinned, most, 0), cudaSuccess);
	CHECK_EQUAL(cudaMalloc((void **)&device, most), cudaSuccess);
	CHECK_EQUAL(cudaMalloc((void **)&other, most), cudaSuccess);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_round_trip(host, back, device, sizes[i]);
		check_round_trip(pinned, back, device, sizes[i]);
		check_round_trip(host, pinned, device, sizes[i]);
	}
	CHECK_EQUAL(cudaMemset(device, 0x5a, most), cudaSuccess);
	CHECK_EQUAL(cudaMemcpyAsync(other, device, most, cudaMemcpyDeviceToDevice, NULL), cudaSuccess);
	CHECK_EQUAL(cudaMemcpyAsync(pinned, other, most, cudaMemcpyDeviceToHost, NULL), cudaSuccess);
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	CHECK(pinned[0] == 0x5a && pinned[most - 1] == 0x5a);
	CHECK_EQUAL(cudaMemcpy(device + 1, host, most, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidValue);
	CHECK_EQUAL(cudaGetLastError(), cudaSuccess);
	CHECK_EQUAL(cudaFree(device), cudaSuccess);
	CHECK_EQUAL(cudaFree(device), cudaErrorInvalidValue);
	CHECK_EQUAL(cudaFreeHost(pinned), cudaSuccess);
}

/* 16 MB at 400 MB/s take 40 ms. */
static void pageable_copies_hold_the_caller(void)
{
	const size_t bytes = 16 << 20;
	char *pageable = calloc(1, bytes), *pinned, *device;
	size_t before, after;
	uint64_t start;

	setenv("SIM_COPY_MBPS", "400", 1);
	CHECK(pageable);
	CHECK_EQUAL(cudaMallocHost((void **)&pinned, bytes), cudaSuccess);
	CHECK_EQUAL(cudaMalloc((void **)&device, bytes), cudaSuccess);
	start = now_ns();
	CHECK_EQUAL(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, NULL), cudaSuccess);
	CHECK_EQUAL(cudaStreamQuery(NULL), cudaErrorNotReady); /* came back while the copy runs */
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	CHECK(now_ns() - start >= 40 * MS);
	free(busy_intervals(&before));
	start = now_ns();
	CHECK_EQUAL(cudaMemcpyAsync(device, pageable, bytes, cudaMemcpyHostToDevice, NULL), cudaSuccess);
	CHECK(now_ns() - start >= 33 * MS); /* all but the last two of 16 chunks are through */
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	free(busy_intervals(&after));
	CHECK(after - before >= 8); /* the device worked in bursts */
}

static void allocation_takes_its_time(void)
{
	uint64_t start;
	void *device;

	setenv("SIM_ALLOC_NS", "3000000", 1);
	setenv("SIM_FREE_NS", "4000000", 1);
	setenv("SIM_MEMORY_MB", "64", 1);
	CHECK_EQUAL(cudaSetDevice(0), cudaSuccess);
	start = now_ns();
	CHECK_EQUAL(cudaMalloc(&device, 40 << 20), cudaSuccess);
	CHECK(now_ns() - start >= 3 * MS);
	start = now_ns();
	launch(kernel(10 * MS), new_stream(CU_STREAM_NON_BLOCKING));
	CHECK_EQUAL(cudaFree(device), cudaSuccess);
	CHECK(now_ns() - start >= 14 * MS); /* freeing waits for the device first */
	CHECK_EQUAL(cudaMalloc(&device, 65 << 20), cudaErrorMemoryAllocation);
	CHECK_EQUAL(cudaMalloc(&device, 64 << 20), cudaSuccess);
}

static void full_queue_holds_the_launch(void)
{
	CUfunction k = kernel(20000);
	uint64_t start;

	setenv("SIM_LAUNCH_NS", "0", 1);
	start = now_ns();
	for (int i = 0; i < 3000; i++)
		launch(k, NULL);
	/* At most 1024 wait, so that at least 1976 of 21 µs each are over. */
	CHECK(now_ns() - start >= 1976 * 21000ULL);
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	CHECK_EQUAL(busy_sum(), 3000 * 20000);
}

static void graphs_run_what_was_captured(void)
{
	cudaStream_t stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUfunction k = kernel(1 * MS);
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int capturing;

	CHECK_EQUAL(cudaStreamBeginCapture(stream, 0), cudaSuccess);
	CHECK_EQUAL(cudaStreamIsCapturing(stream, &capturing), cudaSuccess);
	CHECK_EQUAL(capturing, 1);
	for (int i = 0; i < 4; i++)
		launch(k, stream);
	CHECK_EQUAL(cudaStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
	CHECK_EQUAL(busy_sum(), 0); /* capturing runs nothing */
	CHECK_EQUAL(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	CHECK_EQUAL(cudaGraphDestroy(graph), cudaSuccess);
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(cudaGraphLaunch(exec, stream), cudaSuccess);
	CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
	CHECK_EQUAL(busy_sum(), 12 * MS);
	CHECK_EQUAL(cudaGraphExecDestroy(exec), cudaSuccess);
}

static void forked_child_cannot_use_cuda_and_does_no_harm(void)
{
	char truth[] = "/tmp/whyidle-selftest-XXXXXX";
	int file = mkstemp(truth), status;
	char text[4096] = "";
	pid_t child, outer;

	CHECK(file >= 0);
	/* A process of its own, so that its exit writes the truth file before we look. */
	outer = fork();
	if (!outer) {
		setenv("SIM_TRUTH", truth, 1);
		launch(kernel(30 * MS), NULL);
		child = fork();
		if (!child) {
			CHECK_EQUAL(cudaDeviceSynchronize(), cudaErrorInitializationError);
			exit(5); /* runs destructors: must not write the file */
		}
		CHECK(waitpid(child, &status, 0) == child);
		CHECK_EQUAL(WEXITSTATUS(status), 5);
		CHECK_EQUAL(read(file, text, sizeof(text) - 1), 0);
		CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
		CHECK_EQUAL(busy_sum(), 30 * MS);
		exit(0);
	}
	CHECK(waitpid(outer, &status, 0) == outer);
	CHECK_EQUAL(status, 0);
	CHECK(read(file, text, sizeof(text) - 1) > 0);
	CHECK(strstr(text, "\"simulated\": true"));
	CHECK(strstr(text, "\"busy_ns\": 30000000, \"idle_ns\": 0"));
	CHECK(strstr(text, "\"kernel\": 1, \"memcpy\": 0"));
	unlink(truth);
}

static void *init_from_thread(void *unused)
{
	(void)unused;
	CHECK_EQUAL(cuInit(0), CUDA_SUCCESS);
	return NULL;
}

static void injected_library_starts_once_in_the_calling_thread(void)
{
	char path[4096], expected[128];
	ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 32);
	const char *seen;
	pthread_t thread;

	CHECK(size > 0);
	path[size] = '\0';
	snprintf(strrchr(path, '/'), 32, "/lib/libinject.so");
	setenv("CUDA_INJECTION64_PATH", path, 1);
	unsetenv("SIM_TEST_INJECTED");
	CHECK_EQUAL(cuInit(0), CUDA_SUCCESS);
	seen = getenv("SIM_TEST_INJECTED");
	CHECK(seen);
	snprintf(expected, sizeof(expected), "1 calls, thread %ld, cuInit 0, version 13000",
	         syscall(SYS_gettid));
	CHECK(!strcmp(seen, expected));
	CHECK_EQUAL(cuInit(0), CUDA_SUCCESS);
	CHECK(!pthread_create(&thread, NULL, init_from_thread, NULL));
	CHECK(!pthread_join(thread, NULL));
	seen = getenv("SIM_TEST_INJECTED");
	CHECK(seen);
	CHECK(!strcmp(seen, expected));
}

static void broken_injection_is_ignored(void)
{
	setenv("CUDA_INJECTION64_PATH", "/nonexistent/library.so", 1);
	CHECK_EQUAL(cuInit(0), CUDA_SUCCESS);
}

static void devices(void)
{
	CUuuid first, second;
	char name[64];
	int count, value;

	setenv("SIM_DEVICES", "2", 1);
	CHECK_EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQUAL(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cuInit(0), CUDA_SUCCESS);
	CHECK_EQUAL(cuDeviceGetCount(&count), CUDA_SUCCESS);
	CHECK_EQUAL(count, 2);
	CHECK_EQUAL(cuDeviceGetName(name, sizeof(name), 1), CUDA_SUCCESS);
	CHECK(!strcmp(name, "Simulated GPU"));
	CHECK_EQUAL(cuDeviceGetUuid_v2(&first, 0), CUDA_SUCCESS);
	CHECK_EQUAL(cuDeviceGetUuid(&second, 1), CUDA_SUCCESS);
	CHECK(memcmp(&first, &second, sizeof(first)));
	CHECK_EQUAL(cuDeviceGetName(name, sizeof(name), 2), CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
	CHECK(value > 0);
	CHECK_EQUAL(cudaSetDevice(1), cudaSuccess);
	launch(kernel(2 * MS), NULL);
	CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	CHECK_EQUAL(simDeviceBusy(0, 0, NULL, 0), 0);
	CHECK_EQUAL(simDeviceBusy(1, 0, NULL, 0), 1);
	CHECK_EQUAL(cudaSetDevice(2), cudaErrorInvalidDevice);
}

static void no_device(void)
{
	void *pointer;

	setenv("SIM_DEVICES", "0", 1);
	CHECK_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
	CHECK_EQUAL(cudaMalloc(&pointer, 1), cudaErrorNoDevice);
}

static void functions_are_found_by_name(void)
{
	void *function;
	int status;

	CHECK_EQUAL(cuGetProcAddress_v2("cuMemAlloc", &function, 13000, 0, &status), CUDA_SUCCESS);
	CHECK(function == (void *)cuMemAlloc_v2 && status == 0);
	CHECK_EQUAL(cuGetProcAddress("cuLaunchKernel", &function, 13000, 0), CUDA_SUCCESS);
	CHECK(function == (void *)cuLaunchKernel);
	CHECK_EQUAL(cuGetProcAddress("cuNothing", &function, 13000, 0), CUDA_ERROR_NOT_FOUND);
}

static void bad_handles_are_refused(void)
{
	const dim3 one = {1, 1, 1}, none = {0, 1, 1};
	int not_a_kernel[16] = {0};

	CHECK_EQUAL(cudaLaunchKernel(not_a_kernel, one, one, NULL, 0, NULL), cudaErrorInvalidResourceHandle);
	CHECK_EQUAL(cudaLaunchKernel(kernel(1), none, one, NULL, 0, NULL), cudaErrorInvalidValue);
	CHECK_EQUAL(cudaEventRecord(NULL, NULL), cudaErrorInvalidResourceHandle);
	CHECK_EQUAL(busy_sum(), 0);
}

const struct selftest device_tests[] = {
    {"one_stream_runs_in_order_for_exact_times", one_stream_runs_in_order_for_exact_times, 0},
    {"streams_overlap_unless_they_are_blocking", streams_overlap_unless_they_are_blocking, 0},
    {"default_stream_waits_for_blocking_streams", default_stream_waits_for_blocking_streams, 0},
    {"loading_a_module_keeps_its_caller", loading_a_module_keeps_its_caller, 0},
    {"streams_wait_for_events", streams_wait_for_events, 0},
    {"waiting_blocks", waiting_blocks, 0},
    {"waiting_spins_if_asked", waiting_spins_if_asked, 0},
    {"copies_move_bytes", copies_move_bytes, 0},
    {"pageable_copies_hold_the_caller", pageable_copies_hold_the_caller, 0},
    {"allocation_takes_its_time", allocation_takes_its_time, 0},
    {"full_queue_holds_the_launch", full_queue_holds_the_launch, 0},
    {"graphs_run_what_was_captured", graphs_run_what_was_captured, 0},
    {"forked_child_cannot_use_cuda_and_does_no_harm", forked_child_cannot_use_cuda_and_does_no_harm, 0},
    {"injected_library_starts_once_in_the_calling_thread", injected_library_starts_once_in_the_calling_thread,
     0},
    {"broken_injection_is_ignored", broken_injection_is_ignored, 0},
    {"devices", devices, 0},
    {"no_device", no_device, 0},
    {"functions_are_found_by_name", functions_are_found_by_name, 0},
    {"bad_handles_are_refused", bad_handles_are_refused, 0},
    {NULL, NULL, 0},
};
