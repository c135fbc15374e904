/* SPDX-License-Identifier: GPL-2.0-only */
/* cuptiFinalize in a call of the program: once, in one thread, or not at all. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <unistd.h>

#include "cupti_bridge/finalize.h"

#define THREADS 8
#define LONG_MS 20000 /* never waited out */

static uint32_t finalized; /* (atomic) */
static uint32_t begun, let_go;
static cupti_abi_result answer;

static cupti_abi_result count(void)
{
	__atomic_add_fetch(&finalized, 1, __ATOMIC_RELAXED);
	return answer;
}

static void wait_for(const uint32_t *word)
{
	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
		usleep(100);
}

/* Goes on when the test says so. */
static cupti_abi_result hold(void)
{
	__atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
	wait_for(&let_go);
	return count();
}

static void *end_calls(void *unused)
{
	while (!__atomic_load_n(&finalized, __ATOMIC_RELAXED))
		finalize_now(count);
	for (int i = 0; i < 1000; i++)
		finalize_now(count);
	return unused;
}

static void *end_one_call(void *unused)
{
	finalize_now(hold);
	return unused;
}

/* Criterion runs each test in a process of its own: the state begins idle. */

Test(finalize, not_unless_asked_for)
{
	cr_assert(!finalize_is_asked());
	finalize_now(count);
	cr_assert_eq(finalized, 0);
}

Test(finalize, one_of_many_threads_does_it)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		cr_assert(!pthread_create(&threads[i], NULL, end_calls, NULL));
	cr_assert(finalize_ask());
	cr_assert_eq(finalize_wait(LONG_MS, LONG_MS), FINALIZE_DONE);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(finalized, 1);
}

Test(finalize, again_after_the_next_attachment)
{
	for (uint32_t i = 1; i < 4; i++) {
		cr_assert(finalize_ask());
		cr_assert(finalize_is_asked());
		finalize_now(count);
		cr_assert_eq(finalize_wait(LONG_MS, LONG_MS), FINALIZE_DONE);
		cr_assert_eq(finalized, i);
	}
}

Test(finalize, a_program_without_calls)
{
	cr_assert(finalize_ask());
	cr_assert_eq(finalize_wait(20, LONG_MS), FINALIZE_NO_CALL);
	finalize_now(count); /* a call that comes too late */
	cr_assert_eq(finalized, 0);
	cr_assert(finalize_ask(), "the next attachment may ask again");
}

Test(finalize, an_error_is_told)
{
	answer = CUPTI_ABI_ERROR_UNKNOWN;
	cr_assert(finalize_ask());
	finalize_now(count);
	cr_assert_eq(finalize_wait(LONG_MS, LONG_MS), FINALIZE_FAILED);
}

Test(finalize, one_that_does_not_return)
{
	pthread_t thread;

	cr_assert(finalize_ask());
	cr_assert(!pthread_create(&thread, NULL, end_one_call, NULL));
	wait_for(&begun);
	cr_assert_eq(finalize_wait(LONG_MS, 20), FINALIZE_UNDER_WAY);
	cr_assert(finalize_is_under_way());
	cr_assert(!finalize_ask(), "the next one has to wait");
	__atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	cr_assert(!finalize_is_under_way());
	cr_assert(finalize_ask());
}

static void *wait_for_it(void *result)
{
	*(enum finalize_result *)result = finalize_wait(LONG_MS, LONG_MS);
	return NULL;
}

Test(finalize, none_while_the_process_exits)
{
	enum finalize_result result = FINALIZE_DONE;
	pthread_t thread;

	cr_assert(finalize_ask());
	cr_assert(!pthread_create(&thread, NULL, wait_for_it, &result));
	finalize_forbid(LONG_MS);
	finalize_now(count); /* a call in the program's exit handlers */
	pthread_join(thread, NULL);
	cr_assert_eq(result, FINALIZE_FORBIDDEN);
	cr_assert_eq(finalized, 0);
	cr_assert(!finalize_ask());
	finalize_forbid(LONG_MS); /* twice is no harm */
}

static void *exit_meanwhile(void *unused)
{
	finalize_forbid(LONG_MS);
	__atomic_add_fetch(&finalized, 100, __ATOMIC_RELAXED);
	return unused;
}

Test(finalize, the_exit_waits_for_one_that_has_begun)
{
	pthread_t thread, exiting;

	cr_assert(finalize_ask());
	cr_assert(!pthread_create(&thread, NULL, end_one_call, NULL));
	wait_for(&begun);
	finalize_forbid(20); /* but not for ever */
	cr_assert(!pthread_create(&exiting, NULL, exit_meanwhile, NULL));
	cr_assert_eq(__atomic_load_n(&finalized, __ATOMIC_RELAXED), 0);
	__atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
	pthread_join(exiting, NULL);
	pthread_join(thread, NULL);
	cr_assert_eq(finalized, 101);
	cr_assert(!finalize_ask());
}
