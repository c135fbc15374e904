/* SPDX-License-Identifier: GPL-2.0-only */
/* Pieces of JSON text, which the caller puts together. */
#ifndef WHYIDLE_EXPORT_JSON_OUT_H
#define WHYIDLE_EXPORT_JSON_OUT_H

#include "export/byte_out.h"

/* In quotes, escaped; bytes that are not UTF-8 become U+FFFD. */
void json_out_string(struct byte_out *stream, const char *text);
/* The same without the quotes, to put a string together. */
void json_out_text(struct byte_out *stream, const char *text);

/* ns as microseconds with three decimals, exact: 1234 is 1.234. */
void json_out_time(struct byte_out *stream, uint64_t ns);

#endif
