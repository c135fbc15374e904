# SPDX-License-Identifier: GPL-2.0-only
"""CPU time that the hypervisor takes. Nobody can order it: what is recorded is compared with what programs miss."""
import json

from harness import limit, needs

SECONDS = 3

# Computes in one process for each CPU, so that nothing is idle. Each says what of its wall time was neither CPU time
# nor spent waiting for other programs. (The kernel does not count stolen time as a task's.)
MISSING = """
import json, os, sys, time
seconds, file = float(sys.argv[1]), sys.argv[2]
def delay():
    with open("/proc/thread-self/schedstat", encoding="ascii") as text:
        return int(text.read().split()[1])
def clocks():
    while True:  # until it was not switched away between them
        before = delay()
        now = time.monotonic_ns(), time.thread_time_ns(), delay()
        if now[2] == before:
            return now
children = []
for cpu in sorted(os.sched_getaffinity(0)):
    read, write = os.pipe()
    if not os.fork():
        os.sched_setaffinity(0, [cpu])
        start = clocks()
        while time.monotonic_ns() < start[0] + seconds * 1e9:
            pass
        took = [b - a for a, b in zip(start, clocks())]
        os.write(write, json.dumps({"pid": os.getpid(), "missing_ns": took[0] - took[1] - took[2]}).encode())
        os._exit(0)
    children.append(read)
    os.close(write)
with open(file, "w", encoding="ascii") as out:
    json.dump([json.loads(os.read(child, 1000)) for child in children], out)
for _ in children:
    os.wait()
"""


def stolen_by_pid(ctx):
    done = ctx.run(ctx.whyidle, "dump", ctx.path("session.whyidle"))
    assert done.status == 0, done
    sums = {}
    for line in done.out.splitlines():
        if line.startswith("steal "):
            fields = dict(field.split("=", 1) for field in line.split()[1:])
            assert fields["pid"] == fields["tid"], line
            pid = int(fields["pid"])
            sums[pid] = sums.get(pid, 0) + int(fields["end_ns"]) - int(fields["start_ns"])
    return sums


@limit(60)
@needs("bpf")
def test_what_is_recorded_is_what_programs_miss(ctx):
    done = ctx.record("python3", "-c", MISSING, str(SECONDS), ctx.path("missing.json"), options=("-q", "--no-report"))
    assert done.status == 0, done
    with open(ctx.path("missing.json"), encoding="ascii") as file:
        programs = json.load(file)
    recorded = stolen_by_pid(ctx)
    told = []
    for program in programs:
        missing, known = program["missing_ns"] / 1e6, recorded.get(program["pid"], 0) / 1e6
        # Less than 20 µs at a time has no record; interrupts have no part in a task's CPU time on some kernels.
        assert abs(missing - known) <= max(0.1 * missing, 0.01 * SECONDS * 1e3), f"{known:.1f} ms recorded, {missing:.1f} ms missing"
        told.append(f"{known:.1f} ms recorded, {missing:.1f} ms missing")
    return "; ".join(told)
