# SPDX-License-Identifier: GPL-2.0-only
"""Locks named by probes on the C library (record --locks): the causes are the same without them."""
import json
import re

from harness import cause_key, limit, needs

# What is said with --locks of each kind of wait. Joined threads are told by their ids; who reads is not counted
# by name in a read-write lock.
SAID = {
    "condition": r"^lock_kinds waits for the condition variable batch_ready \(lock_kinds\)$",
    "semaphore": r"^lock_kinds waits for the semaphore batch_count \(lock_kinds\)$",
    "join": r"^lock_kinds waits for the end of the thread \d+$",
    "read": r"^lock_kinds waits for the read-write lock \(to read\) table_lock \(lock_kinds\), "
            r"held by helper \(\d+\) when it began$",
    "write": r"^lock_kinds waits for the read-write lock \(to write\) table_lock \(lock_kinds\)$",
    "mutex": r"^lock_kinds waits for the mutex table_mutex \(lock_kinds\), held by helper \((?P<tid>\d+)\) when it began$",
}


def largest(ctx, kind, *options):
    """The planted cause of a recording, once it was checked to be the largest; and the truth."""
    done = ctx.record(ctx.sim("lock_kinds"), kind, "--seconds", "0.4", "--truth", ctx.path("truth.json"),
                      options=("-q", "--no-report", *options))
    assert done.status == 0, done
    assert "whyidle:" not in done.err, done
    with open(ctx.path("truth.json"), encoding="utf-8") as file:
        truth = json.load(file)
    gpu, = ctx.report()["gpus"]
    expected = f"{truth['expected_code']}@{truth['expected_role']}"
    # Other load on the machine may take more than the plant.
    ranked = [cause for cause in gpu["causes"] if not cause["code"].startswith("sched.")]
    assert cause_key(ranked[0]) == expected, f"{kind} {options}: {[cause_key(c) for c in ranked]}, planted {expected}"
    return ranked[0], truth


@limit(120)
@needs("bpf")
def test_each_kind_is_named_and_its_holder(ctx):
    for kind, said in SAID.items():
        cause, truth = largest(ctx, kind, "--locks", "mutexes")
        words = cause["detail"].get("waits_for", "nothing")
        found = re.search(said, words)
        assert found, f"{kind}: {words}"
        if "tid" in found.groupdict():
            helper = next(t["tid"] for t in truth["threads"] if t["name"] == "helper")
            assert int(found["tid"]) == helper, f"{words}; the holder was {helper}"


@limit(120)
@needs("bpf")
def test_without_probes_the_causes_are_the_same(ctx):
    for kind in SAID:
        cause, _ = largest(ctx, kind)  # the cause is judged there, as with probes
        assert "waits_for" not in cause["detail"], cause["detail"]


@limit(60)
@needs("bpf")
def test_mutexes_are_probed_on_request_only(ctx):
    cause, _ = largest(ctx, "mutex", "--locks", "waits")
    assert "waits_for" not in cause["detail"], cause["detail"]
    done = ctx.run(ctx.whyidle, "report", ctx.path("session.whyidle"))
    assert "held by helper" in done.out, "the futex alone names who let the mutex go"
