/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fuzzes the JSON scanner and decimals. The first byte of an input is the size of the pieces in which the
 * rest comes in: the tokens must be those of the rest in one piece, and passing over containers must end
 * where reading them does.
 *
 * Build and run: make fuzz [FUZZ_SECONDS=60]
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "import/decimal.h"
#include "import/json_scan.h"
#include "require.h"

struct source {
	const char *at, *end;
	size_t piece;
};

/* What a walk found. */
struct found {
	uint64_t tokens, sum, position;
	enum json_token last;
	bool whole;
};

static size_t read_source(void *context, char *buffer, size_t size)
{
	struct source *source = context;
	size_t length = (size_t)(source->end - source->at);

	length = length < source->piece ? length : source->piece;
	length = length < size ? length : size;
	memcpy(buffer, source->at, length);
	source->at += length;
	return length;
}

/* Text lies in the buffer as the contract says, and decodes to no more than it was. */
static uint64_t look_at(const struct json_scan *scan, enum json_token token)
{
	static char decoded[JSON_TEXT_KEPT];
	int64_t ns;

	REQUIRE(scan->length <= JSON_TEXT_KEPT);
	if (scan->escaped) {
		REQUIRE(json_decode(scan->text, scan->length, decoded) <= scan->length);
		REQUIRE(token == JSON_KEY || token == JSON_STRING);
	}
	if (decimal_scaled(scan->text, scan->length, 3, &ns))
		REQUIRE(ns > INT64_MIN);
	return hash_bytes(scan->text, scan->length);
}

/* Takes every token, or passes over each container once it is entered. */
static struct found walk(const uint8_t *bytes, size_t size, size_t piece, bool pass)
{
	struct source source = {(const char *)bytes, (const char *)bytes + size, piece};
	struct found found = {0};
	struct json_scan scan;

	REQUIRE(!json_scan_open(&scan, read_source, &source, NULL));
	while ((found.last = json_scan_next(&scan)) > JSON_BROKEN) {
		found.tokens++;
		found.sum = found.sum * 31 + found.last;
		if (found.last == JSON_KEY || found.last == JSON_STRING || found.last == JSON_NUMBER)
			found.sum += look_at(&scan, found.last);
		REQUIRE(scan.depth <= JSON_DEPTH_MAX);
		if (pass && scan.depth && !json_scan_leave(&scan))
			REQUIRE(json_scan_next(&scan) <= JSON_BROKEN);
	}
	REQUIRE(json_scan_next(&scan) == found.last);
	REQUIRE((found.last == JSON_BROKEN) == (scan.problem != NULL));
	found.position = json_scan_position(&scan);
	found.whole = json_scan_whole(&scan);
	REQUIRE(found.position <= size);
	json_scan_close(&scan);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct found whole, pieces, passed;

	if (!size)
		return 0;
	whole = walk(bytes + 1, size - 1, SIZE_MAX, false);
	pieces = walk(bytes + 1, size - 1, (size_t)bytes[0] + 1, false);
	REQUIRE(whole.tokens == pieces.tokens && whole.sum == pieces.sum && whole.last == pieces.last);
	REQUIRE(whole.position == pieces.position && whole.whole == pieces.whole);
	passed = walk(bytes + 1, size - 1, (size_t)bytes[0] + 1, true);
	if (whole.whole)
		REQUIRE(passed.whole && passed.position == whole.position);
	return 0;
}
