# SPDX-License-Identifier: GPL-2.0-only
"""Many processes, short-lived ones, and one whose libraries nobody else can see: all are seen, none notices, and nothing is
left behind in them or in the kernel. The GPU and its CUPTI are simulated."""
import os
import re
import subprocess

from harness import end_process, limit, needs, wait_until
from target_state import bpf_objects, check_bpf_left, check_left, own_threads, shared_memory, state
from test_running import Recording, Target

SHORT_LIVED = 200
AT_ONCE = 64


class Watched:
    """A recording of which is kept what it holds, to look for it afterwards."""

    def __init__(self, ctx, *options, output="session.whyidle"):
        self.before = shared_memory()
        self.recording = Recording(ctx, *options, output=output).wait_for_file()
        self.bpf = bpf_objects(self.recording.process.pid)

    def end(self, interrupt=True):
        """What the recorder said; fails if it has left anything."""
        said = self.recording.end(interrupt)
        self.check()
        return said

    def check(self):
        check_bpf_left(self.bpf)
        assert shared_memory() <= self.before, shared_memory() - self.before


def with_cupti(ctx):
    return {**os.environ, "LD_LIBRARY_PATH": str(ctx.build / "sim/lib")}


@needs("bpf", "namespace")
def test_another_copy_in_a_mount_namespace(ctx):
    """The copy is in a file system that only the target has; the runtime is, as with one that is linked statically, not
    there at all. First by probes, then attached: it uses the CUPTI of its own surroundings; then the recorder is killed."""
    script = 'mount -t tmpfs tmpfs /mnt && cp "$0" /mnt/libcuda.so.1 && exec "$@"'
    wrap = ("unshare", "-m", "sh", "-c", script, ctx.build / "sim/lib/libcuda.so.1")
    target = Target(ctx, "--seconds", "50", library="/mnt/libcuda.so.1", wrap=wrap, env=with_cupti(ctx))
    assert not os.path.exists("/mnt/libcuda.so.1")
    probed = Watched(ctx, "--all", output="probed.whyidle")
    target.go()
    before = state(target.pid)
    wait_until(lambda: probed.recording.calls()[target.pid] > 20, "its calls in the file")
    probed.end()
    check_left(target.pid, before)
    attached = Watched(ctx, "-p", target.pid, "--inject", "-d", "1")
    said = attached.end(interrupt=False)
    gpu, = ctx.report()["gpus"]
    assert gpu["op_count"] > 20 and ctx.report()["source"]["gpu_timeline"] == "cupti", said
    check_left(target.pid, before)
    killed = Watched(ctx, "-p", target.pid, "--inject", output="killed.whyidle")
    wait_until(lambda: len(own_threads(target.pid)) == 2, "it to be attached")
    end_process(killed.recording.process)
    killed.check()
    check_left(target.pid, before)
    target.end()


def one_after_another(ctx, pids):
    """Processes that live for some milliseconds each; every one has to end as if nobody watched."""
    for _ in range(SHORT_LIVED):
        process = subprocess.Popen([ctx.sim("late_driver"), ctx.build / "sim/lib/libcuda.so.1", "--steps", "1", "--work-us",
                                    "100", "--kernel-us", "100"], env=with_cupti(ctx), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 0 and out.startswith(b"running\nbusy "), f"number {len(pids)}: {process.returncode} {out}"
        pids.add(process.pid)


@needs("bpf")
@limit(90)
def test_short_lived_processes_in_a_row(ctx):
    """Each ends before anybody could look at it: they are seen by the probes on the file that one of them showed."""
    lasting = Target(ctx, "--seconds", "60", env=with_cupti(ctx)).go()
    before = state(lasting.pid)
    watched = Watched(ctx, "--all")
    pids = set()
    one_after_another(ctx, pids)
    said = watched.end()
    missing = pids - watched.recording.calls().keys()
    assert not missing, f"{len(missing)} of {SHORT_LIVED} were not seen: {said}"
    check_left(lasting.pid, before)
    # The same while each that is found is attached to, and ends in the middle of that.
    watched = Watched(ctx, "--all", "--inject", output="inject.whyidle")
    one_after_another(ctx, set())
    watched.end()
    check_left(lasting.pid, before)
    lasting.end()


@needs("bpf")
@limit(120)
def test_many_at_once(ctx):
    targets = [Target(ctx, "--seconds", "100", "--work-us", "100", "--kernel-us", "50000", env=with_cupti(ctx))
               for _ in range(AT_ONCE)]
    for target in targets:
        target.go()
    before = [state(target.pid) for target in targets]
    watched = Watched(ctx, "--all", "--inject", "-d", "4")
    said = watched.end(interrupt=False)
    attached = {int(pid) for pid in re.findall(r"process (\d+) got the CUPTI bridge", said)} & {t.pid for t in targets}
    for target, was in zip(targets, before):
        check_left(target.pid, was)
    for target in targets:
        target.end()
    report = ctx.report()
    assert report["source"]["gpu_timeline"] == "cupti" and len(attached) == AT_ONCE, (
        f"{len(attached)} of {AT_ONCE} attached: {said}")
