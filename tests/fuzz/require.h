/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_FUZZ_REQUIRE_H
#define WHYIDLE_FUZZ_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the fuzzer with what does not hold. */
#define REQUIRE(condition)                                                                                   \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);              \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

#endif
