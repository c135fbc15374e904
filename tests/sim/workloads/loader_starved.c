/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Planted: a training loop that two loader processes feed too slowly, built like PyTorch's DataLoader with
 * pin_memory.
 *
 *	loader-0, loader-1  forked by main once CUDA is up; decode a batch (15 ms of CPU time in
 *	                    decode_batch) and write it to a pipe of their own, in turn: batch i comes from
 *	                    worker i mod 2
 *	pin_memory          thread of main's process: reads the batches in order into pinned memory and puts
 *	                    them into a queue (mutex and condition variable)
 *	main                takes a batch, copies it to the GPU, launches 4 ms of kernels, runs one step ahead
 *
 * For each batch that main had to wait for, the GPU idle time within that wait and within the decoding of
 * this very batch is divided by what the worker did meanwhile; it notes wall and CPU time every 0.2 ms.
 *
 *	planted_ns    the worker ran decode_batch
 *	contended_ns  the worker had no CPU
 *	planted_by_worker_ns   the same for each worker, in the order of the list of threads: where the
 *	                       batches of one are always ready by the time main has had the other's, it is 0
 *	waited_ns     all GPU idle time within main's waits: planted, contended, and handing the batch over
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/workloads/common_workload.h"

#define WORKERS       2
#define DECODE_CPU_NS 15000000
#define BATCH_BYTES   (256 << 10)
#define STRIP_BLOCKS  64
#define MARKS         256
#define SLOTS         4 /* pinned batches: queued, being copied, in use by the step before */

/* A worker's progress: it had used that much CPU time at that moment. */
struct mark {
	uint64_t wall_ns, cpu_ns;
};

/* What travels in the pipe before the pixels. */
struct batch_head {
	uint64_t index;
	uint32_t mark_count, pad;
	struct mark marks[MARKS];
};

struct batch_queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	int slots[SLOTS];
	uint64_t put, taken; /* batches ever */
	uint64_t released;   /* slots given back by main, in order */
	bool over;
};

struct wait_record {
	uint64_t start_ns, end_ns;
	uint64_t batch;
};

static struct batch_queue queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .not_empty = PTHREAD_COND_INITIALIZER,
    .not_full = PTHREAD_COND_INITIALIZER,
};
static int pipes[WORKERS];
static uint8_t *pinned[SLOTS];
static pid_t pin_tid;
static pthread_barrier_t pin_started;
/* Heads of all batches, by index; written by the pin thread before it queues the batch. */
static struct batch_head *heads;
static size_t head_count, head_capacity;

/* Worker */

/* One strip of 8x8 blocks: turns made-up coefficients back into pixels, separably, in integers. */
static __attribute__((noinline)) void decode_strip(uint8_t *pixels, uint32_t *seed)
{
	int32_t block[64], line[8];

	for (int b = 0; b < STRIP_BLOCKS; b++) {
		for (int i = 0; i < 64; i++) {
			*seed = *seed * 1664525u + 1013904223u;
			block[i] = (int32_t)(*seed >> 24) - 128;
		}
		for (int pass = 0; pass < 2; pass++) {
			for (int row = 0; row < 8; row++) {
				for (int x = 0; x < 8; x++) {
					int32_t sum = 0;

					for (int u = 0; u < 8; u++)
						sum += block[row * 8 + u] * (((x * 2 + 1) * u) % 32 - 16);
					line[x] = sum >> 5;
				}
				for (int x = 0; x < 8; x++)
					block[row * 8 + x] = line[x];
			}
		}
		for (int i = 0; i < 64; i++)
			pixels[b * 64 + i] = (uint8_t)block[i];
	}
}

static __attribute__((noinline)) void decode_batch(struct batch_head *head, uint8_t *pixels, uint32_t *seed)
{
	uint64_t start = cpu_ns(), last = 0;
	size_t offset = 0;

	head->mark_count = 0;
	do {
		struct mark mark = {now_ns(), cpu_ns()};

		/* Keep one for the end. */
		if (head->mark_count < MARKS - 1 && mark.cpu_ns - last >= 200000) {
			head->marks[head->mark_count++] = mark;
			last = mark.cpu_ns;
		}
		decode_strip(pixels + offset, seed);
		offset = (offset + (size_t)STRIP_BLOCKS * 64) % BATCH_BYTES;
	} while (cpu_ns() - start < DECODE_CPU_NS);
	head->marks[head->mark_count++] = (struct mark){now_ns(), cpu_ns()};
}

static void write_fully(int file, const void *bytes, size_t size)
{
	for (const char *from = bytes; size;) {
		ssize_t written = write(file, from, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			_exit(0); /* main is gone */
		from += written;
		size -= (size_t)written;
	}
}

static void worker_main(int number, int output)
{
	static struct batch_head head;
	static uint8_t pixels[BATCH_BYTES];
	uint32_t seed = (uint32_t)number + 1;

	for (uint64_t index = (uint64_t)number;; index += WORKERS) {
		head.index = index;
		decode_batch(&head, pixels, &seed);
		write_fully(output, &head, sizeof(head));
		write_fully(output, pixels, sizeof(pixels));
	}
}

static pid_t start_worker(int number, int *input)
{
	pid_t parent = getpid(), child;
	char name[32];
	int ends[2];

	check(!pipe(ends), "pipe");
	child = fork();
	check(child >= 0, "fork");
	if (child) {
		close(ends[1]);
		*input = ends[0];
		return child;
	}
	snprintf(name, sizeof(name), "loader-%d", number);
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	if (getppid() != parent)
		_exit(0);
	close(ends[0]);
	worker_main(number, ends[1]);
	_exit(0);
}

/* Delivery thread */

static bool read_fully(int file, void *bytes, size_t size)
{
	for (char *to = bytes; size;) {
		ssize_t got = read(file, to, size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to += got;
		size -= (size_t)got;
	}
	return true;
}

/* Waits for a free slot; -1 when main has had enough. */
static int free_slot(void)
{
	int slot = -1;

	pthread_mutex_lock(&queue.lock);
	while (!queue.over && queue.put - queue.released >= SLOTS)
		pthread_cond_wait(&queue.not_full, &queue.lock);
	if (!queue.over)
		slot = (int)(queue.put % SLOTS);
	pthread_mutex_unlock(&queue.lock);
	return slot;
}

static void put_batch(const struct batch_head *head)
{
	pthread_mutex_lock(&queue.lock);
	if (head_count == head_capacity) {
		head_capacity = head_capacity ? 2 * head_capacity : 256;
		heads = realloc(heads, head_capacity * sizeof(*heads));
		check(heads, "realloc");
	}
	heads[head_count++] = *head;
	queue.put++;
	pthread_cond_signal(&queue.not_empty);
	pthread_mutex_unlock(&queue.lock);
}

static void *pin_memory(void *unused)
{
	static struct batch_head head;
	int slot;

	pthread_setname_np(pthread_self(), "pin_memory");
	pin_tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&pin_started);
	for (uint64_t index = 0; (slot = free_slot()) >= 0; index++) {
		int input = pipes[index % WORKERS];

		if (!read_fully(input, &head, sizeof(head)) || !read_fully(input, pinned[slot], BATCH_BYTES))
			break;
		check(head.index == index, "order of the batches");
		put_batch(&head);
	}
	return unused;
}

/* Main */

static __attribute__((noinline)) int next_batch(struct wait_record *wait)
{
	int slot;

	pthread_mutex_lock(&queue.lock);
	wait->start_ns = now_ns();
	while (queue.put == queue.taken)
		pthread_cond_wait(&queue.not_empty, &queue.lock);
	wait->end_ns = now_ns();
	wait->batch = queue.taken++;
	slot = (int)(wait->batch % SLOTS);
	pthread_mutex_unlock(&queue.lock);
	return slot;
}

static void release_slot(void)
{
	pthread_mutex_lock(&queue.lock);
	queue.released++;
	pthread_cond_signal(&queue.not_full);
	pthread_mutex_unlock(&queue.lock);
}

/* CPU time that the worker had used at `time`: between two marks in proportion. */
static double cpu_at(const struct batch_head *head, uint64_t time)
{
	uint32_t i = 1;

	while (i + 1 < head->mark_count && head->marks[i].wall_ns < time)
		i++;
	return (double)head->marks[i - 1].cpu_ns +
	       (double)(head->marks[i].cpu_ns - head->marks[i - 1].cpu_ns) *
	           ((double)(time - head->marks[i - 1].wall_ns) /
	            (double)(head->marks[i].wall_ns - head->marks[i - 1].wall_ns));
}

struct split {
	const struct batch_head *head;
	double ran_ns, waited_ns;
};

static void split_idle(void *context, uint64_t start_ns, uint64_t end_ns)
{
	struct split *split = context;
	double ran = cpu_at(split->head, end_ns) - cpu_at(split->head, start_ns);

	split->ran_ns += ran;
	split->waited_ns += (double)(end_ns - start_ns) - ran;
}

/* Fills in the figures that the comment at the top defines. */
static void settle(struct workload *workload, const struct wait_record *waits, size_t count)
{
	struct split total = {0};
	double by_worker[WORKERS] = {0};
	uint64_t waited = 0;

	for (size_t i = 0; i < count; i++) {
		const struct batch_head *head = &heads[waits[i].batch];
		uint64_t decode_start = head->marks[0].wall_ns;
		uint64_t decode_end = head->marks[head->mark_count - 1].wall_ns;
		uint64_t start = waits[i].start_ns > decode_start ? waits[i].start_ns : decode_start;
		uint64_t end = waits[i].end_ns < decode_end ? waits[i].end_ns : decode_end;

		total.head = head;
		by_worker[head->index % WORKERS] -= total.ran_ns;
		if (start < end)
			each_idle(workload, start, end, split_idle, &total);
		by_worker[head->index % WORKERS] += total.ran_ns;
		waited += idle_within(workload, waits[i].start_ns, waits[i].end_ns);
	}
	workload->planted_ns = (uint64_t)total.ran_ns;
	workload->contended_ns = total.waited_ns > 0 ? (uint64_t)total.waited_ns : 0;
	_Static_assert(WORKERS == 2, "the list of planted_by_worker_ns");
	snprintf(workload->extra, sizeof(workload->extra),
	         ", \"planted_by_worker_ns\": [%.0f, %.0f], \"waited_ns\": %" PRIu64, by_worker[0],
	         by_worker[1], waited);
}

struct training {
	struct gpu_step step;
	cudaEvent_t done[2];
	void *device_batch[2];
};

static void prepare_training(struct training *training)
{
	CUDA(cudaSetDevice(0));
	gpu_step_create(&training->step, "_Z12train_kernelPfS_i", 1000000, 4);
	for (int i = 0; i < 2; i++) {
		CUDA(cudaEventCreateWithFlags(&training->done[i], CU_EVENT_BLOCKING_SYNC));
		CUDA(cudaMalloc(&training->device_batch[i], BATCH_BYTES));
	}
	for (int i = 0; i < SLOTS; i++)
		CUDA(cudaHostAlloc((void **)&pinned[i], BATCH_BYTES, 0));
}

/* The waits of all steps, one each; the caller frees them. */
static struct wait_record *train(struct workload *workload, struct training *training, size_t *count)
{
	struct wait_record *waits = NULL;
	size_t capacity = 0;

	*count = 0;
	for (workload_start(workload); workload_goes_on(workload); workload->steps++) {
		uint64_t n = workload->steps;
		int slot;

		if (*count == capacity) {
			capacity = capacity ? 2 * capacity : 1024;
			waits = realloc(waits, capacity * sizeof(*waits));
			check(waits, "realloc");
		}
		slot = next_batch(&waits[(*count)++]);
		CUDA(cudaMemcpyAsync(training->device_batch[n & 1], pinned[slot], BATCH_BYTES,
		                     cudaMemcpyHostToDevice, training->step.stream));
		gpu_step_launch(&training->step);
		CUDA(cudaEventRecord(training->done[n & 1], training->step.stream));
		if (n) {
			CUDA(cudaEventSynchronize(training->done[(n - 1) & 1]));
			release_slot();
		}
	}
	return waits;
}

static void end_loading(const pid_t *workers, pthread_t pin_thread)
{
	for (int i = 0; i < WORKERS; i++) {
		kill(workers[i], SIGKILL);
		waitpid(workers[i], NULL, 0);
	}
	pthread_mutex_lock(&queue.lock);
	queue.over = true;
	pthread_cond_signal(&queue.not_full);
	pthread_mutex_unlock(&queue.lock);
	pthread_join(pin_thread, NULL);
}

int main(int argc, char **argv)
{
	struct wait_record *waits;
	size_t wait_count;
	struct training training;
	struct workload workload;
	pid_t workers[WORKERS];
	pthread_t pin_thread;

	workload_begin(&workload, argc, argv, "host.user_code", "worker");
	workload_name_self(&workload, workload.name, "launcher");
	prepare_training(&training);
	for (int i = 0; i < WORKERS; i++) {
		char name[32];

		workers[i] = start_worker(i, &pipes[i]);
		snprintf(name, sizeof(name), "loader-%d", i);
		workload_add_thread(&workload, workers[i], workers[i], name, "worker");
	}
	pthread_barrier_init(&pin_started, NULL, 2);
	check(!pthread_create(&pin_thread, NULL, pin_memory, NULL), "pthread_create");
	pthread_barrier_wait(&pin_started);
	workload_add_thread(&workload, getpid(), pin_tid, "pin_memory", "thread");
	waits = train(&workload, &training, &wait_count);
	end_loading(workers, pin_thread);
	workload_account(&workload);
	settle(&workload, waits, wait_count);
	free(waits);
	return workload_end(&workload);
}
