/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A training loop with planted stalls: one program for the whole matrix of tests/proof.
 *
 * A plant is KIND@PLACE:MS. The kind says what holds its runner up, the place who the runner is and why the
 * launcher waits for it:
 *
 *	launcher  the launching thread itself
 *	thread    another thread; the launcher hands it a request and waits on a condition variable
 *	worker    a forked child; request and answer go through pipes
 *	process   a process that is no child of this one (planted --serve), reached by a Unix socket
 *
 * The runner logs each stall itself. Nothing here knows what is recorded or reported.
 */
#ifndef WHYIDLE_SIM_PLANTED_H
#define WHYIDLE_SIM_PLANTED_H

#include <pthread.h>
#include <sys/un.h>

#include "tests/sim/workloads/common_workload.h"

#define MAX_PLANTS     4
#define MAX_NOISES     8
#define STALL_CAPACITY 65536

enum place { PLACE_LAUNCHER, PLACE_THREAD, PLACE_WORKER, PLACE_PROCESS, PLACE_COUNT };

/* What of a stall the plant caused. */
enum measure {
	MEASURE_RAN,     /* all but the run delay */
	MEASURE_BLOCKED, /* all but the run delay and the CPU time: the plant blocks */
	MEASURE_DELAYED, /* the run delay: others had the CPU, or it was throttled; since the request */
	MEASURE_DEVICE,  /* all idle time of the run: the launcher is always ahead */
};

struct stall_record {
	uint64_t begun_ns; /* when the runner turned to it, before it prepared */
	uint64_t start_ns, end_ns;
	uint64_t cpu_ns; /* of the runner */
	uint64_t
	    delay_ns; /* runnable without a CPU: the runner, and whom it waits for; what was stolen from it */
	uint64_t aside_ns; /* part of cpu_ns that serves the plant but is not what it plants */
};

/* In memory that the launcher and the runner share; the runner writes, the launcher reads at the end. */
struct stall_log {
	int32_t pid, tid;
	uint32_t count, dropped;
	uint64_t delay_ns;         /* run delay of the runner from its set-up to the end of its last stall */
	uint64_t helpers_delay_ns; /* of those that it waited for in its stalls */
	uint64_t requested_ns;     /* when the launcher last asked another process; 0: it never does */
	struct stall_record records[STALL_CAPACITY];
};

struct plant;

struct plant_kind {
	const char *name, *code;
	const char *role; /* NULL: that of the place */
	enum measure measure;
	unsigned int places; /* bits of enum place */
	bool drained;        /* the launcher synchronises in every step */
	bool never_blocks;   /* a stall's time that is neither CPU time nor run delay was stolen */
	bool needs_idle;     /* what cpu_allowed(false) names must be idle: work there is other load */
	/* Before CUDA is initialised, in the launcher; NULL: nothing. */
	void (*configure)(struct plant *plant);
	/* Once, in the runner; NULL: nothing. Threads and processes that the plant needs are its children. */
	void (*set_up)(struct plant *plant);
	/* Before each stall, in the runner, outside what is logged; NULL: nothing. */
	void (*prepare)(struct plant *plant);
	void (*run)(struct plant *plant);
	/* Once, in the runner if that is the launcher or its thread; NULL: nothing. */
	void (*tear_down)(struct plant *plant);
};

struct plant {
	const struct plant_kind *kind;
	enum place place;
	uint64_t duration_ns; /* 0: planted nothing, the loop is the same otherwise */
	const char *scratch;  /* file that the disk kinds read; NULL: none */
	const char *cgroup;   /* folder of a control group with a limit, for the runner; NULL: none */
	const char *clients;  /* socket on which a server is asked for work; NULL: none */
	struct gpu_step *step;
	struct stall_log *log;
	int log_file;                        /* memory of the log, to be sent to another process */
	uint64_t aside_ns;                   /* of the stall that runs */
	uint64_t helpers_delay_ns;           /* of the stall that runs: run delay of those it waits for */
	uint64_t device_ns;                  /* what the plant has the device do, in all */
	uint64_t first_delay_ns;             /* after set-up */
	uint64_t last_end_ns, last_delay_ns; /* at the end of the stall before */
	uint64_t elsewhere_ns, loop_ns; /* of the loop's time, in which the CPU that is to be idle was not */
	void *state;                    /* of the kind */
	void *channel;                  /* of the place */
};

/* kinds.c */
const struct plant_kind *plant_kind_find(const char *name);
const char *place_name(enum place place);
/* Reads KIND@PLACE:MS. Exits with a message if there is no such plant. */
void plant_parse(struct plant *plant, const char *text);

/* places.c */
void plant_log_create(struct plant *plant);
/* Starts the runner. After it plant_request has the runner go through one stall and waits for its end. */
void plant_start(struct plant *plant, const char *socket_path);
void plant_request(struct plant *plant);
void plant_stop(struct plant *plant);
/* --serve: answers the requests of one launcher after another, until it is killed. */
int plant_serve(const char *socket_path);

/* --ask: a client that connects to a server and asks for work every so often, until it is killed. */
int ask_for_work(const char *socket_path, uint64_t every_ns);

/* truth.c */
struct settlement {
	uint64_t planted_ns;   /* idle time that is the plant's doing */
	uint64_t contended_ns; /* idle time in the stalls in which the runner had no CPU */
	uint64_t beside_ns;    /* all other idle time that would not be there without the plant's code */
};
struct settlement plant_settle(const struct plant *plant, const struct workload *workload);

/* Kinds by subject; each table ends with a NULL name. */
extern const struct plant_kind kinds_of_running[], kinds_of_waiting[], kinds_of_storage[], kinds_of_memory[],
    kinds_of_cuda[], kinds_of_groups[], kinds_of_network[], kinds_of_wakes[], kinds_of_kernel[];

/* noise.c: what goes on beside a healthy loop. Exits with a message if there is none of that name. */
void noise_start(const char *name, const char *scratch);
void noise_stop_all(void);

/* Helpers for kinds */
struct sockaddr_un socket_address(const char *path);
void sleep_ns(uint64_t duration_ns);
void pin_to(int cpu);
/* The first or the last CPU that the program could use when it began. */
int cpu_allowed(bool last);
/* Time for which a CPU was idle since the machine began, by the kernel's account (in ticks, so roughly). */
uint64_t cpu_idle_ns(int cpu);
/* A joinable thread of that name. */
pthread_t start_thread(const char *name, void *(*run)(void *), void *argument);
/* Forked child of that name that ends with its parent. Returns 0 in the child. */
pid_t fork_named(const char *name);

#endif
