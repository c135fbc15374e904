/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to the HTML report: what of a device is not in the JSON report. */
#ifndef WHYIDLE_REPORT_HTML_PARTS_H
#define WHYIDLE_REPORT_HTML_PARTS_H

#include "report/json_parts.h"
#include "report/report_html.h"

#define HTML_NAME_LIMIT 300   /* bytes of a name in a table */
#define HTML_STEPS_MOST 20000 /* that are drawn */

/* JSON, and text, within a page: no name in it can end the element that it is in. */
void html_put_json(FILE *out, const char *text);
void html_put_text(FILE *out, const char *text);

/* make_text, cut to HTML_NAME_LIMIT. */
json_t *html_name(const char *text);

/*
 * The gaps of a device for the timeline, its flame graph and its histogram. Per gap, as unsigned LEB128: busy
 * time since the last one, number of leaves, and per leaf its length, the index of its kind and of its
 * thread. Kinds and threads are lists of the page. html_gaps_free in either case.
 */
struct html_gaps {
	struct {
		ARRAY(uint8_t)
	} bytes;
	json_t *description; /* object with everything else; borrowed by html_gaps_take */
};

/* Lists that all devices of a page share. */
struct html_lists {
	json_t *kinds;   /* [code, role, state] */
	json_t *threads; /* [pid, tid, comm] */
	struct index_map kind_by_key, thread_by_index;
};

/* Returns 0 or -ENOMEM. */
int html_gaps_make(struct html_gaps *gaps, struct html_lists *lists, const struct model *model,
                   const struct device_report *report);
void html_gaps_free(struct html_gaps *gaps);

/* Tables of one GPU, and of host threads; at most HTML_NAME_LIMIT bytes of each name. */
json_t *html_gpu_tables(struct maker *maker, const struct table_source *source,
                        const struct device_report *report);
json_t *html_host_tables(struct maker *maker, const struct table_source *source);

/* [start from the window's, length, 0 normal / 1 slow / 2 warm-up] of the first HTML_STEPS_MOST steps. */
json_t *html_steps(struct maker *maker, const struct device_report *report);
/* [start, length] of the slow steps, in the order of the report's. */
json_t *html_slow_steps(struct maker *maker, const struct device_report *report);

/* The worst gaps with their surroundings. */
json_t *html_top_gaps(struct maker *maker, const struct model *model, const struct device_report *report);

#endif
