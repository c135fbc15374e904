/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bridge in a process that ran already (attach.h, docs/attach.md). Two threads of the process belong to
 * it, both without signals and both named "whyidle":
 *
 *   link   has a descriptor table of its own, so that the program's descriptors stay as they are and no child
 *          inherits ours; loads this library, makes the ring, hears the collector, tidies up
 *   work   shares the program's descriptors, as CUPTI and the driver need it; starts CUPTI, asks it for
 *          records, stops it
 */
#include "cupti_bridge/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cupti_bridge/activity.h"
#include "cupti_bridge/clock.h"
#include "cupti_bridge/lifecycle.h"
#include "cupti_bridge/worker.h"

#define TAKEN_PERIOD_MS 500 /* between attempts while another tool has CUPTI */

#define VISIBLE __attribute__((visibility("default")))

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif

enum work_order {
	ORDER_NONE,
	ORDER_START,
	ORDER_LEAVE,
};

static uint32_t attached; /* 1: a collector has this bridge (atomic) */

static void wait_while(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void store_and_wake(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 64, NULL, NULL, 0);
}

static void set_state(struct attach_control *control, uint32_t state)
{
	__atomic_store_n(&control->state, state, __ATOMIC_RELEASE);
}

/* True once the collector has said `go`; false if it has not in that time. */
static bool wait_for_go(struct attach_control *control, uint32_t go, int milliseconds)
{
	const struct timespec step = {.tv_nsec = 1000000};

	for (int i = 0; i < milliseconds; i++) {
		if (__atomic_load_n(&control->go, __ATOMIC_ACQUIRE) == go)
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

static void fail(struct attach_control *control, uint32_t state)
{
	set_state(control, state);
	store_and_wake(&control->work_order, ORDER_LEAVE);
	wait_for_go(control, ATTACH_GO_SEEN, ATTACH_LINGER_MS);
}

/* ---- link ---- */

/* The ring, as the collector makes it elsewhere: of a size that nobody can change any more. */
static int make_ring(struct attach_control *control, struct collector_link *link)
{
	size_t size = RING_CONTROL_SIZE + control->ring_bytes;
	struct ring_control *ring;
	int fd = (int)syscall(SYS_memfd_create, "whyidle-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto fail;
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		goto fail;
	madvise(ring, size, MADV_DONTFORK); /* a child is silent anyway */
	ring->magic = RING_MAGIC;
	ring->version = RING_VERSION;
	ring->capacity = control->ring_bytes;
	*link = (struct collector_link){
	    .fd = -1, /* the pipe tells when the collector goes */
	    .memory = ring,
	    .capacity = control->ring_bytes,
	    .flush_period_ms = control->flush_period_ms,
	};
	return fd;
fail:
	snprintf(control->text, sizeof(control->text), "error %d", errno);
	close(fd);
	return -1;
}

/* Reads the collector's word: true to stop in order, false if it has gone. */
static bool hear(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	char byte = 0;
	ssize_t got;

	for (;;) {
		if (poll(&poll_fd, 1, -1) < 0 && errno != EINTR)
			return false;
		got = read(fd, &byte, 1);
		if (got == 1 && byte == ATTACH_STOP)
			return true;
		if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
			return false;
	}
}

/* From the ring being open to all being tidy again. */
static void serve(struct attach_control *control, int fd)
{
	struct bridge *bridge = lifecycle_bridge();

	worker_prepare();
	if (lifecycle_connect()) {
		set_state(control, ATTACH_OPEN);
		store_and_wake(&control->work_order, ORDER_START);
		if (!hear(fd))
			__atomic_store_n(&bridge->muted, 1, __ATOMIC_RELAXED);
		worker_ask();
		wait_while(&control->work_done, 0);
	} else {
		set_state(control, ATTACH_OPEN); /* the ring says what is wrong */
		store_and_wake(&control->work_order, ORDER_LEAVE);
	}
	lifecycle_disconnect();
}

static void open_link(struct attach_control *control)
{
	struct bridge *bridge = lifecycle_bridge();
	int ring, ends[2];

	/* What an earlier attachment has left is over; this process is the owner again. */
	memset(bridge, 0, sizeof(*bridge));
	bridge->pid = getpid();
	bridge->late = true;
	bridge->finalize = control->flags & ATTACH_FINALIZE;
	ring = make_ring(control, &bridge->link);
	if (ring < 0) {
		fail(control, ATTACH_FAILED_RING);
		return;
	}
	if (syscall(SYS_pipe2, ends, O_CLOEXEC) < 0) {
		snprintf(control->text, sizeof(control->text), "error %d", errno);
		close(ring);
		munmap(bridge->link.memory, RING_CONTROL_SIZE + bridge->link.capacity);
		fail(control, ATTACH_FAILED_RING);
		return;
	}
	control->ring_fd = ring;
	control->pipe_fd = ends[1];
	set_state(control, ATTACH_RING);
	if (wait_for_go(control, ATTACH_GO_OPEN, (int)control->patience_ms)) {
		close(ring);
		close(ends[1]);
		serve(control, ends[0]);
		close(ends[0]);
		return;
	}
	close(ring);
	close(ends[0]);
	close(ends[1]);
	munmap(bridge->link.memory, RING_CONTROL_SIZE + bridge->link.capacity);
	fail(control, ATTACH_FAILED_PATIENCE);
}

VISIBLE void whyidle_attach_link(struct attach_control *control)
{
	prctl(PR_SET_NAME, "whyidle");
	if (control->magic != ATTACH_MAGIC || control->version != ATTACH_VERSION) {
		fail(control, ATTACH_FAILED_VERSION);
	} else if (__atomic_load_n(&lifecycle_bridge()->forked, __ATOMIC_RELAXED)) {
		fail(control, ATTACH_FAILED_CHILD);
	} else if (__atomic_exchange_n(&attached, 1, __ATOMIC_ACQ_REL)) {
		fail(control, ATTACH_FAILED_BUSY);
	} else {
		open_link(control);
		__atomic_store_n(&attached, 0, __ATOMIC_RELEASE);
	}
}

/* ---- work ---- */

/* Another tool may let go of CUPTI while we are here. */
static bool wait_for_cupti(struct bridge *bridge)
{
	while (bridge_cupti_is_taken(bridge->start_error) && !worker_is_asked(TAKEN_PERIOD_MS)) {
		if (bridge_is_wanted(bridge) && lifecycle_start_cupti_again())
			return true;
	}
	return false;
}

static void run_cupti(struct bridge *bridge)
{
	uint64_t cpu_ns = clock_thread_cpu_ns();
	bool started = lifecycle_start_cupti() || wait_for_cupti(bridge);
	char text[256] = "";

	ring_writer_add_cost(&bridge->ring, clock_thread_cpu_ns() - cpu_ns);
	if (!started)
		return;
	worker_serve(bridge);
	/* While the process exits CUPTI is best left alone; at_exit says the last word. */
	if (__atomic_load_n(&bridge->exiting, __ATOMIC_RELAXED))
		return;
	activity_stop(bridge, text, sizeof(text));
	if (__atomic_load_n(&bridge->exiting, __ATOMIC_RELAXED))
		return;
	if (bridge_is_wanted(bridge))
		bridge_set_phase(bridge, RING_PHASE_STOPPED, 0, text);
	bridge->phase = RING_PHASE_STOPPED;
}

VISIBLE void whyidle_attach_work(struct attach_control *control)
{
	prctl(PR_SET_NAME, "whyidle");
	wait_while(&control->work_order, ORDER_NONE);
	if (__atomic_load_n(&control->work_order, __ATOMIC_ACQUIRE) == ORDER_START)
		run_cupti(lifecycle_bridge());
	store_and_wake(&control->work_done, 1);
}
