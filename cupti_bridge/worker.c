/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "cupti_bridge/activity.h"

#define FINISH_TIMEOUT_S 3
#define STACK_SIZE       ((size_t)1024 * 1024) /* CUPTI runs on it */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* waits on CLOCK_MONOTONIC */
static bool running, finish_wanted, finished;

static struct timespec deadline_after(uint64_t ns)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	ns += (uint64_t)at.tv_nsec;
	at.tv_sec += (time_t)(ns / 1000000000u);
	at.tv_nsec = (long)(ns % 1000000000u);
	return at;
}

/* Waits until the last flush is wanted (true) or a period, unless that is 0, is over (false). */
static bool wait_for(uint64_t period_ms)
{
	struct timespec deadline = deadline_after(period_ms * 1000000u);
	bool wanted;
	int result = 0;

	pthread_mutex_lock(&lock);
	while (!finish_wanted && result != ETIMEDOUT)
		result = period_ms ? pthread_cond_timedwait(&changed, &lock, &deadline)
		                   : pthread_cond_wait(&changed, &lock);
	wanted = finish_wanted;
	pthread_mutex_unlock(&lock);
	return wanted;
}

static bool wait_period(struct bridge *bridge)
{
	bool idle = __atomic_load_n(&bridge->muted, __ATOMIC_RELAXED) || !activity_needs_flush(bridge);

	return wait_for(idle ? 0 : bridge->link.flush_period_ms);
}

bool worker_is_asked(uint64_t milliseconds)
{
	return wait_for(milliseconds);
}

static void *work(void *argument)
{
	struct bridge *bridge = argument;

	prctl(PR_SET_NAME, "whyidle");
	while (!wait_period(bridge))
		if (bridge_is_wanted(bridge))
			activity_flush(bridge, false);
	if (bridge_is_wanted(bridge))
		activity_flush(bridge, true);
	pthread_mutex_lock(&lock);
	finished = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

void worker_prepare(void)
{
	pthread_condattr_t clock;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &clock);
	pthread_condattr_destroy(&clock);
	pthread_mutex_lock(&lock);
	finish_wanted = finished = false;
	running = true;
	pthread_mutex_unlock(&lock);
}

void worker_serve(struct bridge *bridge)
{
	work(bridge);
}

void worker_ask(void)
{
	pthread_mutex_lock(&lock);
	finish_wanted = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

bool worker_start(struct bridge *bridge)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, previous;

	worker_prepare();
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &previous); /* inherited: the target's handlers never run on it */
	running = pthread_create(&thread, &attributes, work, bridge) == 0;
	pthread_sigmask(SIG_SETMASK, &previous, NULL);
	pthread_attr_destroy(&attributes);
	return running;
}

bool worker_finish(void)
{
	struct timespec deadline = deadline_after(FINISH_TIMEOUT_S * 1000000000ull);
	bool done;
	int result = 0;

	if (!running)
		return false;
	pthread_mutex_lock(&lock);
	finish_wanted = true;
	pthread_cond_broadcast(&changed);
	while (!finished && result != ETIMEDOUT)
		result = pthread_cond_timedwait(&changed, &lock, &deadline);
	done = finished;
	pthread_mutex_unlock(&lock);
	return done;
}
