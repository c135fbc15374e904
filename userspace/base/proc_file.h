/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of /proc. */
#ifndef WHYIDLE_BASE_PROC_FILE_H
#define WHYIDLE_BASE_PROC_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Room for a status of a process with several hundred groups, which stand before what is read of it here. */
#define PROC_STATUS_BYTES 8192

/*
 * Reads the first `size` - 1 bytes of a file into `buffer` and ends them with NUL. Returns how many there
 * are, 0 if it is empty or cannot be read.
 */
size_t proc_file_read(const char *path, char *buffer, size_t size);

/*
 * The id in the innermost pid namespace, of a whole /proc/PID/status or /proc/PID/task/TID/status; 0 if that
 * is the one we see.
 */
uint32_t proc_status_namespace_id(const char *text);

#endif
