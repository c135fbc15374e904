/* SPDX-License-Identifier: GPL-2.0-only */
/* Unwind rules from the call frame information of an ELF file. */
#ifndef WHYIDLE_SYMBOLS_CFI_RULE_H
#define WHYIDLE_SYMBOLS_CFI_RULE_H

#include "symbols/cfi_table.h"
#include "symbols/unwind.h"

/* The rule at `address` of the file. False if there is none, or none that struct unwind_rule can express. */
bool cfi_rule(const struct cfi_table *table, uint64_t address, struct unwind_rule *rule);

#endif
