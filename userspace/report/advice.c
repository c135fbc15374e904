// SPDX-License-Identifier: GPL-2.0-only
#include "report/advice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ANY ROLE_COUNT

struct advice {
	enum cause_code code;
	enum cause_role role; /* ANY: every role without a row of its own */
	const char
	    *action; /* "{enough}" etc. are facts; a row whose facts are not all known is passed over */
	const char *hint;
};

/*
 * The first row that fits is taken. Actions are kept to one short sentence, because they are the third line
 * of a report. The settings named are PyTorch's, the common case.
 */
static const struct advice advices[] = {
    {CAUSE_DEVICE_DEPENDENCY, ANY, "Drop the event or stream wait that kernels do not need.",
     "Look for work on the default stream, wait_stream() and wait_event(): independent work belongs on "
     "streams that do not wait for each other."},
    {CAUSE_DEVICE_COPY, ANY, "Overlap copies with kernels: pin_memory=True, non_blocking=True.",
     "Copy the next batch on a stream of its own while this one is computed, and keep on the GPU what is "
     "used again."},
    {CAUSE_DEVICE_PEER, ANY, "Find the rank that comes late; record that rank too.",
     "A collective ends when its slowest rank arrives: the cause lies in that rank's own report."},
    {CAUSE_DEVICE_OTHER_PROCESS, ANY, "Give the other process another GPU, or share this one through MPS.",
     "Without MPS the contexts of two processes take turns on a GPU."},
    {CAUSE_DEVICE_FLOOR, ANY, "Run fewer, longer kernels: torch.compile or CUDA graphs.",
     "This is the GPU's own time between two operations that are both ready."},

    {CAUSE_HOST_LAUNCH_BOUND, ANY, "Launch less: CUDA graphs or torch.compile(mode=\"reduce-overhead\").",
     "A larger batch or fused kernels (foreach=True or fused=True optimisers) also make each launch worth "
     "more."},
    {CAUSE_HOST_SYNC_THEN_SERIAL, ANY,
     "Synchronise less often: .item(), .cpu(), print(loss) only every N steps.",
     "Host code after a synchronisation runs while the GPU has nothing queued: move it before the "
     "synchronisation, or to another thread. non_blocking=True copies need no synchronisation until the "
     "value is read."},

    {CAUSE_HOST_USER_CODE, ROLE_WORKER, "Start {enough} workers instead of {workers} (num_workers={enough}).",
     "A faster transform, or the transform on the GPU, makes their work cheaper. persistent_workers=True "
     "keeps them alive, prefetch_factor lets them work ahead."},
    {CAUSE_HOST_USER_CODE, ROLE_WORKER,
     "Let the workers work further ahead (prefetch_factor): {ample} are enough.",
     "A faster transform, or the transform on the GPU, makes their work cheaper. persistent_workers=True "
     "keeps them alive, prefetch_factor lets them work ahead."},
    {CAUSE_HOST_USER_CODE, ROLE_WORKER, "Start more workers (num_workers) or make their work cheaper.",
     "A faster transform, or the transform on the GPU, makes their work cheaper. persistent_workers=True "
     "keeps them alive, prefetch_factor lets them work ahead."},
    {CAUSE_HOST_USER_CODE, ROLE_LAUNCHER, "Move host work off {thread}, the thread that launches.",
     "Batches can be prepared in DataLoader workers (num_workers), logging and checkpoints in another "
     "thread; torch.compile takes Python out of the step."},
    {CAUSE_HOST_USER_CODE, ROLE_THREAD, "Make {thread} hand over its result earlier, or split its work.",
     "The launcher needs what this thread makes: let it work ahead (a queue of several batches), or use "
     "worker processes, which do not share the interpreter lock."},
    {CAUSE_HOST_USER_CODE, ROLE_PROCESS, "Make {thread} faster, or let it work further ahead.",
     "The launcher needs what this process makes: start more of them, or keep several results queued."},
    {CAUSE_HOST_USER_CODE, ANY, "Move host work off the path between two launches.", ""},

    {CAUSE_HOST_GIL, ANY, "Keep {holder} from computing in Python while it launches.",
     "A thread that computes in Python holds the interpreter lock: move it to a process (num_workers, "
     "multiprocessing), or to code that releases the lock."},
    {CAUSE_HOST_GIL, ANY, "Move Python threads that compute into processes of their own.",
     "One thread at a time runs Python: the launcher waits while another one computes."},
    {CAUSE_HOST_GC, ANY, "Call gc.freeze() after set-up and gc.collect() at a moment of your choice.",
     "gc.disable() in the step keeps collections off the launch path; fewer small objects make them "
     "shorter."},
    {CAUSE_HOST_COMPILE, ANY, "Compile before the loop: warm up, fix shapes, keep the compile cache.",
     "Changing shapes compile again and again (torch._dynamo.mark_dynamic, dynamic=True); "
     "CUDA_MODULE_LOADING=EAGER loads kernels at the start."},
    {CAUSE_HOST_CUDA_ALLOC, ANY, "Keep GPU memory: no empty_cache() in the loop, use the caching allocator.",
     "cudaMalloc and cudaFree make the host wait for the device. "
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps where sizes change; tensors of one size can be "
     "used again."},
    {CAUSE_HOST_PAGEABLE_COPY, ANY, "Copy from pinned memory: pin_memory=True and non_blocking=True.",
     "A copy of pageable memory holds the host until the bytes are staged."},
    {CAUSE_HOST_CUDA_LOCK, ANY, "Launch from fewer threads, or from one process for each of them.",
     "Threads of one process share locks of the CUDA driver."},
    {CAUSE_HOST_CUDA_API, ANY, "Call {function} less often, or outside the loop.",
     "The call held the host while the GPU had nothing to do."},
    {CAUSE_HOST_CUDA_API, ANY, "Take this CUDA call out of the loop.",
     "The call held the host while the GPU had nothing to do."},

    {CAUSE_SCHED_CPU_CONTENTION, ROLE_WORKER,
     "Give the workers CPUs: fewer threads each (OMP_NUM_THREADS=1).",
     "torch.set_num_threads(1) in each worker, num_workers no larger than the CPUs that are free."},
    {CAUSE_SCHED_CPU_CONTENTION, ANY, "Keep a CPU free for {thread}: it was ready but {holder} ran.",
     "Fewer threads (OMP_NUM_THREADS, torch.set_num_threads), neighbours moved to other CPUs (taskset, "
     "cpuset), or a higher priority (nice)."},
    {CAUSE_SCHED_CPU_CONTENTION, ANY, "Keep a CPU free for {thread}: move its neighbours elsewhere.",
     "Fewer threads (OMP_NUM_THREADS, torch.set_num_threads), neighbours moved to other CPUs (taskset, "
     "cpuset), or a higher priority (nice)."},
    {CAUSE_SCHED_CPU_CONTENTION, ANY, "Keep CPUs free for the threads that launch work.",
     "Fewer threads (OMP_NUM_THREADS, torch.set_num_threads), neighbours moved to other CPUs (taskset, "
     "cpuset), or a higher priority (nice)."},
    {CAUSE_SCHED_THROTTLED, ANY, "Raise the CPU limit of its container (cgroup cpu.max).",
     "In Kubernetes: resources.limits.cpu. Or use fewer threads, so that the quota lasts."},
    {CAUSE_SCHED_AFFINITY, ANY, "Widen its CPU set: other CPUs were idle (taskset, cpuset).",
     "Check the launcher's binding (torchrun, numactl, Slurm) against the CPUs that are near the GPU."},
    {CAUSE_SCHED_IRQ, ANY, "Move interrupts to other CPUs (/proc/irq/*/smp_affinity).",
     "Network and storage interrupts ran on the CPU that was needed."},

    {CAUSE_SCHED_STEAL, ANY, "Get CPUs that are not shared: the hypervisor gave them to others.",
     "Another virtual machine had the processor, or this one's CPU credits were used up: dedicated or pinned "
     "virtual CPUs, or a larger instance. Nothing inside this machine can change it."},

    {CAUSE_WAIT_LOCK, ANY, "Shorten what {holder} does while it holds the lock.",
     "Work under the lock can be done before it is taken; or give each thread data of its own."},
    {CAUSE_WAIT_LOCK, ANY, "Shorten what is done under the lock, or take it less often.",
     "Work under the lock can be done before it is taken; or give each thread data of its own."},
    {CAUSE_WAIT_SYSCALL, ANY, "Take this system call off the path to the next launch.",
     "Another thread can make it ahead of time, or its result can be kept."},
    {CAUSE_WAIT_DISK, ROLE_WORKER, "Read ahead from faster storage: local NVMe, RAM, fewer larger files.",
     "More workers (num_workers, prefetch_factor) hide the latency of each read; packed formats (WebDataset, "
     "tar, LMDB) need fewer of them."},
    {CAUSE_WAIT_DISK, ANY, "Move file access off the launch path, or to faster storage.",
     "Read in DataLoader workers (num_workers) and write checkpoints from another thread."},
    {CAUSE_WAIT_NETWORK, ROLE_WORKER,
     "Fetch ahead: more workers (num_workers), prefetch_factor, a local cache.",
     "Each worker waits for one answer at a time: several requests at once hide the latency."},
    {CAUSE_WAIT_NETWORK, ANY, "Do network requests ahead of time in another thread or process.",
     "The launcher should find the answer ready; a local cache keeps it."},
    {CAUSE_WAIT_SLEEP, ANY, "Replace the sleep or polling of {thread} by a wait for the event itself.",
     "A condition variable, queue or eventfd wakes at once; time.sleep() in the loop costs its whole "
     "length."},
    {CAUSE_WAIT_SLEEP, ANY, "Replace sleeping or polling by a wait for the event itself.",
     "A condition variable, queue or eventfd wakes at once."},
    {CAUSE_WAIT_CHILD, ANY, "Keep child processes alive instead of starting one each time.",
     "persistent_workers=True keeps DataLoader workers over epochs; subprocess calls belong outside the "
     "loop."},
    {CAUSE_WAIT_SIGNAL, ANY, "Replace the signal by a queue, or send it earlier.", ""},

    {CAUSE_MEMORY_MINOR_FAULT, ANY, "Use memory again instead of fresh pages for every batch.",
     "Large buffers that are freed go back to the kernel and are zeroed again: reuse them, pin them "
     "(pin_memory=True), or set MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_, or use huge pages."},
    {CAUSE_MEMORY_MAJOR_FAULT, ANY,
     "Read mapped files ahead (madvise, a warm-up read), or from local storage.",
     "Each touch of an absent page waits for storage, one page after the other."},
    {CAUSE_MEMORY_RECLAIM, ANY, "Free memory: fewer workers, less prefetch_factor, a higher memory limit.",
     "The kernel was looking for pages to free, because the machine or the container was full."},
    {CAUSE_MEMORY_MMAP_LOCK, ANY, "Map and unmap less from other threads of this process.",
     "mmap, munmap and page faults of one process share a lock: use worker processes, or keep buffers "
     "mapped."},

    {CAUSE_EXTERNAL_NO_WORK, ANY, "Offer more work: the host had none for this GPU.",
     "For a server this is the time between requests: batch them, or use fewer GPUs."},
    {CAUSE_EXTERNAL_PEER, ANY, "Look at the remote side: it answered late.",
     "Requests made ahead, several at once, hide its latency."},
    {CAUSE_TOOL_OVERHEAD, ANY, "Record less: a shorter window, or fewer kinds of records.",
     "This part of the idle time is made by the recording and is not there without it."},

    {CAUSE_UNKNOWN_LOST, ANY, "Record again with a larger --ring-size (GPU records: --bridge-ring-size).",
     "Records were lost here, so that nothing is claimed about it."},
    {CAUSE_UNKNOWN_NO_WAKER, ANY, "Record for longer, so that these waits end within the recording.",
     "Or the wake-up that ended them was not seen."},
    {CAUSE_UNKNOWN_UNTRACED, ANY, "Record the other process too: start both with one `whyidle record`.",
     "The wait ended in a process that was not recorded."},
    {CAUSE_UNKNOWN_NO_SCHED, ANY, "Record as root and without --no-bpf: there is no scheduler data.", ""},
    {CAUSE_UNKNOWN_BEFORE_TRACE, ANY, "Record for longer: it began before the recording.", ""},
    {CAUSE_UNKNOWN_CLOCK, ANY, "Nothing: these gaps are shorter than the error of the clock.", ""},
};

static const char *fact(const struct advice_facts *facts, const char *name, size_t length)
{
	const struct {
		const char *name, *value;
	} known[] = {
	    {"enough", facts->enough}, {"ample", facts->ample},   {"workers", facts->workers},
	    {"path", facts->path},     {"holder", facts->holder}, {"function", facts->function},
	    {"thread", facts->thread},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strlen(known[i].name) == length && !memcmp(known[i].name, name, length))
			return known[i].value;
	}
	return NULL;
}

/* Writes `template` with its facts to `out`; returns false if one is not known. out may be NULL: only asks.
 */
static bool expand(FILE *out, const char *template, const struct advice_facts *facts)
{
	while (*template) {
		size_t plain = strcspn(template, "{");

		if (out)
			fwrite(template, 1, plain, out);
		template += plain;
		if (!*template)
			break;
		size_t length = strcspn(template, "}");
		const char *value = fact(facts, template + 1, length - 1);

		if (!value)
			return false;
		if (out)
			fputs(value, out);
		template += length + (template[length] == '}');
	}
	return true;
}

static const struct advice *advice_find(enum cause_code code, enum cause_role role,
                                        const struct advice_facts *facts)
{
	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
		const struct advice *row = &advices[i];

		if (row->code == code && (row->role == role || row->role == ANY) &&
		    expand(NULL, row->action, facts))
			return row;
	}
	return NULL;
}

int advice_make(char **action, char **hint, enum cause_code code, enum cause_role role,
                const struct advice_facts *facts)
{
	const struct advice *row = advice_find(code, role, facts);
	size_t size;
	FILE *out;

	*action = *hint = NULL;
	out = open_memstream(action, &size);
	if (!out)
		return -ENOMEM;
	if (row)
		expand(out, row->action, facts);
	else
		fputs("Look at the worst gaps below.", out);
	if (fclose(out))
		return -ENOMEM;
	*hint = strdup(row ? row->hint : "");
	return *hint ? 0 : -ENOMEM;
}
