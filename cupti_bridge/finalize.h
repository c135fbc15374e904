/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cuptiFinalize where CUPTI's documentation wants it: in a callback at the end of a call of the program.
 *
 *	idle ──ask──► asked ──a call of the program ends──► running ──► done or failed
 *	  ▲             └──nobody called CUDA in time──► idle
 *	  └── until forbid: the process exits
 *
 * One for the process. The thread that waits and those that call CUDA share nothing but the state, so a call
 * that comes too late, or in several threads at once, finds nothing to do.
 */
#ifndef WHYIDLE_CUPTI_FINALIZE_H
#define WHYIDLE_CUPTI_FINALIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/cupti_abi.h"

enum finalize_result {
	FINALIZE_DONE,
	FINALIZE_NO_CALL,   /* nobody called CUDA in time; it is no longer asked for */
	FINALIZE_FAILED,    /* cuptiFinalize returned an error */
	FINALIZE_UNDER_WAY, /* it has begun and does not return: CUPTI must be left alone */
	FINALIZE_FORBIDDEN, /* the process exits: CUPTI must be left alone */
};

/* Asks for it. False: one is still under way, or the process exits. */
bool finalize_ask(void);

/* True while it is asked for and nobody has begun. */
bool finalize_is_asked(void);

/* At the end of a call: calls `finalize`, in one thread of all that come here, if it is asked for. */
void finalize_now(cupti_abi_cuptiFinalize finalize);

/* Waits for it: at most `call_ms` for a call of the program, and `end_ms` for one that has begun. */
enum finalize_result finalize_wait(uint32_t call_ms, uint32_t end_ms);

/* True while a thread of the program is in it. */
bool finalize_is_under_way(void);

/* The process exits: from now on none begins. Waits `end_ms` at most for one that has begun. */
void finalize_forbid(uint32_t end_ms);

#endif
