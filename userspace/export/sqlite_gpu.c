// SPDX-License-Identifier: GPL-2.0-only
/* Devices: what they did, what they waited for, and why they were idle. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attribute/gap_chains.h"
#include "export/contexts.h"
#include "export/sqlite_writer.h"
#include "model/copy_name.h"

#define UUID_SIZE     64
#define COPY_KIND_MAX 13 /* of ENUM_CUDA_MEMCPY_OPER */

/* Columns of the schema that may not be NULL and that the model does not have. */
#define NOT_KNOWN_5 0, 0, 0, 0, 0
#define NOT_KNOWN_6 NOT_KNOWN_5, 0

/* The columns that all operations begin with. */
#define OPERATION_VALUES(writer, device, op)                                                                 \
	(int64_t)(op)->start_ns, (int64_t)(op)->end_ns, (writer)->model->devices.items[device].number,       \
	    (op)->context, 0 /* greenContextId */, (op)->stream, (op)->correlation,                          \
	    sqlite_global_pid(writer, (op)->process)

/* Of the operation among those of its device. */
static int64_t place_of(const struct sqlite_writer *writer, uint32_t device, const struct gpu_op *op)
{
	return op - writer->model->devices.items[device].ops.items;
}

static void put_kernel(struct sqlite_writer *writer, uint32_t device, const struct gpu_op *op)
{
	int64_t name = sqlite_string(writer, op->name);
	const int64_t row[] = {
	    OPERATION_VALUES(writer, device, op),
	    name,
	    sqlite_base_name(writer, op->name),
	    name,
	    NSYS_LAUNCH_REGULAR,
	    COLUMN_NULL,   /* cacheConfig */
	    0,             /* registersPerThread */
	    NOT_KNOWN_6,   /* gridX … blockZ */
	    NOT_KNOWN_5,   /* shared and local memory, gridId */
	    COLUMN_NULL_3, /* sharedMemoryExecuted, graphNodeId, sharedMemoryLimitConfig */
	    COLUMN_NULL_3, /* qmd… */
	    op->graph ? op->graph : COLUMN_NULL,
	    COLUMN_NULL_3, /* clusterX … clusterZ */
	    COLUMN_NULL_2, /* clusterSchedulingPolicy, maxPotentialClusterSize */
	    COLUMN_NULL_2, /* maxActiveClusters, sharedMemoryRequestedPercentage */
	    place_of(writer, device, op),
	};

	put_row(writer, TABLE_KERNEL, row, NULL);
}

/* CUPTI counts memory kinds from 1 and has 0 for unknown, ENUM_CUDA_MEM_KIND counts from 0. */
static int64_t memory_kind(uint8_t kind)
{
	return kind && kind <= NSYS_MEMORY_UNKNOWN ? kind - 1 : NSYS_MEMORY_UNKNOWN;
}

static void put_copy(struct sqlite_writer *writer, uint32_t device, const struct gpu_op *op)
{
	const int64_t row[] = {
	    OPERATION_VALUES(writer, device, op),
	    (int64_t)op->bytes,
	    op->copy_kind <= COPY_KIND_MAX ? op->copy_kind : 0,
	    COLUMN_NULL, /* deprecatedSrcId */
	    memory_kind(op->source_kind),
	    memory_kind(op->target_kind),
	    COLUMN_NULL_2, /* source */
	    COLUMN_NULL_2, /* destination */
	    COLUMN_NULL_3, /* migrationCause, graphNodeId, virtualAddress */
	    1,             /* copyCount */
	    place_of(writer, device, op),
	};

	put_row(writer, TABLE_MEMCPY, row, NULL);
}

static void put_set(struct sqlite_writer *writer, uint32_t device, const struct gpu_op *op)
{
	const int64_t row[] = {
	    OPERATION_VALUES(writer, device, op),
	    0, /* value */
	    (int64_t)op->bytes,
	    COLUMN_NULL, /* graphNodeId */
	    memory_kind(op->target_kind),
	    place_of(writer, device, op),
	};

	put_row(writer, TABLE_MEMSET, row, NULL);
}

static void put_graph(struct sqlite_writer *writer, uint32_t device, const struct gpu_op *op)
{
	const int64_t row[] = {OPERATION_VALUES(writer, device, op), op->graph, 0 /* graphExecId */,
	                       place_of(writer, device, op)};

	put_row(writer, TABLE_GRAPH, row, NULL);
}

/* The call inside another one that the model does not keep; see launches.h. */
static void put_nested_launch(struct sqlite_writer *writer, const struct gpu_op *op)
{
	int rc = launches_take_nested(&writer->launches, op);
	const struct call *call = op_launch_call(writer->model, op);

	if (rc < 0 && !writer->failure)
		writer->failure = rc;
	if (rc > 0) {
		const int64_t row[] = {(int64_t)op->launch_ns,
		                       (int64_t)op->launch_ns,
		                       NSYS_CLASS_CUDA_RUNTIME,
		                       sqlite_global_tid(writer, op->launch_thread),
		                       op->correlation,
		                       sqlite_string(writer, call->function),
		                       0,
		                       COLUMN_NULL};

		put_row(writer, TABLE_RUNTIME, row, NULL);
	}
}

static void put_operations(struct sqlite_writer *writer, uint32_t device)
{
	const struct gpu_op *op;

	array_for_each (op, &writer->model->devices.items[device].ops) {
		put_nested_launch(writer, op);
		switch (op->kind) {
		case OP_MEMCPY:
			put_copy(writer, device, op);
			break;
		case OP_MEMSET:
			put_set(writer, device, op);
			break;
		case OP_GRAPH:
			put_graph(writer, device, op);
			break;
		default:
			put_kernel(writer, device, op);
			break;
		}
		if (writer->failure)
			return;
	}
}

static void put_synchronisations(struct sqlite_writer *writer)
{
	const struct model *model = writer->model;
	struct index_map devices = {0};
	const struct sync *sync;

	if (model->syncs.count && contexts_map(&devices, model) && !writer->failure)
		writer->failure = -ENOMEM;
	array_for_each (sync, &model->syncs) {
		uint32_t device;
		bool known = context_device(&devices, sync->process, sync->context, &device);
		const int64_t row[] = {
		    (int64_t)sync->start_ns,
		    (int64_t)sync->end_ns,
		    known ? model->devices.items[device].number : 0,
		    sync->context,
		    COLUMN_NULL, /* greenContextId */
		    sync->stream,
		    sync->correlation,
		    sqlite_global_pid(writer, sync->process),
		    COLUMN_NULL, /* deprecatedSyncType */
		    sync->type,
		    0,           /* eventId */
		    COLUMN_NULL, /* eventSyncId */
		};

		put_row(writer, TABLE_SYNCHRONIZATION, row, NULL);
	}
	index_map_free(&devices);
}

/* "GPU-12345678-…", NULL if it is not known. */
static const char *uuid_text(char buffer[UUID_SIZE], const uint8_t uuid[16])
{
	static const uint8_t none[16];
	size_t used = (size_t)snprintf(buffer, UUID_SIZE, "GPU");

	if (!memcmp(uuid, none, sizeof(none)))
		return NULL;
	for (int i = 0; i < 16; i++)
		used += (size_t)snprintf(buffer + used, UUID_SIZE - used, "%s%02x",
		                         !i || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return buffer;
}

static void put_device(struct sqlite_writer *writer, const struct device *device)
{
	char uuid[UUID_SIZE];
	const char *texts[] = {device->name ? model_string(writer->model, device->name) : NULL,
	                       uuid_text(uuid, device->uuid)};
	const int64_t row[] = {
	    GLOBAL_MACHINE,
	    device->number,
	    COLUMN_TEXT,    /* name */
	    COLUMN_NULL,    /* busLocation */
	    1,              /* isDiscrete */
	    COLUMN_NULL_5,  /* l2CacheSize … smCount */
	    device->number, /* pwGpuId */
	    COLUMN_TEXT,    /* uuid */
	    COLUMN_NULL_2,  /* luid, chipName */
	    device->number, /* cuDevice */
	};

	put_row(writer, TABLE_GPU, row, texts);
}

/* Which processes used the device. */
static void put_device_users(struct sqlite_writer *writer, const struct device *device)
{
	struct index_map seen = {0};
	const struct gpu_op *op;
	char uuid[UUID_SIZE];
	const char *text = uuid_text(uuid, device->uuid);

	array_for_each (op, &device->ops) {
		uint32_t known;

		if (op->process == MODEL_NONE || index_map_get(&seen, op->process, &known))
			continue;
		if (index_map_put(&seen, op->process, 1)) {
			writer->failure = writer->failure ? writer->failure : -ENOMEM;
			break;
		}
		put_row(writer, TABLE_CUDA_DEVICE,
		        ((const int64_t[]){device->number, device->number, writer->pids[op->process],
		                           COLUMN_TEXT, COLUMN_NULL}),
		        &text);
	}
	index_map_free(&seen);
}

void sqlite_put_gpus(struct sqlite_writer *writer)
{
	for (uint32_t i = 0; i < writer->model->devices.count && !writer->failure; i++) {
		put_device(writer, &writer->model->devices.items[i]);
		put_device_users(writer, &writer->model->devices.items[i]);
		put_operations(writer, i);
	}
	put_synchronisations(writer);
}

static void put_leaf(struct sqlite_writer *writer, const struct leaf *leaf)
{
	char chain[LEAF_CHAIN_SIZE];
	const char *texts[] = {cause_code_name(leaf->code), cause_role_name(leaf->role),
	                       confidence_name(leaf->confidence), leaf_state_name(leaf->state),
	                       leaf_chain_text(chain, writer->model, leaf)};
	const int64_t row[] = {
	    writer->gap,
	    (int64_t)leaf->start_ns,
	    (int64_t)leaf->end_ns,
	    COLUMN_TEXT,
	    COLUMN_TEXT,
	    COLUMN_TEXT,
	    COLUMN_TEXT,
	    sqlite_global_tid(writer, leaf->thread),
	    sqlite_global_tid(writer, leaf->holder),
	    sqlite_text_or_null(writer, syscall_name(leaf->syscall)),
	    sqlite_string_or_null(writer, leaf->path),
	    sqlite_string_or_null(writer, leaf->function),
	    sqlite_string_or_null(writer, leaf->python),
	    leaf->lock ? (int64_t)leaf->lock : COLUMN_NULL,
	    COLUMN_TEXT,
	};

	put_row(writer, TABLE_OUR_CAUSES, row, texts);
}

static int64_t op_name(struct sqlite_writer *writer, const struct gpu_op *op)
{
	char name[COPY_NAME_SIZE];

	if (!op->name && (op->kind == OP_MEMCPY || op->kind == OP_MEMSET))
		return sqlite_text_or_null(writer, copy_name(name, op));
	return sqlite_string_or_null(writer, op->name);
}

static int put_gap(void *context, const struct gap_chain *chain)
{
	struct sqlite_writer *writer = context;
	const struct gpu_op *op = chain->ended_by;
	const struct call *call = op ? op_launch_call(writer->model, op) : NULL;
	const char *texts[] = {cause_code_name(chain->largest->code), cause_role_name(chain->largest->role),
	                       confidence_name(chain->largest->confidence),
	                       launch_time_name(chain->launched)};
	const int64_t row[] = {
	    ++writer->gap,
	    chain->device->number,
	    (int64_t)chain->gap->start_ns,
	    (int64_t)chain->gap->end_ns,
	    COLUMN_TEXT,
	    COLUMN_TEXT,
	    COLUMN_TEXT,
	    (int64_t)chain->largest_ns,
	    COLUMN_TEXT,
	    op ? op_name(writer, op) : COLUMN_NULL,
	    call ? sqlite_string(writer, call->function) : COLUMN_NULL,
	    sqlite_global_tid(writer, call ? op->launch_thread : MODEL_NONE),
	};

	put_row(writer, TABLE_OUR_GAPS, row, texts);
	for (size_t i = 0; i < chain->count; i++)
		put_leaf(writer, &chain->leaves[i]);
	return writer->failure;
}

void sqlite_put_gaps(struct sqlite_writer *writer)
{
	const struct device_report *report;

	if (!writer->analysis)
		return;
	array_for_each (report, &writer->analysis->devices) {
		const int64_t row[] = {
		    report->device,
		    (int64_t)report->window_start_ns,
		    (int64_t)report->window_end_ns,
		    (int64_t)report->busy_ns,
		    (int64_t)report->idle_ns,
		    (int64_t)report->gap_count,
		    (int64_t)report->op_count,
		    (int64_t)report->queued_ns,
		    (int64_t)report->late_ns,
		    (int64_t)report->unknown_ns,
		};
		int rc;

		put_row(writer, TABLE_OUR_GPUS, row, NULL);
		rc = gap_chains_visit(writer->model, report, put_gap, writer);
		if (rc && !writer->failure)
			writer->failure = rc;
	}
}
