/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who a process is in the words of a fleet: its name, its container, its pod.
 *
 * Container and pod are taken from the names of its control groups (cgroup_container, cgroup_pod).
 */
#ifndef WHYIDLE_DAEMON_IDENTITY_H
#define WHYIDLE_DAEMON_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#define IDENTITY_CONTAINER 12 /* digits of a container's id that are kept, as docker shows them */

struct identity {
	char process[16];                       /* comm, any byte */
	char container[IDENTITY_CONTAINER + 1]; /* "" if it is in none */
	char pod[37];                           /* UID, "" if it is in none */
};

/* Container and pod from the text of /proc/PID/cgroup. */
void identity_from_cgroup(struct identity *identity, const char *text);

#endif
