// SPDX-License-Identifier: GPL-2.0-only
/* The job as a whole: findings, where its time went, what each rank waited for. */
#include <errno.h>
#include <inttypes.h>

#include "report/format.h"
#include "report/ranks_findings.h"
#include "report/text_ranks.h"

#define PATH_MOST  6  /* causes without --verbose */
#define PEERS_MOST 12 /* ranks without --verbose */

enum column {
	COLUMN_RANK = 6,
	COLUMN_REASON = 31,
	COLUMN_FIGURE = 9,
};

/* "main ← loader sleep_ns": the chain where there is one, else the thread, and what it is about. */
static void print_what(const struct ranks_page *page, const char *via, const char *thread, const char *detail)
{
	char chain[FORMAT_TEXT_SIZE(40)], about[FORMAT_TEXT_SIZE(40)];

	format_text(chain, sizeof(chain), *via ? via : thread, 40);
	format_text(about, sizeof(about), detail, 40);
	fprintf(page->out, "%s%s%s\n", chain, *chain && *about ? ", " : "", about);
}

static void print_row(const struct ranks_page *page, const char *rank, const char *reason, uint64_t ns)
{
	char figure[FORMAT_FIGURE];

	fputs("  ", page->out);
	format_left(page->out, rank, COLUMN_RANK);
	format_left(page->out, reason, COLUMN_REASON);
	format_right(page->out, format_duration(figure, ns), COLUMN_FIGURE);
	format_right(page->out, format_percent(figure, ns, page->ranks->path.span_ns), COLUMN_FIGURE);
	fputs("  ", page->out);
}

static void print_plain_row(const struct ranks_page *page, const char *reason, uint64_t ns)
{
	if (!ns)
		return;
	print_row(page, "", reason, ns);
	fputs("\n", page->out);
}

void ranks_page_path(const struct ranks_page *page)
{
	const struct ranks_path *path = &page->ranks->path;
	size_t shown = path->causes.count;

	if (!path->span_ns)
		return;
	if (!page->verbose && shown > PATH_MOST)
		shown = PATH_MOST;
	ranks_page_heading(page, "What the job's time went to (on the rank that came last, each time)");
	for (size_t i = 0; i < shown; i++) {
		const struct ranks_path_cause *cause = &path->causes.items[i];
		char rank[32], reason[96];

		snprintf(rank, sizeof(rank), "%" PRIu32, ranks_page_rank(page, cause->root));
		ranks_reason_text(reason, sizeof(reason), cause->reason, cause->code, cause->role);
		print_row(page, rank, reason, cause->ns);
		print_what(page, cause->via, cause->thread, cause->detail);
	}
	if (shown < path->causes.count)
		fprintf(page->out, "  %zu more causes\n", path->causes.count - shown);
	print_plain_row(page, "kernels", path->compute_ns);
	print_plain_row(page, "copies", path->copy_ns);
	print_plain_row(page, "collectives, without waiting", path->transfer_ns);
}

/* "via rank 2: wait.disk@worker, main ← loader, /data/x". Whose cause it is, not only who came last. */
static void print_peer(const struct ranks_page *page, const struct ranks_peer *peer)
{
	const struct ranks_cause *cause = &page->ranks->causes.items[peer->cause];
	char rank[32], figure[FORMAT_FIGURE], reason[96];

	snprintf(rank, sizeof(rank), "%" PRIu32, ranks_page_rank(page, peer->member));
	fputs("  ", page->out);
	format_left(page->out, rank, COLUMN_RANK);
	format_right(page->out, format_duration(figure, peer->wait_ns), COLUMN_FIGURE);
	format_right(page->out, format_duration(figure, peer->idle_ns), COLUMN_FIGURE);
	ranks_reason_text(reason, sizeof(reason), cause->reason, cause->code, cause->role);
	fprintf(page->out, "  via rank %" PRIu32, ranks_page_rank(page, cause->late));
	if (cause->root != cause->late)
		fprintf(page->out, " via rank %" PRIu32, ranks_page_rank(page, cause->root));
	fprintf(page->out, ": %s%s", reason, *cause->via || *cause->thread || *cause->detail ? ", " : "");
	print_what(page, cause->via, cause->thread, cause->detail);
}

void ranks_page_peers(const struct ranks_page *page)
{
	const struct ranks_peer *peer;
	uint32_t before = RANKS_NONE;
	size_t members = 0;

	if (!page->ranks->peers.count)
		return;
	ranks_page_heading(page, page->verbose ? "What each rank waited for (device.peer)"
	                                       : "What each rank waited for most (device.peer)");
	fputs("  ", page->out);
	format_left(page->out, "rank", COLUMN_RANK);
	format_right(page->out, "waits", COLUMN_FIGURE);
	format_right(page->out, "idle", COLUMN_FIGURE);
	fputs("  for\n", page->out);
	array_for_each (peer, &page->ranks->peers) {
		bool next = peer->member != before;

		before = peer->member;
		members += next;
		if (page->verbose || (next && members <= PEERS_MOST))
			print_peer(page, peer);
	}
	if (!page->verbose && members > PEERS_MOST)
		fprintf(page->out, "  %zu more ranks\n", members - PEERS_MOST);
}

int ranks_page_findings(const struct ranks_page *page)
{
	struct ranks_findings findings = {0};
	const struct ranks_finding *finding;
	int err = ranks_findings_make(&findings, page->ranks);
	unsigned number = 0;
	char *const *evidence;
	char line[1024];

	if (!err && findings.count)
		ranks_page_heading(page, "Findings across the ranks");
	array_for_each (finding, &findings) {
		char delay[FORMAT_FIGURE], share[FORMAT_FIGURE];

		if (err)
			break;
		snprintf(line, sizeof(line), "%u. %s", ++number, finding->title);
		format_paragraph(page->out, line, page->width, 2, 5);
		snprintf(line, sizeof(line), "Do this: %s", finding->advice);
		format_paragraph(page->out, line, page->width, 5, 7);
		snprintf(line, sizeof(line), "To gain: at most %s (%s) of the job's time",
		         format_duration(delay, finding->delay_ns),
		         format_share(share, finding->delay_ns, page->ranks->span_ns));
		format_paragraph(page->out, line, page->width, 5, 7);
		array_for_each (evidence, &finding->evidence) {
			snprintf(line, sizeof(line), "- %s", *evidence);
			format_paragraph(page->out, line, page->width, 5, 7);
		}
	}
	ranks_findings_free(&findings);
	return err;
}
