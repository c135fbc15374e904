/* SPDX-License-Identifier: GPL-2.0-only */
#include "collect/steal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/proc_file.h"

#define CPU_BYTES  8192 /* of /proc/cpuinfo: more than one CPU takes */
#define STAT_BYTES 512

struct steal_ticks steal_ticks_now(void)
{
	char text[STAT_BYTES];
	uint64_t user, nice, kernel, idle, wait, interrupts, soft, stolen;

	if (!proc_file_read("/proc/stat", text, sizeof(text)) ||
	    sscanf(text,
	           "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
	           " %" SCNu64,
	           &user, &nice, &kernel, &idle, &wait, &interrupts, &soft, &stolen) != 8)
		return (struct steal_ticks){0};
	return (struct steal_ticks){.ran = user + nice + kernel + interrupts + soft, .stolen = stolen};
}

double steal_share(const struct steal_ticks *before, const struct steal_ticks *after)
{
	uint64_t stolen = after->stolen > before->stolen ? after->stolen - before->stolen : 0;
	uint64_t ran = after->ran > before->ran ? after->ran - before->ran : 0;

	return stolen ? (double)stolen / (double)(stolen + ran) : 0;
}

bool steal_possible(void)
{
	char text[CPU_BYTES];

	/* x86 has a flag for it; where there is none, only what has been stolen tells. */
	return (proc_file_read("/proc/cpuinfo", text, sizeof(text)) && strstr(text, " hypervisor")) ||
	       steal_ticks_now().stolen;
}
