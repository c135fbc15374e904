// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/recorder_parts.h"

void recorder_say(const struct recorder *recorder, const char *format, ...)
{
	struct error line;
	char text[ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	error_set(&line, 0, "%s", text); /* takes control characters out */
	if (recorder->observer->line)
		recorder->observer->line(recorder->observer->context, line.text);
}

void recorder_note_error(struct recorder *recorder, int err, const struct error *error)
{
	if (err >= 0 || recorder->write_failed)
		return;
	recorder->write_failed = true;
	recorder_say(recorder, "%s; the command goes on, what was recorded so far is kept", error->text);
}

void recorder_put_info(struct recorder *recorder, const char *key, const char *value)
{
	struct error error = {0};

	recorder_note_error(recorder, session_writer_info(recorder->writer, key, value, &error), &error);
}

void recorder_put_number(struct recorder *recorder, const char *key, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	recorder_put_info(recorder, key, text);
}

void recorder_degrade(struct recorder *recorder, const char *format, ...)
{
	char text[ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (size_t i = 0; i < recorder->degraded_count; i++) {
		if (!strcmp(recorder->degraded[i], text))
			return;
	}
	if (recorder->degraded_count == MAX_DEGRADED)
		return;
	recorder->degraded[recorder->degraded_count] = strdup(text);
	if (!recorder->degraded[recorder->degraded_count])
		return;
	recorder->degraded_count++;
	recorder_say(recorder, "%s", text);
	if (recorder->writer)
		recorder_put_info(recorder, "degraded", text);
}
