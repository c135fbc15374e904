/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WHYIDLE_TESTS_FUZZ_SESSION_H
#define WHYIDLE_TESTS_FUZZ_SESSION_H

/* What an input is after its first byte, which is one of these. */
enum fuzz_form {
	FUZZ_FILE = 0,         /* a file */
	FUZZ_FILE_TO_SEAL = 1, /* a file whose checksums are to be put right */
	FUZZ_RECORDS = 2,      /* two 16-bit numbers (unused, record count), then records */
	FUZZ_COMPRESSED = 3,   /* two 16-bit numbers (raw length, record count), then a zstd frame */
	FUZZ_FORM_COUNT = 4,
};

#endif
