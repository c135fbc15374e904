/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plants that use the CPU, or want it and do not get it.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/workloads/planted/planted.h"

#define ANYWHERE (1u << PLACE_LAUNCHER | 1u << PLACE_THREAD | 1u << PLACE_WORKER | 1u << PLACE_PROCESS)
#define OWN      (1u << PLACE_LAUNCHER | 1u << PLACE_WORKER)

static void compute(struct plant *plant)
{
	compute_for(plant->duration_ns);
}

/* Contention: neighbours on the runner's CPU, and one on another so that it is no way out. */

#define NEIGHBOURS      2
#define MOST_NEIGHBOURS 3

struct crowd {
	pid_t pids[MOST_NEIGHBOURS];
	pthread_t threads[MOST_NEIGHBOURS];
	int count, thread_count;
	bool over;
};

static pid_t start_neighbour(int cpu)
{
	pid_t child = fork_named("hog");

	if (child)
		return child;
	pin_to(cpu);
	for (;;)
		compute_for(100000000);
}

static void gather_crowd(struct plant *plant)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	int own = cpu_allowed(true), other = cpu_allowed(false);

	check(crowd, "calloc");
	plant->state = crowd;
	if (plant->duration_ns) {
		while (crowd->count < NEIGHBOURS)
			crowd->pids[crowd->count++] = start_neighbour(own);
		if (other != own)
			crowd->pids[crowd->count++] = start_neighbour(other);
	}
	pin_to(own);
}

static void *crowd_own_cpu(void *argument)
{
	struct crowd *crowd = argument;

	while (!__atomic_load_n(&crowd->over, __ATOMIC_ACQUIRE))
		compute_for(1000000);
	return NULL;
}

/* Bound: threads of its own process crowd the one CPU that they all may use, and nobody is on the other. */
static void gather_neighbours(struct plant *plant)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	int own = cpu_allowed(true);

	check(crowd, "calloc");
	check(own != cpu_allowed(false), "two CPUs");
	plant->state = crowd;
	pin_to(own);
	while (plant->duration_ns && crowd->thread_count < NEIGHBOURS)
		crowd->threads[crowd->thread_count++] = start_thread("pool", crowd_own_cpu, crowd);
}

static void disperse_crowd(struct plant *plant)
{
	struct crowd *crowd = plant->state;

	__atomic_store_n(&crowd->over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < crowd->thread_count; i++)
		pthread_join(crowd->threads[i], NULL);
	for (int i = 0; i < crowd->count; i++) {
		kill(crowd->pids[i], SIGKILL);
		waitpid(crowd->pids[i], NULL, 0);
	}
	free(crowd);
}

/* The neighbours make about two thirds of it a wait for the CPU. */
static void compute_in_crowd(struct plant *plant)
{
	compute_for(plant->duration_ns / (NEIGHBOURS + 1));
}

/*
 * Throttled: the runner alone is in a control group whose quota is half the stall in every one and a half
 * stalls, so that a third of the time it computes and for the rest it is kept waiting.
 */
static void join_group(struct plant *plant)
{
	char path[512];
	FILE *file;

	if (!plant->duration_ns)
		return;
	check(plant->cgroup, "a plant in a control group without --cgroup");
	/* Version 1 takes a single thread, so that the simulated GPU's stays where it is. */
	snprintf(path, sizeof(path), "%s/tasks", plant->cgroup);
	if (access(path, F_OK))
		snprintf(path, sizeof(path), "%s/cgroup.procs", plant->cgroup);
	file = fopen(path, "w");
	check(file && fprintf(file, "0\n") > 0 && !fclose(file), path);
}

static void use_up_quota(struct plant *plant)
{
	compute_for(plant->duration_ns / 2);
}

const struct plant_kind kinds_of_running[] = {
    {.name = "compute", .code = "host.user_code", .places = ANYWHERE, .never_blocks = true, .run = compute},
    {.name = "serial",
     .code = "host.sync_then_serial",
     .places = 1u << PLACE_LAUNCHER,
     .drained = true,
     .never_blocks = true,
     .run = compute},
    {.name = "contention",
     .code = "sched.cpu_contention",
     .measure = MEASURE_DELAYED,
     .places = OWN,
     .set_up = gather_crowd,
     .run = compute_in_crowd,
     .tear_down = disperse_crowd},
    {.name = "bound",
     .code = "sched.affinity",
     .needs_idle = true,
     .measure = MEASURE_DELAYED,
     .places = OWN,
     .set_up = gather_neighbours,
     .run = compute_in_crowd,
     .tear_down = disperse_crowd},
    {.name = "throttled",
     .code = "sched.throttled",
     .measure = MEASURE_DELAYED,
     .places = OWN,
     .set_up = join_group,
     .run = use_up_quota},
    {.name = NULL},
};
