/* SPDX-License-Identifier: GPL-2.0-only */
/* What Python calls a thread (threading.Thread(name=…)), which until 3.14 the kernel is not told. */
#ifndef WHYIDLE_COLLECT_PYTHON_THREAD_H
#define WHYIDLE_COLLECT_PYTHON_THREAD_H

#include "collect/python_process.h"

/*
 * The name of a thread that runs Python, `state` being its PyThreadState. NULL if it is none of the threading
 * module's, or anything on the way is not as it is in that version: the memory is not trusted, and may change
 * meanwhile. At most some 1,100 reads of it, mostly some forty. The caller frees the name.
 */
char *python_thread_name(uint32_t pid, const struct python_process *python, uint64_t state);

#endif
