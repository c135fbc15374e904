/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_UNIT_LIBDW_RULE_H
#define WHYIDLE_UNIT_LIBDW_RULE_H

#include <elfutils/libdw.h>

#include "symbols/unwind.h"

/* The same as cfi_rule, by another reader. It does not say where signal frames keep their registers. */
bool libdw_rule(Dwarf_CFI *cfi, uint64_t address, struct unwind_rule *rule);

#endif
