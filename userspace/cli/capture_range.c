// SPDX-License-Identifier: GPL-2.0-only
#include "cli/capture_range.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "model/model.h"

#define PROFILER "cudaProfilerApi"
#define NVTX     "nvtx:"

int capture_range_check(const char *text, struct error *error)
{
	if (!strcmp(text, PROFILER) || (!strncmp(text, NVTX, strlen(NVTX)) && text[strlen(NVTX)]))
		return 0;
	return error_set(error, -EINVAL, "--capture-range: '%s' is neither %s nor %sNAME", text, PROFILER,
	                 NVTX);
}

/* The runtime's function or the driver's, with whatever version CUPTI puts behind the name. */
static bool is_call(const struct model *model, const struct call *call, const char *name)
{
	const char *function = model_string(model, call->function);

	if (strncmp(function, "cuda", 4) == 0)
		function += 4;
	else if (strncmp(function, "cu", 2) == 0)
		function += 2;
	else
		return false;
	return strncmp(function, name, strlen(name)) == 0;
}

/* The first call of that name at or after a time, of any thread; UINT64_MAX if there is none. */
static uint64_t first_call(const struct model *model, const char *name, uint64_t from_ns, bool its_exit)
{
	uint64_t best = UINT64_MAX, found = UINT64_MAX;

	for (uint32_t t = 0; t < model->threads.count; t++) {
		const struct call *call;

		array_for_each (call, &model->threads.items[t].calls) {
			if (call->enter_ns < from_ns || call->enter_ns >= best || !is_call(model, call, name))
				continue;
			best = call->enter_ns;
			found = its_exit ? call->exit_ns : call->enter_ns;
		}
	}
	return found;
}

static bool find_profiler(const struct model *model, uint64_t *start_ns, uint64_t *end_ns)
{
	*start_ns = first_call(model, "ProfilerStart", 0, true);
	if (*start_ns == UINT64_MAX)
		return false;
	*end_ns = first_call(model, "ProfilerStop", *start_ns, false);
	return true;
}

/* "NAME@DOMAIN" is the scope "DOMAIN:NAME"; a name may hold an @ itself. */
static bool is_named(const char *scope, const char *wanted)
{
	const char *at = strrchr(wanted, '@'), *colon = at ? scope + strlen(at + 1) : NULL;

	if (!strcmp(scope, wanted))
		return true;
	if (!at || strlen(scope) != strlen(wanted) || *colon != ':')
		return false;
	return !memcmp(scope, at + 1, (size_t)(colon - scope)) &&
	       !memcmp(colon + 1, wanted, (size_t)(at - wanted));
}

static bool find_scope(const struct model *model, const char *name, uint64_t *start_ns, uint64_t *end_ns)
{
	bool found = false;

	for (uint32_t t = 0; t < model->threads.count; t++) {
		const struct scope *scope;

		array_for_each (scope, &model->threads.items[t].scopes) {
			if (scope->kind != SCOPE_ANNOTATION && scope->kind != SCOPE_RANGE)
				continue;
			if ((found && scope->start_ns >= *start_ns) ||
			    !is_named(model_string(model, scope->name), name))
				continue;
			found = true;
			*start_ns = scope->start_ns;
			*end_ns = scope->end_ns;
		}
	}
	return found;
}

int capture_range_find(const struct model *model, const char *text, uint64_t *start_ns, uint64_t *end_ns,
                       struct error *error)
{
	bool profiler = !strcmp(text, PROFILER);

	if (!(profiler ? find_profiler(model, start_ns, end_ns)
	               : find_scope(model, text + strlen(NVTX), start_ns, end_ns)))
		return error_set(error, -EINVAL,
		                 profiler ? "--capture-range: the program did not call cudaProfilerStart"
		                          : "--capture-range: the program has no range of that name (whyidle "
		                            "report --table ranges lists them)");
	if (*end_ns > model->end_ns)
		*end_ns = model->end_ns;
	if (*end_ns <= *start_ns)
		return error_set(error, -EINVAL, "--capture-range: that range is empty");
	return 0;
}
