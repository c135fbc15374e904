/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds and opens the CUPTI that belongs to the CUDA in this process.
 *
 * A copy that is mapped already comes first: CUPTI keeps its state in the library, and a second copy beside
 * the program's own would see the driver refuse it. Then the copies that ship beside the CUDA libraries in
 * use, the usual sonames, the toolkit's folders. The environment (RING_CUPTI_ENV) overrides all of that.
 */
#ifndef WHYIDLE_CUPTI_LIBRARY_H
#define WHYIDLE_CUPTI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti_bridge/cupti_abi.h"

#define CUPTI_LIBRARY_PATH 1024

/* Functions of the library under their own names; those of the optional list may be NULL. */
struct cupti_functions {
#define CUPTI_LIBRARY_MEMBER(name, parameters) cupti_abi_##name name;
	CUPTI_ABI_REQUIRED_FUNCTIONS(CUPTI_LIBRARY_MEMBER) CUPTI_ABI_OPTIONAL_FUNCTIONS(CUPTI_LIBRARY_MEMBER)
#undef CUPTI_LIBRARY_MEMBER
};

struct cupti_library {
	struct cupti_functions call;
	void *handle;           /* never closed: CUPTI keeps threads and callbacks */
	uint32_t version;       /* cuptiGetVersion, 0 if that failed */
	cupti_abi_result error; /* what it returned: under a debugger every call of CUPTI fails */
	char path[CUPTI_LIBRARY_PATH];
};

/* What is known about the CUDA driver in this process. */
struct cuda_driver {
	uint32_t version; /* cuDriverGetVersion (13000 is 13.0), 0 not known */
	bool simulated;   /* it is the stand-in of tests/sim */
};

void cuda_driver_find(struct cuda_driver *driver);

/* True if the program has initialised CUDA, and a GPU is there. Not to be asked during cuInit. */
bool cuda_driver_is_initialised(void);

/* CUDA major version of a cuptiGetVersion, as listed in cupti_version.h. */
uint32_t cupti_library_major(uint32_t version);

/*
 * Opens the best copy. Returns false with a sentence for a person in `text` (what was tried, what to do).
 */
bool cupti_library_open(struct cupti_library *library, const struct cuda_driver *driver, char *text,
                        size_t size);

#endif
