/* SPDX-License-Identifier: GPL-2.0-only */
#include "gap_fixture.h"

#include <linux/futex.h>
#include <stdio.h>

struct timeline line;
uint32_t main_thread;

void gap_setup(void)
{
	timeline_begin(&line);
	main_thread = timeline_process(&line, MAIN, 0, "main");
	/* Launched long before its end. */
	timeline_kernel(&line, main_thread, 0, 1 * MS, 10 * MS);
}

void gap_teardown(void)
{
	timeline_end(&line);
}

void gap_again(void)
{
	gap_teardown();
	gap_setup();
}

void end_gap(void)
{
	timeline_kernel(&line, main_thread, 20 * MS - 5 * US, 20 * MS, 21 * MS);
}

uint32_t other_thread(uint32_t tid)
{
	char name[16];

	snprintf(name, sizeof(name), "thread %u", tid);
	return timeline_thread(&line, MAIN, tid, name);
}

struct offcpu *wait_for_lock_at(uint32_t thread, uint64_t out, uint64_t wake, uint32_t holder,
                                uint64_t address)
{
	struct offcpu *wait = timeline_futex(&line, thread, out, wake, wake, holder, address);

	wait->args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
	wait->args[2] = 2;
	return wait;
}

const struct cause *cause_there(enum cause_code code, enum cause_role role)
{
	const struct cause *cause;

	array_for_each (cause, &line.analysis.devices.items[0].causes) {
		if (cause->code == code && cause->role == role)
			return cause;
	}
	cr_assert(false, "%s@%s is not there", cause_code_name(code), cause_role_name(role));
	return NULL;
}
