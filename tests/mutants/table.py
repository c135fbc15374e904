# SPDX-License-Identifier: GPL-2.0-only
"""What `make mutants` breaks, and which unit test must notice. One entry a rule; docs/testing.md says how it is used.

A text that is replaced must occur once in its file. A mutation is written so that the program still builds, ends, and
stays within its arrays: what is to fail is the test's own comparison, or an assertion of the code.
"""
from typing import NamedTuple


class Edit(NamedTuple):
    file: str
    old: str
    new: str


class Mutation(NamedTuple):
    name: str
    rule: str  # that is broken
    test: str  # "suite/test" that must fail
    edits: list


GAPS = "userspace/attribute/gaps.c"
OWNER = "userspace/attribute/owner.c"
RUN = "userspace/attribute/run_rules.c"
STATE = "userspace/attribute/thread_state.c"
STATE_H = "userspace/attribute/thread_state.h"
WAIT = "userspace/attribute/wait_rules.c"
WALK = "userspace/attribute/walk.c"
WALK_H = "userspace/attribute/walk.h"
MODEL = "userspace/model/model.c"

MUTATIONS = [
    # ---- the walk: states and bounds ----
    Mutation("bound dropped", "a wait is followed from its own beginning on, not from an earlier time",
             "attribute/the_walk_never_looks_before_the_wait_began",
             [Edit(WALK, "uint64_t blocked_from = later(wait.first->out_ns, from_ns);", "uint64_t blocked_from = from_ns;"),
              Edit(WALK, "blame_between(walk, index, cursor, offcpu->out_ns, offcpu->lost_before);", "")]),
    Mutation("task state ignored", "from the wake on a thread is runnable, not blocked",
             "attribute/time_between_wake_and_run_is_contention_not_the_wait",
             [Edit(WALK, "uint64_t blocked_to = earlier(last->wake_ns, to_ns);",
                   "uint64_t blocked_to = earlier(last->in_ns, to_ns);"),
              Edit(WALK, "blocked_from = later(last->wake_ns, from_ns);", "blocked_from = later(last->in_ns, from_ns);")]),
    Mutation("throttling ignored", "a used-up CPU quota is why a thread does not run, not who had the CPU",
             "attribute/a_used_up_quota_is_not_contention",
             [Edit(WALK, "if (offcpu->throttled) {", "if (false) {")]),
    Mutation("affinity without idle CPUs", "only a thread kept from CPUs that were idle is bound",
             "attribute/a_process_that_may_not_use_the_idle_cpus_is_bound",
             [Edit(WALK, "if (offcpu->bound && is_of_one_process", "if (is_of_one_process")]),
    Mutation("losses ignored", "running time before a hole in a thread's records is not known",
             "attribute/lost_intervals_of_a_thread_make_its_running_time_unknown",
             [Edit(WALK, "\tif (lost)\n", "\tif (false)\n")]),

    Mutation("preempted by the last one", "of a preempted thread the one that took its CPU is told, not who had it last",
             "walk/who_had_the_cpu_depends_on_why_the_thread_left_it",
             [Edit(WALK, "offcpu->preempted ? offcpu->next_tid : offcpu->prev_tid;", "offcpu->prev_tid;")]),
    Mutation("woken behind the first one", "of a woken thread the one that had the CPU until it ran is told",
             "walk/who_had_the_cpu_depends_on_why_the_thread_left_it",
             [Edit(WALK, "offcpu->preempted ? offcpu->next_tid : offcpu->prev_tid;", "offcpu->next_tid;")]),
    Mutation("wakes take long", "more than a millisecond from a wake to the run is no wake latency",
             "walk/a_wake_takes_a_millisecond_at_most",
             [Edit(WALK, "#define WAKE_LATENCY_NS 1000000", "#define WAKE_LATENCY_NS 1000001")]),
    Mutation("knots unseen", "a chain that closes on itself ends there", "walk/a_knot_of_three_ends_where_it_closes",
             [Edit(WALK, "if (walk->chain[i] == thread && walk->since[i] <= from_ns)", "if (false)")]),
    Mutation("chain too short", "a chain of sixteen threads is followed",
             "walk/a_chain_of_sixteen_threads_is_followed_to_its_end",
             [Edit(WALK_H, "#define WALK_DEPTH 16 ", "#define WALK_DEPTH 15 ")]),
    Mutation("chain too long", "a chain is at most sixteen threads long", "walk/a_chain_ends_at_the_sixteenth_thread",
             [Edit(WALK_H, "#define WALK_DEPTH 16 ", "#define WALK_DEPTH 17 ")]),
    Mutation("unrecorded thread believed", "a thread without records is not believed to run",
             "walk/a_thread_that_was_not_recorded_did_nothing_known",
             [Edit(WALK, "if (!thread->tracked && walk->model->has_sched) {", "if (false) {")]),
    Mutation("losses are no excuse", "a thread without records may be lost, where records were",
             "walk/a_thread_that_was_not_recorded_may_be_lost",
             [Edit(WALK, "return model->sched_lost_ns ? CAUSE_UNKNOWN_LOST : CAUSE_UNKNOWN_UNTRACED;",
                   "return CAUSE_UNKNOWN_UNTRACED;")]),
    Mutation("unborn thread blamed", "a thread did nothing before it was born",
             "walk/a_thread_is_not_blamed_for_what_was_before_its_birth",
             [Edit(WALK, "if (cursor < thread->start_ns) {", "if (false) {")]),
    Mutation("before the trace believed", "what a thread did before it was recorded is not known",
             "walk/what_a_thread_did_before_it_was_recorded_is_not_known",
             [Edit(WALK, "} else if (cursor < thread->tracked_from_ns && walk->model->has_sched) {",
                   "} else if (false) {")]),
    Mutation("dead thread blamed", "a thread did nothing after its end",
             "walk/a_thread_is_not_blamed_for_what_was_after_its_end",
             [Edit(WALK, "if (cursor < to_ns && thread->end_ns < to_ns) {", "if (false) {")]),
    Mutation("newest thread of a number", "of two threads with one number the one that lived at the time is meant",
             "walk/of_two_threads_with_one_number_the_older_one_is_found",
             [Edit(MODEL, "index = thread->previous;", "index = MODEL_NONE;")]),
    Mutation("throttled while blocked", "from the wake on a thread is throttled, not before",
             "walk/a_throttled_thread_is_throttled_only_while_it_is_ready",
             [Edit(WALK, "uint64_t blocked_to = earlier(last->wake_ns, to_ns);",
                   "uint64_t blocked_to = earlier(last->throttled ? last->out_ns : last->wake_ns, to_ns);"),
              Edit(WALK, "blocked_from = later(last->wake_ns, from_ns);",
                   "blocked_from = later(last->throttled ? last->out_ns : last->wake_ns, from_ns);")]),

    # ---- roles ----
    Mutation("children only", "every descendant is a worker, not only a child", "walk/a_workers_child_is_a_worker",
             [Edit(STATE, "for (uint32_t p = thread->process, depth = 0; p != MODEL_NONE && depth < 64; depth++) {",
                   "for (uint32_t p = thread->process, depth = 0; p != MODEL_NONE && depth < 1; depth++) {")]),
    Mutation("any launch makes a launcher", "a thread with less than a hundredth of the launches is no launcher",
             "walk/a_thread_with_more_than_a_hundredth_of_the_launches_is_a_launcher",
             [Edit(STATE, "thread->launches * 100 > own->launches", "thread->launches > 0")]),
    Mutation("a hundredth is too little", "a thread with more than a hundredth of the launches is a launcher",
             "walk/a_thread_with_more_than_a_hundredth_of_the_launches_is_a_launcher",
             [Edit(STATE, "thread->launches * 100 > own->launches", "thread->launches * 99 > own->launches")]),
    Mutation("serial code of anybody", "only a launcher's own code is serial", "walk/only_a_launchers_code_is_serial",
             [Edit(RUN, "if (walk->drained && thread_role(walk->model, walk->launcher, thread) == ROLE_LAUNCHER)",
                   "if (walk->drained)")]),

    # ---- how sure ----
    Mutation("any futex word", "a wake at another word is less sure", "walk/a_wake_is_sure_if_it_is_about_the_same_word",
             [Edit(WAIT, "offcpu->waker_syscall == SYS_futex && offcpu->args[0] == offcpu->waker_args[0]",
                   "offcpu->waker_syscall == SYS_futex")]),
    Mutation("any pipe", "a wake at another pipe is less sure", "walk/a_wake_is_sure_if_it_is_about_the_same_pipe",
             [Edit(WAIT, "return offcpu->object == offcpu->waker_object ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;",
                   "return CONFIDENCE_HIGH;")]),
    Mutation("no stack needed", "a wake without a stack is not sure", "walk/a_wake_without_a_stack_is_not_sure",
             [Edit(WAIT, "if (offcpu->kstack == MODEL_NONE || offcpu->waker_kstack == MODEL_NONE)", "if (false)")]),
    Mutation("edges do not count", "what lies behind an edge is at most as sure as the edge",
             "walk/a_chain_is_as_sure_as_its_weakest_edge",
             [Edit(WAIT, "if (edge < walk->confidence)", "if (false)")]),
    Mutation("doubt spreads", "what lies beside a doubtful edge is as sure as ever",
             "walk/a_chain_is_as_sure_as_its_weakest_edge",
             [Edit(WAIT, "walk->confidence = before;", "")]),

    # ---- blocked ----
    Mutation("last waker only", "the time of a lock that was handed on goes to each holder, not to the last alone",
             "attribute/a_lock_that_is_handed_on_names_each_of_its_holders",
             [Edit(WAIT, "handed = last_lock_wait(walk->model, holder, last, from_ns, until);", "handed = NULL;")]),
    Mutation("false wakes count", "a wake after which a thread blocks again on the same word is part of the wait",
             "attribute/a_false_wake_is_part_of_the_wait",
             [Edit(STATE_H, "#define FALSE_WAKE_NS 50000", "#define FALSE_WAKE_NS 0")]),
    Mutation("no interpreter lock", "a futex wait that expires at CPython's switch interval is the interpreter lock",
             "attribute/the_interpreter_lock_is_seen_by_its_switch_interval",
             [Edit(STATE, "return offcpu->wait == WAIT_KIND_FUTEX && offcpu->woken && offcpu->wake",
                   "return false && offcpu->woken && offcpu->wake")]),

    # ---- who ended the gap ----
    Mutation("queued is late", "a launch that entered before the gap was queued: the device held it back",
             "attribute/work_queued_before_the_gap_is_the_devices",
             [Edit(OWNER, "if (enter > from_ns) {", "if (true) {")]),
    Mutation("drained queue forgotten", "code after a synchronisation that drained the queue is serial",
             "attribute/running_after_a_drained_queue_is_sync_then_serial",
             [Edit(OWNER, "owner->walk->drained = drain != NULL;", "owner->walk->drained = false;")]),
    Mutation("holes believed", "a gap over lost GPU records is not known",
             "attribute/lost_gpu_records_make_the_gap_unknown_where_they_are_missing",
             [Edit(OWNER, "low < model->gpu_holes.count && model->gpu_holes.items[low].start_ns < gap->end_ns",
                   "false")]),
]
