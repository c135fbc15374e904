// SPDX-License-Identifier: GPL-2.0-only
#include "collect/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "counters.skel.h"

#define READ_THREADS 64 /* records taken with one read */

struct counters {
	struct counters_bpf *programs;
	struct bpf_link *reader, *splitter;
};

int counters_open(struct counters **result, struct error *error)
{
	struct counters *counters = calloc(1, sizeof(*counters));
	int err = 0;

	*result = NULL;
	if (!counters)
		return error_no_memory(error);
	counters->programs = counters_bpf__open_and_load();
	if (!counters->programs)
		err =
		    error_set(error, -errno, "cannot load the counters into the kernel: %s", strerror(errno));
	if (!err) {
		counters->reader = bpf_program__attach_iter(counters->programs->progs.threads_counted, NULL);
		if (!counters->reader)
			err = error_set(error, -errno, "cannot go over the threads of the system: %s",
			                strerror(errno));
	}
	if (err) {
		counters_close(counters);
		return err;
	}
	*result = counters;
	return 0;
}

int counters_add(struct counters *counters, uint32_t pid)
{
	return bpf_map_update_elem(bpf_map__fd(counters->programs->maps.counted_processes), &pid, &pid,
	                           BPF_ANY)
	           ? -errno
	           : 0;
}

void counters_remove(struct counters *counters, uint32_t pid)
{
	int fd = bpf_map__fd(counters->programs->maps.counted_processes);
	uint32_t key, next, root;
	bool more;

	/* A key is deleted once the one behind it is known. */
	more = !bpf_map_get_next_key(fd, NULL, &next);
	while (more) {
		key = next;
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (!bpf_map_lookup_elem(fd, &key, &root) && (root == pid || key == pid))
			bpf_map_delete_elem(fd, &key);
	}
}

int counters_split(struct counters *counters, bool on)
{
	if (on == !!counters->splitter)
		return 0;
	if (!on) {
		bpf_link__destroy(counters->splitter);
		counters->splitter = NULL;
		return 0;
	}
	counters->splitter = bpf_program__attach(counters->programs->progs.counted_switch);
	return counters->splitter ? 0 : -errno;
}

int counters_read(struct counters *counters,
                  int (*visit)(void *context, const struct counters_thread *thread), void *context,
                  struct error *error)
{
	struct counters_thread threads[READ_THREADS];
	size_t held = 0;
	ssize_t got;
	int fd = bpf_iter_create(bpf_link__fd(counters->reader)), err = 0;

	if (fd < 0)
		return error_set(error, -errno, "cannot read the counters: %s", strerror(errno));
	while (!err) {
		got = read(fd, (char *)threads + held, sizeof(threads) - held);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			err = error_set(error, -errno, "cannot read the counters: %s", strerror(errno));
		if (got <= 0)
			break;
		held += got;
		for (size_t i = 0; i < held / sizeof(threads[0]) && !err; i++)
			err = visit(context, &threads[i]);
		memmove(threads, (char *)threads + held / sizeof(threads[0]) * sizeof(threads[0]),
		        held % sizeof(threads[0]));
		held %= sizeof(threads[0]);
	}
	close(fd);
	return err;
}

void counters_cost(const struct counters *counters, uint64_t *ns, uint64_t *runs)
{
	struct bpf_prog_info info = {0};
	__u32 length = sizeof(info);

	*ns = *runs = 0;
	if (bpf_obj_get_info_by_fd(bpf_program__fd(counters->programs->progs.counted_switch), &info, &length))
		return;
	*ns = info.run_time_ns;
	*runs = info.run_cnt;
}

void counters_close(struct counters *counters)
{
	if (!counters)
		return;
	bpf_link__destroy(counters->splitter);
	bpf_link__destroy(counters->reader);
	counters_bpf__destroy(counters->programs);
	free(counters);
}
