/* SPDX-License-Identifier: GPL-2.0-only */
/* GPU operations and devices. */
#include <errno.h>
#include <string.h>

#include "import/nsys_loader.h"

#define DEVICES_MAX 1024

/* Numbers of GPUs and of CUDA devices are kept apart where a file has both. */
#define GPU_KEY (UINT64_C(1) << 32)

/* CUpti_ActivityMemoryKind is one more than ENUM_CUDA_MEM_KIND for what that knows. */
#define MEMORY_KINDS 7

static uint64_t process_device_key(uint32_t pid, uint32_t device)
{
	return (uint64_t)pid << 32 | device;
}

enum { CUDA_DEVICE_GPU, CUDA_DEVICE_NUMBER, CUDA_DEVICE_PROCESS };

/*
 * CUDA numbers devices for each process, by what CUDA_VISIBLE_DEVICES leaves it: number 0 of two processes
 * can be two GPUs. Then the machine's numbers are the ones to go by.
 */
static int load_cuda_device(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	struct index_map *gpu_of_number = context;
	uint32_t gpu = nsys_unsigned(table, CUDA_DEVICE_GPU, MODEL_NONE);
	uint32_t number = nsys_unsigned(table, CUDA_DEVICE_NUMBER, MODEL_NONE);
	uint32_t pid = nsys_unsigned(table, CUDA_DEVICE_PROCESS, MODEL_NONE), known;

	if (gpu == MODEL_NONE || number == MODEL_NONE)
		return 1;
	if (index_map_get(gpu_of_number, number, &known) && known != gpu)
		loader->devices_by_gpu = true;
	if (index_map_put(gpu_of_number, number, gpu))
		return -ENOMEM;
	return index_map_put(&loader->gpu_of, process_device_key(pid, number), gpu);
}

static int load_cuda_devices(struct nsys_loader *loader)
{
	static const struct nsys_column columns[] = {
	    [CUDA_DEVICE_GPU] = {"gpuId", true},
	    [CUDA_DEVICE_NUMBER] = {"cudaId", true},
	    [CUDA_DEVICE_PROCESS] = {"pid", true},
	};
	struct index_map gpu_of_number = {0};
	struct nsys_table table;
	int rc = nsys_read(loader, &table, "TARGET_INFO_CUDA_DEVICE", "which GPU a process used is not known",
	                   columns, 3, load_cuda_device, &gpu_of_number);

	index_map_free(&gpu_of_number);
	if (!rc && loader->devices_by_gpu)
		rc = nsys_note(loader,
		               "processes number their devices differently: GPUs are counted as the machine "
		               "counts them");
	return rc;
}

/* The device of an operation; MODEL_NONE if memory ran out or there are too many. */
static uint32_t get_device(struct nsys_loader *loader, uint32_t pid, uint32_t number)
{
	struct model *model = loader->model;
	uint64_t key = number;
	struct device *device;
	uint32_t gpu, index;

	if (loader->devices_by_gpu && index_map_get(&loader->gpu_of, process_device_key(pid, number), &gpu)) {
		number = gpu;
		key = GPU_KEY | gpu;
	}
	if (index_map_get(&loader->device_of_key, key, &index))
		return index;
	if (model->devices.count >= DEVICES_MAX)
		return MODEL_NONE;
	device = array_add(&model->devices);
	if (!device)
		return MODEL_NONE;
	device->number = number;
	index = (uint32_t)model->devices.count - 1;
	return index_map_put(&loader->device_of_key, key, index) ? MODEL_NONE : index;
}

enum {
	OP_START,
	OP_END,
	OP_DEVICE,
	OP_CONTEXT,
	OP_STREAM,
	OP_CORRELATION,
	OP_PROCESS,
	OP_GRAPH_ID,
	OP_GRAPH_NODE,
	OP_ORDER, /* only in what whyidle exported */
	OP_OWN,
	OP_NAME = OP_OWN, /* of kernels */
	OP_SHORT_NAME,
	OP_MANGLED_NAME,
	OP_BYTES = OP_OWN, /* of copies and fills */
	OP_COPY_KIND,
	OP_SOURCE_KIND,
	OP_TARGET_KIND,
	OP_MEMORY_KIND = OP_COPY_KIND, /* of fills */
};

#define OP_COLUMNS                                                                                           \
	[OP_START] = {"start", true}, [OP_END] = {"end", true}, [OP_DEVICE] = {"deviceId", true},            \
	[OP_CONTEXT] = {"contextId", false}, [OP_STREAM] = {"streamId", false},                              \
	[OP_CORRELATION] = {"correlationId", false}, [OP_PROCESS] = {"globalPid", false},                    \
	[OP_GRAPH_ID] = {"graphId", false}, [OP_GRAPH_NODE] = {"graphNodeId", false},                        \
	[OP_ORDER] = {"whyidleOrder", false}

/* What is read of one table. */
struct op_source {
	enum op_kind kind;
	int64_t latest_ns;           /* start of the latest row */
	struct index_map *by_launch; /* launches that have operations of their own, NULL if nobody asks */
};

static uint64_t launch_key(uint32_t process, uint32_t correlation)
{
	return (uint64_t)process << 32 | correlation;
}

/* Whose operation it is; MODEL_NONE if memory ran out or there are too many processes. */
static uint32_t op_process(struct nsys_loader *loader, const struct nsys_table *table, uint32_t correlation)
{
	int64_t global_pid;
	uint32_t index;

	if (nsys_integer(table, OP_PROCESS, &global_pid))
		return nsys_process(loader, global_pid);
	if (correlation && index_map_get(&loader->launch_by_id, correlation, &index))
		return loader->launches.items[index].process;
	/* Not launched by any call that is known. */
	return nsys_process(loader, 0);
}

static uint8_t memory_kind(const struct nsys_table *table, int column)
{
	uint32_t kind = nsys_unsigned(table, column, MEMORY_KINDS);

	return kind < MEMORY_KINDS ? (uint8_t)(kind + 1) : 0;
}

static int fill_kernel(struct nsys_loader *loader, const struct nsys_table *table, struct gpu_op *op)
{
	for (int column = OP_NAME; !op->name && column <= OP_MANGLED_NAME; column++)
		op->name = nsys_name(loader, table, column);
	return op->name == MODEL_NONE ? -ENOMEM : 0;
}

static void fill_copy(const struct nsys_table *table, struct gpu_op *op)
{
	int64_t bytes;

	op->bytes = nsys_integer(table, OP_BYTES, &bytes) && bytes > 0 ? (uint64_t)bytes : 0;
	if (op->kind == OP_MEMSET) {
		op->target_kind = memory_kind(table, OP_MEMORY_KIND);
		return;
	}
	op->copy_kind = (uint8_t)nsys_unsigned(table, OP_COPY_KIND, 0);
	op->source_kind = memory_kind(table, OP_SOURCE_KIND);
	op->target_kind = memory_kind(table, OP_TARGET_KIND);
}

/* The upper half of a node's id is its graph. */
static uint32_t op_graph(const struct nsys_table *table)
{
	uint32_t graph = nsys_unsigned(table, OP_GRAPH_ID, 0);
	int64_t node;

	if (!graph && nsys_integer(table, OP_GRAPH_NODE, &node))
		graph = (uint32_t)((uint64_t)node >> 32);
	return graph;
}

static int load_op(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	struct model *model = loader->model;
	struct op_source *source = context;
	uint32_t number = nsys_unsigned(table, OP_DEVICE, MODEL_NONE), process, correlation, device;
	struct gpu_op op = {.kind = source->kind}, *slot;
	int64_t start, end;

	if (number == MODEL_NONE || !nsys_time(table, OP_START, &start) || !nsys_time(table, OP_END, &end))
		return 1;
	if (nsys_correlation(loader, table, OP_CORRELATION, &correlation))
		return -ENOMEM;
	process = op_process(loader, table, correlation);
	if (process == MODEL_NONE)
		return nsys_full(loader) ? 1 : -ENOMEM;
	/* A launch whose nodes were recorded one by one is there already. */
	if (source->kind == OP_GRAPH && correlation &&
	    index_map_get(source->by_launch, launch_key(process, correlation), &device))
		return 0;
	/* Zeros stand for times that could not be taken, and the largest number for the host. */
	if (source->kind == OP_GRAPH && ((!start && !end) || number == INT32_MAX))
		return 0;
	device = get_device(loader, model->processes.items[process].pid, number);
	if (device == MODEL_NONE)
		return model->devices.count >= DEVICES_MAX ? 1 : -ENOMEM;
	loader->negative_ops += end < start;
	op.start_ns = (uint64_t)start;
	op.end_ns = (uint64_t)(end < start ? start : end);
	op.process = process;
	op.context = nsys_unsigned(table, OP_CONTEXT, 0);
	op.stream = nsys_unsigned(table, OP_STREAM, 0);
	op.correlation = correlation;
	op.graph = op_graph(table);
	op.order = nsys_unsigned(table, OP_ORDER, loader->ops);
	loader->ops++;
	if (source->kind == OP_KERNEL && fill_kernel(loader, table, &op))
		return -ENOMEM;
	if (source->kind == OP_MEMCPY || source->kind == OP_MEMSET)
		fill_copy(table, &op);
	if (source->kind != OP_GRAPH && source->by_launch &&
	    index_map_put(source->by_launch, launch_key(process, correlation), 1))
		return -ENOMEM;
	slot = array_add(&model->devices.items[device].ops);
	if (!slot)
		return -ENOMEM;
	*slot = op;
	if (start > source->latest_ns)
		source->latest_ns = start;
	loader->graphs |= source->kind == OP_GRAPH;
	nsys_see_time(loader, start);
	nsys_see_time(loader, (int64_t)op.end_ns);
	return 0;
}

static const struct op_table {
	const char *name;
	enum op_kind kind;
	size_t count;
	struct nsys_column columns[NSYS_COLUMNS];
} op_tables[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     OP_KERNEL,
     OP_MANGLED_NAME + 1,
     {OP_COLUMNS, [OP_NAME] = {"demangledName", false}, [OP_SHORT_NAME] = {"shortName", false},
      [OP_MANGLED_NAME] = {"mangledName", false}}},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     OP_MEMCPY,
     OP_TARGET_KIND + 1,
     {OP_COLUMNS, [OP_BYTES] = {"bytes", false}, [OP_COPY_KIND] = {"copyKind", false},
      [OP_SOURCE_KIND] = {"srcKind", false}, [OP_TARGET_KIND] = {"dstKind", false}}},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     OP_MEMSET,
     OP_MEMORY_KIND + 1,
     {OP_COLUMNS, [OP_BYTES] = {"bytes", false}, [OP_MEMORY_KIND] = {"memKind", false}}},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", OP_GRAPH, OP_ORDER + 1, {OP_COLUMNS}},
};

#define OP_TABLES (sizeof(op_tables) / sizeof(*op_tables))

static int load_op_table(struct nsys_loader *loader, const struct op_table *wanted,
                         struct index_map *by_launch)
{
	struct op_source source = {.kind = wanted->kind, .latest_ns = INT64_MIN, .by_launch = by_launch};
	struct nsys_table table;
	struct nsys_break *broken;
	int rc = nsys_read(loader, &table, wanted->name, "operations are missing", wanted->columns,
	                   wanted->count, load_op, &source);

	if (rc || !table.failure[0])
		return rc;
	broken = array_add(&loader->gpu_breaks);
	if (!broken)
		return -ENOMEM;
	broken->last_ns = source.latest_ns;
	return 0;
}

int nsys_load_operations(struct nsys_loader *loader)
{
	struct index_map by_launch = {0};
	bool graphs = nsys_database_has(&loader->database, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE");
	int rc = load_cuda_devices(loader);

	for (size_t i = 0; !rc && i < OP_TABLES; i++)
		rc = load_op_table(loader, &op_tables[i], graphs ? &by_launch : NULL);
	index_map_free(&by_launch);
	loader->model->has_timeline = loader->ops > 0;
	return rc;
}

bool nsys_operations_lack_process(struct nsys_loader *loader)
{
	static const struct nsys_column column = {"globalPid", false};

	for (size_t i = 0; i < OP_TABLES; i++) {
		struct nsys_table table;
		bool lacks = nsys_table_open(&loader->database, &table, op_tables[i].name, &column, 1) == 1 &&
		             !nsys_table_has(&table, 0);

		nsys_table_close(&table);
		if (lacks)
			return true;
	}
	return false;
}

enum { GPU_ID, GPU_NAME, GPU_UUID, GPU_CUDA_DEVICE };

/* "GPU-01234567-89ab-…": 32 hexadecimal digits among hyphens. Left as it is if there are not that many. */
static void parse_uuid(const char *text, uint8_t uuid[16])
{
	uint8_t bytes[16] = {0};
	size_t digits = 0;

	if (!text)
		return;
	if (!strncmp(text, "GPU-", 4) || !strncmp(text, "MIG-", 4))
		text += 4;
	for (; *text && digits < 32; text++) {
		static const char alphabet[] = "0123456789abcdef";
		const char *digit = strchr(alphabet, *text | 0x20);

		if (*text == '-')
			continue;
		if (!digit)
			return;
		bytes[digits / 2] |= (uint8_t)((digit - alphabet) << (digits % 2 ? 0 : 4));
		digits++;
	}
	if (digits == 32)
		memcpy(uuid, bytes, sizeof(bytes));
}

/* The GPU that a device of the model is, by the operations' own process. */
static bool device_is_gpu(const struct nsys_loader *loader, const struct device *device, uint32_t gpu,
                          uint32_t cuda_device)
{
	const struct model *model = loader->model;
	uint32_t pid, mapped;

	if (loader->devices_by_gpu)
		return device->number == gpu;
	pid = device->ops.count ? model->processes.items[device->ops.items[0].process].pid : 0;
	if (index_map_get(&loader->gpu_of, process_device_key(pid, device->number), &mapped))
		return mapped == gpu;
	return device->number == (cuda_device == MODEL_NONE ? gpu : cuda_device);
}

static int load_gpu(struct nsys_loader *loader, const struct nsys_table *table, void *context)
{
	uint32_t gpu = nsys_unsigned(table, GPU_ID, MODEL_NONE);
	uint32_t cuda_device = nsys_unsigned(table, GPU_CUDA_DEVICE, MODEL_NONE);
	uint32_t name = nsys_string(loader, nsys_text(table, GPU_NAME));
	struct device *device;

	(void)context;
	if (name == MODEL_NONE)
		return -ENOMEM;
	if (gpu == MODEL_NONE)
		return 1;
	array_for_each (device, &loader->model->devices) {
		if (!device_is_gpu(loader, device, gpu, cuda_device))
			continue;
		if (name)
			device->name = name;
		parse_uuid(nsys_text(table, GPU_UUID), device->uuid);
	}
	return 0;
}

int nsys_load_device_names(struct nsys_loader *loader)
{
	static const struct nsys_column columns[] = {
	    [GPU_ID] = {"id", true},
	    [GPU_NAME] = {"name", false},
	    [GPU_UUID] = {"uuid", false},
	    [GPU_CUDA_DEVICE] = {"cuDevice", false},
	};
	struct nsys_table table;

	return nsys_read(loader, &table, "TARGET_INFO_GPU", "names of GPUs are not known", columns, 4,
	                 load_gpu, NULL);
}
