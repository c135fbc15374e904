// SPDX-License-Identifier: GPL-2.0-only
#include "inject/conversation.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cupti_bridge/ring.h"
#include "inject/elf_memory.h"
#include "inject/target.h"

#define STEP_NS         200000
#define START_PATIENCE  3000000000ULL /* for the borrowed thread to get a CPU */
#define FIRST_FD_NUMBER 3
#define FD_NUMBERS      1000
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static bool read_control(const struct conversation *conversation, struct attach_control *control)
{
	return pread(conversation->memory, control, sizeof(*control), (off_t)conversation->region) ==
	       (ssize_t)sizeof(*control);
}

static bool write_at(const struct conversation *conversation, uint64_t offset, const void *from, size_t size)
{
	return pwrite(conversation->memory, from, size, (off_t)(conversation->region + offset)) ==
	       (ssize_t)size;
}

static void set_go(const struct conversation *conversation, uint32_t go)
{
	write_at(conversation, ATTACH_AT_GO, &go, sizeof(go));
}

static enum inject_reason tell_failure(const struct conversation *conversation,
                                       const struct attach_control *control, struct error *error)
{
	char text[ATTACH_TEXT_BYTES];

	set_go(conversation, ATTACH_GO_SEEN);
	memcpy(text, control->text, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	switch (control->state) {
	case ATTACH_FAILED_THREAD:
		error_set(error, -EAGAIN, "its C library made no thread: %s", strerror(control->error));
		return INJECT_LOAD;
	case ATTACH_FAILED_FILES:
		error_set(error, -ENOSYS, "close_range does not work in it: %s", strerror(control->error));
		return INJECT_KERNEL;
	case ATTACH_FAILED_PATIENCE:
		error_set(error, -ETIMEDOUT, "it waited in vain for whyidle");
		return INJECT_TIMEOUT;
	case ATTACH_FAILED_MEMFD:
	case ATTACH_FAILED_WRITE:
		error_set(error, -EIO, "it cannot make a file in memory for the bridge: %s",
		          strerror(control->error));
		return INJECT_KERNEL;
	case ATTACH_FAILED_DLOPEN:
		error_set(error, -ENOEXEC, "the bridge cannot be loaded into it: %.300s", text);
		return INJECT_LOAD;
	case ATTACH_FAILED_BUSY:
		error_set(error, -EBUSY, "another whyidle is attached to it");
		return INJECT_BUSY;
	case ATTACH_FAILED_CHILD:
		error_set(error, -ECHILD,
		          "it was forked by a process that whyidle was attached to: CUDA "
		          "does not work in it");
		return INJECT_FAILED_REASON;
	case ATTACH_FAILED_RING:
		error_set(error, -EIO, "the bridge cannot make its ring: %.300s", text);
		return INJECT_FAILED_REASON;
	default:
		error_set(error, -EPROTO, "the bridge in it is of another version");
		return INJECT_FAILED_REASON;
	}
}

/* Why waiting has ended without an answer. */
static enum inject_reason tell_silence(const struct conversation *conversation, uint32_t state,
                                       struct error *error)
{
	static const char *const doing[] = {
	    [ATTACH_NONE] = "its thread got no further",
	    [ATTACH_STARTED] = "its new thread got no further",
	    [ATTACH_WAITING] = "its loader is busy",
	    [ATTACH_LOADED] = "the bridge in it got no further",
	    [ATTACH_RING] = "the bridge in it got no further",
	};

	if (kill((pid_t)conversation->pid, 0) < 0 && errno == ESRCH) {
		error_set(error, -ESRCH, "it has ended");
		return INJECT_GONE;
	}
	error_set(error, -ETIMEDOUT, "it did not answer in time: %s",
	          doing[state <= ATTACH_RING ? state : ATTACH_NONE]);
	return INJECT_TIMEOUT;
}

/* Waits until the state is `wanted` or beyond. */
static enum inject_reason wait_for(struct conversation *conversation, uint32_t wanted, uint64_t deadline_ns,
                                   struct attach_control *control, struct error *error)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	uint32_t last = ATTACH_NONE;
	bool seen = false;

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (read_control(conversation, control)) {
			seen = true;
			last = control->state;
			if (control->borrowed && !conversation->borrowed_ns)
				conversation->borrowed_ns = now;
			if (last >= ATTACH_LOADED && last < ATTACH_FAILED && !conversation->loaded_ns)
				conversation->loaded_ns = now;
			if (last >= ATTACH_FAILED)
				return tell_failure(conversation, control, error);
			if (last >= wanted)
				return INJECT_OK;
		} else if (seen) {
			return tell_silence(conversation, last, error);
		}
		if (now > deadline_ns || __atomic_load_n(conversation->cancelled, __ATOMIC_RELAXED) ||
		    (kill((pid_t)conversation->pid, 0) < 0 && errno == ESRCH))
			return tell_silence(conversation, last, error);
		nanosleep(&step, NULL);
	}
}

/* memfd_create knows this flag since 6.3; without it a system may be set up to make files not executable. */
static uint32_t library_flags(void)
{
	int fd = memfd_create("whyidle-probe", MFD_CLOEXEC | MFD_EXEC);

	if (fd < 0)
		return MFD_CLOEXEC;
	close(fd);
	return MFD_CLOEXEC | MFD_EXEC;
}

/* A number that goes with the library: the loader takes a path that it has seen for the library it had then.
 */
static int fd_number_for(const unsigned char *bytes, size_t size)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return (int)(FIRST_FD_NUMBER + hash % FD_NUMBERS);
}

static bool hand_over(struct conversation *conversation, const struct inject_options *options,
                      struct attach_control *control)
{
	size_t from = offsetof(struct attach_control, link_entry);
	size_t to = offsetof(struct attach_control, text);

	if (conversation->bridge) {
		control->link_entry =
		    conversation->bridge +
		    elf_memory_file_symbol(options->bridge, options->bridge_bytes, ATTACH_LINK_NAME);
		control->work_entry =
		    conversation->bridge +
		    elf_memory_file_symbol(options->bridge, options->bridge_bytes, ATTACH_WORK_NAME);
	} else if (!write_at(conversation, ATTACH_BLOB, options->bridge, options->bridge_bytes)) {
		return false;
	}
	control->blob_bytes = options->bridge_bytes;
	control->fd_number = fd_number_for(options->bridge, options->bridge_bytes);
	control->fd_flags = library_flags();
	control->magic = ATTACH_MAGIC;
	control->version = ATTACH_VERSION;
	control->flush_period_ms = options->flush_period_ms;
	control->ring_bytes = options->ring_bytes;
	control->flags = options->finalize ? ATTACH_FINALIZE : 0;
	snprintf(control->path, sizeof(control->path), "/proc/thread-self/fd/%d", control->fd_number);
	if (!write_at(conversation, from, (const char *)control + from, to - from))
		return false;
	set_go(conversation, ATTACH_GO_LOAD);
	return true;
}

/* Id of thread `inner` as we see it, 0 if it has gone. */
static uint32_t conversation_thread(uint32_t pid, uint32_t inner)
{
	struct target_threads threads;
	uint32_t found = 0;

	if (target_threads_read(pid, &threads))
		return 0;
	for (size_t i = 0; i < threads.count && !found; i++) {
		struct target_status status;

		if (target_status_read(pid, threads.items[i], &status) && status.inner_tid == inner)
			found = threads.items[i];
	}
	array_free(&threads);
	return found;
}

/*
 * Opens a descriptor of the target's thread. The target decides what is behind the number, so it is looked at
 * before it is opened: it has to be of the same (kernel-internal) file system as `model`, one of our own.
 */
static int open_descriptor(uint32_t pid, uint32_t tid, int number, int model, int flags)
{
	struct stat ours, theirs;
	char path[96];
	int place, fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/fd/%d", pid, tid, number);
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -errno;
	if (fstat(model, &ours) < 0 || fstat(place, &theirs) < 0 || ours.st_dev != theirs.st_dev ||
	    (ours.st_mode & S_IFMT) != (theirs.st_mode & S_IFMT)) {
		close(place);
		return -EINVAL;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(place);
	return fd;
}

/* The ring: of the right size, and nobody can change that any more. */
static int open_ring(const struct conversation *conversation, uint32_t tid, int number, uint64_t ring_bytes)
{
	int model = memfd_create("whyidle-model", MFD_CLOEXEC), fd;
	struct stat info;
	int seals;

	if (model < 0)
		return -errno;
	fd = open_descriptor(conversation->pid, tid, number, model, O_RDWR);
	close(model);
	if (fd < 0)
		return fd;
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &info) < 0 ||
	    (uint64_t)info.st_size != RING_CONTROL_SIZE + ring_bytes) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static int open_pipe(const struct conversation *conversation, uint32_t tid, int number)
{
	int model[2], fd;

	if (pipe2(model, O_CLOEXEC) < 0)
		return -errno;
	fd = open_descriptor(conversation->pid, tid, number, model[1], O_WRONLY | O_NONBLOCK);
	close(model[0]);
	close(model[1]);
	return fd;
}

static enum inject_reason open_both(struct conversation *conversation, const struct attach_control *control,
                                    uint64_t ring_bytes, struct error *error)
{
	uint32_t tid = conversation_thread(conversation->pid, control->link_tid);

	conversation->ring = tid ? open_ring(conversation, tid, control->ring_fd, ring_bytes) : -ESRCH;
	if (conversation->ring >= 0)
		conversation->pipe = open_pipe(conversation, tid, control->pipe_fd);
	if (conversation->ring >= 0 && conversation->pipe >= 0)
		return INJECT_OK;
	error_set(error, -EIO, "the descriptors of the bridge cannot be opened: %s",
	          strerror(conversation->ring < 0 ? -conversation->ring : -conversation->pipe));
	return INJECT_FAILED_REASON;
}

static void tell_step(const struct inject_options *options, enum inject_step step)
{
	if (options->step)
		options->step(options->context, step);
}

enum inject_reason conversation_hold(struct conversation *conversation, const struct inject_options *options,
                                     struct error *error)
{
	uint64_t start_by = clock_ns(CLOCK_MONOTONIC) + START_PATIENCE;
	struct attach_control control;
	enum inject_reason reason;

	if (start_by > conversation->deadline_ns)
		start_by = conversation->deadline_ns;
	reason = wait_for(conversation, ATTACH_WAITING, start_by, &control, error);
	if (reason != INJECT_OK)
		return reason;
	tell_step(options, INJECT_ANSWERED);
	if (!hand_over(conversation, options, &control))
		return tell_silence(conversation, control.state, error);
	tell_step(options, INJECT_HANDED_OVER);
	reason = wait_for(conversation, ATTACH_RING, conversation->deadline_ns, &control, error);
	if (reason != INJECT_OK)
		return reason;
	tell_step(options, INJECT_RING_MADE);
	reason = open_both(conversation, &control, options->ring_bytes, error);
	if (reason != INJECT_OK)
		return reason;
	tell_step(options, INJECT_RING_OPEN);
	set_go(conversation, ATTACH_GO_OPEN);
	return wait_for(conversation, ATTACH_OPEN, conversation->deadline_ns, &control, error);
}
