// SPDX-License-Identifier: GPL-2.0-only
#include "collect/bpf_files.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

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

int bpf_files_add(struct bpf_files *files, const struct wire_file *wire, struct session_writer *writer,
                  struct error *error)
{
	char text[TEXT_SIZE];

	switch (wire->kind) {
	case WIRE_FILE_PIPE:
		snprintf(text, sizeof(text), "pipe");
		break;
	case WIRE_FILE_UNIX:
		snprintf(text, sizeof(text), "Unix socket");
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
	return 0;
}

uint32_t bpf_files_name(const struct bpf_files *files, uint64_t key)
{
	uint32_t id;

	return key && index_map_get(&files->names, key, &id) ? id : 0;
}

void bpf_files_free(struct bpf_files *files)
{
	index_map_free(&files->names);
}
