/* SPDX-License-Identifier: GPL-2.0-only */
#include "import/json_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE (JSON_TEXT_KEPT + (192 << 10))
#define PADDING     16 /* zeros behind the text: loops that look for a byte stop there, and read 8 at a time */

/* What may come next. */
enum expect {
	EXPECT_VALUE,
	EXPECT_FIRST_KEY,   /* or the end of the object */
	EXPECT_FIRST_VALUE, /* or the end of the array */
	EXPECT_MORE,        /* a comma or the end of the container */
	EXPECT_NOTHING,     /* the outermost value is complete */
	EXPECT_STOPPED,     /* the text is broken or ended inside a value */
};

int json_scan_open(struct json_scan *scan, json_read read, void *context, struct error *error)
{
	*scan = (struct json_scan){.read = read, .context = context, .expect = EXPECT_VALUE};
	scan->buffer = calloc(1, BUFFER_SIZE + PADDING);
	if (!scan->buffer)
		return error_no_memory(error);
	scan->at = scan->end = scan->buffer;
	return 0;
}

void json_scan_close(struct json_scan *scan)
{
	free(scan->buffer);
	*scan = (struct json_scan){0};
}

uint64_t json_scan_position(const struct json_scan *scan)
{
	return scan->before + (uint64_t)(scan->at - scan->buffer);
}

bool json_scan_whole(const struct json_scan *scan)
{
	return scan->expect == EXPECT_NOTHING;
}

/*
 * Reads more. What is in the buffer from `from` on stays, moved to `reserve` bytes behind its start; scan->at
 * then points to it. False if there is no more.
 */
static bool fill(struct json_scan *scan, const char *from, size_t reserve)
{
	size_t kept = (size_t)(scan->end - from), got;
	char *target = scan->buffer + reserve;

	if (scan->at_end)
		return false;
	scan->before += (uint64_t)(from - target);
	memmove(target, from, kept);
	got = scan->read(scan->context, target + kept, BUFFER_SIZE - reserve - kept);
	scan->at = target;
	scan->end = target + kept + got;
	memset(target + kept + got, 0, PADDING);
	if (!got)
		scan->at_end = true;
	return got != 0;
}

static enum json_token broken(struct json_scan *scan, const char *problem)
{
	scan->expect = EXPECT_STOPPED;
	scan->problem = problem;
	return JSON_BROKEN;
}

static enum json_token ended(struct json_scan *scan)
{
	scan->at = scan->end;
	if (scan->expect != EXPECT_NOTHING)
		scan->expect = EXPECT_STOPPED;
	return JSON_END;
}

static bool is_space(char c)
{
	const uint64_t spaces = 1ULL << ' ' | 1ULL << '\n' | 1ULL << '\r' | 1ULL << '\t';

	return (unsigned char)c <= ' ' && (spaces >> c & 1);
}

static int peek_further(struct json_scan *scan)
{
	for (;;) {
		const char *p = scan->at;

		while (is_space(*p))
			p++;
		scan->at = p;
		if (p < scan->end)
			return (unsigned char)*p;
		if (!fill(scan, p, 0))
			return -1;
	}
}

/* The next byte that is no white space, not consumed; -1 at the end. Mostly there is none to pass over. */
static inline int peek(struct json_scan *scan)
{
	unsigned char c = (unsigned char)*scan->at;

	return c > ' ' ? c : peek_further(scan);
}

#define ONES           0x0101010101010101ULL
#define EACH(byte)     (ONES * (uint64_t)(byte))
#define HAS_ZERO(word) (((word)-ONES) & ~(word)&EACH(0x80))

/* First quote, backslash or zero byte; there is one, because zeros follow the text. */
static const char *find_special(const char *p)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	for (;; p += 8) {
		uint64_t word, found;

		memcpy(&word, p, sizeof(word));
		/* The lowest byte that is marked is right, which is all that is used. */
		found = HAS_ZERO(word ^ EACH('"')) | HAS_ZERO(word ^ EACH('\\')) | HAS_ZERO(word);
		if (found)
			return p + __builtin_ctzll(found) / 8;
	}
#else
	while (*p && *p != '"' && *p != '\\')
		p++;
	return p;
#endif
}

/*
 * Consumes a string from behind its opening quote on. Its text is left in the buffer: while it is short what
 * is read more goes behind it; of a long one the first part stays in front and the rest passes through the
 * room behind.
 */
static bool scan_string(struct json_scan *scan, bool keep)
{
	const char *start = scan->at, *p = start;
	size_t reserve = 0;

	scan->escaped = scan->cut = false;
	for (;;) {
		p = find_special(p);
		if (*p == '"')
			break;
		if (*p == '\\' && p + 1 < scan->end) {
			scan->escaped = true;
			p += 2;
		} else if (p < scan->end && *p != '\\') {
			p++; /* a zero byte of the text */
		} else if (keep && !scan->cut && p - start < JSON_TEXT_KEPT) {
			size_t done = (size_t)(p - start);

			if (!fill(scan, start, 0))
				return false;
			start = scan->at;
			p = start + done;
		} else {
			if (keep && !scan->cut) {
				memmove(scan->buffer, start, JSON_TEXT_KEPT);
				start = scan->buffer;
				reserve = JSON_TEXT_KEPT;
				scan->cut = true;
			}
			if (!fill(scan, p, reserve))
				return false;
			p = scan->at;
		}
	}
	scan->text = start;
	scan->length = scan->cut ? JSON_TEXT_KEPT : (size_t)(p - start);
	if (scan->length > JSON_TEXT_KEPT) {
		scan->length = JSON_TEXT_KEPT;
		scan->cut = true;
	}
	scan->at = p + 1;
	return true;
}

/* Bytes of numbers and names. */
static const bool word_bytes[256] = {
    ['0' ... '9'] = true, ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['.'] = true,
    ['-'] = true,         ['+'] = true,         ['_'] = true,
};

static bool is_word(char c)
{
	return word_bytes[(unsigned char)c];
}

/* Consumes a number or a name. Neither has a delimiter of its own, so at the end of the text it may be cut
 * off. */
static enum json_token scan_word(struct json_scan *scan)
{
	const char *start = scan->at, *p = start;
	size_t sign, length;
	bool more;

	for (;;) {
		while (is_word(*p))
			p++;
		if (p < scan->end || p - start > JSON_TEXT_KEPT)
			break;
		length = (size_t)(p - start);
		more = fill(scan, start, 0);
		start = scan->at;
		p = start + length;
		if (!more && scan->depth)
			return ended(scan);
		if (!more)
			break;
	}
	length = (size_t)(p - start);
	if (!length)
		return broken(scan, "a value was expected");
	if (length > JSON_TEXT_KEPT)
		return broken(scan, "a number is too long");
	sign = *start == '-';
	scan->text = start;
	scan->length = length;
	scan->escaped = scan->cut = false;
	if (length > sign && start[sign] >= '0' && start[sign] <= '9') {
		scan->at = p;
		return JSON_NUMBER;
	}
#define IS(word) (length - sign == sizeof(word) - 1 && !memcmp(start + sign, word, sizeof(word) - 1))
	if (!(IS("NaN") || IS("nan") || IS("Infinity") || IS("inf")) &&
	    (sign || !(IS("true") || IS("false") || IS("null"))))
		return broken(scan, "a value was expected");
	scan->at = p;
	return IS("true") ? JSON_TRUE : IS("false") ? JSON_FALSE : JSON_NULL;
#undef IS
}

static bool in_object(const struct json_scan *scan)
{
	uint32_t level = scan->depth - 1;

	return scan->depth && (scan->objects[level / 64] >> level % 64 & 1);
}

static bool enter(struct json_scan *scan, bool object)
{
	uint64_t bit = 1ULL << scan->depth % 64;

	if (scan->depth == JSON_DEPTH_MAX) {
		broken(scan, "it is nested too deeply");
		return false;
	}
	if (object)
		scan->objects[scan->depth / 64] |= bit;
	else
		scan->objects[scan->depth / 64] &= ~bit;
	scan->depth++;
	return true;
}

static bool leave(struct json_scan *scan, bool object)
{
	if (!scan->depth || in_object(scan) != object) {
		broken(scan, "a closing bracket does not match");
		return false;
	}
	scan->depth--;
	return true;
}

/* A value was consumed. */
static void value_done(struct json_scan *scan)
{
	scan->expect = scan->depth ? EXPECT_MORE : EXPECT_NOTHING;
}

static enum json_token next_value(struct json_scan *scan, int c)
{
	enum json_token token;

	switch (c) {
	case '{':
	case '[':
		scan->at++;
		if (!enter(scan, c == '{'))
			return JSON_BROKEN;
		scan->expect = c == '{' ? EXPECT_FIRST_KEY : EXPECT_FIRST_VALUE;
		return c == '{' ? JSON_OBJECT : JSON_ARRAY;
	case '"':
		scan->at++;
		if (!scan_string(scan, true))
			return ended(scan);
		value_done(scan);
		return JSON_STRING;
	default:
		token = scan_word(scan);
		if (token > JSON_BROKEN)
			value_done(scan);
		return token;
	}
}

/* As peek, but the text of the key that was just read stays. */
static int peek_behind_text(struct json_scan *scan)
{
	for (;;) {
		const char *p = scan->at;

		while (is_space(*p))
			p++;
		scan->at = p;
		if (p < scan->end)
			return (unsigned char)*p;
		memmove(scan->buffer, scan->text, scan->length);
		scan->text = scan->buffer;
		if (!fill(scan, p, scan->length))
			return -1;
	}
}

/* A key and its colon. */
static enum json_token next_key(struct json_scan *scan, int c)
{
	if (c != '"')
		return broken(scan, "a key was expected");
	scan->at++;
	if (!scan_string(scan, true))
		return ended(scan);
	c = *scan->at == ':' ? ':' : peek_behind_text(scan);
	if (c < 0)
		return ended(scan);
	if (c != ':')
		return broken(scan, "a colon was expected");
	scan->at++;
	scan->expect = EXPECT_VALUE;
	return JSON_KEY;
}

static enum json_token next_end(struct json_scan *scan, int c)
{
	scan->at++;
	if (!leave(scan, c == '}'))
		return JSON_BROKEN;
	value_done(scan);
	return c == '}' ? JSON_OBJECT_END : JSON_ARRAY_END;
}

/* A byte order mark, which some editors put first. */
static int skip_mark(struct json_scan *scan)
{
	while (scan->end - scan->at < 3) {
		if (!fill(scan, scan->at, 0))
			break;
	}
	if (scan->end - scan->at >= 3 && !memcmp(scan->at, "\xef\xbb\xbf", 3))
		scan->at += 3;
	return peek(scan);
}

enum json_token json_scan_next(struct json_scan *scan)
{
	int c;

	if (scan->expect == EXPECT_STOPPED)
		return scan->problem ? JSON_BROKEN : JSON_END;
	c = peek(scan);
	if (c < 0)
		return ended(scan);
	switch (scan->expect) {
	case EXPECT_NOTHING:
		scan->problem = "something follows its end";
		return JSON_BROKEN;
	case EXPECT_MORE:
		if (c == '}' || c == ']')
			return next_end(scan, c);
		if (c != ',')
			return broken(scan, "a comma was expected");
		scan->at++;
		c = peek(scan);
		if (c < 0)
			return ended(scan);
		return in_object(scan) ? next_key(scan, c) : next_value(scan, c);
	case EXPECT_FIRST_KEY:
		return c == '}' ? next_end(scan, c) : next_key(scan, c);
	case EXPECT_FIRST_VALUE:
		return c == ']' ? next_end(scan, c) : next_value(scan, c);
	default:
		if (c == 0xef && !json_scan_position(scan))
			c = skip_mark(scan);
		return c < 0 ? ended(scan) : next_value(scan, c);
	}
}

/* Passes over everything until the depth is down to `depth` again. */
static bool pass(struct json_scan *scan, uint32_t depth)
{
	while (scan->depth > depth) {
		const char *p = scan->at;

		/* The four brackets, and few other bytes, are 0x7f but for bits 1, 2 and 5. */
		while (*p != '"' && (*p | 0x26) != 0x7f && *p)
			p++;
		scan->at = p;
		switch (*p) {
		case '"':
			scan->at++;
			if (!scan_string(scan, false)) {
				ended(scan);
				return false;
			}
			break;
		case '{':
		case '[':
			scan->at++;
			if (!enter(scan, *p == '{'))
				return false;
			break;
		case '}':
		case ']':
			scan->at++;
			if (!leave(scan, *p == '}'))
				return false;
			break;
		default:
			if (p < scan->end) {
				scan->at++;
			} else if (!fill(scan, p, 0)) {
				ended(scan);
				return false;
			}
		}
	}
	value_done(scan);
	return true;
}

bool json_scan_leave(struct json_scan *scan)
{
	if (scan->expect == EXPECT_STOPPED || !scan->depth)
		return false;
	return pass(scan, scan->depth - 1);
}

bool json_scan_skip(struct json_scan *scan)
{
	enum json_token token;

	if (scan->expect == EXPECT_VALUE && peek(scan) == '"') {
		scan->at++;
		if (!scan_string(scan, false)) {
			ended(scan);
			return false;
		}
		value_done(scan);
		return true;
	}
	token = json_scan_next(scan);
	if (token == JSON_OBJECT || token == JSON_ARRAY)
		return json_scan_leave(scan);
	return token > JSON_BROKEN;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits of a \u escape, -1 if they are none. */
static int32_t hex4(const char *p)
{
	int32_t value = 0;

	for (int i = 0; i < 4; i++) {
		int digit = hex_value(p[i]);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

static char *put_utf8(char *out, uint32_t code)
{
	if (!code || (code >= 0xd800 && code < 0xe000))
		code = 0xfffd;
	if (code < 0x80) {
		*out++ = (char)code;
	} else if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
		*out++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*out++ = (char)(0xe0 | code >> 12);
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	} else {
		*out++ = (char)(0xf0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	}
	return out;
}

/* A \u escape, `p` behind its u; a pair of surrogates makes one character. Returns what follows, NULL: cut
 * off. */
static const char *decode_unicode(const char *p, const char *end, char **out)
{
	int32_t code, low;

	if (end - p < 4)
		return NULL;
	code = hex4(p);
	if (code < 0) {
		*(*out)++ = '\\';
		*(*out)++ = 'u';
		return p;
	}
	p += 4;
	if (code >= 0xd800 && code < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
		low = hex4(p + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
			p += 6;
		}
	}
	*out = put_utf8(*out, (uint32_t)code);
	return p;
}

size_t json_decode(const char *text, size_t length, char *out)
{
	static const char plain[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *p = text, *end = text + length;
	char *start = out;

	while (p < end) {
		const char *found;

		if (*p != '\\') {
			*out++ = *p++;
			continue;
		}
		if (++p == end)
			break;
		if (*p == 'u') {
			p = decode_unicode(p + 1, end, &out);
			if (!p)
				break;
			continue;
		}
		found = *p ? strchr(plain, *p) : NULL;
		if (found) {
			*out++ = meant[found - plain];
		} else {
			*out++ = '\\';
			*out++ = *p;
		}
		p++;
	}
	return (size_t)(out - start);
}
