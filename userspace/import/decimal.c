/* SPDX-License-Identifier: GPL-2.0-only */
#include "import/decimal.h"

#define EXPONENT_MAX 1000000000 /* larger ones are taken as this: nothing that large fits or is not zero */
#define SHORT_DIGITS 19         /* any number of so many digits fits 64 bits */

/* Digits, of which the first `whole` stand before the point, times 10^exponent. */
struct decimal {
	const char *digits;
	size_t whole, count;
	int64_t exponent;
	bool negative;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

static bool parse_exponent(const char *p, const char *end, int64_t *exponent)
{
	bool negative = p < end && *p == '-';
	int64_t value = 0;

	if (p < end && (*p == '-' || *p == '+'))
		p++;
	if (p == end)
		return false;
	for (; p < end && is_digit(*p); p++) {
		if (value < EXPONENT_MAX)
			value = value * 10 + (*p - '0');
	}
	*exponent = negative ? -value : value;
	return p == end;
}

static bool parse(const char *p, const char *end, struct decimal *decimal)
{
	const char *point;

	while (p < end && is_space(*p))
		p++;
	while (p < end && is_space(end[-1]))
		end--;
	*decimal = (struct decimal){.negative = p < end && *p == '-'};
	if (p < end && (*p == '-' || *p == '+'))
		p++;
	decimal->digits = p;
	point = skip_digits(p, end);
	decimal->whole = decimal->count = (size_t)(point - p);
	p = point;
	if (p < end && *p == '.') {
		p = skip_digits(p + 1, end);
		decimal->count += (size_t)(p - point) - 1;
	}
	if (!decimal->count)
		return false;
	if (p < end && (*p == 'e' || *p == 'E'))
		return parse_exponent(p + 1, end, &decimal->exponent);
	return p == end;
}

static int digit_at(const struct decimal *decimal, size_t index)
{
	return decimal->digits[index + (index >= decimal->whole)] - '0';
}

static bool append_digit(int64_t *value, int digit)
{
	return !__builtin_mul_overflow(*value, 10, value) && !__builtin_add_overflow(*value, digit, value);
}

/* Whether what stands behind the integer part rounds it up. */
static bool rounds_up(const struct decimal *decimal, size_t point, bool odd)
{
	int first = digit_at(decimal, point);

	if (first != 5)
		return first > 5;
	for (size_t i = point + 1; i < decimal->count; i++) {
		if (digit_at(decimal, i))
			return true;
	}
	return odd;
}

/*
 * What nearly all are: a few digits, a point and no more digits than are wanted. False: it is none of these.
 */
static bool scale_short(const char *text, size_t length, int shift, int64_t *value)
{
	uint64_t result = 0;
	int digits = 0;
	bool point = false;

	if (!length || length > SHORT_DIGITS + 1 || !is_digit(*text))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (is_digit(text[i])) {
			result = result * 10 + (uint64_t)(text[i] - '0');
			digits++;
			shift -= point;
		} else if (text[i] == '.' && !point) {
			point = true;
		} else {
			return false;
		}
	}
	if (shift < 0 || digits + shift > SHORT_DIGITS)
		return false;
	while (shift--)
		result *= 10;
	if (result > INT64_MAX)
		return false;
	*value = (int64_t)result;
	return true;
}

bool decimal_scaled(const char *text, size_t length, int shift, int64_t *value)
{
	struct decimal decimal;
	int64_t point, result = 0;
	size_t used = 0;

	if (scale_short(text, length, shift, value))
		return true;
	if (!parse(text, text + length, &decimal))
		return false;
	/* The result is the digits before this one. */
	point = (int64_t)decimal.whole + decimal.exponent + shift;
	for (; used < decimal.count && (int64_t)used < point; used++) {
		if (!append_digit(&result, digit_at(&decimal, used)))
			return false;
	}
	/* Zero stays zero; anything else soon fits no more. */
	for (int64_t i = (int64_t)used; result && i < point; i++) {
		if (!append_digit(&result, 0))
			return false;
	}
	if (point >= 0 && used < decimal.count && rounds_up(&decimal, used, result & 1) &&
	    __builtin_add_overflow(result, 1, &result))
		return false;
	*value = decimal.negative ? -result : result;
	return true;
}

bool decimal_whole(const char *text, size_t length, uint64_t *value)
{
	uint64_t result = 0;

	*value = 0;
	if (!length)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!is_digit(text[i]))
			return false;
		if (i < SHORT_DIGITS)
			result = result * 10 + (uint64_t)(text[i] - '0');
		else if (__builtin_mul_overflow(result, 10, &result) ||
		         __builtin_add_overflow(result, (uint64_t)(text[i] - '0'), &result))
			return false;
	}
	*value = result;
	return true;
}
