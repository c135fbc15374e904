/* SPDX-License-Identifier: GPL-2.0-only */
#include "import/kineto_loader.h"

#include <errno.h>
#include <string.h>

#define ODD_ID_BASE      0x80000000U /* numbers made up for ids that are no small numbers start here */
#define CORRELATION_BASE 0xf0000000U
#define OVERHEADS_MAX    1024
#define NAMED_MAX        65536 /* processes or threads whose names are kept */
#define PROPERTIES_MAX   4096

/* Kinds of copies and memory, cupti_activity.h. */
enum {
	COPY_HTOD = 1,
	COPY_DTOH = 2,
	COPY_DTOD = 8,
	COPY_HTOH = 9,
	COPY_PTOP = 10,
	MEMORY_PAGEABLE = 1,
	MEMORY_PINNED = 2,
	MEMORY_DEVICE = 3,
	MEMORY_ARRAY = 4,
	MEMORY_MANAGED = 5,
};

/* FNV with words of 8 bytes: names of kernels are long. */
static uint64_t hash_text(const char *text, size_t length)
{
	uint64_t hash = length * 0x9e3779b97f4a7c15ULL, word;

	for (; length >= 8; text += 8, length -= 8) {
		memcpy(&word, text, 8);
		hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
		hash ^= hash >> 29;
	}
	word = 0;
	memcpy(&word, text, length);
	return hash_mix(hash ^ word);
}

/* A cut or odd text may end inside of a character: what is not whole goes. */
static size_t whole_characters(const char *text, size_t length)
{
	size_t tail = 0;

	if (length < JSON_TEXT_KEPT)
		return length;
	while (tail < 3 && tail < length && ((unsigned char)text[length - 1 - tail] & 0xc0) == 0x80)
		tail++;
	if (tail < length && (unsigned char)text[length - 1 - tail] >= 0xc0)
		return length - 1 - tail;
	return length;
}

/* String id of a name, 0 for an empty one, MODEL_NONE if memory ran out. The text is decoded in place. */
static uint32_t name_id(struct kineto_loader *loader, struct kineto_text *text)
{
	struct model *model = loader->model;
	uint32_t id;

	if (text->escaped) {
		text->length = json_decode(text->bytes, text->length, text->bytes);
		text->escaped = false;
	}
	text->length = strnlen(text->bytes, whole_characters(text->bytes, text->length));
	if (!text->length)
		return 0;
	for (uint64_t key = hash_text(text->bytes, text->length);; key++) {
		const char *known;

		if (!index_map_get(&loader->names, key, &id)) {
			id = model_add_string(model, text->bytes, text->length);
			if (id == MODEL_NONE || index_map_put(&loader->names, key, id))
				return MODEL_NONE;
			return id;
		}
		known = model_string(model, id);
		if (!strncmp(known, text->bytes, text->length) && !known[text->length])
			return id;
	}
}

static int number_for(struct index_map *map, uint64_t key, uint32_t base, uint32_t *number)
{
	if (index_map_get(map, key, number))
		return 0;
	*number = base + (uint32_t)map->count;
	return index_map_put(map, key, *number);
}

/* A number for a pid, tid, device or stream: the file's own where it can be one, otherwise one made up. */
static int small_id(struct kineto_loader *loader, const struct kineto_id *id, uint32_t *number)
{
	*number = 0;
	if (id->form == KINETO_ID_MISSING)
		return 0;
	if (id->form == KINETO_ID_NUMBER && id->value < ODD_ID_BASE) {
		*number = (uint32_t)id->value;
		return 0;
	}
	return number_for(&loader->odd_ids, id->value, ODD_ID_BASE, number);
}

/* 0: there is none. CUPTI counts from 1. */
static int correlation_id(struct kineto_loader *loader, const struct kineto_id *id, uint32_t *number)
{
	*number = 0;
	if (id->form == KINETO_ID_MISSING || (id->form == KINETO_ID_NUMBER && !id->value))
		return 0;
	if (id->form == KINETO_ID_NUMBER && id->value < CORRELATION_BASE) {
		*number = (uint32_t)id->value;
		return 0;
	}
	return number_for(&loader->correlations, id->value, CORRELATION_BASE, number);
}

/*
 * Without a correlation id the External id, which is that of the framework's operator, can do: but only while
 * a single call carries it. They get numbers of their own, from the same range as other odd ones.
 */
static int external_id(struct kineto_loader *loader, const struct kineto_id *id, uint32_t *number)
{
	*number = 0;
	if (id->form == KINETO_ID_MISSING || !id->value)
		return 0;
	return number_for(&loader->correlations, hash_mix(id->value ^ 0x5bd1e9955bd1e995ULL),
	                  CORRELATION_BASE, number);
}

static int call_external_id(struct kineto_loader *loader, const struct kineto_id *id, uint32_t *number)
{
	uint32_t uses = 0;
	int rc = external_id(loader, id, number);

	if (rc || !*number)
		return rc;
	index_map_get(&loader->externals, *number, &uses);
	return index_map_put(&loader->externals, *number, uses ? 2 : 1);
}

static void see_time(struct kineto_loader *loader, uint64_t start_ns, uint64_t end_ns)
{
	if (!loader->first_ns || start_ns < loader->first_ns)
		loader->first_ns = start_ns;
	if (end_ns > loader->last_ns)
		loader->last_ns = end_ns;
}

static int find_thread(struct kineto_loader *loader, const struct kineto_event *event, uint32_t *index)
{
	uint32_t pid, tid;
	uint64_t key;
	int rc = small_id(loader, &event->pid, &pid);

	if (!rc)
		rc = small_id(loader, &event->tid, &tid);
	if (rc)
		return rc;
	key = kineto_thread_key(pid, tid);
	if (loader->has_last_thread && loader->last_thread_key == key) {
		*index = loader->last_thread;
		return 0;
	}
	if (!index_map_get(&loader->threads, key, index)) {
		*index = model_new_thread(loader->model, pid, tid, 0);
		if (*index == MODEL_NONE || index_map_put(&loader->threads, key, *index))
			return -ENOMEM;
	}
	loader->has_last_thread = true;
	loader->last_thread_key = key;
	loader->last_thread = *index;
	return 0;
}

static int find_device(struct kineto_loader *loader, const struct kineto_event *event, uint32_t *index)
{
	const struct kineto_id *id = event->device.form == KINETO_ID_MISSING ? &event->pid : &event->device;
	struct device *device;
	uint32_t number;
	int rc = small_id(loader, id, &number);

	if (rc || index_map_get(&loader->devices, number, index))
		return rc;
	device = array_add(&loader->model->devices);
	if (!device)
		return -ENOMEM;
	device->number = number;
	*index = (uint32_t)loader->model->devices.count - 1;
	return index_map_put(&loader->devices, number, *index);
}

static bool starts_with(const char **text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*text, word, length))
		return false;
	*text += length;
	return true;
}

static uint8_t memory_kind(const char **text)
{
	return starts_with(text, "Pageable")  ? MEMORY_PAGEABLE
	       : starts_with(text, "Pinned")  ? MEMORY_PINNED
	       : starts_with(text, "Device")  ? MEMORY_DEVICE
	       : starts_with(text, "Array")   ? MEMORY_ARRAY
	       : starts_with(text, "Managed") ? MEMORY_MANAGED
	                                      : 0;
}

static uint8_t copy_kind(const char **text)
{
	return starts_with(text, "HtoD")   ? COPY_HTOD
	       : starts_with(text, "DtoH") ? COPY_DTOH
	       : starts_with(text, "DtoD") ? COPY_DTOD
	       : starts_with(text, "HtoH") ? COPY_HTOH
	       : starts_with(text, "PtoP") ? COPY_PTOP
	                                   : 0;
}

/* "Memcpy HtoD (Pageable -> Device)"; what it leaves out is 0, unknown. */
static void read_copy(struct gpu_op *op, const char *name, const struct kineto_text *kind)
{
	const char *arrow;

	if (starts_with(&name, "Memcpy ")) {
		op->copy_kind = copy_kind(&name);
		if (starts_with(&name, " (")) {
			op->source_kind = memory_kind(&name);
			arrow = strstr(name, "-> ");
			if (arrow) {
				name = arrow + 3;
				op->target_kind = memory_kind(&name);
			}
		}
	}
	if (!op->copy_kind && kind->length == 4) {
		char text[5] = {0};

		memcpy(text, kind->bytes, 4);
		name = text;
		op->copy_kind = copy_kind(&name);
	}
}

static int op_correlation(struct kineto_loader *loader, const struct kineto_event *event, uint32_t *number)
{
	int rc = correlation_id(loader, &event->correlation, number);

	if (!rc && !*number)
		rc = external_id(loader, &event->external, number);
	if (!*number)
		loader->unlinkable++;
	return rc;
}

static int add_op(struct kineto_loader *loader, struct kineto_event *event, enum op_kind kind)
{
	struct gpu_op op = {
	    .start_ns = (uint64_t)event->start_ns, .process = MODEL_NONE, .kind = (uint8_t)kind};
	const struct kineto_id *stream =
	    event->stream.form == KINETO_ID_MISSING ? &event->tid : &event->stream;
	struct gpu_op *slot;
	uint32_t device;
	int rc;

	op.end_ns = op.start_ns + (event->duration_ns > 0 ? (uint64_t)event->duration_ns : 0);
	op.name = name_id(loader, &event->name);
	if (op.name == MODEL_NONE)
		return -ENOMEM;
	rc = find_device(loader, event, &device);
	if (!rc)
		rc = op_correlation(loader, event, &op.correlation);
	if (!rc)
		rc = small_id(loader, stream, &op.stream);
	if (!rc)
		rc = small_id(loader, &event->context, &op.context);
	if (!rc)
		rc = small_id(loader, &event->graph, &op.graph);
	if (rc)
		return rc;
	op.bytes = event->bytes.form == KINETO_ID_NUMBER ? event->bytes.value : 0;
	op.order = (uint32_t)loader->ops;
	if (kind == OP_MEMCPY)
		read_copy(&op, model_string(loader->model, op.name), &event->label);
	slot = array_add(&loader->model->devices.items[device].ops);
	if (!slot)
		return -ENOMEM;
	*slot = op;
	loader->ops++;
	loader->negative += event->duration_ns < 0;
	see_time(loader, op.start_ns, op.end_ns);
	return 0;
}

/* Class of a function, looked up once for each name. */
static int function_class(struct kineto_loader *loader, uint32_t function, enum cuda_class *class)
{
	uint8_t *slot;

	while (loader->classes.count <= function) {
		if (!array_add(&loader->classes))
			return -ENOMEM;
	}
	slot = &loader->classes.items[function];
	if (!*slot)
		*slot = (uint8_t)(cuda_classify(model_string(loader->model, function)) + 1);
	*class = *slot - 1;
	return 0;
}

static int add_call(struct kineto_loader *loader, struct kineto_event *event)
{
	struct call call = {.enter_ns = (uint64_t)event->start_ns, .exit_known = true}, *slot;
	uint32_t thread;
	int rc;

	call.exit_ns = call.enter_ns + (event->duration_ns > 0 ? (uint64_t)event->duration_ns : 0);
	call.function = name_id(loader, &event->name);
	if (call.function == MODEL_NONE)
		return -ENOMEM;
	rc = function_class(loader, call.function, &call.class);
	if (!rc)
		rc = find_thread(loader, event, &thread);
	if (!rc)
		rc = correlation_id(loader, &event->correlation, &call.correlation);
	if (!rc && !call.correlation && (call.class == CUDA_OTHER || cuda_class_submits(call.class)))
		rc = call_external_id(loader, &event->external, &call.correlation);
	if (rc)
		return rc;
	slot = array_add(&loader->model->threads.items[thread].calls);
	if (!slot)
		return -ENOMEM;
	*slot = call;
	loader->calls++;
	see_time(loader, call.enter_ns, call.exit_ns);
	return 0;
}

static int add_scope(struct kineto_loader *loader, struct kineto_event *event, enum scope_kind kind)
{
	uint64_t start = (uint64_t)event->start_ns;
	uint64_t end = start + (event->duration_ns > 0 ? (uint64_t)event->duration_ns : 0);
	uint32_t name = name_id(loader, &event->name), thread;
	struct scope *scope;
	int rc;

	if (name == MODEL_NONE)
		return -ENOMEM;
	rc = find_thread(loader, event, &thread);
	if (rc)
		return rc;
	scope = array_add(&loader->model->threads.items[thread].scopes);
	if (!scope)
		return -ENOMEM;
	*scope = (struct scope){.start_ns = start, .end_ns = end, .name = name, .kind = kind};
	loader->scopes++;
	see_time(loader, start, end);
	return 0;
}

static bool contains(const struct kineto_text *text, const char *word)
{
	return memmem(text->bytes, text->length, word, strlen(word));
}

/*
 * What CUPTI says it spent inside of calls. Loading and compiling of code is the program's own. The thread is
 * often missing (tid 0); it is then looked for at the end.
 */
static int add_overhead(struct kineto_loader *loader, struct kineto_event *event)
{
	struct overhead overhead = {.start_ns = (uint64_t)event->start_ns,
	                            .loading = contains(&event->name, "Loading") ||
	                                       contains(&event->name, "Compil")};
	struct kineto_overhead *pending;
	struct overhead *slot;
	uint32_t thread;
	int rc;

	/* That the command buffer was full means that the GPU was behind: no overhead. */
	if (event->duration_ns <= 0 || contains(&event->name, "Command Buffer"))
		return 0;
	overhead.end_ns = overhead.start_ns + (uint64_t)event->duration_ns;
	if (event->pid.form == KINETO_ID_NUMBER && event->tid.form == KINETO_ID_NUMBER && event->tid.value) {
		rc = find_thread(loader, event, &thread);
		slot = rc ? NULL : array_add(&loader->model->threads.items[thread].overhead);
		if (!slot)
			return -ENOMEM;
		*slot = overhead;
		return 0;
	}
	/* CUPTI's own work without a thread was done by its worker, beside the program. */
	if (!overhead.loading || loader->overheads.count == OVERHEADS_MAX)
		return 0;
	pending = array_add(&loader->overheads);
	if (!pending)
		return -ENOMEM;
	*pending = (struct kineto_overhead){overhead, MODEL_NONE};
	return 0;
}

/* CUpti_ActivitySynchronizationType. "Stream Wait Event" is a wait of the device, not of the host. */
static uint32_t sync_type(const struct kineto_event *event)
{
	const struct kineto_text *text = event->label.length ? &event->label : &event->name;

	return contains(text, "Stream Wait")                           ? 2
	       : contains(text, "Event")                               ? 1
	       : contains(text, "Stream")                              ? 3
	       : contains(text, "Context") || contains(text, "Device") ? 4
	                                                               : 0;
}

static int add_sync(struct kineto_loader *loader, struct kineto_event *event)
{
	struct sync sync = {
	    .start_ns = (uint64_t)event->start_ns, .process = MODEL_NONE, .type = sync_type(event)};
	struct sync *slot;
	int rc;

	sync.end_ns = sync.start_ns + (event->duration_ns > 0 ? (uint64_t)event->duration_ns : 0);
	rc = correlation_id(loader, &event->correlation, &sync.correlation);
	if (!rc)
		rc = small_id(loader, &event->stream, &sync.stream);
	if (!rc)
		rc = small_id(loader, &event->context, &sync.context);
	if (rc)
		return rc;
	slot = array_add(&loader->model->syncs);
	if (!slot)
		return -ENOMEM;
	*slot = sync;
	return 0;
}

static bool text_is(const struct kineto_text *text, const char *word)
{
	return text->length == strlen(word) && !memcmp(text->bytes, word, text->length);
}

/* Kineto calls a thread "thread 1262 (pt_autograd_0)". */
static void strip_thread_name(struct kineto_text *name)
{
	char *open;

	if (name->length < 9 || memcmp(name->bytes, "thread ", 7) || name->bytes[name->length - 1] != ')')
		return;
	open = memchr(name->bytes, '(', name->length);
	if (!open)
		return;
	name->length = (size_t)(name->bytes + name->length - 1 - (open + 1));
	memmove(name->bytes, open + 1, name->length);
}

static int add_metadata(struct kineto_loader *loader, struct kineto_event *event)
{
	bool process = text_is(&event->name, "process_name");
	struct index_map *map = process ? &loader->processes : &loader->thread_names;
	uint32_t pid, tid = 0, name;
	int rc;

	if ((!process && !text_is(&event->name, "thread_name")) || map->count >= NAMED_MAX)
		return 0;
	if (!process)
		strip_thread_name(&event->label);
	name = name_id(loader, &event->label);
	if (name == MODEL_NONE)
		return -ENOMEM;
	rc = small_id(loader, &event->pid, &pid);
	if (!rc && !process)
		rc = small_id(loader, &event->tid, &tid);
	if (rc)
		return rc;
	return index_map_put(map, process ? pid : kineto_thread_key(pid, tid), name);
}

/* Times that make sense; nothing wraps when a duration is added. */
static bool has_usable_time(const struct kineto_event *event)
{
	return event->has_time && !event->bad_time && event->start_ns >= 0 &&
	       event->start_ns < INT64_MAX / 2 && event->duration_ns < INT64_MAX / 2;
}

int kineto_loader_event(struct kineto_loader *loader, struct kineto_event *event)
{
	loader->events++;
	loader->recognised += event->phase != 0;
	if (event->phase == 'M')
		return add_metadata(loader, event);
	if (event->phase != 'X' || event->useless || event->category == KINETO_NONE)
		return 0;
	if (!has_usable_time(event)) {
		loader->unusable++;
		return 0;
	}
	switch (event->category) {
	case KINETO_KERNEL:
		return add_op(loader, event, OP_KERNEL);
	case KINETO_MEMCPY:
		return add_op(loader, event, OP_MEMCPY);
	case KINETO_MEMSET:
		return add_op(loader, event, OP_MEMSET);
	case KINETO_CALL:
		return add_call(loader, event);
	case KINETO_OPERATOR:
		return add_scope(loader, event, SCOPE_OPERATOR);
	case KINETO_ANNOTATION:
		return add_scope(loader, event, SCOPE_ANNOTATION);
	case KINETO_PYTHON:
		return add_scope(loader, event, SCOPE_PYTHON);
	case KINETO_OVERHEAD:
		return add_overhead(loader, event);
	case KINETO_SYNC:
		return add_sync(loader, event);
	case KINETO_SPAN:
		see_time(loader, (uint64_t)event->start_ns,
		         (uint64_t)event->start_ns +
		             (event->duration_ns > 0 ? (uint64_t)event->duration_ns : 0));
		return 0;
	default:
		return 0;
	}
}

int kineto_loader_device(struct kineto_loader *loader, const struct kineto_id *id, struct kineto_text *name)
{
	struct kineto_property *property;
	uint32_t string = name_id(loader, name);

	if (string == MODEL_NONE)
		return -ENOMEM;
	if (!string || loader->properties.count == PROPERTIES_MAX)
		return 0;
	property = array_add(&loader->properties);
	if (!property)
		return -ENOMEM;
	*property = (struct kineto_property){*id, string};
	return 0;
}

void kineto_loader_free(struct kineto_loader *loader)
{
	index_map_free(&loader->names);
	index_map_free(&loader->odd_ids);
	index_map_free(&loader->threads);
	index_map_free(&loader->processes);
	index_map_free(&loader->thread_names);
	index_map_free(&loader->devices);
	index_map_free(&loader->correlations);
	index_map_free(&loader->externals);
	array_free(&loader->classes);
	array_free(&loader->overheads);
	array_free(&loader->properties);
}
