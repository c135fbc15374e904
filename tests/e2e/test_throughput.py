# SPDX-License-Identifier: GPL-2.0-only
"""A machine that is busy with nothing but switching threads: nothing is lost; and where losses are forced, they are
counted, shown, and nothing is claimed about the time they touch.

tests/bench/throughput.py measures the same over a longer time.
"""
import json
import os
import re
import signal
import subprocess
import time

from harness import cause_key, end_process, limit, needs, wait_until

TIME_ERROR = 0.05
TIME_ERROR_NS = 1_000_000
OTHER_CLAIMS = 0.05  # of the idle time: handing over the batches takes a little, and is named as what it is


def beside(ctx, events, *loop):
    """A command: threads that hand over to each other, and beside them a program on the simulated GPU."""
    return "sh", "-c", f"{ctx.sim('many_events')} {events} & {ctx.sim(loop[0])} {' '.join(loop[1:])} > /dev/null; wait"


def count_records(ctx, session, names):
    """Scheduler records of the threads of these names."""
    tids, counts = set(), {}
    with subprocess.Popen([ctx.whyidle, "dump", ctx.path(session)], stdout=subprocess.PIPE) as dump:
        for line in dump.stdout:
            if line.startswith(b"offcpu "):
                tid = line.split(b" ", 6)[5]
                counts[tid] = counts.get(tid, 0) + 1
            elif line.startswith(b"task ") and any(b'"%s"' % name in line for name in names):
                tids.add(re.search(rb" (tid=\d+)", line)[1])
    assert dump.returncode == 0, "the session cannot be dumped"
    return sum(count for tid, count in counts.items() if tid in tids)


@limit(120)
@needs("bpf")
def test_nothing_is_lost_at_full_speed(ctx):
    done = ctx.record(*beside(ctx, "--rate 0 --pairs 2 --seconds 3", "healthy", "--seconds", "3"),
                      options=("-q", "--no-report"))
    assert done.status == 0, done
    switches, rate = map(int, re.search(r"switches (\d+) rate (\d+)", done.out).groups())
    report = ctx.report()
    assert not any(report["losses"].values()), f"at {rate} events/s: {report['losses']}"
    records = count_records(ctx, "session.whyidle", (b"ping", b"pong"))
    # New threads have one record more: until they first run. And Linux 6.18 was seen to leave out the tracepoint for
    # about one switch a second, which no program can count.
    assert abs(records - switches) <= 16 + switches / 10000, f"{records} records of {switches} switches"
    gpu, = report["gpus"]
    unknown = sum(c["ns"] for c in gpu["causes"] if c["code"] == "unknown.lost")
    assert not unknown, f"{unknown} ns of idle time are called lost"
    return f"{rate} events/s"


def check_claims(report, truth):
    """What is claimed with confidence is no more than the workload itself says that there was."""
    gpu, = report["gpus"]
    claims = {}
    for cause in gpu["causes"]:
        if cause["confidence"] == "high" and not cause["code"].startswith("unknown."):
            claims[cause_key(cause)] = claims.get(cause_key(cause), 0) + cause["ns"]
    contention = sum(claims.pop(key) for key in list(claims) if key.startswith("sched.cpu_contention@"))
    planted = claims.pop(f"{truth['expected_code']}@{truth['expected_role']}", 0)
    claims.pop("device.floor@device", None)
    for what, claimed, real in (("the plant", planted, truth["planted_ns"]),
                                ("contention", contention, truth["idle_ns"] - truth["planted_ns"])):
        assert claimed <= real * (1 + TIME_ERROR) + TIME_ERROR_NS, f"{what}: {claimed} ns claimed, {real} ns are true"
    others = sum(claims.values()) / gpu["idle_ns"]
    assert others <= OTHER_CLAIMS, f"{others:.1%} of the idle time have causes that were not there: {claims}"


def check_losses(ctx, cause, words):
    """Counted and shown, as JSON and as text; the idle time they touch is unknown.lost."""
    report = ctx.report()  # also checks that causes sum to the idle time
    assert report["losses"][cause] > 0, report["losses"]
    gpu, = report["gpus"]
    lost = sum(c["ns"] for c in gpu["causes"] if c["code"] == "unknown.lost")
    assert lost > 0, f"losses, but idle time is explained as if there were none: {gpu['causes']}"
    text = ctx.run(ctx.whyidle, "report", ctx.path("session.whyidle"))
    shown = f"{report['losses'][cause]:,} in the {words}"
    assert shown in text.out, f"the text does not say: {shown}: {text}"
    assert "unknown.lost" in text.out, text
    with open(ctx.path("truth.json"), encoding="utf-8") as file:
        check_claims(report, json.load(file))
    return f"{lost / gpu['idle_ns']:.0%} of the idle time unknown"


@limit(90)
@needs("bpf")
def test_kernel_ring_that_overflows(ctx):
    # The launcher waits for its workers while others flood a ring of one page.
    done = ctx.record(*beside(ctx, "--rate 0 --seconds 2", "loader_starved", "--seconds", "2", "--truth",
                              ctx.path("truth.json")), options=("-q", "--no-report", "--ring-size", "4K"))
    assert done.status == 0, done
    return check_losses(ctx, "bpf_ring", "kernel's ring")


@limit(90)
@needs("bpf")
def test_bridge_ring_that_overflows(ctx):
    # A recorder that stands still for a while: a ring of one page is full by then, however fast the machine is.
    session = ctx.path("session.whyidle")
    process = ctx.start(ctx.whyidle, "record", "-q", "--no-report", "--bridge-ring-size", "4K", "-o", session, "--",
                        ctx.sim("loader_starved"), "--seconds", "3", "--truth", ctx.path("truth.json"))
    try:
        wait_until(lambda: os.path.exists(session) and os.path.getsize(session) > 5000, "a session that grows")
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=50)
        assert process.returncode == 0, errors
    finally:
        end_process(process)
    return check_losses(ctx, "bridge_ring", "bridge's ring")
