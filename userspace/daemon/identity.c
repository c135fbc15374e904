// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/identity.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "collect/pure_process_match.h"

#define POD_CHARS 36 /* of a UID */

/* UIDs are RFC 4122's, or 32 digits for pods of a static manifest. */
static size_t uid_length(const char *text)
{
	size_t length = 0;

	while (length < POD_CHARS &&
	       (isxdigit((unsigned char)text[length]) || text[length] == '-' || text[length] == '_'))
		length++;
	return length == POD_CHARS || length == 32 ? length : 0;
}

static void find_pod(struct identity *identity, const char *text)
{
	for (const char *at = strstr(text, "pod"); at; at = strstr(at + 1, "pod")) {
		size_t length = uid_length(at + 3);

		if (!length)
			continue;
		for (size_t i = 0; i < length; i++)
			identity->pod[i] = at[3 + i] == '_' ? '-' : at[3 + i];
		identity->pod[length] = '\0';
	}
}

void identity_from_cgroup(struct identity *identity, const char *text)
{
	char id[65];

	identity->container[0] = identity->pod[0] = '\0';
	if (cgroup_container(text, id))
		snprintf(identity->container, sizeof(identity->container), "%.*s", IDENTITY_CONTAINER, id);
	find_pod(identity, text);
}
