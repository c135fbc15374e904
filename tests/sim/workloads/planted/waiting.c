/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plants that block: asleep, on a lock, for a child, for a signal.
 */
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

#define ANYWHERE (1u << PLACE_LAUNCHER | 1u << PLACE_THREAD | 1u << PLACE_WORKER | 1u << PLACE_PROCESS)
#define LAUNCHER (1u << PLACE_LAUNCHER)

static void fall_asleep(struct plant *plant)
{
	sleep_ns(plant->duration_ns);
}

/*
 * Locks. The runner asks the holders to take the lock and knows that they have it, or queue for it, before it
 * wants it itself. Several holders have it one after the other: each queues before the one before it lets go.
 */

#define MOST_HOLDERS 3

struct lock_scene {
	pthread_mutex_t lock;
	sem_t wanted[MOST_HOLDERS], taken;
	int holders;
	uint64_t hold_ns;
	bool over;
	pthread_t threads[MOST_HOLDERS];
	pid_t child;
};

struct holder {
	struct lock_scene *scene;
	int number;
};

static void hold_on_request(struct lock_scene *scene, int number)
{
	for (;;) {
		while (sem_wait(&scene->wanted[number]))
			;
		if (__atomic_load_n(&scene->over, __ATOMIC_ACQUIRE))
			return;
		/* The first has it before it says so, the others are about to queue. */
		if (number)
			sem_post(&scene->taken);
		pthread_mutex_lock(&scene->lock);
		if (!number)
			sem_post(&scene->taken);
		sleep_ns(scene->hold_ns);
		pthread_mutex_unlock(&scene->lock);
	}
}

static void *holder_main(void *argument)
{
	struct holder *holder = argument;

	hold_on_request(holder->scene, holder->number);
	free(holder);
	return NULL;
}

static struct lock_scene *new_scene(struct plant *plant, int holders, bool between_processes)
{
	struct lock_scene *scene =
	    mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;

	check(scene != MAP_FAILED, "mmap");
	plant->state = scene;
	scene->holders = holders;
	scene->hold_ns = plant->duration_ns / (uint64_t)holders;
	pthread_mutexattr_init(&attributes);
	if (between_processes)
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&scene->lock, &attributes);
	sem_init(&scene->taken, between_processes, 0);
	for (int i = 0; i < holders; i++)
		sem_init(&scene->wanted[i], between_processes, 0);
	return scene;
}

static void start_holders(struct plant *plant, int holders)
{
	struct lock_scene *scene = new_scene(plant, holders, false);

	for (int i = 0; i < holders; i++) {
		struct holder *holder = malloc(sizeof(*holder));

		check(holder, "malloc");
		*holder = (struct holder){scene, i};
		scene->threads[i] = start_thread("holder", holder_main, holder);
	}
}

static void start_holder(struct plant *plant)
{
	start_holders(plant, 1);
}

static void start_several_holders(struct plant *plant)
{
	start_holders(plant, MOST_HOLDERS);
}

static void start_holder_process(struct plant *plant)
{
	struct lock_scene *scene = new_scene(plant, 1, true);

	scene->child = fork_named("holder");
	if (!scene->child) {
		hold_on_request(scene, 0);
		_exit(0);
	}
}

static void await_holders(struct plant *plant)
{
	struct lock_scene *scene = plant->state;

	for (int i = 0; i < scene->holders; i++) {
		sem_post(&scene->wanted[i]);
		while (sem_wait(&scene->taken))
			;
	}
}

static void want_lock(struct plant *plant)
{
	struct lock_scene *scene = plant->state;

	pthread_mutex_lock(&scene->lock);
	pthread_mutex_unlock(&scene->lock);
}

static void end_holders(struct plant *plant)
{
	struct lock_scene *scene = plant->state;

	__atomic_store_n(&scene->over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < scene->holders; i++) {
		sem_post(&scene->wanted[i]);
		if (!scene->child)
			pthread_join(scene->threads[i], NULL);
	}
	if (scene->child)
		waitpid(scene->child, NULL, 0);
	munmap(scene, sizeof(*scene));
}

/* A child that sleeps and ends; it is started, and waits to be let go, before the stall. */

struct child_scene {
	pid_t child;
	int start[2];
};

static void new_child_scene(struct plant *plant)
{
	plant->state = calloc(1, sizeof(struct child_scene));
	check(plant->state, "calloc");
}

static void start_child(struct plant *plant)
{
	struct child_scene *scene = plant->state;
	char byte;

	check(!pipe(scene->start), "pipe");
	scene->child = fork_named("sleeper");
	if (!scene->child) {
		if (read(scene->start[0], &byte, 1) == 1)
			sleep_ns(plant->duration_ns);
		_exit(0);
	}
}

static void await_child(struct plant *plant)
{
	struct child_scene *scene = plant->state;

	check(write(scene->start[1], "", 1) == 1, "write to the child");
	check(waitpid(scene->child, NULL, 0) == scene->child, "waitpid");
	close(scene->start[0]);
	close(scene->start[1]);
}

/* A signal that a thread sends after its sleep. */

struct signal_scene {
	pthread_t receiver, sender;
	sem_t wanted;
	uint64_t duration_ns;
	bool over;
};

static void *send_signals(void *argument)
{
	struct signal_scene *scene = argument;

	for (;;) {
		while (sem_wait(&scene->wanted))
			;
		if (__atomic_load_n(&scene->over, __ATOMIC_ACQUIRE))
			return NULL;
		sleep_ns(scene->duration_ns);
		pthread_kill(scene->receiver, SIGUSR1);
	}
}

static void start_sender(struct plant *plant)
{
	struct signal_scene *scene = calloc(1, sizeof(*scene));
	sigset_t set;

	check(scene, "calloc");
	plant->state = scene;
	scene->receiver = pthread_self();
	scene->duration_ns = plant->duration_ns;
	sem_init(&scene->wanted, 0, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	scene->sender = start_thread("sender", send_signals, scene);
}

static void await_signal(struct plant *plant)
{
	struct signal_scene *scene = plant->state;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sem_post(&scene->wanted);
	check(sigwaitinfo(&set, NULL) == SIGUSR1, "sigwaitinfo");
}

static void end_sender(struct plant *plant)
{
	struct signal_scene *scene = plant->state;

	__atomic_store_n(&scene->over, true, __ATOMIC_RELEASE);
	sem_post(&scene->wanted);
	pthread_join(scene->sender, NULL);
	free(scene);
}

const struct plant_kind kinds_of_waiting[] = {
    {.name = "sleep",
     .code = "wait.sleep",
     .measure = MEASURE_BLOCKED,
     .places = ANYWHERE,
     .run = fall_asleep},
    {.name = "lock",
     .code = "wait.lock",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_holder,
     .prepare = await_holders,
     .run = want_lock,
     .tear_down = end_holders},
    {.name = "lock_turns",
     .code = "wait.lock",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_several_holders,
     .prepare = await_holders,
     .run = want_lock,
     .tear_down = end_holders},
    {.name = "lock_shared",
     .code = "wait.lock",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_holder_process,
     .prepare = await_holders,
     .run = want_lock,
     .tear_down = end_holders},
    {.name = "child",
     .code = "wait.child",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = new_child_scene,
     .prepare = start_child,
     .run = await_child},
    {.name = "signal",
     .code = "wait.signal",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_sender,
     .run = await_signal,
     .tear_down = end_sender},
    {.name = NULL},
};
