/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of C++ functions and CUDA kernels for people.
 *
 * Names come from the recorded program, which may choose them to do harm: what would need more than bounded
 * time or memory is left as it is.
 */
#ifndef WHYIDLE_SYMBOLS_DEMANGLE_H
#define WHYIDLE_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* True for a name of the Itanium C++ ABI ("_Z…"), which g++, clang and nvcc use. */
bool symbol_is_mangled(const char *name);

/*
 * The whole name in words, "void at::native::fill<4>(float*)". NULL if `name` is not mangled, makes no sense,
 * is too long or memory ran out. The caller frees it.
 */
char *symbol_demangle(const char *name);

/*
 * The last source name before template arguments or the end of a mangled name (symbol_is_mangled), within
 * `name`; all of it where it makes no sense. A member of a class template gives the class: to find the
 * member, all of the grammar would be needed.
 */
const char *symbol_last_name(const char *name, size_t *length);

/*
 * A name in words without what a reader does not need: return type, parameters, all but very short template
 * arguments. "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<…> >(…)" gives
 * "at::native::reduce_kernel<…>". A mangled name that cannot be demangled gives its last part. Any other name
 * is returned as it is. NULL if memory ran out; the caller frees it.
 */
char *symbol_short(const char *name);

#endif
