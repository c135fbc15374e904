// SPDX-License-Identifier: GPL-2.0-only
#include "cli/fail_if.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare_run.h"
#include "report/format.h"

#define DIGITS_MOST 6 /* before and behind the point */

/* ---- expressions ---- */

static int bad(const char *text, struct error *error)
{
	char shown[FORMAT_TEXT_SIZE(60)];

	return error_set(error, -EINVAL,
	                 "--fail-if: '%s' is not of the form 'idle > 20%%', 'cause:wait.disk > 5%%' or 'idle "
	                 "worse than FILE by 3%%'",
	                 format_text(shown, sizeof(shown), text, 60));
}

static const char *skip_spaces(const char *text)
{
	return text + strspn(text, " \t");
}

/* "20%", "0.5 %" and nothing behind it. */
static bool parse_percent(const char *text, double *share)
{
	double value = 0, part = 1;
	unsigned digits = 0;

	for (; *text >= '0' && *text <= '9'; text++, digits++)
		value = value * 10 + (*text - '0');
	if (!digits || digits > DIGITS_MOST)
		return false;
	if (*text == '.') {
		digits = 0;
		for (text++; *text >= '0' && *text <= '9'; text++, digits++)
			value += (*text - '0') * (part /= 10);
		if (!digits || digits > DIGITS_MOST)
			return false;
	}
	text = skip_spaces(text);
	*share = value / 100;
	return *text == '%' && !*skip_spaces(text + 1);
}

static int parse_role(struct cause_set *causes, const char *name, size_t length)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		const char *known = cause_role_name(role);

		if (strlen(known) == length && !strncmp(known, name, length)) {
			causes->has_role = true;
			causes->role = role;
			return 0;
		}
	}
	return -EINVAL;
}

/* "wait.disk", "wait.disk@worker", "wait" for all of its kind. */
static int parse_cause(struct cause_set *causes, const char *name, size_t length, struct error *error)
{
	size_t code_length = strcspn(name, "@ \t>");
	char shown[FORMAT_TEXT_SIZE(40)], given[64];
	unsigned found = 0;

	code_length = code_length > length ? length : code_length;
	for (int code = 0; code < CAUSE_COUNT; code++) {
		const char *known = cause_code_name(code);

		causes->codes[code] = !strncmp(known, name, code_length) &&
		                      (!known[code_length] || (code_length && known[code_length] == '.'));
		found += causes->codes[code];
	}
	snprintf(given, sizeof(given), "%.*s", (int)length, name);
	format_text(shown, sizeof(shown), given, 40);
	if (!found)
		return error_set(error, -EINVAL,
		                 "--fail-if: there is no cause '%s' (docs/causes.md lists them)", shown);
	if (code_length < length && parse_role(causes, name + code_length + 1, length - code_length - 1))
		return error_set(error, -EINVAL,
		                 "--fail-if: '%s': a role is launcher, worker, thread, process or device",
		                 shown);
	return 0;
}

static int parse_metric(struct fail_limit *limit, const char **rest, struct error *error)
{
	const char *word = skip_spaces(limit->text);
	size_t length = strcspn(word, " \t>");

	*rest = skip_spaces(word + length);
	if (length == 4 && !strncmp(word, "idle", 4))
		limit->metric = FAIL_IDLE;
	else if (length == 4 && !strncmp(word, "step", 4))
		limit->metric = FAIL_STEP;
	else if (length > 6 && !strncmp(word, "cause:", 6)) {
		limit->metric = FAIL_CAUSE;
		return parse_cause(&limit->causes, word + 6, length - 6, error);
	} else {
		return bad(limit->text, error);
	}
	return 0;
}

/* Behind one word and the spaces that must follow it; NULL if it is another. */
static const char *after_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(text, word, length) != 0 || !strchr(" \t", text[length]) || !text[length])
		return NULL;
	return skip_spaces(text + length);
}

static const char *last_by(const char *text)
{
	const char *found = NULL;

	for (const char *at = text; (at = strstr(at, " by ")); at++)
		found = at;
	return found;
}

static int parse_worse(struct fail_limit *limit, const char *rest, struct error *error)
{
	const char *base = after_word(rest, "than"), *by = base ? last_by(base) : NULL;

	if (!by || by == base || !parse_percent(skip_spaces(by + 4), &limit->share))
		return bad(limit->text, error);
	limit->base = strndup(base, (size_t)(by - base));
	return limit->base ? 0 : error_no_memory(error);
}

int fail_limit_parse(struct fail_limit *limit, const char *text, struct error *error)
{
	const char *rest, *worse;
	int err;

	*limit = (struct fail_limit){.text = text};
	err = parse_metric(limit, &rest, error);
	if (err)
		return err;
	worse = after_word(rest, "worse");
	if (worse)
		return parse_worse(limit, worse, error);
	if (*rest != '>')
		return bad(text, error);
	limit->or_equal = rest[1] == '=';
	if (!parse_percent(skip_spaces(rest + 1 + limit->or_equal), &limit->share))
		return bad(text, error);
	if (limit->metric == FAIL_STEP)
		return error_set(
		    error, -EINVAL,
		    "--fail-if: a step has no share of the time; say 'step worse than FILE by 3%%'");
	return 0;
}

void fail_limit_free(struct fail_limit *limit)
{
	free(limit->base);
	limit->base = NULL;
}

/* ---- checking ---- */

int fail_check_begin(struct fail_check *check, const char *const *texts, size_t count, FILE *out,
                     struct error *error)
{
	int err = 0;

	*check = (struct fail_check){.out = out};
	for (size_t i = 0; !err && i < count; i++) {
		struct fail_limit *limit = array_add(&check->limits);

		err = limit ? fail_limit_parse(limit, texts[i], error) : error_no_memory(error);
	}
	return err;
}

static void say(struct fail_check *check, const struct fail_limit *limit, uint32_t device, const char *what)
{
	char text[FORMAT_TEXT_SIZE(80)];

	fprintf(check->out, "whyidle: --fail-if '%s': GPU %" PRIu32 " %s\n",
	        format_text(text, sizeof(text), limit->text, 80), device, what);
	check->exceeded++;
}

/* "cause:wait.disk" in words: what the GPU did. */
static const char *metric_words(const struct fail_limit *limit)
{
	return limit->metric == FAIL_IDLE ? "was idle" : "was idle for this cause";
}

static void check_device(struct fail_check *check, const struct fail_limit *limit,
                         const struct device_report *device)
{
	uint64_t window = device->window_end_ns - device->window_start_ns, ns = 0;
	char percent[FORMAT_FIGURE], whole[FORMAT_FIGURE], line[160];
	const struct cause *cause;
	double most = limit->share * (double)window;

	if (device->window_end_ns <= device->window_start_ns)
		return;
	array_for_each (cause, &device->causes) {
		if (limit->metric == FAIL_IDLE || cause_set_holds(&limit->causes, cause->code, cause->role))
			ns += cause->ns;
	}
	if ((double)ns < most || ((double)ns == most && !limit->or_equal))
		return;
	snprintf(line, sizeof(line), "%s %s of %s", metric_words(limit), format_percent(percent, ns, window),
	         format_duration(whole, window));
	say(check, limit, device->device, line);
}

int fail_check_input(struct fail_check *check, const struct model *model, const struct analysis *analysis,
                     const char *path, struct error *error)
{
	const struct device_report *device;
	const struct fail_limit *limit;
	bool compared = false;

	array_for_each (device, &analysis->devices)
		check->devices += device->window_end_ns > device->window_start_ns;
	array_for_each (limit, &check->limits) {
		compared |= limit->base != NULL;
		array_for_each (device, &analysis->devices) {
			if (!limit->base)
				check_device(check, limit, device);
		}
	}
	return compared ? measurement_add(&check->run, model, analysis, path, error) : 0;
}

static int check_pair(struct fail_check *check, const struct fail_limit *limit,
                      const struct compare_pair *pair, struct error *error)
{
	struct figure figure = limit->metric == FAIL_IDLE   ? pair->idle_share
	                       : limit->metric == FAIL_STEP ? pair->step
	                                                    : compare_causes_share(pair, &limit->causes);
	double scale = limit->metric == FAIL_STEP ? figure.before.value : 1;
	char before[FORMAT_FIGURE], after[FORMAT_FIGURE], shown[FORMAT_TEXT_SIZE(60)], line[256];

	format_text(shown, sizeof(shown), limit->text, 60);
	if (limit->metric == FAIL_STEP && pair->basis != COMPARE_PER_STEP)
		return error_set(error, -ENODATA, "--fail-if '%s': no steps were found in both runs", shown);
	if (figure.change <= limit->share * scale)
		return 0;
	if (!figure.known)
		return error_set(error, -ENODATA,
		                 "--fail-if '%s': too little was recorded to tell a difference from noise",
		                 shown);
	if (!figure.beyond)
		return 0;
	if (limit->metric == FAIL_STEP)
		snprintf(line, sizeof(line), "took %s per step instead of %s (+%.1f %%, noise ±%.1f %%)",
		         format_duration(after, (uint64_t)figure.after.value),
		         format_duration(before, (uint64_t)figure.before.value), 100 * figure.change / scale,
		         100 * figure.noise / scale);
	else
		snprintf(line, sizeof(line),
		         "%s %.1f %% of the time instead of %.1f %% (+%.1f points, noise ±%.1f)",
		         metric_words(limit), 100 * figure.after.value, 100 * figure.before.value,
		         100 * figure.change, 100 * figure.noise);
	say(check, limit, pair->after->device, line);
	return 0;
}

static int check_base(struct fail_check *check, const struct fail_limit *limit, struct error *error)
{
	const struct compare_side side = {.path = limit->base, .option = "--fail-if", .device = -1};
	bool given = check->before && !strcmp(limit->base, "BEFORE");
	struct comparison comparison = {0};
	const struct compare_pair *pair;
	struct measurement base = {0};
	int err = given ? 0 : compare_measure(&base, &side, NULL, error);

	if (!err && comparison_make(&comparison, given ? check->before : &base, &check->run))
		err = error_no_memory(error);
	if (!err && !comparison.pairs.count)
		err = error_set(error, -ENODATA, "--fail-if: the run has no GPU operation to compare with %s",
		                limit->base);
	array_for_each (pair, &comparison.pairs) {
		if (!err)
			err = check_pair(check, limit, pair, error);
	}
	comparison_free(&comparison);
	measurement_free(&base);
	return err;
}

int fail_check_finish(struct fail_check *check, struct error *error)
{
	const struct fail_limit *limit;
	int err = 0;

	if (check->limits.count && !check->devices)
		return error_set(error, -ENODATA, "--fail-if: there is no GPU operation to judge by");
	array_for_each (limit, &check->limits) {
		if (!err && limit->base)
			err = check_base(check, limit, error);
	}
	return err;
}

void fail_check_free(struct fail_check *check)
{
	struct fail_limit *limit;

	array_for_each (limit, &check->limits)
		fail_limit_free(limit);
	array_free(&check->limits);
	measurement_free(&check->run);
}
