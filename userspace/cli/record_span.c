// SPDX-License-Identifier: GPL-2.0-only
#include "cli/record_span.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/quantity.h"

static int parse_length(const char *option, const char *text, uint64_t *ns, struct error *error)
{
	/* A sum with a time of today must not overflow. */
	if (text && (quantity_seconds(text, ns) || !*ns || *ns > UINT64_MAX / 4))
		return error_set(error, -EINVAL, "record: %s: not a length of time: '%s' (10, 2.5, 500ms)",
		                 option, text);
	return 0;
}

static int parse_signal(const char *text, int *signal, struct error *error)
{
	static const struct {
		const char *name;
		int signal;
	} known[] = {{"none", 0}, {"sigterm", SIGTERM}, {"sigint", SIGINT}, {"sigkill", SIGKILL}};
	uint64_t number;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(text, known[i].name)) {
			*signal = known[i].signal;
			return 0;
		}
	}
	if (quantity_number(text, &number) || !number || number > (uint64_t)SIGRTMAX)
		return error_set(error, -EINVAL,
		                 "record: --kill: none, sigterm, sigint, sigkill or a number, not '%s'",
		                 text);
	*signal = (int)number;
	return 0;
}

int record_span_resolve(const struct record_span *span, struct recorder_options *options, struct error *error)
{
	if (span->kill && !span->duration)
		return error_set(error, -EINVAL, "record: --kill goes with --duration");
	if (parse_length("--delay", span->delay, &options->delay_ns, error) ||
	    parse_length("--duration", span->duration, &options->duration_ns, error))
		return -EINVAL;
	return span->kill ? parse_signal(span->kill, &options->kill_signal, error) : 0;
}
