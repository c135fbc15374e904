// SPDX-License-Identifier: GPL-2.0-only
#include "symbols/demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_MANGLED 4096                /* bytes; libstdc++ itself gives up at 1,024 since GCC 9 */
#define LONGEST_NAME    ((size_t)64 * 1024) /* substitutions can make a short name expand without end */
#define LONGEST_KEPT    12                  /* template arguments up to this length stay in a short name */
#define ELLIPSIS        "…"

/*
 * Of libstdc++ (libsupc++.a): gives the name to `piece` bit by bit and allocates nothing, unlike
 * __cxa_demangle, so that it can be left in the middle. Returns not 0 if the name makes no sense.
 */
int __gcclibcxx_demangle_callback(const char *name,
                                  void (*piece)(const char *text, size_t length, void *context),
                                  void *context);

/* ---- whole names ---- */

struct output {
	char *text;
	size_t length, capacity;
	jmp_buf too_much;
};

static void add_piece(const char *text, size_t length, void *context)
{
	struct output *output = context;

	if (length >= LONGEST_NAME - output->length)
		longjmp(output->too_much, 1);
	if (output->length + length + 1 > output->capacity) {
		size_t wanted = (output->length + length + 1) * 2;
		char *grown = realloc(output->text, wanted);

		if (!grown)
			longjmp(output->too_much, 1);
		output->text = grown;
		output->capacity = wanted;
	}
	memcpy(output->text + output->length, text, length);
	output->length += length;
	output->text[output->length] = '\0';
}

bool symbol_is_mangled(const char *name)
{
	return name[0] == '_' && name[1] == 'Z' && name[2];
}

/* `output` is the caller's, so that its contents are defined after the jump. Returns 0 if all went well. */
static int demangle_into(struct output *output, const char *name)
{
	if (setjmp(output->too_much))
		return -1;
	return __gcclibcxx_demangle_callback(name, add_piece, output);
}

char *symbol_demangle(const char *name)
{
	struct output output = {0};

	if (!symbol_is_mangled(name) || strlen(name) > LONGEST_MANGLED)
		return NULL;
	if (demangle_into(&output, name) || !output.length) {
		free(output.text);
		return NULL;
	}
	return output.text;
}

/* ---- short names ---- */

const char *symbol_last_name(const char *name, size_t *length)
{
	const char *end = name + strlen(name), *at = name + 2, *last = name;

	*length = end - name;
	if (*at == 'L')
		at++;
	if (*at == 'N') {
		at++;
		while (*at && strchr("rVK", *at))
			at++;
	}
	for (;;) {
		char *after;

		if (isdigit((unsigned char)*at)) {
			unsigned long bytes = strtoul(at, &after, 10);

			if (!bytes || bytes > (unsigned long)(end - after))
				return last;
			last = after;
			*length = bytes;
			at = after + bytes;
		} else if (at[0] == 'S' && at[1]) {
			/* A substitution: "St", "S_", "S12_". */
			at++;
			if (islower((unsigned char)*at)) {
				at++;
				continue;
			}
			while (isdigit((unsigned char)*at) || isupper((unsigned char)*at))
				at++;
			if (*at != '_')
				return last;
			at++;
		} else {
			return last;
		}
	}
}

/* "operator<", "operator()", "operator->": how many bytes of it are brackets or arrows, 0 if none. */
static size_t operator_brackets(const char *name, const char *at)
{
	static const char word[] = "operator";
	size_t length = sizeof(word) - 1;

	if ((size_t)(at - name) < length || memcmp(at - length, word, length))
		return 0;
	if (at > name + length &&
	    (isalnum((unsigned char)at[-(ptrdiff_t)length - 1]) || at[-(ptrdiff_t)length - 1] == '_'))
		return 0;
	if (!strncmp(at, "()", 2) || !strncmp(at, "<<", 2) || !strncmp(at, ">>", 2) ||
	    !strncmp(at, "<=", 2) || !strncmp(at, ">=", 2) || !strncmp(at, "->", 2))
		return 2;
	return *at == '<' || *at == '>';
}

/* Behind a bracketed text that starts at `at`, or its end if the brackets do not match. */
static const char *skip_brackets(const char *name, const char *at)
{
	size_t depth = 0;

	while (*at) {
		size_t skip = operator_brackets(name, at);

		if (skip) {
			at += skip;
			continue;
		}
		if (*at == '<' || *at == '(' || *at == '[' || *at == '{')
			depth++;
		else if ((*at == '>' && at[-1] != '-') || *at == ')' || *at == ']' || *at == '}')
			depth -= depth > 0;
		at++;
		if (!depth)
			break;
	}
	return at;
}

/* Copies a bracketed text, or its brackets alone if it is long. Returns the end of the copy. */
static char *copy_brackets(char *out, const char *from, const char *to)
{
	if (to - from <= LONGEST_KEPT || *from == '{') {
		memcpy(out, from, to - from);
		return out + (to - from);
	}
	*out++ = *from;
	memcpy(out, ELLIPSIS, sizeof(ELLIPSIS) - 1);
	out += sizeof(ELLIPSIS) - 1;
	*out++ = to[-1];
	return out;
}

static char *spelled_short(const char *name)
{
	char *text = malloc(strlen(name) + 1), *out = text;
	const char *at = name;

	if (!text)
		return NULL;
	while (*at) {
		size_t skip = operator_brackets(name, at);
		const char *behind;

		if (skip) {
			memcpy(out, at, skip);
			out += skip;
			at += skip;
			continue;
		}
		if (*at == '(' || *at == '<' || *at == '{') {
			behind = skip_brackets(name, at);
			/* Parameters, unless the name goes on: "(anonymous namespace)::f", "f(int)::g". */
			if (*at == '(' && strncmp(behind, "::", 2))
				break;
			if (*at == '(' && strncmp(at, "(anonymous", 10)) {
				at = behind;
				continue;
			}
			out = *at == '(' ? mempcpy(out, at, behind - at) : copy_brackets(out, at, behind);
			at = behind;
			continue;
		}
		/* What came so far was the return type, or a word like "non-virtual thunk to". */
		if (*at == ' ' && strncmp(at, " [clone", 7) &&
		    !(out - text >= 8 && !memcmp(out - 8, "operator", 8)))
			out = text;
		else
			*out++ = *at;
		at++;
	}
	*out = '\0';
	if (*text)
		return text;
	free(text);
	return strdup(name);
}

/* What compilers append to names of functions that they made from others. */
static bool is_clone(const char *suffix)
{
	static const char *const known[] = {".constprop", ".isra", ".part", ".cold", ".lto_priv"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strncmp(suffix, known[i], strlen(known[i])))
			return true;
	}
	return false;
}

char *symbol_short(const char *name)
{
	char *whole, *text;
	const char *last, *clone;
	size_t length;

	if (!symbol_is_mangled(name) && (clone = strchr(name, '.')) && clone > name && is_clone(clone))
		return strndup(name, clone - name);
	if (!symbol_is_mangled(name))
		return strpbrk(name, "(<") || strstr(name, "::") ? spelled_short(name) : strdup(name);
	whole = symbol_demangle(name);
	if (!whole) {
		last = symbol_last_name(name, &length);
		return strndup(last, length);
	}
	text = spelled_short(whole);
	free(whole);
	return text;
}
