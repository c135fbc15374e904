/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plants that wait for the kernel itself: a lock on a file, a grace period.
 */
#include <fcntl.h>
#include <linux/membarrier.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

#define LAUNCHER (1u << PLACE_LAUNCHER)

/* A thread has the file locked, with an open file of its own, while the runner wants it. */
struct file_lock {
	pthread_t holder;
	sem_t wanted, taken;
	int files[2]; /* the runner's and the holder's */
	uint64_t hold_ns;
	bool over;
};

static void *hold_file(void *argument)
{
	struct file_lock *scene = argument;

	for (;;) {
		while (sem_wait(&scene->wanted))
			;
		if (__atomic_load_n(&scene->over, __ATOMIC_ACQUIRE))
			return NULL;
		check(!flock(scene->files[1], LOCK_EX), "flock");
		sem_post(&scene->taken);
		sleep_ns(scene->hold_ns);
		check(!flock(scene->files[1], LOCK_UN), "flock");
	}
}

static void start_file_holder(struct plant *plant)
{
	struct file_lock *scene = calloc(1, sizeof(*scene));
	char path[64];

	check(scene, "calloc");
	plant->state = scene;
	scene->hold_ns = plant->duration_ns;
	scene->files[0] = memfd_create("locked", MFD_CLOEXEC);
	check(scene->files[0] >= 0, "memfd_create");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", scene->files[0]);
	scene->files[1] = open(path, O_RDWR | O_CLOEXEC);
	check(scene->files[1] >= 0, path);
	sem_init(&scene->wanted, 0, 0);
	sem_init(&scene->taken, 0, 0);
	scene->holder = start_thread("holder", hold_file, scene);
}

static void await_file_holder(struct plant *plant)
{
	struct file_lock *scene = plant->state;

	sem_post(&scene->wanted);
	while (sem_wait(&scene->taken))
		;
}

static void want_file(struct plant *plant)
{
	struct file_lock *scene = plant->state;

	check(!flock(scene->files[0], LOCK_EX), "flock");
	check(!flock(scene->files[0], LOCK_UN), "flock");
}

static void end_file_holder(struct plant *plant)
{
	struct file_lock *scene = plant->state;

	__atomic_store_n(&scene->over, true, __ATOMIC_RELEASE);
	sem_post(&scene->wanted);
	pthread_join(scene->holder, NULL);
	close(scene->files[0]);
	close(scene->files[1]);
	free(scene);
}

/* Barriers on all CPUs: each waits until a thread of the kernel has seen them all pass by. */
static void pass_barriers(struct plant *plant)
{
	uint64_t end = now_ns() + plant->duration_ns;

	do {
		check(!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0), "membarrier");
	} while (now_ns() < end);
}

const struct plant_kind kinds_of_kernel[] = {
    {.name = "file_lock",
     .code = "wait.lock",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER,
     .set_up = start_file_holder,
     .prepare = await_file_holder,
     .run = want_file,
     .tear_down = end_file_holder},
    {.name = "barrier",
     .code = "wait.syscall",
     .measure = MEASURE_BLOCKED,
     .places = LAUNCHER | 1u << PLACE_WORKER,
     .run = pass_barriers},
    {.name = NULL},
};
