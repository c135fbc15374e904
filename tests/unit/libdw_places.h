/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_UNIT_LIBDW_PLACES_H
#define WHYIDLE_UNIT_LIBDW_PLACES_H

#include <elfutils/libdw.h>

#include "symbols/source_places.h"

/* The same as source_places, by another reader. It does not look into functions for those of their local
 * classes. */
size_t libdw_places(Dwarf *dwarf, uint64_t address, struct source_place places[SOURCE_PLACES_MAX]);

#endif
