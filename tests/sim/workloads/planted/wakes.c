/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plants in which it matters what ended a wait: a thread that made something, a time-out, somebody who woke
 * the runner for nothing, a child that was made for this one item.
 */
#include <errno.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

#define LAUNCHER   (1u << PLACE_LAUNCHER)
#define CHATTERERS 2
#define CHATTER_NS 2000000

/* The maker computes for so long once it is asked, and then has an item. */
struct maker {
	pthread_t thread, chatterers[CHATTERERS];
	sem_t wanted, chatter[CHATTERERS];
	pthread_mutex_t lock;
	pthread_cond_t made;
	uint32_t items;    /* futex word; lock */
	uint32_t taken;    /* the runner's */
	uint64_t work_ns;  /* CPU time of an item */
	uint64_t delay_ns; /* in which the maker had no CPU, of the last item; written before it is there */
	bool delivers;     /* else it makes it and keeps it */
	bool over;
};

static bool is_over(const struct maker *maker)
{
	return __atomic_load_n(&maker->over, __ATOMIC_ACQUIRE);
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

static void futex(uint32_t *word, int operation, uint32_t value)
{
	syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void *make_items(void *argument)
{
	struct maker *maker = argument;

	for (;;) {
		uint64_t delay = run_delay_ns();

		wait_for(&maker->wanted);
		if (is_over(maker))
			return NULL;
		compute_for(maker->work_ns);
		maker->delay_ns = run_delay_ns() - delay;
		if (!maker->delivers)
			continue;
		pthread_mutex_lock(&maker->lock);
		__atomic_add_fetch(&maker->items, 1, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&maker->lock);
		pthread_cond_signal(&maker->made);
		futex(&maker->items, FUTEX_WAKE, 1);
	}
}

static struct maker *start_maker(struct plant *plant, uint64_t work_ns, bool delivers)
{
	struct maker *maker = calloc(1, sizeof(*maker));
	pthread_condattr_t attributes;

	check(maker, "calloc");
	plant->state = maker;
	maker->work_ns = work_ns;
	maker->delivers = delivers;
	sem_init(&maker->wanted, 0, 0);
	pthread_mutex_init(&maker->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&maker->made, &attributes);
	maker->thread = start_thread("maker", make_items, maker);
	return maker;
}

static void end_maker(struct plant *plant)
{
	struct maker *maker = plant->state;

	__atomic_store_n(&maker->over, true, __ATOMIC_RELEASE);
	sem_post(&maker->wanted);
	pthread_join(maker->thread, NULL);
	for (int i = 0; i < CHATTERERS && maker->chatterers[i]; i++) {
		sem_post(&maker->chatter[i]);
		pthread_join(maker->chatterers[i], NULL);
	}
	free(maker);
}

/*
 * Twins: a wait with a time limit. In one the item comes long before it, in the other it never comes and the
 * wait lasts as long as was planted, though a thread computes meanwhile.
 */
static int take_within(struct maker *maker, uint64_t limit_ns)
{
	uint64_t until = now_ns() + limit_ns;
	struct timespec deadline = {(time_t)(until / 1000000000ULL), (long)(until % 1000000000ULL)};
	int error = 0;

	sem_post(&maker->wanted);
	pthread_mutex_lock(&maker->lock);
	while (!error && maker->items == maker->taken)
		error = pthread_cond_timedwait(&maker->made, &maker->lock, &deadline);
	maker->taken = maker->items;
	pthread_mutex_unlock(&maker->lock);
	return error;
}

static void start_prompt_maker(struct plant *plant)
{
	start_maker(plant, plant->duration_ns, true);
}

static void take_in_time(struct plant *plant)
{
	struct maker *maker = plant->state;

	check(!take_within(maker, 10000000000ULL), "an item within 10 s");
	plant->helpers_delay_ns = maker->delay_ns;
}

static void start_idle_maker(struct plant *plant)
{
	start_maker(plant, plant->duration_ns / 4, false);
}

static void take_in_vain(struct plant *plant)
{
	check(take_within(plant->state, plant->duration_ns) == ETIMEDOUT, "no item");
}

/*
 * Chatterers wake the runner every CHATTER_NS, one after the other, while there is no item yet; it looks and
 * waits on.
 */
struct chatterer {
	struct maker *maker;
	int number;
};

static void *chatter(void *argument)
{
	struct chatterer *chatterer = argument;
	struct maker *maker = chatterer->maker;
	int number = chatterer->number;

	free(chatterer);
	for (;;) {
		wait_for(&maker->chatter[number]);
		if (is_over(maker))
			return NULL;
		sleep_ns(CHATTER_NS);
		futex(&maker->items, FUTEX_WAKE, 1);
		sem_post(&maker->chatter[(number + 1) % CHATTERERS]);
	}
}

static void start_chatter(struct plant *plant)
{
	struct maker *maker = start_maker(plant, plant->duration_ns, true);

	for (int i = 0; i < CHATTERERS; i++)
		sem_init(&maker->chatter[i], 0, 0);
	for (int i = 0; i < CHATTERERS; i++) {
		struct chatterer *chatterer = malloc(sizeof(*chatterer));

		check(chatterer, "malloc");
		*chatterer = (struct chatterer){maker, i};
		maker->chatterers[i] = start_thread("chatterer", chatter, chatterer);
	}
	sem_post(&maker->chatter[0]);
}

static void take_amid_chatter(struct plant *plant)
{
	struct maker *maker = plant->state;

	sem_post(&maker->wanted);
	while (__atomic_load_n(&maker->items, __ATOMIC_ACQUIRE) == maker->taken)
		futex(&maker->items, FUTEX_WAIT, maker->taken);
	maker->taken++;
	plant->helpers_delay_ns = maker->delay_ns;
}

/* A worker for each item: it is forked, computes, delivers and ends, as loaders without persistent workers
 * do. */
struct respawn {
	pid_t child;
	int answer[2];
};

static void open_answers(struct plant *plant)
{
	struct respawn *respawn = calloc(1, sizeof(*respawn));

	check(respawn, "calloc");
	plant->state = respawn;
	check(!pipe(respawn->answer), "pipe");
}

static void reap_worker(struct plant *plant)
{
	struct respawn *respawn = plant->state;

	if (respawn->child)
		check(waitpid(respawn->child, NULL, 0) == respawn->child, "waitpid");
	respawn->child = 0;
}

static void take_from_new_worker(struct plant *plant)
{
	struct respawn *respawn = plant->state;
	uint64_t delay;

	respawn->child = fork_named("worker");
	if (!respawn->child) {
		compute_for(plant->duration_ns);
		delay = run_delay_ns();
		_exit(write(respawn->answer[1], &delay, sizeof(delay)) != sizeof(delay));
	}
	check(read(respawn->answer[0], &delay, sizeof(delay)) == sizeof(delay), "read from the worker");
	plant->helpers_delay_ns = delay;
}

static void close_answers(struct plant *plant)
{
	struct respawn *respawn = plant->state;

	reap_worker(plant);
	close(respawn->answer[0]);
	close(respawn->answer[1]);
	free(respawn);
}

const struct plant_kind kinds_of_wakes[] = {
    {.name = "timed_met",
     .code = "host.user_code",
     .role = "thread",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_prompt_maker,
     .run = take_in_time,
     .tear_down = end_maker},
    {.name = "timed_out",
     .code = "wait.sleep",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_idle_maker,
     .run = take_in_vain,
     .tear_down = end_maker},
    {.name = "false_wakes",
     .code = "host.user_code",
     .role = "thread",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_chatter,
     .run = take_amid_chatter,
     .tear_down = end_maker},
    {.name = "respawn",
     .code = "host.user_code",
     .role = "worker",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = open_answers,
     .prepare = reap_worker,
     .run = take_from_new_worker,
     .tear_down = close_answers},
    {.name = NULL},
};
