// SPDX-License-Identifier: GPL-2.0-only
/* What a page of several inputs says about all of them: the ranks of a job, or two runs compared. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/html_parts.h"
#include "report/report_compare.h"

struct across {
	const struct ranks_report *ranks;
	const struct comparison *comparison;
};

/* As text; NULL if memory ran out. The caller frees it. */
static char *text_of(const struct across *across)
{
	const struct report_text_options options = {.verbose = true};
	char *buffer = NULL;
	size_t size;
	FILE *out = open_memstream(&buffer, &size);
	int err;

	if (!out)
		return NULL;
	err = across->ranks ? report_ranks_text(out, across->ranks, &options)
	                    : report_compare_text(out, across->comparison, &options);
	if (fclose(out) || err) {
		free(buffer);
		return NULL;
	}
	return buffer;
}

/* The answer comes first in the text, and an empty line after it. */
static json_t *make_answer(const char *text)
{
	const char *end = strstr(text, "\n\n");

	return json_stringn(text, end ? (size_t)(end - text) : strlen(text));
}

static json_t *make_across(struct maker *maker, const struct across *across, const struct html_labels *labels,
                           const char *text)
{
	json_t *object = json_object(), *parts = json_array();
	char *const *label;

	array_for_each (label, labels)
		append(maker, parts, html_name(*label));
	set(maker, object, "answer", make_answer(text));
	set(maker, object, "parts", parts);
	set(maker, object, "ranks", across->ranks ? make_ranks(maker) : json_null());
	set(maker, object, "comparison",
	    across->comparison ? make_comparison(maker, across->comparison) : json_null());
	return object;
}

int report_html_across(FILE *out, const struct html_labels *labels, const struct ranks_report *ranks,
                       const struct comparison *comparison, struct error *error)
{
	const struct across across = {.ranks = ranks, .comparison = comparison};
	struct maker maker = {.ranks = ranks};
	char *text = text_of(&across), *json = NULL;
	json_t *object = text ? make_across(&maker, &across, labels, text) : NULL;

	if (object && !maker.failed)
		json = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
	json_decref(object);
	if (json) {
		fputs("<noscript><pre>", out);
		html_put_text(out, text);
		fputs("</pre></noscript>\n<script type=\"application/json\" id=\"across\">", out);
		html_put_json(out, json);
		fputs("</script>\n", out);
	}
	free(text);
	free(json);
	return json ? 0 : error_no_memory(error);
}
