// SPDX-License-Identifier: GPL-2.0-only
#include "cli/html_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int html_file_open(struct html_file *html, const char *path, struct error *error)
{
	int err;

	*html = (struct html_file){.path = path};
	err = target_file_create(&html->file, path, error);
	if (err)
		return err;
	html->out = fdopen(html->file.fd, "w");
	if (!html->out) {
		err = error_set(error, -errno, "cannot write %s: %s", path, strerror(errno));
		target_file_discard(&html->file);
		return err;
	}
	html->file.fd = -1;
	report_html_begin(html->out);
	return 0;
}

int html_file_add(struct html_file *html, const char *label, const struct table_source *source,
                  const struct analysis *analysis, const struct ranks_report *ranks, struct error *error)
{
	char **slot = array_add(&html->labels);

	if (!slot)
		return error_no_memory(error);
	*slot = strdup(label);
	if (!*slot)
		return error_no_memory(error);
	return report_html_part(html->out, (unsigned)html->labels.count - 1, source, analysis, ranks, error);
}

int html_file_commit(struct html_file *html, struct error *error)
{
	int err = report_html_end(html->out, error);

	if (fclose(html->out) && !err)
		err = error_set(error, -errno, "cannot write %s: %s", html->path, strerror(errno));
	html->out = NULL;
	if (!err)
		return target_file_commit(&html->file, error);
	target_file_discard(&html->file);
	return err;
}

void html_file_close(struct html_file *html)
{
	char **label;

	if (html->out) {
		fclose(html->out);
		target_file_discard(&html->file);
	}
	array_for_each (label, &html->labels)
		free(*label);
	array_free(&html->labels);
	*html = (struct html_file){0};
}
