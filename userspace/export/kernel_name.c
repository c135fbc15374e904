// SPDX-License-Identifier: GPL-2.0-only
#include "export/kernel_name.h"

#include <string.h>

#include "symbols/demangle.h"

/* Behind a bracketed text that starts at `at`, or its end if the brackets do not match. */
static const char *skip_brackets(const char *at)
{
	unsigned depth = 0;

	for (; *at; at++) {
		/* "->" and comparisons in template arguments are rare; an arrow is no bracket. */
		if (*at == '<' || *at == '(' || *at == '[' || *at == '{')
			depth++;
		else if ((*at == '>' && at[-1] != '-') || *at == ')' || *at == ']' || *at == '}')
			depth--;
		if (!depth)
			return at + 1;
	}
	return at;
}

static struct name_part spelled_base(const char *name)
{
	const char *start = name, *at = name;

	while (*at) {
		if (*at == '(' || *at == '<') {
			const char *behind = skip_brackets(at);

			/* A namespace without a name, or a class with template arguments: the name goes on.
			 */
			if (behind[0] != ':' || behind[1] != ':')
				break;
			at = behind;
			continue;
		}
		if (*at == ' ')
			start = at + 1;
		else if (at[0] == ':' && at[1] == ':')
			start = ++at + 1;
		at++;
	}
	if (at == start)
		return (struct name_part){name, strlen(name)};
	return (struct name_part){start, (size_t)(at - start)};
}

struct name_part kernel_base_name(const char *name)
{
	if (symbol_is_mangled(name)) {
		struct name_part part;

		part.start = symbol_last_name(name, &part.length);
		return part;
	}
	if (strpbrk(name, "(<") || strstr(name, "::"))
		return spelled_base(name);
	return (struct name_part){name, strlen(name)};
}

const char *sync_type_name(uint32_t type)
{
	static const char *const names[] = {"Synchronize", "Event Synchronize", "Stream Wait Event",
	                                    "Stream Synchronize", "Context Synchronize"};

	return names[type < sizeof(names) / sizeof(*names) ? type : 0];
}
