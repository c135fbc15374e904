/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A library that exports as many functions worth a probe as a real CUDA driver and runtime do together: what
 * setting and removing all their probes takes is tested with it. Their names differ in the version only.
 */
volatile int many_calls_last;

/* No two do the same, or the compiler would make them one. */
#define CALL(number)                                                                                         \
	void cuMemAlloc_v##number(void);                                                                     \
	void cuMemAlloc_v##number(void)                                                                      \
	{                                                                                                    \
		many_calls_last = number;                                                                    \
	}
#define TEN_CALLS(ten)                                                                                       \
	CALL(ten##0)                                                                                         \
	CALL(ten##1)                                                                                         \
	CALL(ten##2)                                                                                         \
	CALL(ten##3)                                                                                         \
	CALL(ten##4)                                                                                         \
	CALL(ten##5)                                                                                         \
	CALL(ten##6)                                                                                         \
	CALL(ten##7)                                                                                         \
	CALL(ten##8)                                                                                         \
	CALL(ten##9)

TEN_CALLS(1)
TEN_CALLS(2)
TEN_CALLS(3)
TEN_CALLS(4)
TEN_CALLS(5)
TEN_CALLS(6)
TEN_CALLS(7)
