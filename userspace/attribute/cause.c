/* SPDX-License-Identifier: GPL-2.0-only */
#include "attribute/cause.h"

#include <string.h>

static const struct {
	const char *name, *meaning;
} causes[CAUSE_COUNT] = {
#define CAUSE_ROW(name, code, meaning) [CAUSE_##name] = {code, meaning},
    CAUSE_TABLE(CAUSE_ROW)
#undef CAUSE_ROW
};

const char *cause_code_name(enum cause_code code)
{
	return (unsigned int)code < CAUSE_COUNT ? causes[code].name : "unknown.untraced";
}

const char *cause_code_meaning(enum cause_code code)
{
	return (unsigned int)code < CAUSE_COUNT ? causes[code].meaning : "";
}

const char *cause_role_name(enum cause_role role)
{
	static const char *const names[ROLE_COUNT] = {
	    [ROLE_LAUNCHER] = "launcher", [ROLE_WORKER] = "worker", [ROLE_THREAD] = "thread",
	    [ROLE_PROCESS] = "process",   [ROLE_DEVICE] = "device",
	};

	return (unsigned int)role < ROLE_COUNT ? names[role] : "device";
}

const char *confidence_name(enum confidence confidence)
{
	return confidence == CONFIDENCE_HIGH ? "high" : confidence == CONFIDENCE_MEDIUM ? "medium" : "low";
}

bool cause_is_unknown(enum cause_code code)
{
	return !strncmp(cause_code_name(code), "unknown.", 8);
}
