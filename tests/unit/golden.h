/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Golden files: expected output, compared byte for byte. `make golden` writes them anew
 * (WHYIDLE_GOLDEN_UPDATE=1); read the difference before you commit it. They are looked for in
 * WHYIDLE_GOLDEN_DIR, by default tests/golden.
 */
#ifndef WHYIDLE_TESTS_GOLDEN_H
#define WHYIDLE_TESTS_GOLDEN_H

/* Fails the running test if `text` is not what the file `name` holds. */
void golden_check(const char *name, const char *text);

#endif
