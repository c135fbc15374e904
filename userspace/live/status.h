/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The status of a daemon as its control socket gives it ("whyidle.status/1"). Members that are missing or of
 * another type count as 0 or as empty. Names in it come from targets: status_text makes them fit for a
 * terminal, and is the only way in which a text of it may get there.
 */
#ifndef WHYIDLE_LIVE_STATUS_H
#define WHYIDLE_LIVE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

/* The caller drops the reference. NULL with `error` if this is no status. */
json_t *status_parse(const char *text, size_t length, struct error *error);

/* 0, or -EPROTO with `error` if this is no status. */
int status_check(const json_t *status, struct error *error);

/* Negative numbers count as 0. */
uint64_t status_number(const json_t *object, const char *key);
double status_real(const json_t *object, const char *key);

/* As format_text, into a buffer of FORMAT_TEXT_SIZE(columns). Returns `buffer`. */
const char *status_text(char *buffer, size_t size, const json_t *object, const char *key, unsigned columns);

/* The report of the last window, NULL: there was none. */
const json_t *status_report(const json_t *status);

#endif
