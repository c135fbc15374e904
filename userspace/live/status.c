// SPDX-License-Identifier: GPL-2.0-only
#include "live/status.h"

#include <errno.h>
#include <string.h>

#include "report/format.h"

int status_check(const json_t *status, struct error *error)
{
	const char *schema = json_string_value(json_object_get(status, "schema"));

	if (!schema || strcmp(schema, "whyidle.status/1"))
		return error_set(error, -EPROTO, "this is not the status of a daemon of this version");
	return 0;
}

json_t *status_parse(const char *text, size_t length, struct error *error)
{
	json_error_t what;
	json_t *status = json_loadb(text, length, JSON_ALLOW_NUL, &what);

	if (!status_check(status, error))
		return status;
	json_decref(status);
	return NULL;
}

uint64_t status_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

double status_real(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

const char *status_text(char *buffer, size_t size, const json_t *object, const char *key, unsigned columns)
{
	return format_text(buffer, size, json_string_value(json_object_get(object, key)), columns);
}

const json_t *status_report(const json_t *status)
{
	const json_t *report = json_object_get(json_object_get(status, "window"), "report");

	return json_is_object(report) ? report : NULL;
}
