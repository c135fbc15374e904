/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/sim/cuda/engine.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/clock.h"
#include "tests/sim/cuda/driver.h"

/* Copy engines of a device: one for each direction. */
enum { ENGINE_TO_DEVICE, ENGINE_FROM_DEVICE, ENGINE_COUNT };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool running;
static struct sim_stream *active_streams;
static uint64_t copy_engine_free_ns[SIM_MAX_DEVICES][ENGINE_COUNT];
static uint32_t doorbell;      /* futex word of the clock thread */
static uint64_t clock_wake_ns; /* when the clock thread looks again by itself */

uint64_t sim_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void sim_spend(uint64_t duration_ns)
{
	uint64_t end = sim_now() + duration_ns;

	while (sim_now() < end)
		;
}

static void futex_wait(uint32_t *word, uint32_t value, const struct timespec *deadline)
{
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void engine_lock(void)
{
	pthread_mutex_lock(&lock);
}

void engine_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Queue mechanics, lock held */

static bool passed(const struct sim_stream *stream, uint32_t seq)
{
	return (int32_t)(__atomic_load_n(&stream->done, __ATOMIC_ACQUIRE) - seq) >= 0;
}

static void activate(struct sim_stream *stream)
{
	if (stream->active)
		return;
	stream->active = true;
	stream->active_next = active_streams;
	active_streams = stream;
}

static void drop_idle_streams(void)
{
	struct sim_stream **link = &active_streams;

	while (*link) {
		if ((*link)->head) {
			link = &(*link)->active_next;
		} else {
			(*link)->active = false;
			*link = (*link)->active_next;
		}
	}
}

static uint64_t *copy_engine(const struct sim_op *op, CUdevice device)
{
	if (op->work.kind != SIM_COPY)
		return NULL;
	if (op->work.copy_kind == CUPTI_ABI_MEMCPY_HTOD)
		return &copy_engine_free_ns[device][ENGINE_TO_DEVICE];
	if (op->work.copy_kind == CUPTI_ABI_MEMCPY_DTOH)
		return &copy_engine_free_ns[device][ENGINE_FROM_DEVICE];
	return NULL;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool waits_are_over(const struct sim_op *op)
{
	for (size_t i = 0; i < op->wait_count; i++)
		if (!passed(op->waits[i].stream, op->waits[i].seq))
			return false;
	return true;
}

/* Gives the head of a stream its times. */
static void start_op(struct sim_stream *stream, struct sim_op *op)
{
	bool marker = op->work.kind == SIM_MARKER;
	uint64_t floor = marker ? 0 : op->work.floor_ns;
	uint64_t start = op->submit_ns + (marker ? 0 : sim_options.start_ns);
	uint64_t *engine = copy_engine(op, stream->context->device);

	if (stream->last_end_ns)
		start = later(start, stream->last_end_ns + floor);
	for (size_t i = 0; i < op->wait_count; i++)
		if (op->waits[i].stream->last_end_ns)
			start = later(start, op->waits[i].stream->last_end_ns + floor);
	if (engine) {
		start = later(start, *engine);
		*engine = start + op->work.duration_ns;
	}
	op->start_ns = start;
	op->end_ns = start + op->work.duration_ns;
	op->started = true;
	if (op->work.meeting) {
		op->work.meeting->arrive(op->work.meeting, start);
		op->end_ns = op->work.meeting->end(op->work.meeting);
	}
}

/* Takes a finished operation out of its stream and lets everybody know. */
static void finish_op(struct sim_stream *stream)
{
	struct sim_op *op = stream->head;

	stream->head = op->next;
	if (!stream->head)
		stream->tail = NULL;
	stream->last_end_ns = op->end_ns;
	if (op->work.kind != SIM_MARKER)
		account_add(stream->context->device, op->work.kind, op->start_ns, op->end_ns);
	if (op->event) {
		if (op->event->point.stream == stream && op->event->point.seq == op->seq)
			op->event->time_ns = op->end_ns;
		sim_event_release(op->event);
	}
	/* Against the pair in engine_wait: either we see the waiter or it sees the new number. */
	__atomic_store_n(&stream->done, op->seq, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&stream->waiters, __ATOMIC_SEQ_CST))
		futex_wake(&stream->done);
	if (op->work.meeting)
		op->work.meeting->over(op->work.meeting);
	free(op->work.staging);
	free(op->waits);
	free(op);
}

/* Starts every head that may start; markers are over at once and may free others. */
static void advance(void)
{
	bool again;

	do {
		again = false;
		for (struct sim_stream *s = active_streams; s; s = s->active_next) {
			while (s->head && !s->head->started && waits_are_over(s->head)) {
				start_op(s, s->head);
				if (s->head->work.kind != SIM_MARKER)
					break;
				finish_op(s);
				again = true;
			}
		}
	} while (again);
}

static struct sim_stream *next_to_finish(void)
{
	struct sim_stream *first = NULL;

	for (struct sim_stream *s = active_streams; s; s = s->active_next)
		if (s->head && s->head->started && (!first || s->head->end_ns < first->head->end_ns))
			first = s;
	return first;
}

/* The clock thread */

static void move_bytes(const struct sim_work *work)
{
	if (work->kind == SIM_COPY)
		memmove(work->target, work->source, work->bytes);
	else if (work->kind == SIM_MEMSET)
		memset(work->target, work->value, work->bytes);
}

/* Effects of an operation whose time is over. Lock not held: the head of a started stream stays where it is.
 */
static void carry_out(const struct sim_stream *stream, const struct sim_op *op)
{
	const struct sim_tracer *tracer = sim_tracer();

	move_bytes(&op->work);
	if (tracer) {
		struct sim_operation operation = {
		    .work = &op->work,
		    .submit_ns = op->submit_ns,
		    .start_ns = op->start_ns,
		    .end_ns = op->end_ns,
		    .device = (uint32_t)stream->context->device,
		    .context = stream->context->id,
		    .stream = stream->id,
		    .correlation = op->correlation,
		};

		tracer->operation(&operation);
	}
}

static void *clock_thread(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct sim_stream *stream = next_to_finish();

		if (stream && stream->head->end_ns <= sim_now()) {
			pthread_mutex_unlock(&lock);
			carry_out(stream, stream->head);
			pthread_mutex_lock(&lock);
			finish_op(stream);
			advance();
			drop_idle_streams();
		} else {
			uint32_t rung = doorbell;
			struct timespec deadline = {0};

			clock_wake_ns = stream ? stream->head->end_ns : UINT64_MAX;
			deadline.tv_sec = (time_t)(clock_wake_ns / 1000000000ULL);
			deadline.tv_nsec = (long)(clock_wake_ns % 1000000000ULL);
			pthread_mutex_unlock(&lock);
			futex_wait(&doorbell, rung, stream ? &deadline : NULL);
			pthread_mutex_lock(&lock);
			clock_wake_ns = 0;
		}
	}
	return unused;
}

/*
 * A GPU does not compete for CPUs: the clock thread may run anywhere whatever the program was pinned to,
 * wakes exactly, and goes before ordinary threads where that is allowed.
 */
struct hardware {
	void *(*run)(void *);
	void *argument;
};

static void *hardware_main(void *argument)
{
	struct sched_param priority = {.sched_priority = 1};
	struct hardware hardware = *(struct hardware *)argument;
	cpu_set_t all;

	free(argument);
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	prctl(PR_SET_TIMERSLACK, 1);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
	return hardware.run(hardware.argument);
}

int simHardwareThread(const char *name, void *(*run)(void *), void *argument)
{
	struct hardware *hardware = malloc(sizeof(*hardware));
	sigset_t every, before;
	pthread_t thread;
	int error;

	if (!hardware)
		return ENOMEM;
	*hardware = (struct hardware){run, argument};
	/* The program's signals are not for this thread. */
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	error = pthread_create(&thread, NULL, hardware_main, hardware);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		free(hardware);
		return error;
	}
	pthread_setname_np(thread, name);
	pthread_detach(thread);
	return 0;
}

int engine_start(void)
{
	int error = 0;

	pthread_mutex_lock(&lock);
	if (!running)
		error = simHardwareThread("sim-gpu", clock_thread, NULL);
	running = running || !error;
	pthread_mutex_unlock(&lock);
	return error;
}

/* Submission */

static bool add_wait(struct sim_op *op, struct sim_point point)
{
	struct sim_point *more;

	if (!point.stream || passed(point.stream, point.seq))
		return true;
	more = realloc(op->waits, (op->wait_count + 1) * sizeof(*more));
	if (!more)
		return false;
	op->waits = more;
	op->waits[op->wait_count++] = point;
	return true;
}

/* Legacy default stream: it waits for all blocking streams of the context, and they wait for it. */
static bool add_default_stream_waits(struct sim_stream *stream, struct sim_op *op)
{
	struct sim_stream *null = stream->context->default_stream;

	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return true;
	if (stream != null)
		return add_wait(op, (struct sim_point){null, null->submitted});
	for (struct sim_stream *s = stream->context->streams; s; s = s->next)
		if (s != null && !(s->flags & CU_STREAM_NON_BLOCKING) &&
		    !add_wait(op, (struct sim_point){s, s->submitted}))
			return false;
	return true;
}

static struct sim_op *new_op(struct sim_stream *stream, const struct sim_work *work, uint32_t correlation,
                             struct sim_point wait)
{
	struct sim_op *op = calloc(1, sizeof(*op));

	if (!op) {
		free(work->staging);
		return NULL;
	}
	op->work = *work;
	op->correlation = correlation;
	if (!add_wait(op, wait) || !add_default_stream_waits(stream, op)) {
		free(op->work.staging);
		free(op->waits);
		free(op);
		return NULL;
	}
	return op;
}

static void append(struct sim_stream *stream, struct sim_op *op, struct sim_event *event)
{
	op->submit_ns = sim_now();
	op->seq = ++stream->submitted;
	op->event = event;
	if (event) {
		event->references++;
		event->point = (struct sim_point){stream, op->seq};
		event->time_ns = 0;
	}
	if (stream->tail)
		stream->tail->next = op;
	else
		stream->head = op;
	stream->tail = op;
	activate(stream);
}

/* Starts what can start; true if the clock thread has to look earlier than it would. */
static bool advance_after_submission(void)
{
	struct sim_stream *first;

	advance();
	drop_idle_streams();
	first = next_to_finish();
	if (!first || first->head->end_ns >= clock_wake_ns)
		return false;
	doorbell++;
	clock_wake_ns = first->head->end_ns;
	return true;
}

void simMeetingsChanged(void)
{
	bool ring = false;

	pthread_mutex_lock(&lock);
	for (struct sim_stream *s = active_streams; s; s = s->active_next) {
		struct sim_op *op = s->head;

		if (!op || !op->started || !op->work.meeting || op->end_ns != UINT64_MAX)
			continue;
		op->end_ns = op->work.meeting->end(op->work.meeting);
		if (op->end_ns < clock_wake_ns) {
			clock_wake_ns = op->end_ns;
			doorbell++;
			ring = true;
		}
	}
	pthread_mutex_unlock(&lock);
	if (ring)
		futex_wake(&doorbell);
}

static void wait_for_room(struct sim_stream *stream)
{
	struct sim_point point = {0};

	pthread_mutex_lock(&lock);
	if (stream->submitted - stream->done >= SIM_QUEUE_DEPTH)
		point = (struct sim_point){stream, stream->submitted - SIM_QUEUE_DEPTH + 1};
	pthread_mutex_unlock(&lock);
	engine_wait(point);
}

bool engine_submit(struct sim_stream *stream, const struct sim_work *work, uint32_t correlation,
                   struct sim_event *event, struct sim_point wait)
{
	struct sim_op *op;
	bool ring = false;

	wait_for_room(stream);
	pthread_mutex_lock(&lock);
	op = new_op(stream, work, correlation, wait);
	if (op) {
		append(stream, op, event);
		ring = advance_after_submission();
	}
	pthread_mutex_unlock(&lock);
	if (ring)
		futex_wake(&doorbell);
	return op;
}

bool engine_submit_all(struct sim_stream *stream, const struct sim_work *works, size_t count,
                       uint32_t correlation)
{
	bool ring, complete = true;

	wait_for_room(stream);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count && complete; i++) {
		struct sim_op *op = new_op(stream, &works[i], correlation, (struct sim_point){0});

		complete = op != NULL;
		if (op)
			append(stream, op, NULL);
	}
	ring = advance_after_submission();
	pthread_mutex_unlock(&lock);
	if (ring)
		futex_wake(&doorbell);
	return complete;
}

/* Waiting */

bool engine_reached(struct sim_point point)
{
	return !point.stream || passed(point.stream, point.seq);
}

void engine_wait(struct sim_point point)
{
	struct sim_stream *stream = point.stream;

	if (engine_reached(point))
		return;
	if (sim_options.spin) {
		while (!passed(stream, point.seq))
			;
		return;
	}
	__atomic_add_fetch(&stream->waiters, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		uint32_t done = __atomic_load_n(&stream->done, __ATOMIC_SEQ_CST);

		if ((int32_t)(done - point.seq) >= 0)
			break;
		futex_wait(&stream->done, done, NULL);
	}
	__atomic_sub_fetch(&stream->waiters, 1, __ATOMIC_SEQ_CST);
}

struct sim_point engine_last(struct sim_stream *stream)
{
	struct sim_point point = {stream, 0};

	pthread_mutex_lock(&lock);
	point.seq = stream->submitted;
	pthread_mutex_unlock(&lock);
	return point;
}

void engine_wait_context(struct sim_context *context)
{
	struct sim_stream *stream;

	/* Streams are only ever put in front of the list and live as long as the context. */
	pthread_mutex_lock(&lock);
	stream = context->streams;
	pthread_mutex_unlock(&lock);
	for (; stream; stream = stream->next)
		engine_wait(engine_last(stream));
}

bool engine_context_idle(struct sim_context *context)
{
	bool idle = true;

	pthread_mutex_lock(&lock);
	for (struct sim_stream *s = context->streams; s; s = s->next)
		idle = idle && !s->head;
	pthread_mutex_unlock(&lock);
	return idle;
}

void sim_event_release(struct sim_event *event)
{
	if (--event->references == 0)
		free(event);
}
