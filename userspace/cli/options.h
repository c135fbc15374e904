/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One table per command drives both the parsing of its options and its --help.
 */
#ifndef WHYIDLE_CLI_OPTIONS_H
#define WHYIDLE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/error.h"

/* Owned by argv, but for the list itself: array_free. */
struct text_list {
	ARRAY(const char *)
};

/* What an option sets; the field that option.offset points to is of the type named here. */
enum option_kind {
	OPTION_FLAG,   /* bool: true */
	OPTION_TEXT,   /* const char * */
	OPTION_NUMBER, /* uint64_t */
	OPTION_BYTES,  /* uint64_t */
	OPTION_TIME,   /* uint64_t, ns */
	OPTION_SHARE,  /* uint64_t, millionths */
	OPTION_WINDOW, /* struct window */
	OPTION_RANGE,  /* struct range */
	OPTION_TEXTS,  /* struct text_list: one more each time it is given */
	OPTION_CHOICE, /* int: index of the word in option.choices */
};

struct option_spec {
	const char *name;     /* long name */
	char letter;          /* short name, 0 none */
	const char *argument; /* placeholder in the help, NULL for flags */
	const char *help;
	enum option_kind kind;
	size_t offset;              /* of the field in the command's values */
	const char *const *choices; /* OPTION_CHOICE: ends with NULL */
	uint64_t min, max;          /* NUMBER, BYTES, TIME, SHARE: limits; max 0: none */
	bool power_of_two;          /* BYTES */
	bool advanced;              /* seldom needed: named by --help, explained by --help-all */
};

struct command_spec {
	const char *name;
	const char *usage;    /* what follows "whyidle NAME" */
	const char *summary;  /* one line */
	const char *examples; /* lines of help "whyidle NAME ...    # WHAT IT DOES", NULL none */
	const char *notes;    /* more lines of help-all, NULL none */
	const struct option_spec *options;
	size_t option_count;
	bool
	    stop_at_operand; /* options end at the first operand: a command with options of its own follows */
};

enum options_result {
	OPTIONS_OK,
	OPTIONS_HELP,     /* --help was given */
	OPTIONS_HELP_ALL, /* --help-all was given */
	OPTIONS_BAD,      /* `error` says what is wrong */
};

/*
 * Parses argv (argv[0] is the command's name) into `values`, which hold the defaults before. *first gets the
 * index of the first operand; operands are moved behind the options unless stop_at_operand is set.
 */
enum options_result options_parse(const struct command_spec *spec, int argc, char **argv, void *values,
                                  int *first, struct error *error);

/* Fits a screen unless `all` is set: advanced options are named only, and notes left out. */
void options_help(FILE *out, const struct command_spec *spec, bool all);

#endif
