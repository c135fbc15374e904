// SPDX-License-Identifier: GPL-2.0-only
#include "collect/bpf_files.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "collect/process_info.h"

#define TEXT_SIZE (WIRE_FILE_PARTS * (WIRE_FILE_PART + 4) + 16)

/* "/data/train/0001.jpg"; the parts come the other way round, and what is cut off gets an ellipsis. */
static void path_text(char *text, size_t size, const struct wire_file *wire)
{
	uint32_t count = wire->part_count < WIRE_FILE_PARTS ? wire->part_count : WIRE_FILE_PARTS;
	size_t used = 0;

	*text = '\0';
	if (wire->flags & WIRE_FILE_CUT)
		used += (size_t)snprintf(text, size, "…");
	for (uint32_t i = count; i-- > 0 && used < size;) {
		const char *part = wire->parts[i];
		size_t length = strnlen(part, WIRE_FILE_PART);

		used += (size_t)snprintf(text + used, size - used, "%s%.*s%s",
		                         wire->flags & WIRE_FILE_BARE ? "" : "/", (int)length, part,
		                         length >= WIRE_FILE_PART - 1 ? "…" : "");
	}
	if (!count)
		snprintf(text, size, "/");
}

static void peer_text(char *text, size_t size, const struct wire_file *wire)
{
	bool six = wire->kind == WIRE_FILE_INET6;
	char address[INET6_ADDRSTRLEN];

	if (!wire->port || !inet_ntop(six ? AF_INET6 : AF_INET, wire->address, address, sizeof(address)))
		snprintf(text, size, "network socket");
	else
		snprintf(text, size, six ? "[%s]:%u" : "%s:%u", address, ntohs(wire->port));
}

/* "Unix socket /run/data.sock, connected by python3 (1234)"; an abstract address begins with a NUL. */
static void unix_text(char *text, size_t size, const struct wire_file *wire)
{
	const char *path = wire->parts[0],
	           *how = wire->flags & WIRE_FILE_BOUND ? "connected by" : "served by";
	char name[64];
	int used;

	used = snprintf(text, size, "Unix socket");
	if (!wire->part_count)
		return;
	if (*path)
		used += snprintf(text + used, size - used, " %.*s", WIRE_FILE_PART, path);
	if (!wire->peer || wire->peer & WIRE_ID_OUTSIDE)
		return;
	process_name(wire->peer, name, sizeof(name));
	if (*name)
		snprintf(text + used, size - used, ", %s %s (%u)", how, name, wire->peer);
	else
		snprintf(text + used, size - used, ", %s process %u", how, wire->peer);
}

int bpf_files_add(struct bpf_files *files, const struct wire_file *wire, struct session_writer *writer,
                  struct error *error)
{
	char text[TEXT_SIZE];

	switch (wire->kind) {
	case WIRE_FILE_PIPE:
		snprintf(text, sizeof(text), "pipe");
		break;
	case WIRE_FILE_UNIX:
		unix_text(text, sizeof(text), wire);
		break;
	case WIRE_FILE_INET:
	case WIRE_FILE_INET6:
		peer_text(text, sizeof(text), wire);
		break;
	default:
		path_text(text, sizeof(text), wire);
		break;
	}
	if (index_map_put(&files->names, wire->key, session_writer_cstring(writer, text)))
		return error_no_memory(error);
	if (wire->kind != WIRE_FILE_PATH || wire->flags & WIRE_FILE_BARE)
		return 0;
	if (index_map_put(
	        &files->devices, wire->key,
	        session_writer_string(writer, wire->device, strnlen(wire->device, sizeof(wire->device)))))
		return error_no_memory(error);
	return 0;
}

uint32_t bpf_files_name(const struct bpf_files *files, uint64_t key)
{
	uint32_t id;

	return key && index_map_get(&files->names, key, &id) ? id : 0;
}

uint32_t bpf_files_device(const struct bpf_files *files, uint64_t key)
{
	uint32_t id;

	return key && index_map_get(&files->devices, key, &id) ? id : 0;
}

void bpf_files_free(struct bpf_files *files)
{
	index_map_free(&files->names);
	index_map_free(&files->devices);
}
