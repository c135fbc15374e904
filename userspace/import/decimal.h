/* SPDX-License-Identifier: GPL-2.0-only */
/* Decimal numbers as text, without a detour through binary fractions. */
#ifndef WHYIDLE_IMPORT_DECIMAL_H
#define WHYIDLE_IMPORT_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The number times 10^shift, exactly, rounded half to even: microseconds with any number of digits become
 * nanoseconds with shift 3. White space around the number is allowed. False if the text is no number (sign,
 * digits, point, exponent) or the result does not fit.
 */
bool decimal_scaled(const char *text, size_t length, int shift, int64_t *value);

/* A number of decimal digits alone that fits 64 bits. */
bool decimal_whole(const char *text, size_t length, uint64_t *value);

#endif
