// SPDX-License-Identifier: GPL-2.0-only
/* The budget of the daemon: whole days of it in no time, against costs that are made up. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/allowance.h"
#include "daemon/budget.h"

#define SECOND_NS 1000000000ULL
#define MS        1000000ULL

/* A daemon with these costs. */
struct world {
	struct budget budget;
	uint64_t now_ns;
	uint64_t standing_ns;          /* a second */
	uint64_t window_ns[BUDGET_T0]; /* CPU time of a window at each level */
	double slowdown;
	uint64_t windows, since_ns, spent_ns; /* since world_mark */
	uint64_t longest_pause_ns, last_ns;
	char why[256];
};

static void world_init(struct world *world, uint64_t share_ppm, uint64_t standing_ns, uint64_t window_ns)
{
	*world = (struct world){.now_ns = 1000 * SECOND_NS,
	                        .standing_ns = standing_ns,
	                        .window_ns = {window_ns, window_ns, window_ns}};
	budget_init(&world->budget, share_ppm, 10 * SECOND_NS, SECOND_NS, world->now_ns);
}

static void world_mark(struct world *world)
{
	world->windows = world->longest_pause_ns = 0;
	world->last_ns = world->since_ns = world->now_ns;
	world->spent_ns = budget_spent(&world->budget);
}

static void world_second(struct world *world, bool triggered)
{
	struct budget *budget = &world->budget;

	world->now_ns += SECOND_NS;
	budget_spend(budget, BUDGET_DAEMON,
	             budget->level == BUDGET_T0_SELDOM ? world->standing_ns / 10 : world->standing_ns);
	budget_tick(budget, world->now_ns, world->why, sizeof(world->why));
	if (!budget_allows(budget, world->now_ns, triggered ? BUDGET_TRIGGERED : BUDGET_SCHEDULED))
		return;
	{
		uint64_t spent[BUDGET_PARTS] = {[BUDGET_CAPTURE] = world->window_ns[budget->level]};

		budget_window(budget, spent, world->now_ns, budget_window_length(budget), world->slowdown);
	}
	world->windows++;
	if (world->now_ns - world->last_ns > world->longest_pause_ns)
		world->longest_pause_ns = world->now_ns - world->last_ns;
	world->last_ns = world->now_ns;
}

static void world_run(struct world *world, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++)
		world_second(world, false);
}

static double world_share(const struct world *world)
{
	return budget_share(budget_spent(&world->budget) - world->spent_ns, world->now_ns - world->since_ns);
}

Test(budget, cheap_windows_come_as_configured)
{
	struct world world;

	world_init(&world, 5000, MS / 2, 20 * MS); /* 0.05 % + 0.2 % */
	world_run(&world, 60);
	world_mark(&world);
	world_run(&world, 1000);
	cr_assert_eq(world.budget.level, BUDGET_FULL);
	cr_assert_eq(world.windows, 100);
	cr_assert(world.budget.met);
}

Test(budget, dear_windows_become_fewer_and_the_budget_holds)
{
	struct world world;

	world_init(&world, 5000, MS, 100 * MS); /* room for one each 25 s */
	world_run(&world, 600);
	world_mark(&world);
	world_run(&world, 3600);
	cr_assert_eq(world.budget.level, BUDGET_FULL);
	cr_assert(world.windows > 100 && world.windows < 150, "%lu windows", (unsigned long)world.windows);
	cr_assert_leq(world_share(&world), 0.00505, "%f", world_share(&world));
}

Test(budget, windows_too_dear_become_cheaper_a_level_at_a_time)
{
	struct world world;

	world_init(&world, 5000, MS, 1000 * MS);
	world.window_ns[BUDGET_SHORT] = 500 * MS;
	world.window_ns[BUDGET_CHEAP] = 100 * MS;
	world_run(&world, 3600);
	cr_assert_eq(world.budget.level, BUDGET_CHEAP);
	cr_assert_eq(budget_window_length(&world.budget), SECOND_NS / 4);
	world_mark(&world);
	world_run(&world, 7200);
	cr_assert_leq(world_share(&world), 0.00505, "%f", world_share(&world));
	cr_assert_gt(world.windows, 200);
}

Test(budget, an_impossible_budget_leads_to_counters_only_and_says_so)
{
	struct world world;

	world_init(&world, 100, MS / 2, 50 * MS); /* 0.01 %, and the counters alone take 0.05 % */
	world_run(&world, 30);
	cr_assert_geq(world.budget.level, BUDGET_T0);
	cr_assert_not(budget_has_windows(&world.budget));
	cr_assert_eq(world.windows, 0);
	cr_assert(strstr(world.why, "the budget is 0.01 %"), "%s", world.why);
	world_run(&world, 600);
	cr_assert_eq(world.budget.level, BUDGET_T0_SELDOM);
}

Test(budget, a_storm_takes_the_program_at_the_switch_away_and_its_end_brings_it_back)
{
	struct world world;

	world_init(&world, 5000, MS, 20 * MS);
	world_run(&world, 100);
	cr_assert_eq(world.budget.level, BUDGET_FULL);
	world.standing_ns = 100 * MS;
	world_run(&world, 12);
	cr_assert_geq(world.budget.level, BUDGET_T0_REDUCED, "within seconds, not minutes");
	cr_assert_not(world.budget.met);
	world.standing_ns = MS / 2;
	world_run(&world, 600);
	cr_assert_eq(world.budget.level, BUDGET_FULL);
	cr_assert(world.budget.met);
}

Test(budget, where_the_program_at_the_switch_was_the_cost_the_counters_stay)
{
	struct world world;

	world_init(&world, 5000, MS, 20 * MS);
	world_run(&world, 60);
	for (int second = 0; second < 50; second++) { /* less than it takes to try the program again */
		world.standing_ns = world.budget.level < BUDGET_T0_REDUCED ? 300 * MS : MS;
		world_run(&world, 1);
		cr_assert_neq(world.budget.level, BUDGET_T0_SELDOM, "second %d: %s", second, world.why);
	}
	cr_assert_eq(world.budget.level, BUDGET_T0_REDUCED);
	cr_assert(world.budget.met);
}

Test(budget, the_launch_path_counts_too)
{
	struct world world;

	world_init(&world, 5000, MS / 2, 10 * MS);
	world.slowdown = 0.1; /* a second in 20 s is 0.5 % */
	world_run(&world, 300);
	world_mark(&world);
	world_run(&world, 2000);
	cr_assert(world.windows > 90 && world.windows <= 101, "%lu windows", (unsigned long)world.windows);
	world.slowdown = 1; /* 200 s apart: rather shorter ones */
	world_run(&world, 600);
	cr_assert_geq(world.budget.level, BUDGET_SHORT);
	world_mark(&world);
	world_run(&world, 4000);
	cr_assert_leq(world.windows * (budget_window_length(&world.budget) / 1e9) / 4000, 0.0051);
}

Test(budget, triggered_windows_come_before_they_are_due_but_need_credit)
{
	struct world world;

	world_init(&world, 5000, MS / 2, 100 * MS);
	world_run(&world, 600);
	world_mark(&world);
	for (int i = 0; i < 3600; i++)
		world_second(&world, true);
	cr_assert_leq(world_share(&world), 0.0055, "%f", world_share(&world));
	cr_assert_gt(world.windows, 100);
}

/* What a daemon of a minute, and one of an hour, has left for a stall that begins and ends. */
static void expect_four_in_a_row(struct world *world)
{
	for (int i = 0; i < 4; i++) {
		uint64_t before = world->windows;

		for (int second = 0; second < 10 && world->windows == before; second++)
			world_second(world, true);
		cr_assert_gt(world->windows, before, "no credit for window %d", i);
	}
}

Test(budget, the_schedule_leaves_credit_for_changes)
{
	static const unsigned ages[] = {1, 60, 90, 600, 3600};

	for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
		struct world world;

		world_init(&world, 5000, MS, 100 * MS);
		world_run(&world, ages[i]);
		expect_four_in_a_row(&world);
		/* And afterwards the schedule has its turn again. */
		world_mark(&world);
		world_run(&world, 600);
		cr_assert_gt(world.windows, 15);
	}
}

Test(budget, a_small_budget_still_has_scheduled_windows)
{
	struct world world;

	world_init(&world, 500, MS / 10, 40 * MS); /* there is never credit for four of them */
	world_run(&world, 3600);
	world_mark(&world);
	world_run(&world, 3600);
	cr_assert_gt(world.windows, 20);
	cr_assert_leq(world_share(&world), 0.00051, "%f", world_share(&world));
}

Test(budget, without_an_interval_nothing_is_due)
{
	struct world world;

	world_init(&world, 5000, MS / 2, 20 * MS);
	budget_configure(&world.budget, 5000, 0, SECOND_NS);
	world_run(&world, 100);
	world_second(&world, true);
	cr_assert_eq(world.windows, 0);
	cr_assert_eq(budget_due_ns(&world.budget), UINT64_MAX);
	cr_assert_eq(world.budget.level, BUDGET_FULL, "they can still be asked for");
	budget_configure(&world.budget, 5000, 10 * SECOND_NS, SECOND_NS);
	world_run(&world, 5);
	cr_assert_gt(world.windows, 0);
}

Test(budget, shares_and_names)
{
	cr_assert_float_eq(budget_share(5, 1000), 0.005, 1e-12);
	cr_assert_float_eq(budget_share(5, 0), 0, 1e-12);
	cr_assert_str_eq(budget_level_name(BUDGET_FULL), "full");
	cr_assert_str_eq(budget_level_name(BUDGET_T0_SELDOM), "t0_seldom");
	cr_assert_str_eq(budget_part_name(BUDGET_PROBES), "probes");
}

/* ---- what others may ask for ---- */

Test(allowance, a_burst_is_allowed_and_a_flood_gets_its_share)
{
	struct allowance allowance;
	uint64_t now_ns = 5 * SECOND_NS, taken = 0, requests = 0;

	allowance_init(&allowance, 0.001, now_ns);
	for (; !allowance_wait_ns(&allowance, now_ns); requests++)
		allowance_spend(&allowance, MS / 8);
	cr_assert_eq(requests, 81, "10 ms of 125 us each and one that goes over: %lu", requests);
	/* For an hour somebody asks as often as he is let. */
	for (uint64_t end = now_ns + 3600 * SECOND_NS; now_ns < end;) {
		uint64_t wait = allowance_wait_ns(&allowance, now_ns);

		now_ns += wait ? wait : MS;
		if (wait)
			continue;
		allowance_spend(&allowance, MS / 8);
		taken += MS / 8;
	}
	cr_assert_float_eq((double)taken, 3600e6, 1e6);
	/* After a pause there is a burst again, but no more than at the beginning. */
	now_ns += 3600 * SECOND_NS;
	for (requests = 0; !allowance_wait_ns(&allowance, now_ns); requests++)
		allowance_spend(&allowance, MS / 8);
	cr_assert_eq(requests, 81);
}

Test(allowance, another_share_and_none)
{
	struct allowance allowance;

	allowance_init(&allowance, 0.5, 1);
	cr_assert_eq(allowance_wait_ns(&allowance, 1), 0);
	allowance_configure(&allowance, 0.001);
	allowance_spend(&allowance, 11 * MS);
	cr_assert_float_eq((double)allowance_wait_ns(&allowance, 1), 1e9, 10);
	allowance_configure(&allowance, 0);
	cr_assert_eq(allowance_wait_ns(&allowance, 1000 * SECOND_NS), UINT64_MAX);
}
