/* SPDX-License-Identifier: GPL-2.0-only */
#include "cupti_bridge/call_table.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define CALL_ENTRY(name, cbid) [cbid] = #name,

static const char *runtime_names[CALL_TABLE_SIZE] = {CUPTI_ABI_RUNTIME_CALLS(CALL_ENTRY)};
static const char *driver_names[CALL_TABLE_SIZE] = {CUPTI_ABI_DRIVER_CALLS(CALL_ENTRY)};

const char *call_table_name(uint32_t domain, uint32_t cbid)
{
	if (cbid >= CALL_TABLE_SIZE)
		return NULL;
	return domain == CUPTI_ABI_DOMAIN_RUNTIME ? runtime_names[cbid] : driver_names[cbid];
}

/* Length of the name without "_v12060", "_ptsz" and "_ptds" at its end. */
static size_t stem_length(const char *name)
{
	size_t length = strlen(name);

	for (;;) {
		size_t i = length;

		if (length > 5 &&
		    (!strncmp(name + length - 5, "_ptsz", 5) || !strncmp(name + length - 5, "_ptds", 5))) {
			length -= 5;
			continue;
		}
		while (i && isdigit((unsigned char)name[i - 1]))
			i--;
		if (i == length || i < 3 || name[i - 1] != 'v' || name[i - 2] != '_')
			return length;
		length = i - 2;
	}
}

static bool is_version_of_known(const char *const *names, uint32_t known, const char *name)
{
	size_t length = stem_length(name);

	for (uint32_t cbid = 0; cbid < known; cbid++)
		if (names[cbid] && stem_length(names[cbid]) == length && !strncmp(names[cbid], name, length))
			return true;
	return false;
}

static void extend(const char **names, uint32_t domain, uint32_t known, cupti_abi_cuptiGetCallbackName name)
{
	for (uint32_t cbid = known; cbid < CALL_TABLE_SIZE; cbid++) {
		const char *text = NULL;

		/* Ids are dense: the first without a name ends them. */
		if (name(domain, cbid, &text) != CUPTI_ABI_SUCCESS || !text || !strcmp(text, "<unknown>"))
			return;
		if (is_version_of_known(names, known, text))
			names[cbid] = text; /* CUPTI's own constant */
	}
}

void call_table_extend(cupti_abi_cuptiGetCallbackName name)
{
	if (!name)
		return;
	extend(runtime_names, CUPTI_ABI_DOMAIN_RUNTIME, CUPTI_ABI_RUNTIME_CBID_END, name);
	extend(driver_names, CUPTI_ABI_DOMAIN_DRIVER, CUPTI_ABI_DRIVER_CBID_END, name);
}
