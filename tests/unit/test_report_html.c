// SPDX-License-Identifier: GPL-2.0-only
/* The HTML report as a file; what it does in a browser is tested by tests/e2e/test_html.py. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_html.h"
#include "timeline.h"

static char *page_of(const struct timeline *timeline)
{
	struct error error = {0};
	char *page = NULL;
	size_t size;
	FILE *out = open_memstream(&page, &size);
	const struct analysis_options options = {.device = -1};
	const struct table_source source = table_source_of(&timeline->model, &options);

	report_html_begin(out);
	cr_assert_eq(report_html_part(out, 0, &source, &timeline->analysis, NULL, &error), 0, "%s",
	             error.text);
	cr_assert_eq(report_html_end(out, &error), 0, "%s", error.text);
	fclose(out);
	return page;
}

/* What the script element of that id holds; the caller frees it. */
static char *element_of(const char *page, const char *id)
{
	char mark[64];
	const char *start, *end;

	snprintf(mark, sizeof(mark), "id=\"%s\">", id);
	start = strstr(page, mark);
	cr_assert(start, "%s", id);
	start += strlen(mark);
	end = strstr(start, "</script>");
	cr_assert(end);
	return strndup(start, (size_t)(end - start));
}

static json_t *json_of(const char *page, const char *id)
{
	char *text = element_of(page, id);
	json_error_t error;
	json_t *value = json_loads(text, 0, &error);

	cr_assert(value, "%s: %s", id, error.text);
	free(text);
	return value;
}

static void make(struct timeline *timeline, const char *name)
{
	uint32_t main;

	timeline_begin(timeline);
	main = timeline_process(timeline, 100, 0, name);
	timeline->model.devices.items[0].name = model_add_string(&timeline->model, name, strlen(name));
	timeline_kernel(timeline, main, 1 * MS, 1 * MS + 5 * US, 2 * MS);
	timeline_sleep(timeline, main, 2 * MS, 7 * MS);
	timeline_kernel(timeline, main, 7 * MS, 7 * MS + 5 * US, 8 * MS);
	timeline->model.devices.items[0].ops.items[1].name =
	    model_add_string(&timeline->model, name, strlen(name));
	timeline_analyse(timeline);
}

static unsigned decode(const unsigned char *base64, size_t length, uint8_t *bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned count = 0, bits = 0;
	uint32_t value = 0;

	for (size_t i = 0; i < length && base64[i] != '='; i++) {
		value = value << 6 | (uint32_t)(strchr(digits, base64[i]) - digits);
		bits += 6;
		if (bits >= 8)
			bytes[count++] = (uint8_t)(value >> (bits -= 8));
	}
	return count;
}

static uint64_t take(const uint8_t **at)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		value |= (uint64_t)(**at & 0x7f) << shift;
		if (!(*(*at)++ & 0x80))
			return value;
	}
}

Test(report_html, gaps_are_those_of_the_analysis)
{
	struct timeline timeline;
	uint8_t bytes[256];
	const uint8_t *at = bytes;
	unsigned length;
	uint64_t sum = 0;
	char *page, *gaps;

	make(&timeline, "main");
	page = page_of(&timeline);
	gaps = element_of(page, "gaps-0");
	length = decode((unsigned char *)gaps, strlen(gaps), bytes);
	cr_assert_eq(take(&at), 2 * MS - 1 * MS - 5 * US, "busy before the only gap");
	for (uint64_t leaves = take(&at); leaves; leaves--) {
		sum += take(&at);
		take(&at);
		take(&at);
	}
	cr_assert_eq(sum, timeline.analysis.devices.items[0].idle_ns);
	cr_assert_eq(at - bytes, length);
	free(gaps);
	free(page);
	timeline_end(&timeline);
}

Test(report_html, hostile_names_end_no_element)
{
	static const char *const names[] = {"</script><script>alert(1)</script>",
	                                    "<!--",
	                                    "<img src=x onerror=alert(1)>",
	                                    "\xff\xfe\033[31m",
	                                    "\"'&`${}",
	                                    ""};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct timeline timeline;
		json_t *report, *extra;
		unsigned opened = 0, closed = 0;
		char *page;

		make(&timeline, names[i]);
		page = page_of(&timeline);
		report = json_of(page, "report");
		extra = json_of(page, "extra");
		for (const char *c = page; (c = strstr(c, "<script")); c++)
			opened++;
		for (const char *c = page; (c = strstr(c, "</script")); c++)
			closed++;
		cr_assert_eq(opened, 4, "report, extra, gaps and the program: %u", opened);
		cr_assert_eq(closed, 4);
		cr_assert_null(strstr(page, "<img"));
		cr_assert_null(strchr(page, '\033'));
		if ((unsigned char)names[i][0] < 0x80)
			cr_assert_str_eq(json_string_value(json_object_get(
			                     json_array_get(json_object_get(extra, "gpus"), 0), "name")),
			                 names[i]);
		json_decref(report);
		json_decref(extra);
		free(page);
		timeline_end(&timeline);
	}
}

Test(report_html, without_operations)
{
	struct timeline timeline;
	json_t *extra;
	char *page;

	timeline_begin(&timeline);
	timeline_process(&timeline, 100, 0, "main");
	timeline_analyse(&timeline);
	page = page_of(&timeline);
	extra = json_of(page, "extra");
	cr_assert_eq(json_integer_value(
	                 json_object_get(json_array_get(json_object_get(extra, "gpus"), 0), "window_ns")),
	             0);
	json_decref(extra);
	free(page);
	timeline_end(&timeline);
}
