// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "report/findings.h"
#include "report/html_parts.h"
#include "report/text.h"
#include "report/text_ranks.h"

/* Embedded by the build: userspace.mk. */
extern const char html_style_start[], html_style_end[], html_program_start[], html_program_end[];

json_t *html_name(const char *text)
{
	return make_limited_text(text, HTML_NAME_LIMIT);
}

/* JSON within a page: "<" only stands in strings, where its escaped form means the same; so no name can end
 * the script element that the JSON is in. */
void html_put_json(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("\\u003c", out);
		else
			fputc(*text, out);
	}
}

void html_put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

static void put_base64(FILE *out, const uint8_t *bytes, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16 |
		                 (i + 1 < length ? (uint32_t)bytes[i + 1] << 8 : 0) |
		                 (i + 2 < length ? bytes[i + 2] : 0);

		fputc(digits[three >> 18], out);
		fputc(digits[three >> 12 & 63], out);
		fputc(i + 1 < length ? digits[three >> 6 & 63] : '=', out);
		fputc(i + 2 < length ? digits[three & 63] : '=', out);
	}
}

/* Whatever prints to a stream, as text that the caller frees; NULL if it failed. */
static char *text_of(const struct analysis *analysis, bool answer_only)
{
	struct report_text_options options = {.verbose = true};
	struct findings findings;
	char *buffer = NULL;
	size_t size;
	FILE *out = open_memstream(&buffer, &size);
	int err;

	if (!out)
		return NULL;
	if (answer_only) {
		struct text text = {.out = out, .analysis = analysis, .findings = &findings, .width = 100};

		err = findings_make(&findings, analysis);
		if (!err)
			err = text_answer(&text);
		findings_free(&findings);
	} else {
		err = report_text(out, analysis, &options);
	}
	if (fclose(out) || err) {
		free(buffer);
		return NULL;
	}
	return buffer;
}

static char *report_text_json(const struct analysis *analysis, const struct ranks_report *ranks,
                              struct error *error)
{
	char *buffer = NULL;
	size_t size;
	FILE *out = open_memstream(&buffer, &size);
	int err = out ? report_json_with_ranks(out, analysis, ranks, error) : -ENOMEM;

	if (out && fclose(out))
		err = -ENOMEM;
	if (err) {
		free(buffer);
		return NULL;
	}
	return buffer;
}

static json_t *make_device(struct maker *maker, const struct table_source *source,
                           const struct device_report *device, const struct html_gaps *gaps)
{
	json_t *object = json_object();

	set(maker, object, "device", make_integer(device->device));
	set(maker, object, "name", html_name(device->name));
	set(maker, object, "window_ns", make_integer(text_window_ns(device)));
	set(maker, object, "from_session_start_ns", make_integer(device->lead_in_ns));
	set(maker, object, "busy_ns", make_integer(device->busy_ns));
	set(maker, object, "idle_ns", make_integer(device->idle_ns));
	set(maker, object, "gap_count", make_integer(device->gap_count));
	set(maker, object, "gaps", json_incref(gaps->description));
	set(maker, object, "tables", html_gpu_tables(maker, source, device));
	set(maker, object, "steps", html_steps(maker, device));
	set(maker, object, "slow", html_slow_steps(maker, device));
	set(maker, object, "top", html_top_gaps(maker, source->model, device));
	return object;
}

static json_t *make_meanings(struct maker *maker)
{
	json_t *object = json_object();

	for (int code = 0; code < CAUSE_COUNT; code++)
		set(maker, object, cause_code_name(code), make_text(cause_code_meaning(code)));
	return object;
}

/* Why a rank came late, where that is no cause of idle time. */
static json_t *make_reasons(struct maker *maker)
{
	static const enum late_reason reasons[] = {LATE_COMPUTE, LATE_COPY, LATE_TRANSFER, LATE_BEFORE};
	json_t *object = json_object();
	char words[96];

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		ranks_reason_text(words, sizeof(words), reasons[i], CAUSE_COUNT, 0);
		set(maker, object, late_reason_name(reasons[i]), json_string(words));
	}
	return object;
}

struct page {
	const struct table_source *source;
	const struct analysis *analysis;
	struct html_lists lists;
	struct {
		ARRAY(struct html_gaps)
	} gaps;
	char *report, *answer, *plain, *extra;
};

static char *make_extra(struct page *page)
{
	struct maker maker = {0};
	json_t *object = json_object(), *devices = json_array();
	char *text = NULL;

	for (size_t i = 0; i < page->gaps.count; i++)
		append(&maker, devices,
		       make_device(&maker, page->source, &page->analysis->devices.items[i],
		                   &page->gaps.items[i]));
	set(&maker, object, "answer", make_text(page->answer));
	set(&maker, object, "meanings", make_meanings(&maker));
	set(&maker, object, "reasons", make_reasons(&maker));
	set(&maker, object, "kinds", json_incref(page->lists.kinds));
	set(&maker, object, "threads", json_incref(page->lists.threads));
	set(&maker, object, "gpus", devices);
	set(&maker, object, "tables", html_host_tables(&maker, page->source));
	if (!maker.failed && object)
		text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	return text;
}

/* Nothing in it can fail but for want of memory. */
static int make_page(struct page *page, const struct ranks_report *ranks, struct error *error)
{
	const struct device_report *device;

	page->lists.kinds = json_array();
	page->lists.threads = json_array();
	if (!page->lists.kinds || !page->lists.threads)
		return -ENOMEM;
	array_for_each (device, &page->analysis->devices) {
		struct html_gaps *gaps = array_add(&page->gaps);

		if (!gaps || html_gaps_make(gaps, &page->lists, page->source->model, device))
			return -ENOMEM;
	}
	page->report = report_text_json(page->analysis, ranks, error);
	page->answer = text_of(page->analysis, true);
	page->plain = text_of(page->analysis, false);
	page->extra = page->answer ? make_extra(page) : NULL;
	return page->report && page->plain && page->extra ? 0 : -ENOMEM;
}

void report_html_begin(FILE *out)
{
	/* Nothing is fetched, whatever a name holds. */
	fputs(
	    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>whyidle report</title>\n<style>\n",
	    out);
	fwrite(html_style_start, 1, (size_t)(html_style_end - html_style_start), out);
	fputs("</style>\n</head>\n<body>\n<main id=\"page\"></main>\n"
	      "<noscript><p>The pictures need a browser that runs scripts; this is the report as text.</p>"
	      "</noscript>\n",
	      out);
}

/* The ids of the first part have no number: most pages have one part. */
static void put_id(FILE *out, const char *name, unsigned part)
{
	if (part)
		fprintf(out, "%s@%u", name, part);
	else
		fputs(name, out);
}

static void put_part(FILE *out, const struct page *page, unsigned part)
{
	fputs("<noscript><pre>", out);
	html_put_text(out, page->plain);
	fputs("</pre></noscript>\n<script type=\"application/json\" id=\"", out);
	put_id(out, "report", part);
	fputs("\">", out);
	html_put_json(out, page->report);
	fputs("</script>\n<script type=\"application/json\" id=\"", out);
	put_id(out, "extra", part);
	fputs("\">", out);
	html_put_json(out, page->extra);
	fputs("</script>\n", out);
	for (size_t i = 0; i < page->gaps.count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "gaps-%zu", i);
		fputs("<script type=\"text/plain\" id=\"", out);
		put_id(out, name, part);
		fputs("\">", out);
		put_base64(out, page->gaps.items[i].bytes.items, page->gaps.items[i].bytes.count);
		fputs("</script>\n", out);
	}
}

int report_html_part(FILE *out, unsigned part, const struct table_source *source,
                     const struct analysis *analysis, const struct ranks_report *ranks, struct error *error)
{
	struct page page = {.source = source, .analysis = analysis};
	struct html_gaps *gaps;
	int err = make_page(&page, ranks, error);

	if (err)
		error_no_memory(error);
	else
		put_part(out, &page, part);
	array_for_each (gaps, &page.gaps)
		html_gaps_free(gaps);
	array_free(&page.gaps);
	index_map_free(&page.lists.kind_by_key);
	index_map_free(&page.lists.thread_by_index);
	json_decref(page.lists.kinds);
	json_decref(page.lists.threads);
	free(page.report);
	free(page.answer);
	free(page.plain);
	free(page.extra);
	return err;
}

int report_html_end(FILE *out, struct error *error)
{
	fputs("<script>\n", out);
	fwrite(html_program_start, 1, (size_t)(html_program_end - html_program_start), out);
	fputs("</script>\n</body>\n</html>\n", out);
	if (fflush(out) || ferror(out))
		return error_set(error, -EIO, "cannot write the HTML report: %s", strerror(errno));
	return 0;
}
