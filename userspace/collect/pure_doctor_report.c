// SPDX-License-Identifier: GPL-2.0-only
#include "collect/pure_doctor_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char *clean_text(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return NULL;
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	}
	return text;
}

struct doctor_check *doctor_add(struct doctor_report *report, const char *name, enum doctor_status status,
                                const char *format, ...)
{
	struct doctor_check *check = array_add(report);
	va_list args;

	if (!check)
		return NULL;
	check->name = name;
	check->status = status;
	va_start(args, format);
	check->detail = clean_text(format, args);
	va_end(args);
	return check;
}

void doctor_fix(struct doctor_check *check, const char *format, ...)
{
	va_list args;

	if (!check)
		return;
	va_start(args, format);
	check->fix = clean_text(format, args);
	va_end(args);
}

void doctor_report_free(struct doctor_report *report)
{
	struct doctor_check *check;

	array_for_each (check, report) {
		free(check->detail);
		free(check->fix);
	}
	array_free(report);
}

bool doctor_can_record(const struct doctor_report *report)
{
	const struct doctor_check *check;

	array_for_each (check, report) {
		if (check->essential && check->status == DOCTOR_MISSING)
			return false;
	}
	return true;
}
