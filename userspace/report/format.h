/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Figures and foreign text made fit for a person's terminal.
 *
 * Names, paths and messages come from the target, which may put anything into them. Nothing of the target
 * reaches the output but through format_text (terminal) or format_json_text (JSON).
 */
#ifndef WHYIDLE_REPORT_FORMAT_H
#define WHYIDLE_REPORT_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FORMAT_FIGURE 24 /* bytes that any figure below fits in, with its unit and NUL */

/* A buffer for format_text that is always large enough for `columns` columns. */
#define FORMAT_TEXT_SIZE(columns) ((columns)*4 + 4)

/* "0 ns", "14.2 ms", "3.15 s": three significant digits, all of them above 1000 s. Returns `buffer`. */
const char *format_duration(char buffer[FORMAT_FIGURE], uint64_t ns);

/*
 * "78.3 %" of part in whole. "<0.1 %" and "99.9 %" where rounding would claim nothing or everything; "0 %"
 * for an empty whole. format_share is the same in whole percents from 10 % on, for sentences. Return
 * `buffer`.
 */
const char *format_percent(char buffer[FORMAT_FIGURE], uint64_t part, uint64_t whole);
const char *format_share(char buffer[FORMAT_FIGURE], uint64_t part, uint64_t whole);

/* "1.50 MB", powers of 1000. Returns `buffer`. */
const char *format_bytes(char buffer[FORMAT_FIGURE], uint64_t bytes);

/* "12,345". Returns `buffer`. */
const char *format_count(char buffer[32], uint64_t count);

/*
 * Copies `text` (NULL is allowed) so that it can be printed: control characters, invisible and
 * direction-changing code points and invalid UTF-8 become \xNN; what does not fit in `columns` is cut and
 * ends in "…". A buffer that is too small cuts as well, at a whole character. Reads no more of `text` than it
 * shows. Returns `buffer`.
 */
const char *format_text(char *buffer, size_t size, const char *text, unsigned columns);

/* The same for the name of a function, shortened first (symbol_short). */
const char *format_name(char *buffer, size_t size, const char *name, unsigned columns);

/* Columns that printable UTF-8 takes on a terminal; East Asian wide characters take two. */
unsigned format_columns(const char *text);

/* Prints `text`, then spaces up to `columns`. format_right puts the spaces first. */
void format_left(FILE *out, const char *text, unsigned columns);
void format_right(FILE *out, const char *text, unsigned columns);

/*
 * Prints printable text broken at spaces into lines of at most `width` columns and ends with a newline. The
 * cursor is at `column` already; further lines are indented by `rest`. Only words that are longer than a line
 * are broken, and a figure is not parted from its unit. format_paragraph first prints `first` spaces.
 */
void format_wrapped(FILE *out, const char *text, unsigned width, unsigned column, unsigned rest);
void format_paragraph(FILE *out, const char *text, unsigned width, unsigned first, unsigned rest);

/*
 * Copies at most `limit` bytes of `text` as valid UTF-8 into memory that the caller frees: invalid bytes
 * become U+FFFD, a cut text ends in "…". NULL if memory ran out.
 */
char *format_json_text(const char *text, size_t limit);

/*
 * "about 2.0 s (67 %)", "1.2 s to 2.0 s (up to 67 %)" or, where low is 0, "at most 2.0 s (67 %)": time to
 * gain and the share of `window_ns` that it is. Returns `buffer`, of FORMAT_GAIN bytes.
 */
#define FORMAT_GAIN ((size_t)4 * FORMAT_FIGURE)
const char *format_gain(char *buffer, uint64_t low_ns, uint64_t high_ns, uint64_t window_ns);

#endif
