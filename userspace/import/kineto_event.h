/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One event of a Chrome trace as Kineto writes it, taken out of the JSON text. Only what the model needs is
 * kept; events of no use are passed over without looking at the rest of them.
 */
#ifndef WHYIDLE_IMPORT_KINETO_EVENT_H
#define WHYIDLE_IMPORT_KINETO_EVENT_H

#include "import/json_scan.h"

enum kineto_category {
	KINETO_NONE, /* the event has none */
	KINETO_OTHER,
	KINETO_KERNEL,
	KINETO_MEMCPY,
	KINETO_MEMSET,
	KINETO_CALL, /* of the runtime or the driver */
	KINETO_OPERATOR,
	KINETO_ANNOTATION,
	KINETO_PYTHON,
	KINETO_OVERHEAD,
	KINETO_SYNC,
	KINETO_SPAN, /* the whole recording */
};

/*
 * An id as the file gives it: a number, or anything else (text, a fraction, a negative or huge number), of
 * which `value` is then a hash. Text of digits is a number.
 */
struct kineto_id {
	enum {
		KINETO_ID_MISSING,
		KINETO_ID_NUMBER,
		KINETO_ID_ODD,
	} form;
	uint64_t value;
};

/* A name as it stands in the JSON text, in memory of its own. */
struct kineto_text {
	size_t length;
	bool escaped;
	char bytes[JSON_TEXT_KEPT];
};

struct kineto_event {
	char phase;   /* 'X', 'M' … 0: it has none */
	bool useless; /* nothing below is worth looking at; not all of it was read */
	bool has_time, bad_time;
	enum kineto_category category;
	int64_t start_ns, duration_ns; /* as the file has them: may be negative */
	struct kineto_id pid, tid;
	struct kineto_id device, stream, context, correlation, external, bytes, graph; /* of args */
	struct kineto_text name;
	struct kineto_text label; /* args.name, and the kind of a sync event or a copy */
};

/*
 * Reads an event; the scan stands behind its opening bracket. The event is about 128 KiB large: use one again
 * and again. False if the text broke or ended inside of it.
 */
bool kineto_event_read(struct kineto_event *event, struct json_scan *scan);

/* An id from the value that was just read (JSON_STRING, JSON_NUMBER …). */
struct kineto_id kineto_id_make(const struct json_scan *scan, enum json_token token);

#endif
