/* SPDX-License-Identifier: GPL-2.0-only */
/* Unwind rules from the call frame information of an ELF file, which libdw reads. */
#ifndef WHYIDLE_SYMBOLS_CFI_RULE_H
#define WHYIDLE_SYMBOLS_CFI_RULE_H

#include <elfutils/libdw.h>

#include "symbols/unwind.h"

/* The rule at `address` of the file. False if there is none, or none that struct unwind_rule can express. */
bool cfi_rule(Dwarf_CFI *cfi, uint64_t address, struct unwind_rule *rule);

#endif
