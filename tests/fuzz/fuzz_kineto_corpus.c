/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the traces from which fuzz_kineto starts into a directory: fuzz_kineto_corpus DIRECTORY */
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/corpus.h"

#define KERNEL(ts, dur, correlation)                                                                         \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":" ts ",\"dur\":" dur                         \
	",\"pid\":0,\"tid\":7,\"args\":{\"device\":0,\"stream\":7,\"correlation\":" correlation "}}"
#define CALL(name, ts, dur, correlation)                                                                     \
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" name "\",\"ts\":" ts ",\"dur\":" dur            \
	",\"pid\":5,\"tid\":5,\"args\":{\"correlation\":" correlation "}}"
#define SCOPE(category, ts, dur)                                                                             \
	"{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"aten::add\",\"ts\":" ts ",\"dur\":" dur           \
	",\"pid\":5,\"tid\":5,\"args\":{\"External id\":3}}"

static const char *const traces[] = {
    "{\"traceEvents\":[" KERNEL("100", "10", "1") "," CALL("cudaLaunchKernel", "90", "4", "1") "," KERNEL(
        "117.123", "3", "2") "," CALL("cudaLaunchKernel", "115", "1", "2") "]}",
    "[" CALL("cudaStreamSynchronize", "\"1712195495505582.988\"", "5",
             "9") "," SCOPE("cpu_op", "1", "2") "," SCOPE("python_function", "0", "9.5") "]",
    "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"GPU\"}],\"distributedInfo\":{\"rank\":1,"
    "\"world_size\":2},\"baseTimeNanoseconds\":17,\"traceEvents\":[{\"ph\":\"M\",\"name\":\"thread_name\","
    "\"pid\":5,"
    "\"tid\":5,\"args\":{\"name\":\"main\"}}," CALL("cudaGraphLaunch", "1", "1", "4") "," KERNEL(
        "3", "0", "4") "," KERNEL("9", "-2", "4") "," SCOPE("user_annotation", "0", "99") "]}",
    "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"Memcpy\",\"name\":\"Memcpy HtoD (Pageable -> "
    "Device)\",\"ts\":5,"
    "\"dur\":2,\"pid\":0,\"tid\":\"stream 7\",\"args\":{\"device\":2,\"stream\":\"7\",\"correlation\":\"3\","
    "\"bytes\":64}},{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"hipMemcpyAsync\",\"ts\":1,\"dur\":1,\"pid\":"
    "\"a\","
    "\"tid\":1e3,\"args\":{\"correlation\":3,\"s\":\"\\u00e9\\ud83d\\ude00\\n\"}}]}",
};

int main(int argc, char **argv)
{
	char name[32];

	if (argc != 2)
		return 2;
	for (size_t i = 0; i < sizeof(traces) / sizeof(*traces); i++) {
		snprintf(name, sizeof(name), "trace-%zu", i);
		if (corpus_save(argv[1], name, NULL, 0, traces[i], strlen(traces[i])))
			return 1;
	}
	return 0;
}
