/* SPDX-License-Identifier: GPL-2.0-only */
/* JSON read as it comes in, whatever the pieces it comes in are, and decimal numbers. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/decimal.h"
#include "import/json_scan.h"

/* Text that comes in pieces of `piece` bytes. */
struct source {
	const char *text;
	size_t length, piece;
};

static size_t read_source(void *context, char *buffer, size_t size)
{
	struct source *source = context;
	size_t length = source->length < source->piece ? source->length : source->piece;

	length = length < size ? length : size;
	memcpy(buffer, source->text, length);
	source->text += length;
	source->length -= length;
	return length;
}

static struct source source;
static struct json_scan scan;

static void begin(const char *text, size_t length, size_t piece)
{
	struct error error;

	source = (struct source){text, length, piece};
	cr_assert_eq(json_scan_open(&scan, read_source, &source, &error), 0);
}

/* All tokens of a text in short: {k:s n t f z} with texts in between; `!` broken, `.` whole, `?` cut off. */
static const char *tokens(const char *text, size_t piece)
{
	static const char marks[] = {
	    [JSON_OBJECT] = '{', [JSON_OBJECT_END] = '}', [JSON_ARRAY] = '[',  [JSON_ARRAY_END] = ']',
	    [JSON_KEY] = 'k',    [JSON_STRING] = 's',     [JSON_NUMBER] = 'n', [JSON_TRUE] = 't',
	    [JSON_FALSE] = 'f',  [JSON_NULL] = 'z'};
	static char out[1024];
	enum json_token token;
	size_t used = 0;

	begin(text, strlen(text), piece);
	while ((token = json_scan_next(&scan)) > JSON_BROKEN) {
		cr_assert_lt(used + scan.length + 2, sizeof(out));
		out[used++] = marks[token];
		if (token == JSON_KEY || token == JSON_STRING || token == JSON_NUMBER) {
			memcpy(out + used, scan.text, scan.length);
			used += scan.length;
		}
	}
	out[used++] = token == JSON_BROKEN ? '!' : json_scan_whole(&scan) ? '.' : '?';
	out[used] = '\0';
	cr_assert_eq(json_scan_next(&scan), token, "the end is not the same again");
	json_scan_close(&scan);
	return out;
}

static const struct {
	const char *text, *tokens;
} texts[] = {
    {"{}", "{}."},
    {"[]", "[]."},
    {" \n\t\r[ ] \n", "[]."},
    {"\xef\xbb\xbf{\"a\" : 1}", "{ka"
                                "n1}."},
    {"[1,-2.50,3e8, 1.5E-3]", "[n1n-2.50n3e8n1.5E-3]."},
    {"[true,false,null]", "[tfz]."},
    {"[NaN,-NaN,Infinity,-Infinity,nan,inf,-inf]", "[zzzzzzz]."},
    {"{\"a\":{\"b\":[{},[],\"\"]},\"c\":\"d\"}", "{ka{kb[{}[]s]}kcsd}."},
    {"\"text\"", "stext."},
    {"12", "n12."},
    {"{\"a\\\"b\\\\\":\"\\u0041\"}", "{ka\\\"b\\\\s\\u0041}."},
    {"[\"a\nb\"]", "[sa\nb]."},
    {"", "?"},
    {"{", "{?"},
    {"{\"a", "{?"},
    {"{\"a\"", "{?"},
    {"{\"a\":", "{ka?"},
    {"{\"a\":1", "{ka?"},
    {"{\"a\":1,", "{kan1?"},
    {"[\"a\\", "[?"},
    {"[1 2]", "[n1!"},
    {"[1,]", "[n1!"},
    {"[,1]", "[!"},
    {"{\"a\" 1}", "{!"},
    {"{\"a\":1,}", "{kan1!"},
    {"{1:2}", "{!"},
    {"[1}", "[n1!"},
    {"{\"a\":1]", "{kan1!"},
    {"[tru]", "[!"},
    {"[-true]", "[!"},
    {"]", "!"},
    {"hello", "!"},
    {"{} x", "{}!"},
    {"[\x01]", "[!"},
};

Test(json_scan, every_token_in_pieces_of_every_size)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		for (size_t piece = 1; piece < 20; piece++) {
			const char *got = tokens(texts[i].text, piece);

			cr_expect_str_eq(got, texts[i].tokens, "%s in pieces of %zu: %s, not %s",
			                 texts[i].text, piece, got, texts[i].tokens);
		}
	}
}

Test(json_scan, what_follows_the_end_does_not_make_it_less_whole)
{
	begin("[] []", 5, 5);
	cr_assert_eq(json_scan_next(&scan), JSON_ARRAY);
	cr_assert_eq(json_scan_next(&scan), JSON_ARRAY_END);
	cr_assert(json_scan_whole(&scan));
	cr_assert_eq(json_scan_position(&scan), 2);
	cr_assert_eq(json_scan_next(&scan), JSON_BROKEN);
	cr_assert(json_scan_whole(&scan) && scan.problem);
	json_scan_close(&scan);
}

Test(json_scan, depth_is_bounded)
{
	char text[JSON_DEPTH_MAX + 2];
	int depth = 0;

	memset(text, '[', sizeof(text));
	begin(text, sizeof(text), 100);
	while (json_scan_next(&scan) == JSON_ARRAY)
		depth++;
	cr_assert_eq(depth, JSON_DEPTH_MAX);
	cr_assert_not_null(scan.problem);
	json_scan_close(&scan);
	/* Passing over it ends at the same place. */
	begin(text, sizeof(text), 100);
	cr_assert_not(json_scan_skip(&scan));
	cr_assert_not_null(scan.problem);
	json_scan_close(&scan);
}

/* A string of `length` bytes as a value, and what comes after it. */
static void check_long(size_t length, size_t piece, bool as_key)
{
	char *text = malloc(length + 16);

	cr_assert_not_null(text);
	memset(text, 'x', length + 16);
	memcpy(text, as_key ? "{\"" : "[\"", 2);
	memcpy(text + length, "\\\\", 2); /* an escape at the very end */
	strcpy(text + 2 + length, as_key ? "\" \n : 7}" : "\",7]");
	begin(text, strlen(text), piece);
	json_scan_next(&scan);
	cr_assert_eq(json_scan_next(&scan), as_key ? JSON_KEY : JSON_STRING);
	cr_assert_eq(scan.length, length < JSON_TEXT_KEPT ? length : JSON_TEXT_KEPT);
	cr_assert_eq(scan.cut, length > JSON_TEXT_KEPT, "%zu", length);
	for (size_t i = 0; i < scan.length && i + 2 < length; i++)
		cr_assert_eq(scan.text[i], 'x', "byte %zu of %zu is not as it was", i, length);
	cr_assert_eq(json_scan_next(&scan), JSON_NUMBER);
	cr_assert_eq(scan.length, 1);
	cr_assert_eq(json_scan_next(&scan), as_key ? JSON_OBJECT_END : JSON_ARRAY_END);
	cr_assert_eq(json_scan_position(&scan), strlen(text));
	json_scan_close(&scan);

	begin(text, strlen(text), piece);
	cr_assert(json_scan_skip(&scan));
	cr_assert(json_scan_whole(&scan));
	cr_assert_eq(json_scan_position(&scan), strlen(text));
	json_scan_close(&scan);
	free(text);
}

Test(json_scan, long_strings_are_cut_and_passed_over)
{
	static const size_t lengths[] = {10,    65533,  65534,  65535,  65536,   65537,
	                                 65540, 131072, 262144, 300000, 10 << 20};
	static const size_t pieces[] = {4096, 65536, 1 << 20};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (size_t k = 0; k < 3; k++) {
			check_long(lengths[i], pieces[k], false);
			check_long(lengths[i], pieces[k], true);
		}
	}
}

Test(json_scan, a_key_survives_white_space_longer_than_the_buffer)
{
	size_t length = 1 << 20;
	char *text = malloc(length + 32);

	cr_assert_not_null(text);
	memset(text, ' ', length + 32);
	memcpy(text, "{\"key\"", 6);
	strcpy(text + length, ":1}");
	begin(text, strlen(text), 1000);
	json_scan_next(&scan);
	cr_assert_eq(json_scan_next(&scan), JSON_KEY);
	cr_assert_eq(scan.length, 3);
	cr_assert_eq(memcmp(scan.text, "key", 3), 0);
	cr_assert_eq(json_scan_next(&scan), JSON_NUMBER);
	json_scan_close(&scan);
	free(text);
}

Test(json_scan, passes_over_values_and_the_rest_of_containers)
{
	static const char text[] =
	    "{\"a\":[1,{\"x\":\"]}\\\"\"},[2]],\"b\":\"s\",\"c\":4,\"d\":{\"e\":5,\"f\":[6]},\"g\":7}";

	for (size_t piece = 1; piece < 80; piece++) {
		begin(text, strlen(text), piece);
		cr_assert_eq(json_scan_next(&scan), JSON_OBJECT);
		for (int i = 0; i < 3; i++) {
			cr_assert_eq(json_scan_next(&scan), JSON_KEY);
			cr_assert(json_scan_skip(&scan));
		}
		cr_assert_eq(json_scan_next(&scan), JSON_KEY);
		cr_assert_eq(json_scan_next(&scan), JSON_OBJECT);
		cr_assert_eq(json_scan_next(&scan), JSON_KEY);
		cr_assert(json_scan_leave(&scan));
		cr_assert_eq(scan.depth, 1);
		cr_assert_eq(json_scan_next(&scan), JSON_KEY);
		cr_assert_eq(*scan.text, 'g');
		cr_assert_eq(json_scan_next(&scan), JSON_NUMBER);
		cr_assert(json_scan_leave(&scan));
		cr_assert(json_scan_whole(&scan));
		json_scan_close(&scan);
	}
}

Test(json_scan, passing_over_checks_brackets)
{
	static const char *const wrong[] = {"[{]}", "{\"a\":[}", "[\"", "[\"\\", "[[", "[{\"a\":\"}"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin(wrong[i], strlen(wrong[i]), 3);
		cr_expect_not(json_scan_skip(&scan), "%s", wrong[i]);
		cr_expect_not(json_scan_whole(&scan), "%s", wrong[i]);
		cr_expect_not(json_scan_skip(&scan), "%s once more", wrong[i]);
		json_scan_close(&scan);
	}
}

Test(json_scan, escapes_are_decoded)
{
	static const struct {
		const char *text, *meant;
	} cases[] = {
	    {"plain", "plain"},
	    {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
	    {"\\u0041\\u00e9\\u20AC", "A\xc3\xa9\xe2\x82\xac"},
	    {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
	    {"\\u0000", "\xef\xbf\xbd"},
	    {"\\ud83d", "\xef\xbf\xbd"},
	    {"\\ud83dx", "\xef\xbf\xbdx"},
	    {"\\ud83d\\u0041", "\xef\xbf\xbd"
	                       "A"},
	    {"\\ude00", "\xef\xbf\xbd"},
	    {"a\\", "a"},
	    {"a\\u12", "a"},
	    {"C:\\Users\\x", "C:\\Users\\x"},
	    {"\\uzzzz", "\\uzzzz"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[64] = "", in_place[64];
		size_t length = json_decode(cases[i].text, strlen(cases[i].text), out);

		cr_expect_eq(length, strlen(cases[i].meant), "%s", cases[i].text);
		cr_expect_eq(memcmp(out, cases[i].meant, length), 0, "%s", cases[i].text);
		strcpy(in_place, cases[i].text);
		length = json_decode(in_place, strlen(in_place), in_place);
		cr_expect_eq(memcmp(in_place, cases[i].meant, length), 0, "%s in place", cases[i].text);
	}
}

static const struct {
	const char *text;
	int shift;
	bool usable;
	int64_t value;
} decimals[] = {
    {"0", 3, true, 0},
    {"1", 3, true, 1000},
    {"1712195495505582.988", 3, true, 1712195495505582988}, /* 19 digits: a double has the wrong last three */
    {"1712195495505582.9885", 3, true, 1712195495505582988}, /* halves go to the even neighbour */
    {"1712195495505582.9875", 3, true, 1712195495505582988},
    {"1712195495505582.98750000000000000000000000000001", 3, true, 1712195495505582988},
    {"1712195495505582.98849999999999999999999999999999", 3, true, 1712195495505582988},
    {"1712195495505582.98850000000000000000000000000001", 3, true, 1712195495505582989},
    {"0.0005", 3, true, 0},
    {"0.0015", 3, true, 2},
    {"0.00050001", 3, true, 1},
    {"0.0004", 3, true, 0},
    {"0.9999", 3, true, 1000},
    {"-3.5", 3, true, -3500},
    {"-0.0015", 3, true, -2},
    {"+2", 3, true, 2000},
    {"1.712195495505582988e15", 3, true, 1712195495505582988},
    {"1E3", 3, true, 1000000},
    {"5e-4", 3, true, 0},
    {"15e-4", 3, true, 2},
    {"6e-4", 3, true, 1},
    {"9e-99999999999999999999", 3, true, 0},
    {"0e99999999999999999999", 3, true, 0},
    {"00000000000000000000000012", 3, true, 12000},
    {" 12.5\n", 3, true, 12500},
    {".5", 3, true, 500},
    {"5.", 3, true, 5000},
    {"9223372036854775.807", 3, true, INT64_MAX},
    {"9223372036854775.8074", 3, true, INT64_MAX},
    {"9223372036854775.8075", 3, false, 0},
    {"9223372036854775.808", 3, false, 0},
    {"9999999999999999.999", 3, false, 0},
    {"99999999999999999999", 3, false, 0},
    {"1e30", 3, false, 0},
    {"1e99999999999999999999", 3, false, 0},
    {"", 3, false, 0},
    {" ", 3, false, 0},
    {"-", 3, false, 0},
    {".", 3, false, 0},
    {"e5", 3, false, 0},
    {"1e", 3, false, 0},
    {"1e+", 3, false, 0},
    {"1.2.3", 3, false, 0},
    {"12x", 3, false, 0},
    {"0x10", 3, false, 0},
    {"1 2", 3, false, 0},
    {"nan", 3, false, 0},
    {"2.5", 0, true, 2},
    {"3.5", 0, true, 4},
};

Test(decimal, exact_and_rounded_half_to_even)
{
	for (size_t i = 0; i < sizeof(decimals) / sizeof(decimals[0]); i++) {
		int64_t value = 0;
		bool usable =
		    decimal_scaled(decimals[i].text, strlen(decimals[i].text), decimals[i].shift, &value);

		cr_expect_eq(usable, decimals[i].usable, "'%s'", decimals[i].text);
		if (usable)
			cr_expect_eq(value, decimals[i].value, "'%s': %lld", decimals[i].text,
			             (long long)value);
	}
}

/* The short way and the long way agree: an exponent of 0 takes the long one. */
Test(decimal, both_ways_agree)
{
	uint64_t state = 1;

	for (int i = 0; i < 20000; i++) {
		char plain[64], with_exponent[80];
		int64_t a = 0, b = 0;
		bool has_a, has_b;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		snprintf(plain, sizeof(plain), "%llu.%0*llu", (unsigned long long)(state >> (state % 60)),
		         1 + (int)(state % 7), (unsigned long long)(state >> 40) % 1000);
		snprintf(with_exponent, sizeof(with_exponent), "%se0", plain);
		has_a = decimal_scaled(plain, strlen(plain), 3, &a);
		has_b = decimal_scaled(with_exponent, strlen(with_exponent), 3, &b);
		cr_assert(has_a == has_b && a == b, "%s: %lld, %lld", plain, (long long)a, (long long)b);
	}
}

Test(decimal, whole_numbers)
{
	uint64_t value;

	cr_assert(decimal_whole("0", 1, &value) && value == 0);
	cr_assert(decimal_whole("18446744073709551615", 20, &value) && value == UINT64_MAX);
	cr_assert(decimal_whole("0000000000000000000000017", 25, &value) && value == 17);
	cr_assert_not(decimal_whole("18446744073709551616", 20, &value));
	cr_assert_not(decimal_whole("", 0, &value));
	cr_assert_not(decimal_whole("-1", 2, &value));
	cr_assert_not(decimal_whole("1.0", 3, &value));
	cr_assert_not(decimal_whole("7 ", 2, &value));
}
