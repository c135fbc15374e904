/* SPDX-License-Identifier: GPL-2.0-only */
#include "trace/backlog.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct backlog *backlog, size_t size)
{
	size_t wanted = backlog->kept_capacity ? backlog->kept_capacity : 65536;
	uint8_t *grown;

	if (size > BACKLOG_MAX_BYTES - backlog->kept_bytes)
		return false;
	if (backlog->kept_bytes + size <= backlog->kept_capacity)
		return true;
	while (wanted < backlog->kept_bytes + size)
		wanted *= 2;
	grown = realloc(backlog->kept, wanted);
	if (!grown)
		return false;
	backlog->kept = grown;
	backlog->kept_capacity = wanted;
	return true;
}

void backlog_add(struct backlog *backlog, const void *record, size_t record_size, const void *tail,
                 size_t tail_size)
{
	const struct record_header *header = record;
	const struct record_layout *layout = record_layout_find(header->type);

	if (!layout || layout->event || !make_room(backlog, record_size + tail_size)) {
		record_span_add(&backlog->span, header);
		backlog->dropped++;
		backlog->dropped_bytes += record_size + tail_size;
		return;
	}
	memcpy(backlog->kept + backlog->kept_bytes, record, record_size);
	if (tail_size)
		memcpy(backlog->kept + backlog->kept_bytes + record_size, tail, tail_size);
	backlog->kept_bytes += record_size + tail_size;
	if (header->type != RECORD_LOSS)
		backlog->kept_records++;
}

void backlog_free(struct backlog *backlog)
{
	free(backlog->kept);
	*backlog = (struct backlog){0};
}
