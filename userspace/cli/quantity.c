// SPDX-License-Identifier: GPL-2.0-only
#include "cli/quantity.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define SECOND_NS     1000000000ULL
#define PERCENT_PPM   10000ULL
#define ABSOLUTE_FROM 1000000000ULL /* window ends above this are nanoseconds, not seconds */

/* Multiplies and adds; false on overflow. */
static bool step(uint64_t *value, uint64_t factor, uint64_t plus)
{
	return !__builtin_mul_overflow(*value, factor, value) && !__builtin_add_overflow(*value, plus, value);
}

/* Digits at *text, which is moved behind them. */
static int digits(const char **text, uint64_t *value)
{
	const char *start = *text;

	*value = 0;
	for (; **text >= '0' && **text <= '9'; (*text)++) {
		if (!step(value, 10, **text - '0'))
			return -ERANGE;
	}
	return *text == start ? -EINVAL : 0;
}

int quantity_number(const char *text, uint64_t *value)
{
	uint64_t number;
	int err = digits(&text, &number);

	if (err || *text)
		return err ? err : -EINVAL;
	*value = number;
	return 0;
}

int quantity_bytes(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMG";
	const char *unit;
	uint64_t number;
	int err = digits(&text, &number);

	if (err)
		return err;
	if (*text) {
		unit = strchr(units, *text == 'k' ? 'K' : *text);
		if (!unit || (text[1] && strcmp(text + 1, "iB") && strcmp(text + 1, "B")))
			return -EINVAL;
		for (; unit >= units; unit--) {
			if (!step(&number, 1024, 0))
				return -ERANGE;
		}
	}
	*bytes = number;
	return 0;
}

/* A decimal number times `unit`: "1.5" with a unit of 1000 gives 1500. Digits that do not count are cut. */
static int scaled(const char **text, uint64_t unit, uint64_t *value)
{
	uint64_t part;
	int err = digits(text, value);

	if (err)
		return err;
	if (!step(value, unit, 0))
		return -ERANGE;
	if (**text != '.' || (*text)[1] == '.')
		return 0;
	(*text)++;
	if (**text < '0' || **text > '9')
		return -EINVAL;
	for (; **text >= '0' && **text <= '9'; (*text)++) {
		unit /= 10;
		part = unit * (**text - '0');
		if (!step(value, 1, part))
			return -ERANGE;
	}
	return 0;
}

/* `bare` is the unit of a number that has none. */
static int time_in(const char *text, const char *bare, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1},
	             {"us", 1000},
	             {"ms", 1000000},
	             {"s", SECOND_NS},
	             {"m", 60 * SECOND_NS},
	             {"h", 3600 * SECOND_NS},
	             {"d", 86400 * SECOND_NS}};
	const char *end = text + strspn(text, "0123456789."), *unit = *end ? end : bare;
	uint64_t value;
	int err;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name))
			continue;
		err = scaled(&text, units[i].ns, &value);
		if (!err && text != end)
			err = -EINVAL;
		if (!err)
			*ns = value;
		return err;
	}
	return -EINVAL;
}

int quantity_time(const char *text, uint64_t *ns)
{
	return time_in(text, strcmp(text, "0") ? "" : "ns", ns);
}

int quantity_seconds(const char *text, uint64_t *ns)
{
	return time_in(text, "s", ns);
}

int quantity_share(const char *text, uint64_t *ppm)
{
	uint64_t value;
	int err = scaled(&text, PERCENT_PPM, &value);

	if (err || strcmp(text, "%"))
		return err ? err : -EINVAL;
	if (value > 100 * PERCENT_PPM)
		return -ERANGE;
	*ppm = value;
	return 0;
}

static int window_end(const char **text, struct window_bound *bound)
{
	const char *start = *text;
	uint64_t whole;
	int err;

	memset(bound, 0, sizeof(*bound));
	if (**text < '0' || **text > '9')
		return 0;
	bound->given = true;
	err = digits(text, &whole);
	if (err)
		return err;
	if (whole > ABSOLUTE_FROM) {
		bound->absolute = true;
		bound->ns = whole;
		return 0;
	}
	*text = start;
	return scaled(text, SECOND_NS, &bound->ns);
}

int quantity_window(const char *text, struct window *window)
{
	struct window result = {.given = true};
	int err = window_end(&text, &result.from);

	if (err)
		return err;
	if (strncmp(text, "..", 2))
		return -EINVAL;
	text += 2;
	err = window_end(&text, &result.to);
	if (err)
		return err;
	if (*text)
		return -EINVAL;
	*window = result;
	return 0;
}

int quantity_range(const char *text, struct range *range)
{
	struct range result = {.given = true, .from = 0, .to = UINT64_MAX};
	const char *dots = strstr(text, "..");
	char first[24];
	int err = 0;

	if (!dots || (size_t)(dots - text) >= sizeof(first))
		return -EINVAL;
	memcpy(first, text, (size_t)(dots - text));
	first[dots - text] = '\0';
	if (*first)
		err = quantity_number(first, &result.from);
	if (!err && dots[2])
		err = quantity_number(dots + 2, &result.to);
	if (!err && result.from > result.to)
		err = -EINVAL;
	if (!err)
		*range = result;
	return err;
}

int window_resolve(const struct window *window, uint64_t session_start_ns, uint64_t session_end_ns,
                   uint64_t *start_ns, uint64_t *end_ns)
{
	uint64_t start = session_start_ns, end = session_end_ns;

	if (window->from.given)
		start = window->from.absolute ? window->from.ns : session_start_ns + window->from.ns;
	if (window->to.given)
		end = window->to.absolute ? window->to.ns : session_start_ns + window->to.ns;
	if (start >= end || start >= session_end_ns || end <= session_start_ns)
		return -EINVAL;
	*start_ns = start;
	*end_ns = end;
	return 0;
}
