// SPDX-License-Identifier: GPL-2.0-only
#include "base/proc_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t proc_file_read(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;

	while (fd >= 0 && length < size - 1) {
		ssize_t got = read(fd, buffer + length, size - 1 - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	buffer[length] = '\0';
	return length;
}

uint32_t proc_status_namespace_id(const char *text)
{
	const char *line = strstr(text, "\nNSpid:"), *last = NULL;
	uint32_t ids = 0;

	if (!line)
		return 0;
	for (line += strlen("\nNSpid:"); *line && *line != '\n'; line++) {
		if (isdigit((unsigned char)*line) && !isdigit((unsigned char)line[-1])) {
			last = line;
			ids++;
		}
	}
	return ids > 1 ? (uint32_t)strtoul(last, NULL, 10) : 0;
}
