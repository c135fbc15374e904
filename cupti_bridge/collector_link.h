/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bridge's connection to the collector: fetches the ring over the socket, and notices when the collector
 * goes. Bounded in time, never raises a signal, and keeps off the descriptor numbers that the target may
 * count on.
 */
#ifndef WHYIDLE_CUPTI_COLLECTOR_LINK_H
#define WHYIDLE_CUPTI_COLLECTOR_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct collector_link {
	int fd;          /* -1: none, or the target closed it */
	uint64_t cookie; /* of the socket: tells it from what may have got its number later */
	void *memory;    /* RING_CONTROL_SIZE + capacity bytes */
	uint64_t capacity;
	uint32_t flush_period_ms;
};

/*
 * Connects to abstract socket `name` and maps the ring that is offered. False if there is no collector, it
 * does not answer within a second, or its offer makes no sense.
 */
bool collector_link_open(struct collector_link *link, const char *name);

/*
 * True if the collector has closed its end. A descriptor that the target has closed or reused is given up:
 * then only ring_control.closed tells. Any thread.
 */
bool collector_link_is_down(struct collector_link *link);

/* In a forked child: drops the child's copy of the socket, so that the collector sees the parent's end alone.
 */
void collector_link_drop(struct collector_link *link);

#endif
