/* SPDX-License-Identifier: GPL-2.0-only */
/* Analyses made by hand, for the tests of userspace/report/. */
#ifndef WHYIDLE_TESTS_REPORT_FIXTURE_H
#define WHYIDLE_TESTS_REPORT_FIXTURE_H

#include "attribute/analysis.h"

#define MS 1000000ULL

/* A session of 5 s without devices. All of these are freed with fixture_free. */
void fixture_empty(struct analysis *analysis);
/* Two loader workers that are too slow, seen by a launcher behind a pin thread. */
void fixture_starved(struct analysis *analysis);
void fixture_healthy(struct analysis *analysis);
/* The launcher waits for a lock that a logger holds. */
void fixture_lock(struct analysis *analysis);
/* Four GPUs: two starved, one of them by more, one healthy, one without operations. */
void fixture_several(struct analysis *analysis);
/* The starved one, but records were lost, the session ends early and something could not be recorded. */
void fixture_lost(struct analysis *analysis);
/* Names with escape sequences, newlines, invalid UTF-8, direction marks, and 1 MB of them. */
void fixture_hostile(struct analysis *analysis);

/* A device that was busy for busy_ns; its idle time grows with each fixture_cause. */
struct device_report *fixture_device(struct analysis *analysis, const char *name, uint64_t busy_ns);
/* Adds a cause to a device, with its gain bound, and keeps the device's sums right. */
struct cause *fixture_cause(struct device_report *device, enum cause_code code, enum cause_role role,
                            uint64_t ns);
void fixture_thread(struct cause *cause, uint32_t pid, uint32_t tid, const char *comm, uint64_t ns);
struct gap_report *fixture_gap(struct device_report *device, uint64_t start_ns, const char *kernel);
/* Appends a link of `ns` to the gap, which grows by it. */
struct chain_link *fixture_link(struct gap_report *gap, uint32_t pid, uint32_t tid, const char *comm,
                                const char *state, enum cause_code code, enum cause_role role, uint64_t ns);

void fixture_free(struct analysis *analysis);

/* What report_text (100 columns, no colour) and report_json print; the caller frees it. Fails the test on
 * error. */
char *fixture_text(const struct analysis *analysis);
char *fixture_json(const struct analysis *analysis);

#endif
