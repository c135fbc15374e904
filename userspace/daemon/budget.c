// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/budget.h"

#include <stdio.h>
#include <string.h>

#define SECOND_NS 1000000000ULL

#define FIRST_WINDOW_NS 50000000ULL /* cost of a window that was never tried */
#define FIRST_CREDIT    15          /* at the start: so many of these */
#define SMOOTH_WINDOW   0.5         /* weight of the newest window */
#define SMOOTH_STANDING 0.1         /* weight of the newest tick */
#define SHORTER         4           /* a short window is this much shorter */
#define LEAST_WINDOW_NS 200000000ULL
#define LEAST_TICK_NS   (SECOND_NS / 2) /* a shorter time says nothing about a share */
#define OVER_TICKS      5               /* standing costs over the budget for so many ticks: a level down */
#define STORM           20              /* costs so many times the budget are not waited for as long */
#define UNDER_TICKS     60              /* and below half of it for so many: a level up */

const char *budget_level_name(enum budget_level level)
{
	static const char *const names[BUDGET_LEVELS] = {"full", "short",      "cheap",
	                                                 "t0",   "t0_reduced", "t0_seldom"};

	return names[level];
}

const char *budget_part_name(enum budget_part part)
{
	static const char *const names[BUDGET_PARTS] = {"daemon", "switch", "capture", "probes"};

	return names[part];
}

static double share(const struct budget *budget)
{
	return (double)budget->share_ppm / BUDGET_PPM;
}

static int64_t credit_limit(const struct budget *budget)
{
	return (int64_t)(share(budget) * BUDGET_CREDIT_NS);
}

void budget_init(struct budget *budget, uint64_t share_ppm, uint64_t interval_ns, uint64_t window_ns,
                 uint64_t now_ns)
{
	*budget = (struct budget){.met = true, .now_ns = now_ns, .changed_ns = now_ns};
	budget_configure(budget, share_ppm, interval_ns, window_ns);
	/* For a first window, so that there is something to see soon after the start. */
	budget->credit_ns = credit_limit(budget) / 2;
	if (budget->credit_ns > (int64_t)(FIRST_CREDIT * FIRST_WINDOW_NS))
		budget->credit_ns = FIRST_CREDIT * FIRST_WINDOW_NS;
}

void budget_configure(struct budget *budget, uint64_t share_ppm, uint64_t interval_ns, uint64_t window_ns)
{
	budget->share_ppm = share_ppm;
	budget->interval_ns = interval_ns;
	budget->window_ns = window_ns;
	if (budget->credit_ns > credit_limit(budget))
		budget->credit_ns = credit_limit(budget);
}

void budget_spend(struct budget *budget, enum budget_part part, uint64_t ns)
{
	budget->spent_ns[part] += ns;
	budget->standing_ns += ns;
	budget->credit_ns -= (int64_t)ns;
}

uint64_t budget_spent(const struct budget *budget)
{
	uint64_t sum = 0;

	for (int i = 0; i < BUDGET_PARTS; i++)
		sum += budget->spent_ns[i];
	return sum;
}

double budget_share(uint64_t spent_ns, uint64_t elapsed_ns)
{
	return elapsed_ns ? (double)spent_ns / (double)elapsed_ns : 0;
}

static uint64_t smooth(uint64_t old, uint64_t new)
{
	return old ? (uint64_t)(old + SMOOTH_WINDOW * ((double)new - (double)old)) : new;
}

bool budget_has_windows(const struct budget *budget)
{
	return budget->level < BUDGET_T0;
}

static uint64_t length_at(const struct budget *budget, enum budget_level level)
{
	uint64_t length = level == BUDGET_FULL ? budget->window_ns : budget->window_ns / SHORTER;

	return length < LEAST_WINDOW_NS ? LEAST_WINDOW_NS : length;
}

uint64_t budget_window_length(const struct budget *budget)
{
	return length_at(budget, budget->level);
}

void budget_window(struct budget *budget, const uint64_t spent_ns[BUDGET_PARTS], uint64_t began_ns,
                   uint64_t length_ns, double slowdown)
{
	uint64_t sum = 0;

	for (int i = 0; i < BUDGET_PARTS; i++) {
		budget->spent_ns[i] += spent_ns[i];
		sum += spent_ns[i];
	}
	budget->credit_ns -= (int64_t)sum;
	if (budget_has_windows(budget))
		budget->window_cost_ns[budget->level] = smooth(budget->window_cost_ns[budget->level], sum);
	budget->slowdown += SMOOTH_WINDOW * ((slowdown > 0 ? slowdown : 0) - budget->slowdown);
	budget->last_window_ns = began_ns;
	budget->last_length_ns = length_ns;
}

/* What a window costs at a level; where it was never tried, as much as the next dearer level that was. */
static uint64_t cost_at(const struct budget *budget, enum budget_level level)
{
	for (int i = level < BUDGET_T0 ? (int)level : BUDGET_T0 - 1; i >= 0; i--) {
		if (budget->window_cost_ns[i])
			return budget->window_cost_ns[i];
	}
	return FIRST_WINDOW_NS;
}

/* Time from one window to the next that the budget allows at a level, UINT64_MAX: none. */
static uint64_t spacing_at(const struct budget *budget, enum budget_level level)
{
	double left = share(budget) - budget->standing, spacing, path;

	if (left <= 0)
		return UINT64_MAX;
	spacing = (double)cost_at(budget, level) / left;
	/* The launch path is only longer while a window lasts. */
	path = (double)length_at(budget, level) * budget->slowdown / share(budget);
	if (path > spacing)
		spacing = path;
	return spacing > 1e18 ? UINT64_MAX : (uint64_t)spacing;
}

static uint64_t spacing(const struct budget *budget)
{
	uint64_t allowed = spacing_at(budget, budget->level);

	return allowed > budget->interval_ns ? allowed : budget->interval_ns;
}

/* Credit that a window of the current level needs, with what it must leave to those that cannot wait. */
static int64_t credit_needed(const struct budget *budget, enum budget_use use)
{
	static const unsigned leaves[BUDGET_USES] = {
	    [BUDGET_SCHEDULED] = 3, [BUDGET_FOLLOWED] = 2, [BUDGET_TRIGGERED] = 0};
	int64_t cost = (int64_t)cost_at(budget, budget->level), rest = leaves[use] * cost;
	int64_t most = (credit_limit(budget) - cost) / 2;

	/* The first is there for something to see soon after the start. */
	if (!budget->last_window_ns || most < 0)
		return cost;
	return cost + (rest < most ? rest : most);
}

/* When there will be so much credit, if nothing is spent but what always is. */
static uint64_t credit_due_ns(const struct budget *budget, int64_t needed)
{
	double income = share(budget) - budget->standing, wait;

	if (budget->credit_ns >= needed)
		return budget->now_ns;
	wait = income > 0 ? (double)(needed - budget->credit_ns) / income : 1e18;
	return wait < 1e18 ? budget->now_ns + (uint64_t)wait : UINT64_MAX;
}

uint64_t budget_due_ns(const struct budget *budget)
{
	uint64_t wanted = spacing(budget), credit, due;

	if (!budget_has_windows(budget) || !budget->interval_ns || wanted == UINT64_MAX)
		return UINT64_MAX;
	credit = credit_due_ns(budget, credit_needed(budget, BUDGET_SCHEDULED));
	due = budget->last_window_ns ? budget->last_window_ns + wanted : budget->now_ns;
	return credit > due ? credit : due;
}

bool budget_allows(const struct budget *budget, uint64_t now_ns, enum budget_use use)
{
	uint64_t path;

	if (!budget_has_windows(budget) || !budget->interval_ns ||
	    budget->credit_ns < credit_needed(budget, use))
		return false;
	if (use == BUDGET_SCHEDULED)
		return now_ns >= budget_due_ns(budget);
	if (!budget->last_window_ns)
		return true;
	/* The launch path keeps no credit: only as much as a few windows in a row could take. */
	path = (uint64_t)((double)budget->last_length_ns * budget->slowdown / share(budget)) / 4;
	return now_ns >= budget->last_window_ns + budget->last_length_ns + path;
}

static void step(struct budget *budget, int by)
{
	budget->level += by;
	budget->changed_ns = budget->now_ns;
	budget->over_ticks = budget->under_ticks = 0;
	budget->stepped = true;
	if (by > 0)
		budget->steps_down++;
	else
		budget->steps_up++;
}

/* The level at which windows would be worth their cost. */
static enum budget_level level_wanted(const struct budget *budget)
{
	for (int level = BUDGET_FULL; level < BUDGET_T0; level++) {
		uint64_t most = level == BUDGET_T0 - 1 ? BUDGET_LAST_NS : BUDGET_SPACING_NS;

		if (spacing_at(budget, level) <= (most > budget->interval_ns ? most : budget->interval_ns))
			return level;
	}
	return BUDGET_T0;
}

static bool change_windows(struct budget *budget, char *why, unsigned long size)
{
	enum budget_level wanted = level_wanted(budget);
	uint64_t cost = cost_at(budget, budget->level);
	double limit = share(budget) * 100;

	if (wanted > budget->level) {
		if (budget->slowdown > 0.01)
			snprintf(why, size,
			         "a window costs %.1f ms of CPU and makes launches %.1f %% slower, all else "
			         "%.3f %% of a CPU: full windows would exceed the budget of %.3g %%",
			         cost / 1e6, budget->slowdown * 100, budget->standing * 100, limit);
		else
			snprintf(why, size,
			         "a window costs %.1f ms of CPU, all else %.3f %% of one: windows at this "
			         "level would be too rare within the budget of %.3g %%",
			         cost / 1e6, budget->standing * 100, limit);
		step(budget, +1);
		return true;
	}
	if (wanted < budget->level) {
		snprintf(why, size, "there is room again within the budget of %.3g %%", limit);
		step(budget, -1);
		return true;
	}
	return false;
}

static bool change_counters(struct budget *budget, char *why, unsigned long size)
{
	if (budget->over_ticks >= OVER_TICKS && budget->level < BUDGET_LEVELS - 1) {
		snprintf(why, size, "without windows %.3f %% of a CPU are spent, the budget is %.3g %%",
		         budget->standing * 100, share(budget) * 100);
		step(budget, +1);
		return true;
	}
	if (budget->under_ticks >= UNDER_TICKS) {
		if (budget->level == BUDGET_T0 && level_wanted(budget) == BUDGET_T0) {
			budget->under_ticks = 0;
			return false;
		}
		snprintf(why, size, "there is room again: %.3f %% of a CPU are spent, the budget is %.3g %%",
		         budget->standing * 100, share(budget) * 100);
		step(budget, -1);
		return true;
	}
	return false;
}

static void note_standing(struct budget *budget, uint64_t elapsed_ns)
{
	double now = budget_share(budget->standing_ns, elapsed_ns);

	budget->standing_ns = 0;
	budget->standing += (budget->stepped ? 1 : SMOOTH_STANDING) * (now - budget->standing);
	budget->stepped = false;
	/* The newest tick counts too: a storm must not go on until the average has followed. */
	if (now > STORM * share(budget))
		budget->over_ticks += (OVER_TICKS + 1) / 2;
	else if (budget->standing > share(budget) || now > 4 * share(budget))
		budget->over_ticks++;
	else
		budget->over_ticks = 0;
	if (budget->standing < share(budget) / 2)
		budget->under_ticks++;
	else
		budget->under_ticks = 0;
	budget->met = budget->standing <= share(budget);
}

bool budget_tick(struct budget *budget, uint64_t now_ns, char *why, unsigned long size)
{
	uint64_t elapsed = now_ns - budget->now_ns;

	if (now_ns < budget->now_ns + LEAST_TICK_NS)
		return false;
	budget->now_ns = now_ns;
	budget->credit_ns += (int64_t)(share(budget) * (double)elapsed);
	if (budget->credit_ns > credit_limit(budget))
		budget->credit_ns = credit_limit(budget);
	note_standing(budget, elapsed);
	if (budget->level >= BUDGET_T0 || budget->over_ticks >= OVER_TICKS) {
		if (budget->level < BUDGET_T0) {
			snprintf(why, size,
			         "without windows %.3f %% of a CPU are spent already, the budget is %.3g %%",
			         budget->standing * 100, share(budget) * 100);
			step(budget, BUDGET_T0 - (int)budget->level);
			return true;
		}
		return change_counters(budget, why, size);
	}
	if (now_ns - budget->changed_ns < BUDGET_PATIENCE_NS)
		return false;
	return change_windows(budget, why, size);
}
