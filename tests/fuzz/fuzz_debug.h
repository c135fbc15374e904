/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_FUZZ_DEBUG_H
#define WHYIDLE_FUZZ_DEBUG_H

#include <stdint.h>

#include "symbols/debug_sections.h"

/* An input of fuzz_debug: how long each section is, then all of them. */
struct fuzz_debug_head {
	uint32_t sizes[DEBUG_SECTIONS];
};

#endif
