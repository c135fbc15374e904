/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Streams, events and waiting for them.
 */
#include <stdlib.h>

#include "tests/sim/cuda/driver.h"

static uint32_t last_event_id;

struct sim_stream *sim_new_stream(struct sim_context *context, unsigned int flags)
{
	struct sim_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->magic = SIM_MAGIC_STREAM;
	stream->flags = flags;
	stream->context = context;
	engine_lock();
	stream->id = context->next_stream_id++;
	stream->next = context->streams;
	context->streams = stream;
	engine_unlock();
	return stream;
}

struct sim_stream *sim_find_stream(CUstream handle, CUresult *error)
{
	struct sim_context *context = sim_current_context(error);

	if (!context)
		return NULL;
	if (!handle || handle == CU_STREAM_LEGACY)
		return context->default_stream;
	if (handle->magic == SIM_MAGIC_STREAM)
		return handle;
	*error = CUDA_ERROR_INVALID_HANDLE;
	return NULL;
}

static CUresult stream_create(CUstream *stream, unsigned int flags)
{
	CUresult error;
	struct sim_context *context = sim_current_context(&error);

	if (!context)
		return error;
	if (!stream || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	*stream = sim_new_stream(context, flags);
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The handle ends at once, the queued work goes on. Memory stays with the context: others may wait for it. */
static CUresult stream_destroy(CUstream stream)
{
	CUresult error;
	struct sim_stream *found = stream ? sim_find_stream(stream, &error) : NULL;

	if (!found || found == found->context->default_stream)
		return stream && !found ? error : CUDA_ERROR_INVALID_HANDLE;
	found->magic = 0;
	return CUDA_SUCCESS;
}

/* Waits for `point`, or the whole context if `context` is not NULL, and records the synchronisation. */
static void wait_recorded(uint32_t type, struct sim_context *context, struct sim_point point,
                          const struct sim_event *event)
{
	const struct sim_tracer *tracer = sim_tracer();
	struct sim_synchronization record = {.type = type, .correlation = sim_correlation()};
	bool wanted = tracer && tracer->wants_synchronization();

	if (wanted)
		record.start = tracer->now();
	if (context)
		engine_wait_context(context);
	else
		engine_wait(point);
	if (!wanted)
		return;
	record.end = tracer->now();
	record.context = context ? context->id : point.stream ? point.stream->context->id : 0;
	record.stream = point.stream ? point.stream->id : CUPTI_ABI_SYNC_INVALID_VALUE;
	record.event = event ? event->id : CUPTI_ABI_SYNC_INVALID_VALUE;
	tracer->synchronization(&record);
}

static CUresult stream_synchronize(CUstream handle)
{
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);

	if (!stream)
		return error;
	if (stream->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	wait_recorded(CUPTI_ABI_SYNC_STREAM, NULL, engine_last(stream), NULL);
	if (sim_options.sync_ns)
		sim_take_time(sim_options.sync_ns);
	return CUDA_SUCCESS;
}

static CUresult stream_query(CUstream handle)
{
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);

	if (!stream)
		return error;
	if (stream->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return engine_reached(engine_last(stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult context_synchronize(void)
{
	CUresult error;
	struct sim_context *context = sim_current_context(&error);

	if (!context)
		return error;
	wait_recorded(CUPTI_ABI_SYNC_CONTEXT, context, (struct sim_point){0}, NULL);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	SIM_TRACED(cuCtxSynchronize, context_synchronize());
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	SIM_TRACED(cuStreamCreate, stream_create(stream, flags));
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	SIM_TRACED(cuStreamDestroy_v2, stream_destroy(stream));
}

CUresult cuStreamSynchronize(CUstream stream)
{
	SIM_TRACED(cuStreamSynchronize, stream_synchronize(stream));
}

CUresult cuStreamQuery(CUstream stream)
{
	SIM_TRACED(cuStreamQuery, stream_query(stream));
}

/* Events */

static bool valid_event(const struct sim_event *event)
{
	return event && event->magic == SIM_MAGIC_EVENT;
}

static struct sim_point event_point(const struct sim_event *event)
{
	struct sim_point point;

	engine_lock();
	point = event->point;
	engine_unlock();
	return point;
}

static CUresult event_create(CUevent *event, unsigned int flags)
{
	CUresult error;
	struct sim_context *context = sim_current_context(&error);

	if (!context)
		return error;
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	*event = calloc(1, sizeof(**event));
	if (!*event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*event)->magic = SIM_MAGIC_EVENT;
	(*event)->flags = flags;
	(*event)->references = 1;
	(*event)->id = __atomic_add_fetch(&last_event_id, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!valid_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	engine_lock();
	event->magic = 0;
	sim_event_release(event);
	engine_unlock();
	return CUDA_SUCCESS;
}

static CUresult submit_marker(CUstream handle, struct sim_event *stamp, struct sim_point wait)
{
	static const struct sim_work marker = {.kind = SIM_MARKER};
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);

	if (!stream)
		return error;
	if (stream->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return engine_submit(stream, &marker, sim_correlation(), stamp, wait) ? CUDA_SUCCESS
	                                                                      : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	return valid_event(event) ? submit_marker(stream, event, (struct sim_point){0})
	                          : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult event_synchronize(CUevent event)
{
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!valid_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	wait_recorded(CUPTI_ABI_SYNC_EVENT, NULL, event_point(event), event);
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!valid_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	return engine_reached(event_point(event)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult event_elapsed(float *milliseconds, CUevent start, CUevent end)
{
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!milliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if (!valid_event(start) || !valid_event(end) || !event_point(start).stream ||
	    !event_point(end).stream || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!engine_reached(event_point(start)) || !engine_reached(event_point(end)))
		return CUDA_ERROR_NOT_READY;
	engine_lock();
	*milliseconds = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
	engine_unlock();
	return CUDA_SUCCESS;
}

static CUresult stream_wait_event(CUstream handle, CUevent event)
{
	const struct sim_tracer *tracer = sim_tracer();
	struct sim_synchronization record = {.type = CUPTI_ABI_SYNC_STREAM_WAIT_EVENT};
	CUresult error;
	struct sim_stream *stream = sim_find_stream(handle, &error);
	bool wanted = tracer && tracer->wants_synchronization();

	if (!stream)
		return error;
	if (!valid_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	if (wanted)
		record.start = tracer->now();
	error = submit_marker(handle, NULL, event_point(event));
	if (wanted && !error) {
		record.end = tracer->now();
		record.context = stream->context->id;
		record.stream = stream->id;
		record.event = event->id;
		record.correlation = sim_correlation();
		tracer->synchronization(&record);
	}
	return error;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	(void)flags;
	SIM_TRACED(cuStreamWaitEvent, stream_wait_event(stream, event));
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	SIM_TRACED(cuEventCreate, event_create(event, flags));
}

CUresult cuEventDestroy_v2(CUevent event)
{
	SIM_TRACED(cuEventDestroy_v2, event_destroy(event));
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	SIM_TRACED(cuEventRecord, event_record(event, stream));
}

CUresult cuEventSynchronize(CUevent event)
{
	SIM_TRACED(cuEventSynchronize, event_synchronize(event));
}

CUresult cuEventQuery(CUevent event)
{
	SIM_TRACED(cuEventQuery, event_query(event));
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
	SIM_TRACED(cuEventElapsedTime, event_elapsed(milliseconds, start, end));
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
	SIM_TRACED(cuEventElapsedTime_v2, event_elapsed(milliseconds, start, end));
}
