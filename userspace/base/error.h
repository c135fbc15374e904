/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One line for a person: what failed, on what, and what to do.
 *
 * Modules return 0 or a negative errno and fill in a struct error; only cli/ prints it. The text holds no
 * newline and no control characters, whatever was formatted into it.
 */
#ifndef WHYIDLE_BASE_ERROR_H
#define WHYIDLE_BASE_ERROR_H

#define ERROR_TEXT 512

struct error {
	int code; /* negative errno, 0 none */
	char text[ERROR_TEXT];
};

/* Sets the text (cut to fit) and returns `code`, so that callers can write `return error_set(…)`. error may
 * be NULL. */
int error_set(struct error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "out of memory" with -ENOMEM. */
int error_no_memory(struct error *error);

#endif
