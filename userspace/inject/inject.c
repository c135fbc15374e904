// SPDX-License-Identifier: GPL-2.0-only
#include "inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/borrow.h"
#include "inject/conversation.h"
#include "inject/places.h"

#define DEFAULT_TIMEOUT_MS 15000
#define SAFE_POINT_SHARE   3 /* a third of the time is for finding a thread */
#define ROUND_NS           5000000
#define PAGE               4096u

struct inject {
	struct inject_options options;
	pthread_t thread;
	int event;
	bool cancelled; /* atomic */
	int state;      /* enum inject_state (atomic); what follows is valid once it is not WORKING */
	enum inject_reason reason;
	struct error error;
	struct inject_times times;
	bool taken;

	int memory; /* of the process as it was: after an exec there is nothing behind it any more */
	struct target_maps maps;
	struct c_library library;
	struct borrow borrow;
	struct conversation conversation;
};

static enum inject_reason set_reason(struct inject *inject, enum inject_reason reason, const char *text)
{
	error_set(&inject->error, -ECANCELED, "%s", text);
	return reason;
}

static enum inject_reason find_places(struct inject *inject)
{
	const struct inject_options *options = &inject->options;
	struct conversation *conversation = &inject->conversation;
	enum inject_reason reason;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/mem", options->pid);
	inject->memory = open(path, O_RDWR | O_CLOEXEC);
	if (inject->memory < 0 || target_maps_read(options->pid, &inject->maps))
		return set_reason(inject, INJECT_NOT_PERMITTED, "its memory cannot be opened");
	reason = places_c_library(&inject->maps, inject->memory, &inject->library, &inject->error);
	if (reason != INJECT_OK)
		return reason;
	conversation->pid = options->pid;
	conversation->memory = inject->memory;
	conversation->cancelled = &inject->cancelled;
	conversation->region_bytes = (ATTACH_BLOB + options->bridge_bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	conversation->region = places_free(&inject->maps, conversation->region_bytes);
	conversation->bridge =
	    places_bridge(&inject->maps, inject->memory, options->bridge, options->bridge_bytes);
	inject->borrow = (struct borrow){
	    .pid = options->pid,
	    .memory = inject->memory,
	    .maps = &inject->maps,
	    .calls = &inject->library.calls,
	    .places = {.call = inject->library.call,
	               .restorer = inject->library.restorer,
	               .region = conversation->region,
	               .region_bytes = conversation->region_bytes},
	    .patience_ms = options->patience_ms,
	    .step = options->step,
	    .context = options->context,
	};
	if (!conversation->region)
		return set_reason(inject, INJECT_NO_ROOM, "there are no free addresses in it");
	inject->borrow.c_library[0].device = inject->library.library->device;
	inject->borrow.c_library[0].inode = inject->library.library->inode;
	if (inject->library.threads) {
		inject->borrow.c_library[1].device = inject->library.threads->device;
		inject->borrow.c_library[1].inode = inject->library.threads->inode;
	}
	return INJECT_OK;
}

/* Tries the threads of one rank. Returns as borrow_thread does; 0: none. */
static int borrow_rank(struct inject *inject, const struct target_threads *threads, uint32_t wanted)
{
	for (size_t i = 0; i < threads->count; i++) {
		uint32_t rank;
		int result;

		if (!borrow_is_candidate(&inject->borrow, threads->items[i], &rank) || rank != wanted)
			continue;
		inject->times.attempts++;
		result = borrow_thread(&inject->borrow, threads->items[i], &inject->error);
		if (result && result != -ESRCH)
			return result;
	}
	return 0;
}

static enum inject_reason borrow_one(struct inject *inject, uint64_t deadline_ns)
{
	const struct timespec round = {.tv_nsec = ROUND_NS};

	do {
		struct target_threads threads;
		enum inject_reason reason = inject_check(inject->options.pid, &inject->error);
		int result = 0;

		if (reason != INJECT_OK)
			return reason;
		if (target_threads_read(inject->options.pid, &threads))
			return set_reason(inject, INJECT_GONE, "it has ended");
		for (uint32_t rank = 0; rank <= 2 && !result; rank++)
			result = borrow_rank(inject, &threads, rank);
		array_free(&threads);
		if (result == 1)
			return INJECT_OK;
		if (result == -ETIMEDOUT)
			return INJECT_TIMEOUT;
		if (result == -ENOMEM || result == -EACCES)
			return INJECT_NO_ROOM;
		if (result < 0)
			return INJECT_NOT_PERMITTED;
		nanosleep(&round, NULL);
	} while (clock_ns(CLOCK_MONOTONIC) < deadline_ns &&
	         !__atomic_load_n(&inject->cancelled, __ATOMIC_RELAXED));
	return set_reason(inject, INJECT_NO_SAFE_POINT,
	                  "none of its threads waited where it can be borrowed: try again");
}

static enum inject_reason attach(struct inject *inject)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), borrow_ns;
	uint64_t timeout_ns = inject->options.timeout_ms * 1000000ULL;
	struct conversation *conversation = &inject->conversation;
	enum inject_reason reason = inject_check(inject->options.pid, &inject->error);

	conversation->deadline_ns = start_ns + timeout_ns;
	if (reason == INJECT_OK)
		reason = find_places(inject);
	if (reason == INJECT_OK)
		reason = borrow_one(inject, start_ns + timeout_ns / SAFE_POINT_SHARE);
	if (reason != INJECT_OK)
		return reason;
	borrow_ns = clock_ns(CLOCK_MONOTONIC);
	inject->times.borrow_ns = inject->borrow.stopped_ns;
	reason = conversation_hold(conversation, &inject->options, &inject->error);
	if (conversation->borrowed_ns)
		inject->times.borrowed_ns = conversation->borrowed_ns - borrow_ns + inject->borrow.stopped_ns;
	if (conversation->loaded_ns)
		inject->times.load_ns = conversation->loaded_ns - start_ns;
	inject->times.total_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	return reason;
}

static void *work(void *argument)
{
	struct inject *inject = argument;
	uint64_t one = 1;

	inject->reason = attach(inject);
	__atomic_store_n(&inject->state, inject->reason == INJECT_OK ? INJECT_ATTACHED : INJECT_FAILED,
	                 __ATOMIC_RELEASE);
	if (write(inject->event, &one, sizeof(one)) < 0)
		inject->times.attempts += 0; /* cannot fail: the counter is 0 */
	return NULL;
}

int inject_start(struct inject **out, const struct inject_options *options, struct error *error)
{
	struct inject *inject = calloc(1, sizeof(*inject));
	sigset_t all, before;
	int err;

	if (!inject)
		return error_no_memory(error);
	inject->options = *options;
	if (!inject->options.timeout_ms)
		inject->options.timeout_ms = DEFAULT_TIMEOUT_MS;
	if (!inject->options.patience_ms)
		inject->options.patience_ms = ATTACH_PATIENCE_MS;
	inject->memory = inject->conversation.ring = inject->conversation.pipe = -1;
	inject->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (inject->event < 0) {
		err = -errno;
		free(inject);
		return error_set(error, err, "cannot make a descriptor: %s", strerror(-err));
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&inject->thread, NULL, work, inject);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		close(inject->event);
		free(inject);
		return error_set(error, err, "cannot make a thread: %s", strerror(-err));
	}
	*out = inject;
	return 0;
}

int inject_fd(const struct inject *inject)
{
	return inject->event;
}

enum inject_state inject_state(const struct inject *inject, enum inject_reason *reason, const char **text)
{
	enum inject_state state = (enum inject_state)__atomic_load_n(&inject->state, __ATOMIC_ACQUIRE);

	if (state == INJECT_FAILED && reason)
		*reason = inject->reason;
	if (state == INJECT_FAILED && text)
		*text = inject->error.text;
	return state;
}

void inject_times(const struct inject *inject, struct inject_times *times)
{
	memset(times, 0, sizeof(*times));
	if (inject_state(inject, NULL, NULL) != INJECT_WORKING)
		*times = inject->times;
}

int inject_take(struct inject *inject, int *ring, int *pipe)
{
	if (inject_state(inject, NULL, NULL) != INJECT_ATTACHED || inject->taken)
		return -EAGAIN;
	inject->taken = true;
	*ring = inject->conversation.ring;
	*pipe = inject->conversation.pipe;
	return 0;
}

void inject_close(struct inject *inject)
{
	if (!inject)
		return;
	__atomic_store_n(&inject->cancelled, true, __ATOMIC_RELAXED);
	pthread_join(inject->thread, NULL);
	if (!inject->taken) {
		if (inject->conversation.ring >= 0)
			close(inject->conversation.ring);
		if (inject->conversation.pipe >= 0)
			close(inject->conversation.pipe);
	}
	if (inject->memory >= 0)
		close(inject->memory);
	array_free(&inject->maps);
	close(inject->event);
	free(inject);
}
