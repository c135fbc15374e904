/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a Chrome trace as Kineto does, of any size: make_kineto OPERATIONS > FILE. Each operation has its
 * launch; every eighth launch is inside of an operator. About 400 bytes an operation. The same count makes
 * the same bytes.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_NS 1700000000000000000ULL
#define BUFFER   (1 << 20)
#define STREAMS  4

static const char *const kernels[] = {
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, char*>(int)",
    "ampere_sgemm_128x64_tn",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, true>(cudnnTensorStruct)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static void write_event(const char *category, const char *name, unsigned pid, unsigned tid, uint64_t start_ns,
                        uint64_t length_ns)
{
	start_ns += FIRST_NS;
	printf(",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64
	       ".%03u,\"dur\":%" PRIu64 ".%03u,\"args\":{",
	       category, name, pid, tid, start_ns / 1000, (unsigned)(start_ns % 1000), length_ns / 1000,
	       (unsigned)(length_ns % 1000));
}

static void write_operation(uint64_t number, uint64_t *host_ns, uint64_t *device_ns, uint64_t *random)
{
	uint64_t call_ns = 2000 + next_random(random) % 3000, length = 1000 + next_random(random) % 9000;
	unsigned stream = 7 + (unsigned)(next_random(random) % STREAMS);

	*host_ns += call_ns + next_random(random) % 4000;
	if (number % 8 == 0) {
		write_event("cpu_op", "aten::addmm", 100, 100, *host_ns, 8 * call_ns);
		printf("\"External id\":%" PRIu64 "}}\n", number);
	}
	write_event("cuda_runtime", "cudaLaunchKernel", 100, 100, *host_ns, call_ns);
	printf("\"External id\":%" PRIu64 ",\"cbid\":211,\"correlation\":%" PRIu64 "}}\n", number, number);
	if (*device_ns < *host_ns + call_ns)
		*device_ns = *host_ns + call_ns;
	write_event("kernel", kernels[next_random(random) % 4], 0, stream, *device_ns, length);
	printf("\"device\":0,\"context\":1,\"stream\":%u,\"correlation\":%" PRIu64
	       ",\"grid\":[50,1,1],\"block\":[256,1,1]}}\n",
	       stream, number);
	*device_ns += length;
}

int main(int argc, char **argv)
{
	uint64_t count = argc == 2 ? strtoull(argv[1], NULL, 10) : 0, host_ns = 0, device_ns = 0, random = 1;

	if (!count) {
		fprintf(stderr, "usage: make_kineto OPERATIONS > FILE\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOFBF, BUFFER);
	printf("{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"Made "
	       "up\"}],\n\"traceEvents\":[\n"
	       "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":100,\"tid\":0,\"args\":{\"name\":\"python\"}}"
	       "\n");
	for (uint64_t i = 1; i <= count; i++)
		write_operation(i, &host_ns, &device_ns, &random);
	printf("]}\n");
	return fflush(stdout) || ferror(stdout);
}
