// SPDX-License-Identifier: GPL-2.0-only
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/quantity.h"

#define MAX_OPTIONS 32
#define LONG_ONLY   256 /* getopt values of options without a letter: this plus their index */
#define HELP_VALUE  (LONG_ONLY + MAX_OPTIONS)
#define ALL_VALUE   (HELP_VALUE + 1)
#define HELP_COLUMN 28
#define HELP_WIDTH  100

static enum options_result bad_value(const struct command_spec *spec, const struct option_spec *option,
                                     const char *text, const char *wanted, struct error *error)
{
	error_set(error, -EINVAL, "%s: --%s: '%s' is not %s", spec->name, option->name, text, wanted);
	return OPTIONS_BAD;
}

static enum options_result store_choice(const struct command_spec *spec, const struct option_spec *option,
                                        const char *text, int *field, struct error *error)
{
	char wanted[128] = "one of";
	size_t length = strlen(wanted);

	for (int i = 0; option->choices[i]; i++) {
		if (!strcmp(text, option->choices[i])) {
			*field = i;
			return OPTIONS_OK;
		}
		length += snprintf(wanted + length, length < sizeof(wanted) ? sizeof(wanted) - length : 0,
		                   " %s", option->choices[i]);
		if (length >= sizeof(wanted))
			length = sizeof(wanted) - 1;
	}
	return bad_value(spec, option, text, wanted, error);
}

static enum options_result store_amount(const struct command_spec *spec, const struct option_spec *option,
                                        const char *text, uint64_t *field, struct error *error)
{
	const char *wanted;
	uint64_t value;
	int err;

	switch (option->kind) {
	case OPTION_BYTES:
		err = quantity_bytes(text, &value);
		wanted = "a number of bytes (64K, 16M)";
		break;
	case OPTION_TIME:
		err = quantity_time(text, &value);
		wanted = "a time with a unit (250us, 4ms, 0.5s)";
		break;
	case OPTION_SHARE:
		err = quantity_share(text, &value);
		wanted = "a share (0.5%)";
		break;
	default:
		err = quantity_number(text, &value);
		wanted = "a number";
	}
	if (err)
		return bad_value(spec, option, text, wanted, error);
	if (value < option->min || (option->max && value > option->max))
		return bad_value(spec, option, text, "within its limits (see --help)", error);
	if (option->power_of_two && (!value || (value & (value - 1))))
		return bad_value(spec, option, text, "a power of two", error);
	*field = value;
	return OPTIONS_OK;
}

static enum options_result store_text(const char *text, struct text_list *list, struct error *error)
{
	const char **slot = array_add(list);

	if (!slot) {
		error_no_memory(error);
		return OPTIONS_BAD;
	}
	*slot = text;
	return OPTIONS_OK;
}

static enum options_result store(const struct command_spec *spec, const struct option_spec *option,
                                 const char *text, void *values, struct error *error)
{
	void *field = (char *)values + option->offset;

	switch (option->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return OPTIONS_OK;
	case OPTION_TEXT:
		*(const char **)field = text;
		return OPTIONS_OK;
	case OPTION_TEXTS:
		return store_text(text, field, error);
	case OPTION_WINDOW:
		if (quantity_window(text, field))
			return bad_value(spec, option, text, "a window A..B (seconds, or CLOCK_MONOTONIC ns)",
			                 error);
		return OPTIONS_OK;
	case OPTION_RANGE:
		if (quantity_range(text, field))
			return bad_value(spec, option, text, "a range A..B of numbers", error);
		return OPTIONS_OK;
	case OPTION_CHOICE:
		return store_choice(spec, option, text, field, error);
	default:
		return store_amount(spec, option, text, field, error);
	}
}

/* getopt's own tables, from ours. */
static void make_tables(const struct command_spec *spec, struct option *longs, char *shorts)
{
	if (spec->stop_at_operand)
		*shorts++ = '+';
	*shorts++ = ':'; /* a missing argument is told apart from an unknown option */
	for (size_t i = 0; i < spec->option_count; i++) {
		const struct option_spec *option = &spec->options[i];

		longs[i] = (struct option){
		    .name = option->name,
		    .has_arg = option->argument ? required_argument : no_argument,
		    .val = option->letter ? option->letter : LONG_ONLY + (int)i,
		};
		if (!option->letter)
			continue;
		*shorts++ = option->letter;
		if (option->argument)
			*shorts++ = ':';
	}
	longs[spec->option_count] = (struct option){.name = "help", .val = HELP_VALUE};
	longs[spec->option_count + 1] = (struct option){.name = "help-all", .val = ALL_VALUE};
	*shorts++ = 'h';
	*shorts = '\0';
}

static const struct option_spec *find(const struct command_spec *spec, int value)
{
	for (size_t i = 0; i < spec->option_count; i++) {
		if (value == (spec->options[i].letter ? spec->options[i].letter : LONG_ONLY + (int)i))
			return &spec->options[i];
	}
	return NULL;
}

static enum options_result bad_option(const struct command_spec *spec, int result, const char *word,
                                      struct error *error)
{
	char letter[3] = {'-', optopt > 0 && optopt < 128 ? optopt : '?', '\0'};

	/* For long options optopt is 0 (unknown) or a value of ours; for letters it is the letter. */
	if (!strncmp(word, "--", 2) || optopt >= LONG_ONLY || optopt <= 0)
		error_set(error, -EINVAL, "%s: %s %.*s (see whyidle %s --help)", spec->name,
		          result == ':' ? "an argument is missing after" : "unknown option",
		          (int)strcspn(word, "="), word, spec->name);
	else
		error_set(error, -EINVAL, "%s: %s %s (see whyidle %s --help)", spec->name,
		          result == ':' ? "an argument is missing after" : "unknown option", letter,
		          spec->name);
	return OPTIONS_BAD;
}

enum options_result options_parse(const struct command_spec *spec, int argc, char **argv, void *values,
                                  int *first, struct error *error)
{
	struct option longs[MAX_OPTIONS + 3] = {0};
	char shorts[2 * MAX_OPTIONS + 4];
	enum options_result result;
	int value;

	make_tables(spec, longs, shorts);
	optind = 0; /* GNU: start afresh */
	opterr = 0;
	while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_spec *option;

		if (value == HELP_VALUE || value == 'h')
			return OPTIONS_HELP;
		if (value == ALL_VALUE)
			return OPTIONS_HELP_ALL;
		option = value == '?' || value == ':' ? NULL : find(spec, value);
		if (!option)
			return bad_option(spec, value, argv[optind - 1], error);
		result = store(spec, option, optarg, values, error);
		if (result != OPTIONS_OK)
			return result;
	}
	*first = optind;
	return OPTIONS_OK;
}

/* The text from `column` on, broken at spaces. */
static void put_wrapped(FILE *out, const char *text, size_t column)
{
	size_t at = column;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (at > column && at + 1 + word > HELP_WIDTH) {
			fprintf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", (int)word, text);
		at += word;
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void put_option(FILE *out, const char *letter, const char *name, const char *argument,
                       const char *help)
{
	int used = fprintf(out, "  %s--%s%s%s", letter, name, argument ? " " : "", argument ? argument : "");

	if (used + 2 > HELP_COLUMN)
		fprintf(out, "\n%*s", HELP_COLUMN, "");
	else
		fprintf(out, "%*s", HELP_COLUMN - used, "");
	put_wrapped(out, help, HELP_COLUMN);
}

/* Returns how many there are. */
static size_t put_advanced_names(FILE *out, const struct command_spec *spec)
{
	char text[1024];
	size_t count = 0, used = 0;

	for (size_t i = 0; i < spec->option_count; i++) {
		if (!spec->options[i].advanced)
			continue;
		used += (size_t)snprintf(text + used, used < sizeof(text) ? sizeof(text) - used : 0, "%s--%s",
		                         count++ ? " " : "", spec->options[i].name);
		if (used >= sizeof(text))
			used = sizeof(text) - 1;
	}
	if (!count)
		return 0;
	fputs("\nMore: ", out);
	put_wrapped(out, text, strlen("More: "));
	return count;
}

void options_help(FILE *out, const struct command_spec *spec, bool all)
{
	fprintf(out, "usage: whyidle %s %s\n\n%s\n\n", spec->name, spec->usage, spec->summary);
	if (spec->examples)
		fprintf(out, "%s\n", spec->examples);
	for (size_t i = 0; i < spec->option_count; i++) {
		const struct option_spec *option = &spec->options[i];
		char letter[8] = "    ";

		if (option->advanced && !all)
			continue;
		if (option->letter)
			snprintf(letter, sizeof(letter), "-%c, ", option->letter);
		put_option(out, letter, option->name, option->argument, option->help);
	}
	put_option(out, "-h, ", "help", NULL, "show this");
	if (all)
		put_option(out, "    ", "help-all", NULL, "show this with what is seldom needed");
	if (!all && (put_advanced_names(out, spec) || spec->notes))
		fprintf(out, "All of them, explained: whyidle %s --help-all\n", spec->name);
	if (all && spec->notes)
		fprintf(out, "\n%s", spec->notes);
}
