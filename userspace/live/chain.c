// SPDX-License-Identifier: GPL-2.0-only
#include "live/chain.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "attribute/cause.h"
#include "live/status.h"
#include "report/format.h"

#define PARTS_MOST   32 /* different ones that are told apart */
#define PARTS_SHOWN  3
#define NAME_COLUMNS 20

/* What one thread did for one reason, however often. */
struct part {
	const json_t *link; /* the first of them */
	uint64_t tid, ns;
	const char *code;
};

static uint64_t length_of(const json_t *object)
{
	uint64_t start = status_number(object, "start_ns"), end = status_number(object, "end_ns");

	return end > start ? end - start : 0;
}

static bool takes_part(const json_t *gap, unsigned pid)
{
	const json_t *link;
	size_t i;

	json_array_foreach(json_object_get(gap, "chain"), i, link)
	{
		if (status_number(link, "pid") == pid)
			return true;
	}
	return !pid;
}

static const json_t *longest_gap(const json_t *gpu, unsigned pid)
{
	const json_t *gap, *longest = NULL;
	size_t i;

	json_array_foreach(json_object_get(gpu, "top_gaps"), i, gap)
	{
		if (takes_part(gap, pid) && (!longest || length_of(gap) > length_of(longest)))
			longest = gap;
	}
	return longest;
}

/* Returns how many there are, longest first. */
static unsigned collect(struct part parts[PARTS_MOST], const json_t *gap)
{
	unsigned count = 0;
	const json_t *link;
	size_t i;

	json_array_foreach(json_object_get(gap, "chain"), i, link)
	{
		const char *code = json_string_value(json_object_get(link, "code"));
		uint64_t tid = status_number(link, "tid");
		unsigned at = 0;

		while (at < count && (parts[at].tid != tid || strcmp(parts[at].code, code ? code : "")))
			at++;
		if (at == PARTS_MOST)
			continue; /* counts as other */
		if (at == count)
			parts[count++] = (struct part){link, tid, 0, code ? code : ""};
		parts[at].ns += length_of(link);
		for (; at && parts[at].ns > parts[at - 1].ns; at--) {
			struct part longer = parts[at];

			parts[at] = parts[at - 1];
			parts[at - 1] = longer;
		}
	}
	return count;
}

/* What a code means; one that this version does not know stands for itself. */
static const char *meaning_of(const char *code)
{
	for (int i = 0; i < CAUSE_COUNT; i++) {
		if (!strcmp(cause_code_name(i), code))
			return cause_code_meaning(i);
	}
	return code;
}

static void put_part(FILE *out, const struct part *part)
{
	char name[FORMAT_TEXT_SIZE(NAME_COLUMNS)], holder[FORMAT_TEXT_SIZE(NAME_COLUMNS)],
	    meaning[FORMAT_TEXT_SIZE(80)], figure[FORMAT_FIGURE];

	fprintf(out, "%s ", format_duration(figure, part->ns));
	status_text(name, sizeof(name), part->link, "comm", NAME_COLUMNS);
	if (*name)
		fprintf(out, "%s (%llu): ", name, (unsigned long long)part->tid);
	fputs(format_text(meaning, sizeof(meaning), meaning_of(part->code), 80), out);
	status_text(holder, sizeof(holder), json_object_get(part->link, "detail"), "holder", NAME_COLUMNS);
	if (*holder)
		fprintf(out, " [%s]", holder);
}

bool chain_words(char words[CHAIN_WORDS], const json_t *gpu, unsigned pid)
{
	const json_t *gap = longest_gap(gpu, pid);
	uint64_t left = length_of(gap);
	struct part parts[PARTS_MOST];
	char figure[FORMAT_FIGURE];
	unsigned count;
	FILE *out;

	words[0] = '\0';
	out = gap ? fmemopen(words, CHAIN_WORDS, "w") : NULL;
	if (!out)
		return false;
	count = collect(parts, gap);
	fprintf(out, "worst gap %s", format_duration(figure, left));
	for (unsigned i = 0; i < count && i < PARTS_SHOWN && parts[i].ns; i++) {
		fputs(i ? "; " : ": ", out);
		put_part(out, &parts[i]);
		left -= parts[i].ns < left ? parts[i].ns : left;
	}
	if (left && count)
		fprintf(out, "; %s other", format_duration(figure, left));
	fclose(out);
	words[CHAIN_WORDS - 1] = '\0';
	return true;
}
