/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/finalize.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cupti_bridge/clock.h"

enum finalize_state {
	STATE_IDLE,
	STATE_ASKED,
	STATE_RUNNING,
	STATE_DONE,
	STATE_FAILED,
	STATE_FORBIDDEN,
};

static uint32_t state; /* enum finalize_state (atomic) */

static uint32_t load(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE);
}

static bool change(uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void wake(void)
{
	syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Waits at most that long for the state to be another. */
static void wait_while(uint32_t value, uint32_t milliseconds)
{
	uint64_t now_ns, end_ns = clock_monotonic_ns() + milliseconds * 1000000ull;

	while (load() == value && (now_ns = clock_monotonic_ns()) < end_ns) {
		const struct timespec left = {
		    .tv_sec = (time_t)((end_ns - now_ns) / 1000000000u),
		    .tv_nsec = (long)((end_ns - now_ns) % 1000000000u),
		};

		syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, value, &left, NULL, 0);
	}
}

bool finalize_ask(void)
{
	return change(STATE_IDLE, STATE_ASKED) || change(STATE_DONE, STATE_ASKED) ||
	       change(STATE_FAILED, STATE_ASKED);
}

bool finalize_is_asked(void)
{
	return load() == STATE_ASKED;
}

void finalize_now(cupti_abi_cuptiFinalize finalize)
{
	cupti_abi_result result;

	if (!change(STATE_ASKED, STATE_RUNNING))
		return;
	result = finalize();
	__atomic_store_n(&state, result == CUPTI_ABI_SUCCESS ? STATE_DONE : STATE_FAILED, __ATOMIC_RELEASE);
	wake();
}

enum finalize_result finalize_wait(uint32_t call_ms, uint32_t end_ms)
{
	wait_while(STATE_ASKED, call_ms);
	if (change(STATE_ASKED, STATE_IDLE))
		return FINALIZE_NO_CALL;
	wait_while(STATE_RUNNING, end_ms);
	switch (load()) {
	case STATE_DONE:
		return FINALIZE_DONE;
	case STATE_FAILED:
		return FINALIZE_FAILED;
	case STATE_RUNNING:
		return FINALIZE_UNDER_WAY;
	default:
		return FINALIZE_FORBIDDEN;
	}
}

bool finalize_is_under_way(void)
{
	return load() == STATE_RUNNING;
}

void finalize_forbid(uint32_t end_ms)
{
	static const uint32_t from[] = {STATE_IDLE, STATE_ASKED, STATE_DONE, STATE_FAILED};

	for (;;) {
		for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
			if (change(from[i], STATE_FORBIDDEN)) {
				wake();
				return;
			}
		}
		/* Asked for again by now, forbidden already, or under way. */
		if (load() == STATE_FORBIDDEN)
			return;
		if (load() == STATE_RUNNING) {
			wait_while(STATE_RUNNING, end_ms);
			if (load() == STATE_RUNNING)
				return; /* its end is no use any more: nobody asks again */
		}
	}
}
