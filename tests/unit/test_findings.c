// SPDX-License-Identifier: GPL-2.0-only
#include <criterion/criterion.h>
#include <string.h>

#include "report/advice.h"
#include "report/findings.h"
#include "report_fixture.h"

static bool has_evidence(const struct finding *finding, const char *part)
{
	char **line;

	array_for_each (line, &finding->evidence) {
		if (strstr(*line, part))
			return true;
	}
	return false;
}

Test(findings, starved_names_workers_and_number)
{
	struct analysis analysis;
	struct findings findings;
	const struct finding *first;

	fixture_starved(&analysis);
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_eq(findings.count, 4); /* not device.floor, not unknown.no_waker */
	first = &findings.items[0];
	cr_assert_eq(first->rank, 1);
	cr_assert_eq(first->code, CAUSE_HOST_USER_CODE);
	cr_assert_eq(first->role, ROLE_WORKER);
	cr_assert_eq(first->device, 0);
	cr_assert_eq(first->idle_ns, 2460 * MS);
	cr_assert_eq(first->gain_high_ns, 2460 * MS);
	cr_assert_not_null(strstr(first->title, "2 workers that were busy computing (loader-0, loader-1)"));
	cr_assert_not_null(strstr(first->advice, "Start 6 workers instead of 2"));
	cr_assert(has_evidence(first, "ran 97 % of the time"));
	cr_assert(has_evidence(first, "slept 0 %"));
	cr_assert(has_evidence(first, "main (1230/1230) waited for it"));
	cr_assert(has_evidence(&findings.items[1], "/data/train/shard-000017.tar"));
	for (size_t i = 1; i < findings.count; i++) {
		cr_assert_eq(findings.items[i].rank, i + 1);
		cr_assert_leq(findings.items[i].gain_high_ns, findings.items[i - 1].gain_high_ns);
	}
	findings_free(&findings);
	fixture_free(&analysis);
}

/* Without the number that is enough, no number is made up. */
Test(findings, unknown_number_of_workers_is_not_claimed)
{
	struct analysis analysis;
	struct findings findings;

	fixture_starved(&analysis);
	analysis.devices.items[0].causes.items[0].group.enough = 0;
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_not_null(strstr(findings.items[0].advice, "Start more workers"));
	findings_free(&findings);
	fixture_free(&analysis);
}

/* As many as there are would do: more of them is not the advice. */
Test(findings, enough_workers_are_not_told_to_be_more)
{
	struct analysis analysis;
	struct findings findings;

	fixture_starved(&analysis);
	analysis.devices.items[0].causes.items[0].group.enough = 2;
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_not_null(
	    strstr(findings.items[0].advice, "work further ahead (prefetch_factor): 2 are enough"));
	findings_free(&findings);
	fixture_free(&analysis);
}

Test(findings, lock_names_its_holder)
{
	struct analysis analysis;
	struct findings findings;

	fixture_lock(&analysis);
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_eq(findings.count, 1);
	cr_assert_not_null(strstr(findings.items[0].title,
	                          "launcher main (1230), waiting for a lock held by logger (1236)"));
	cr_assert_not_null(strstr(findings.items[0].advice, "logger (1236)"));
	findings_free(&findings);
	fixture_free(&analysis);
}

Test(findings, healthy_has_none)
{
	struct analysis analysis;
	struct findings findings;

	fixture_healthy(&analysis);
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_eq(findings.count, 0);
	findings_free(&findings);
	fixture_free(&analysis);
}

/* Of two GPUs with the same cause, the one with more to gain speaks for both. */
Test(findings, several_devices_are_merged)
{
	struct analysis analysis;
	struct findings findings;

	fixture_several(&analysis);
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_eq(findings.count, 4);
	cr_assert_eq(findings.items[0].device, 1);
	cr_assert_not_null(strstr(findings.items[0].title, "6 of 8 workers"));
	cr_assert_not_null(strstr(findings.items[0].title, "(python3 ×6)"));
	cr_assert(has_evidence(&findings.items[0], "the same on GPU 0 (2.46 s)"));
	for (size_t i = 0; i < findings.count; i++)
		cr_assert_neq(findings.items[i].device, 2, "GPU 2 is healthy");
	findings_free(&findings);
	fixture_free(&analysis);
}

/* Recording adds to the gaps between short operations, so a small remainder of them is no finding. */
Test(findings, launch_bound_needs_three_percent)
{
	struct analysis analysis;
	struct findings findings;
	struct device_report *device;

	fixture_empty(&analysis);
	device = fixture_device(&analysis, "GPU", 3000 * MS);
	fixture_cause(device, CAUSE_HOST_LAUNCH_BOUND, ROLE_LAUNCHER, 80 * MS);
	fixture_cause(device, CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 60 * MS);
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_eq(findings.count, 0);
	findings_free(&findings);
	device->causes.items[0].ns = device->causes.items[0].gain_high_ns = 140 * MS;
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_eq(findings.count, 1);
	findings_free(&findings);
	fixture_free(&analysis);
}

Test(findings, at_most_five_by_gain)
{
	static const enum cause_code codes[] = {CAUSE_HOST_GC,   CAUSE_WAIT_LOCK,  CAUSE_WAIT_DISK,
	                                        CAUSE_HOST_GIL,  CAUSE_WAIT_SLEEP, CAUSE_HOST_COMPILE,
	                                        CAUSE_WAIT_CHILD};
	struct analysis analysis;
	struct findings findings;
	struct device_report *device;

	fixture_empty(&analysis);
	device = fixture_device(&analysis, "GPU", 1000 * MS);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct cause *cause = fixture_cause(device, codes[i], ROLE_LAUNCHER, (100 + i) * MS);

		fixture_thread(cause, 1, 1, "main", cause->ns);
	}
	/* Less idle time, but more to gain. */
	device->causes.items[2].gain_high_ns = 500 * MS;
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_eq(findings.count, FINDINGS_MOST);
	cr_assert_eq(findings.items[0].code, CAUSE_WAIT_DISK);
	cr_assert_eq(findings.items[1].code, CAUSE_WAIT_CHILD);
	cr_assert_eq(findings.items[4].code, CAUSE_HOST_GIL);
	findings_free(&findings);
	fixture_free(&analysis);
}

static size_t count_for(enum cause_code code, enum cause_role role, uint64_t ns, uint64_t busy_ns,
                        uint64_t floor_ns)
{
	struct analysis analysis;
	struct findings findings;
	struct device_report *device;
	size_t count;

	fixture_empty(&analysis);
	device = fixture_device(&analysis, "GPU", busy_ns);
	fixture_cause(device, code, role, ns);
	fixture_cause(device, CAUSE_DEVICE_FLOOR, ROLE_DEVICE, floor_ns);
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	count = findings.count;
	findings_free(&findings);
	fixture_free(&analysis);
	return count;
}

Test(findings, thresholds)
{
	/* The device's 3 %: 29 and 30 of 1000. */
	cr_assert_eq(count_for(CAUSE_HOST_GC, ROLE_LAUNCHER, 29 * MS, 971 * MS, 0), 0);
	cr_assert_eq(count_for(CAUSE_HOST_GC, ROLE_LAUNCHER, 30 * MS, 970 * MS, 0), 1);
	/* The cause's 1 %. */
	cr_assert_eq(count_for(CAUSE_HOST_GC, ROLE_LAUNCHER, 9 * MS, 500 * MS, 491 * MS), 0);
	cr_assert_eq(count_for(CAUSE_HOST_GC, ROLE_LAUNCHER, 10 * MS, 500 * MS, 490 * MS), 1);
	/* More than 5 % for the tool itself. */
	cr_assert_eq(count_for(CAUSE_TOOL_OVERHEAD, ROLE_LAUNCHER, 50 * MS, 950 * MS, 0), 0);
	cr_assert_eq(count_for(CAUSE_TOOL_OVERHEAD, ROLE_LAUNCHER, 51 * MS, 949 * MS, 0), 1);
	/* Never, however much. */
	cr_assert_eq(count_for(CAUSE_DEVICE_FLOOR, ROLE_DEVICE, 900 * MS, 100 * MS, 0), 0);
	cr_assert_eq(count_for(CAUSE_EXTERNAL_NO_WORK, ROLE_DEVICE, 900 * MS, 100 * MS, 0), 0);
	for (int code = CAUSE_UNKNOWN_LOST; code < CAUSE_COUNT; code++)
		cr_assert_eq(count_for((enum cause_code)code, ROLE_DEVICE, 900 * MS, 100 * MS, 0), 0);
}

/* Every code and role has a title that names it and an advice that is not the last resort. */
Test(findings, every_cause_has_words)
{
	for (int code = 0; code < CAUSE_COUNT; code++) {
		for (int role = 0; role < ROLE_COUNT; role++) {
			const struct advice_facts facts = {0};
			struct analysis analysis;
			struct findings findings;
			struct device_report *device;
			struct cause *cause;
			char *action, *hint;

			fixture_empty(&analysis);
			device = fixture_device(&analysis, "GPU", 100 * MS);
			cause = fixture_cause(device, (enum cause_code)code, (enum cause_role)role, 900 * MS);
			if (role != ROLE_DEVICE)
				fixture_thread(cause, 12, 13, "somebody", cause->ns);
			cr_assert_eq(findings_make(&findings, &analysis), 0);
			if (findings.count) {
				const struct finding *finding = findings.items;

				cr_assert_not_null(strstr(finding->title, "GPU 0"), "%s", finding->title);
				cr_assert_null(strstr(finding->title, "(null)"));
				cr_assert_null(strstr(finding->title, " ."));
				cr_assert_null(strchr(finding->advice, '{'));
				cr_assert_eq(strncmp(finding->advice, "Look at the worst gaps", 22) ? 0 : 1,
				             0, "no advice for %s", cause_code_name(cause->code));
				cr_assert_gt(finding->evidence.count, 0);
			}
			findings_free(&findings);
			fixture_free(&analysis);

			cr_assert_eq(
			    advice_make(&action, &hint, (enum cause_code)code, (enum cause_role)role, &facts),
			    0);
			cr_assert_gt(strlen(action), 10);
			free(action);
			free(hint);
		}
	}
}

Test(findings, low_confidence_is_said)
{
	struct analysis analysis;
	struct findings findings;

	fixture_lock(&analysis);
	analysis.devices.items[0].causes.items[0].confidence = CONFIDENCE_LOW;
	cr_assert_eq(findings_make(&findings, &analysis), 0);
	cr_assert_not_null(strstr(findings.items[0].title, "(low confidence)."));
	findings_free(&findings);
	fixture_free(&analysis);
}
