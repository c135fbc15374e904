// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/identity.h"

#include <stdio.h>

#include "collect/pure_process_match.h"

void identity_from_cgroup(struct identity *identity, const char *text)
{
	char id[65];

	identity->container[0] = identity->pod[0] = '\0';
	if (cgroup_container(text, id))
		snprintf(identity->container, sizeof(identity->container), "%.*s", IDENTITY_CONTAINER, id);
	if (!cgroup_pod(text, identity->pod))
		identity->pod[0] = '\0';
}
