// SPDX-License-Identifier: GPL-2.0-only
/* Looks at the clock of stolen time between switches: see steal.bpf.h. */
#include "steal.bpf.h"

__u64 steal_looks[STEAL_CPUS_MAX * STEAL_LOOK_WORDS] = {};

/* At the end of the interrupt: a tick that was in it has read the clock. */
SEC("tp_btf/local_timer_exit")
int timer_interrupted(__u64 *context __attribute__((unused)))
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns(), stolen = steal_since(task, false, now);

	if (task->pid && stolen >= STEAL_MIN_NS && thread_find(task))
		steal_record(task, stolen, now);
	return 0;
}
