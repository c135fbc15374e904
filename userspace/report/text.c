// SPDX-License-Identifier: GPL-2.0-only
#include "report/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/format.h"
#include "report/report.h"

#define WIDTH_LEAST 80
#define WIDTH_MOST  160

void report_text_options_for(struct report_text_options *options, FILE *out)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize size;
	int fd = fileno(out);

	memset(options, 0, sizeof(*options));
	if (fd < 0 || !isatty(fd))
		return;
	if (!ioctl(fd, TIOCGWINSZ, &size))
		options->width = size.ws_col;
	options->colour = !(no_colour && *no_colour) && term && strcmp(term, "dumb") != 0;
}

void text_style_on(const struct text *text, enum text_style style)
{
	static const char *const codes[] = {[TEXT_STRONG] = "\033[1m", [TEXT_WARNING] = "\033[33m"};

	if (text->colour)
		fputs(codes[style], text->out);
}

void text_style_off(const struct text *text)
{
	if (text->colour)
		fputs("\033[0m", text->out);
}

void text_heading(const struct text *text, const char *heading)
{
	fputc('\n', text->out);
	text_style_on(text, TEXT_STRONG);
	fprintf(text->out, "%s\n", heading);
	text_style_off(text);
}

uint64_t text_window_ns(const struct device_report *device)
{
	return device->window_end_ns > device->window_start_ns
	           ? device->window_end_ns - device->window_start_ns
	           : 0;
}

bool text_losses(char *buffer, size_t size, const struct loss_report *losses)
{
	const struct {
		uint64_t count;
		const char *where;
	} places[] = {
	    {losses->bpf_ring, "in the kernel's ring buffer"},
	    {losses->bridge_ring, "in the bridge's ring"},
	    {losses->cupti, "inside CUPTI"},
	    {losses->stacks, "stacks"},
	    {losses->user_stacks, "user stacks"},
	    {losses->storage, "for want of per-thread storage"},
	    {losses->file, "on the way to the file"},
	};
	char count[32];
	size_t used = 0;

	buffer[0] = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!places[i].count || used >= size)
			continue;
		used += (size_t)snprintf(buffer + used, size - used, "%s%s %s", used ? ", " : "",
		                         format_count(count, places[i].count), places[i].where);
	}
	return used > 0;
}

void text_findings(const struct text *text)
{
	const struct finding *finding;
	char line[1024], gain[FORMAT_GAIN];
	char **evidence;

	if (!text->findings->count)
		return;
	text_heading(text, "Findings");
	array_for_each (finding, text->findings) {
		snprintf(line, sizeof(line), "%" PRIu32 ". %s", finding->rank, finding->title);
		format_paragraph(text->out, line, text->width, 2, 5);
		snprintf(line, sizeof(line), "Do this: %s %s", finding->advice, finding->hint);
		format_paragraph(text->out, line, text->width, 5, 7);
		snprintf(line, sizeof(line), "To gain: %s%s",
		         format_gain(gain, finding->gain_low_ns, finding->gain_high_ns, finding->window_ns),
		         finding->gain_low_ns ? "" : ", an upper bound: another cause may take its place");
		format_paragraph(text->out, line, text->width, 5, 7);
		array_for_each (evidence, &finding->evidence) {
			snprintf(line, sizeof(line), "- %s", *evidence);
			format_paragraph(text->out, line, text->width, 5, 7);
		}
	}
}

int report_text(FILE *out, const struct analysis *analysis, const struct report_text_options *options)
{
	struct findings findings;
	struct text text = {.out = out, .analysis = analysis, .findings = &findings, .width = WIDTH_DEFAULT};
	int err = findings_make(&findings, analysis);

	if (options) {
		if (options->width)
			text.width = options->width < WIDTH_LEAST  ? WIDTH_LEAST
			             : options->width > WIDTH_MOST ? WIDTH_MOST
			                                           : options->width;
		text.colour = options->colour;
		text.verbose = options->verbose;
	}
	if (!err)
		err = text_answer(&text);
	if (!err) {
		text_notes(&text);
		text_devices(&text);
		text_steps(&text);
		text_findings(&text);
		err = text_gaps(&text);
	}
	if (!err)
		text_recording(&text);
	findings_free(&findings);
	if (!err && (fflush(out) || ferror(out)))
		err = -EIO;
	return err;
}
