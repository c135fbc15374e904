// SPDX-License-Identifier: GPL-2.0-only
/* The events of the Chrome trace format as text. */
#include <string.h>

#include "export/chrome.h"

/* {"ph":"X" with what every event has but names of tracks. */
static void begin(struct chrome *chrome, const char *phase)
{
	if (chrome->has_event)
		byte_out_literal(chrome->out, ",\n");
	chrome->has_event = true;
	chrome->has_argument = false;
	byte_out_literal(chrome->out, "{\"ph\":\"");
	byte_out_put(chrome->out, phase, 1);
	byte_out_literal(chrome->out, "\"");
}

static void place(struct chrome *chrome, uint64_t pid, uint64_t tid, uint64_t time_ns)
{
	byte_out_literal(chrome->out, ",\"pid\":");
	byte_out_number(chrome->out, pid);
	byte_out_literal(chrome->out, ",\"tid\":");
	byte_out_number(chrome->out, tid);
	byte_out_literal(chrome->out, ",\"ts\":");
	json_out_time(chrome->out, time_ns);
}

static void begin_named(struct chrome *chrome, const char *phase, const char *category, const char *name)
{
	begin(chrome, phase);
	byte_out_literal(chrome->out, ",\"cat\":\"");
	byte_out_put(chrome->out, category, strlen(category));
	byte_out_literal(chrome->out, "\",\"name\":");
	json_out_string(chrome->out, name);
}

void chrome_async(struct chrome *chrome, const char *category, const char *name, uint64_t id, uint64_t pid,
                  uint64_t tid, uint64_t start_ns, uint64_t end_ns)
{
	static const char *const phases[] = {"b", "e"};

	for (int i = 0; i < 2; i++) {
		begin_named(chrome, phases[i], category, name);
		byte_out_literal(chrome->out, ",\"id\":");
		byte_out_number(chrome->out, id);
		place(chrome, pid, tid, i ? end_ns : start_ns);
		chrome_end(chrome);
	}
}

void chrome_slice(struct chrome *chrome, const char *category, const char *name, uint64_t pid, uint64_t tid,
                  uint64_t start_ns, uint64_t end_ns)
{
	begin_named(chrome, "X", category, name);
	place(chrome, pid, tid, start_ns);
	byte_out_literal(chrome->out, ",\"dur\":");
	json_out_time(chrome->out, end_ns - start_ns);
}

void chrome_end(struct chrome *chrome)
{
	if (chrome->has_argument)
		byte_out_literal(chrome->out, "}}");
	else
		byte_out_literal(chrome->out, "}");
}

static void key_of(struct chrome *chrome, const char *key)
{
	if (chrome->has_argument)
		byte_out_literal(chrome->out, ",\"");
	else
		byte_out_literal(chrome->out, ",\"args\":{\"");
	chrome->has_argument = true;
	byte_out_put(chrome->out, key, strlen(key));
	byte_out_literal(chrome->out, "\":");
}

void chrome_number(struct chrome *chrome, const char *key, uint64_t value)
{
	key_of(chrome, key);
	byte_out_number(chrome->out, value);
}

void chrome_string(struct chrome *chrome, const char *key, const char *value)
{
	if (!value || !*value)
		return;
	key_of(chrome, key);
	json_out_string(chrome->out, value);
}

void chrome_thread(struct chrome *chrome, const char *key, const char *comm, uint32_t tid)
{
	key_of(chrome, key);
	byte_out_literal(chrome->out, "\"");
	json_out_text(chrome->out, comm);
	byte_out_literal(chrome->out, " (");
	byte_out_number(chrome->out, tid);
	byte_out_literal(chrome->out, ")\"");
}

void chrome_flow(struct chrome *chrome, bool is_begin, uint64_t id, uint64_t pid, uint64_t tid,
                 uint64_t time_ns)
{
	begin(chrome, is_begin ? "s" : "f");
	byte_out_literal(chrome->out, ",\"id\":");
	byte_out_number(chrome->out, id);
	place(chrome, pid, tid, time_ns);
	if (is_begin)
		byte_out_literal(chrome->out, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"}");
	else
		byte_out_literal(chrome->out, ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"}");
}

static void metadata(struct chrome *chrome, const char *name, uint64_t pid, uint64_t tid)
{
	begin(chrome, "M");
	byte_out_literal(chrome->out, ",\"name\":\"");
	byte_out_put(chrome->out, name, strlen(name));
	byte_out_literal(chrome->out, "\"");
	place(chrome, pid, tid, chrome->model->start_ns);
}

void chrome_process_name(struct chrome *chrome, uint64_t pid, const char *name, const char *label,
                         uint64_t order)
{
	metadata(chrome, "process_name", pid, 0);
	key_of(chrome, "name");
	json_out_string(chrome->out, name);
	chrome_end(chrome);
	metadata(chrome, "process_labels", pid, 0);
	chrome_string(chrome, "labels", label);
	chrome_end(chrome);
	metadata(chrome, "process_sort_index", pid, 0);
	chrome_number(chrome, "sort_index", order);
	chrome_end(chrome);
}

void chrome_thread_name(struct chrome *chrome, uint64_t pid, uint64_t tid, const char *name, uint64_t order)
{
	metadata(chrome, "thread_name", pid, tid);
	key_of(chrome, "name");
	json_out_string(chrome->out, name);
	chrome_end(chrome);
	metadata(chrome, "thread_sort_index", pid, tid);
	chrome_number(chrome, "sort_index", order);
	chrome_end(chrome);
}
