/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What to do about a cause: one table for every code and role.
 */
#ifndef WHYIDLE_REPORT_ADVICE_H
#define WHYIDLE_REPORT_ADVICE_H

#include "attribute/analysis.h"

/* Figures and names that an advice may mention; NULL where not known. All are fit to be printed. */
struct advice_facts {
	const char *enough;  /* number of workers that would do, if more than there are */
	const char *ample;   /* the same, if no more than there are */
	const char *workers; /* number there is */
	const char *path;
	const char *holder;
	const char *function;
	const char *thread; /* the thread with the largest part */
};

/*
 * Makes the advice for a code and role, in the most particular form that the known facts allow. *action (a
 * sentence) and *hint ("" if none) are the caller's to free. Returns 0 or -ENOMEM.
 */
int advice_make(char **action, char **hint, enum cause_code code, enum cause_role role,
                const struct advice_facts *facts);

#endif
