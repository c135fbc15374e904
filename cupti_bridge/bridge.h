/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bridge of this process: what its parts share, and in which phase it is.
 *
 *   idle ──► connected ──► running ──► stopped        idle: no collector asked for it, nothing was touched
 *                └───────► failed                     failed: CUPTI cannot be used; the ring says why
 *
 * Everything here is owned by the process that loaded the bridge. A forked child is none of that: it must
 * neither write to the ring nor call CUPTI, whatever phase its copy says.
 */
#ifndef WHYIDLE_CUPTI_BRIDGE_H
#define WHYIDLE_CUPTI_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cupti_bridge/collector_link.h"
#include "cupti_bridge/convert.h"
#include "cupti_bridge/cupti_library.h"
#include "cupti_bridge/name_table.h"
#include "cupti_bridge/ring_writer.h"

struct bridge {
	pid_t pid;                     /* process that owns all this */
	uint32_t forked;               /* 1 in a forked child (atomic) */
	const volatile uint32_t *mark; /* 1, and 0 in a forked child; NULL: the kernel cannot do that */
	uint32_t muted;                /* 1: nobody reads any more, or the process is exiting (atomic) */
	uint32_t exiting;              /* 1: the process is (atomic) */
	bool late;                     /* put into a running process: it has to be able to leave again */
	bool finalize;                 /* then CUPTI is finalised (finalize.h); only where `late` */
	enum ring_phase phase;
	cupti_abi_result start_error; /* of the last attempt to start CUPTI, 0 none */
	struct collector_link link;
	struct ring_writer ring;
	struct name_table *names;
	struct cuda_driver driver;
	struct cupti_library cupti;
	struct converter converter;
	uint32_t clock; /* enum ring_clock */
	uint64_t clock_error_ns;
	uint64_t calibrated_ns; /* when the offset of the clocks was last read */
	uint64_t delivered_ns;  /* when CUPTI last handed over a buffer (atomic) */
};

/* Makes this process the owner of the bridge. */
void bridge_own(struct bridge *bridge);

/* False in a forked child, also in one made without the C library's knowledge. */
bool bridge_is_owner(const struct bridge *bridge);

/* True if records are wanted: owner, and not muted. Mutes the bridge if the collector turns out to be gone.
 */
bool bridge_is_wanted(struct bridge *bridge);

/* True if the error means that another tool has CUPTI, which may let go of it again. */
bool bridge_cupti_is_taken(cupti_abi_result error);

/* Writes a RING_STATUS record and publishes the phase. The last one, unless CUPTI may be had later
 * (bridge.late). `error` is a CUPTI result, 0 none. */
void bridge_set_phase(struct bridge *bridge, enum ring_phase phase, cupti_abi_result error, const char *text);

/* Writes the RING_HELLO record. */
void bridge_say_hello(struct bridge *bridge);

#endif
