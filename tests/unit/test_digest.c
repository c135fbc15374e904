// SPDX-License-Identifier: GPL-2.0-only
/* What probes on CUDA calls made of the launch path, from figures of a window. */
#include <criterion/criterion.h>

#include "daemon/digest.h"
#include "model/model.h"

#define SECOND_NS 1000000000ULL

/* A window of a second in which threads made so many calls. */
static double slowdown_of(const size_t *calls, size_t count, struct digest_cost cost)
{
	struct model model = {0};
	struct thread *thread;
	double slowdown;

	for (size_t i = 0; i < count; i++) {
		thread = array_add(&model.threads);
		cr_assert_not_null(thread);
		thread->calls.count = calls[i];
	}
	cost.length_ns = cost.length_ns ? cost.length_ns : SECOND_NS;
	slowdown = digest_slowdown(&model, &cost);
	array_free(&model.threads);
	return slowdown;
}

Test(digest, slowdown_is_of_the_thread_with_the_most_calls)
{
	static const size_t calls[] = {1000, 3000, 0};
	struct digest_cost cost = {.call_ns = 8000000, .call_hits = 8000, .hit_ns = 4000};

	/* 8 ms of programs and 32 ms of traps, of which the second thread has three quarters: 30 ms of a
	 * second. */
	cr_assert_float_eq(slowdown_of(calls, 3, cost), 0.03, 1e-9);
	cost.length_ns = SECOND_NS / 2;
	cr_assert_float_eq(slowdown_of(calls, 3, cost), 0.06, 1e-9);
	/* Where hits were not counted, each call is one. */
	cost.call_hits = 0;
	cr_assert_float_eq(slowdown_of(calls, 3, cost), (0.008 + 0.016) * 0.75 * 2, 1e-9);
	/* Where neither is known, nothing is claimed. */
	cr_assert_float_eq(slowdown_of(calls, 3, (struct digest_cost){0}), 0, 1e-9);
}

Test(digest, nobody_called_or_the_window_had_no_length)
{
	static const size_t none[] = {0, 0}, some[] = {5};
	struct digest_cost cost = {.call_ns = 5000, .call_hits = 5, .hit_ns = 100};
	struct model model = {0};

	cr_assert_float_eq(slowdown_of(none, 2, cost), 0, 1e-9);
	cr_assert_float_eq(slowdown_of(none, 0, cost), 0, 1e-9);
	cr_assert_float_eq(slowdown_of(some, 1, cost), 5500 / 1e9, 1e-12);
	cr_assert_float_eq(digest_slowdown(&model, &cost), 0, 1e-9); /* length 0 */
}

Test(digest, a_session_that_is_none_is_refused)
{
	struct digest_cost cost = {.length_ns = SECOND_NS};
	struct error error = {0};
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	cr_assert_lt(digest_write(out, "/proc/self/no-such-session", &cost, &error), 0);
	cr_assert_neq(error.text[0], '\0');
	fclose(out);
	cr_assert_eq(length, 0, "half a document: %s", text);
	free(text);
}
