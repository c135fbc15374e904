/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_FUZZ_PYTHON_H
#define WHYIDLE_FUZZ_PYTHON_H

/* An input of fuzz_python: one byte that says which version, then the memory of the process, which begins at
 * this address. A code object lies at its start; for the last kind the interpreter's own table comes first.
 */
#define FUZZ_PYTHON_BASE   0x10000
#define FUZZ_PYTHON_THREAD 2048 /* where the state of a thread lies in it */
#define FUZZ_PYTHON_KINDS  5    /* 3.9, 3.10, 3.11, 3.12, by the table */

#endif
