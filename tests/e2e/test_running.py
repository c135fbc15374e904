# SPDX-License-Identifier: GPL-2.0-only
"""Processes that run already, or come later: found, recorded and left as they were."""
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from harness import limit, needs, one_line_error, wait_until

QUIET = ("-q", "--no-report")
TRIES = 3


class Target:
    """late_driver, which goes on until it is ended. `go`: lets one go on that waits before it opens the driver."""

    def __init__(self, ctx, *options, library=None, wrap=(), wait=True, env=None):
        library = library or ctx.build / "sim/lib/libcuda.so.1"
        argv = [*wrap, ctx.sim("late_driver"), library, *(["--wait"] if wait else []), *options]
        self.process = ctx.start(*argv, stdin=subprocess.PIPE, text=True, env=env)
        if wait:
            self.expect("waiting")

    def expect(self, word):
        line = self.process.stdout.readline()
        assert line.strip() == word, f"late_driver said {line!r}, not {word}"
        return self

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self.expect("running")

    @property
    def pid(self):
        return self.process.pid

    def account(self):
        """(busy_ns, idle_ns) that the device itself counted; the process ends by itself."""
        out, err = self.process.communicate(timeout=50)
        assert self.process.returncode == 0, f"late_driver: {self.process.returncode}, {out}{err}"
        found = re.search(r"busy (\d+) idle (\d+)", out)
        return int(found.group(1)), int(found.group(2))

    def end(self):
        """The same, now."""
        self.process.send_signal(signal.SIGTERM)
        return self.account()


class Recording:
    """whyidle record of what runs already. `ready`: BPF is attached, and what ran before was found."""

    def __init__(self, ctx, *options, output="session.whyidle"):
        self.ctx, self.output = ctx, output
        self.path = pathlib.Path(ctx.path(output))
        self.process = ctx.start(ctx.whyidle, "record", "-o", self.path, *QUIET, *options, text=True)

    def wait_for_file(self):
        # The file is there once BPF is loaded; with its first flush all is attached, too.
        wait_until(lambda: self.path.exists() and self.path.stat().st_size > 100, "the recording has begun", 50)
        return self

    def end(self, interrupt=True):
        if interrupt:
            self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=50)
        assert self.process.returncode == 0, f"record: {self.process.returncode}: {out}{err}"
        return err

    def calls(self):
        """Number of CUDA calls by pid."""
        dump = self.ctx.run(self.ctx.whyidle, "dump", self.path)
        assert dump.status == 0, dump
        found = re.findall(r"^call .*?\bpid[ =](\d+)", dump.out, re.M)
        return collections.Counter(int(pid) for pid in found)


@needs("bpf")
def test_by_pid_until_it_ends(ctx):
    target = Target(ctx, "--steps", "600").go()  # about 4 s: whyidle has to find it in that time
    recording = Recording(ctx, "-p", target.pid)
    recording.wait_for_file()
    target.account()
    recording.end(interrupt=False)
    assert recording.calls().keys() == {target.pid}, recording.calls()


@needs("bpf")
def test_opens_the_driver_late(ctx):
    target = Target(ctx, "--steps", "100")
    other = Target(ctx, "--steps", "100")
    recording = Recording(ctx, "--all").wait_for_file()
    target.go()
    other.go()
    target.account()
    other.account()
    err = recording.end()
    calls = recording.calls()
    assert {target.pid, other.pid} <= calls.keys(), f"{target.pid} and {other.pid} are not both in {calls}: {err}"


@needs("bpf")
def test_chosen_by_name(ctx):
    shutil.copy(ctx.sim("late_driver"), ctx.path("other_name"))
    target = Target(ctx, "--steps", "200")
    library = ctx.build / "sim/lib/libcuda.so.1"
    other = ctx.start(ctx.path("other_name"), library, "--steps", "200", text=True)
    recording = Recording(ctx, "--comm", "late_dr*").wait_for_file()
    target.go()
    target.account()
    other.communicate(timeout=50)
    recording.end()
    assert recording.calls().keys() == {target.pid}, recording.calls()


@needs("bpf")
def test_there_is_no_such_process(ctx):
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = ctx.run(ctx.whyidle, "record", "-p", gone.pid, "-o", ctx.path("session.whyidle"))
    one_line_error(done, 1, "no process", str(gone.pid))
    assert not os.path.exists(ctx.path("session.whyidle"))


def test_usage(ctx):
    for options, words in ((("-p", "0"), ("process id",)), (("-p", "1,x"), ("process id", "'x'")),
                           (("--all", "--", "true"), ("either",)), (("--all", "--delay", "3"), ("--delay",)),
                           (("--all", "-d", "soon"), ("--duration", "soon")), (("--all", "--no-bpf"), ("--no-bpf",)),
                           (("--container", "ab"), ("--container",)), (("--cgroup", "a"), ("--cgroup",))):
        one_line_error(ctx.run(ctx.whyidle, "record", *options), 2, *words)


def idle_share(gpu):
    return gpu["idle_ns"] / (gpu["busy_ns"] + gpu["idle_ns"])


@needs("bpf")
def test_timeline_inferred_from_calls(ctx):
    """Against the device's own account of the same run, from the first operation to the last."""
    target = Target(ctx, "--steps", "200")
    recording = Recording(ctx, "-p", target.pid).wait_for_file()
    target.go()
    busy, idle = target.account()
    recording.end(interrupt=False)
    report = ctx.report()
    gpu, = report["gpus"]
    assert report["source"]["gpu_timeline"] == "inferred" and report["source"]["simulated"] is True, report["source"]
    assert any("inferred" in line for line in report["degraded"]), report["degraded"]
    truth = idle / (busy + idle)
    # A thread that gets no CPU returns late from its synchronisation: on a busy machine less idle time is certain.
    assert idle_share(gpu) >= truth / 2, f"idle {idle_share(gpu):.1%}, the device says {truth:.1%}"
    assert gpu["idle_ns"] <= idle * 1.01, f"more idle time is claimed ({gpu['idle_ns']}) than there was ({idle})"
    return f"idle {idle_share(gpu):.1%}, the device says {truth:.1%}"


def idle_between(busy, start, end):
    """Of the time between two moments, how much the device was idle; `busy`: its spans in order."""
    return end - start - sum(max(0, min(to, end) - max(at, start)) for at, to in busy)


def inferred_and_real(ctx, shape):
    """Idle shares of a run of wait_shapes: as inferred, and by the device's own account of the same time; and how much of the
    first is certain. Idle time that was made up fails."""
    truth_file = ctx.path(f"{shape}.json")
    done = ctx.record(ctx.sim("wait_shapes"), shape, "--seconds", "1.2", "--truth", truth_file,
                      options=(*QUIET, "--no-bridge", "--uprobes", "always"))
    assert done.status == 0, done
    report = ctx.report()
    gpu, = report["gpus"]
    assert report["source"]["gpu_timeline"] == "inferred", report["source"]
    window = gpu["window"]["start_ns"], gpu["window"]["end_ns"]
    real = idle_between(json.loads(pathlib.Path(truth_file).read_text())["busy"], *window) / (window[1] - window[0])
    assert idle_share(gpu) <= real + 0.02, f"{shape}: idle {idle_share(gpu):.1%}, the device says {real:.1%}"
    certain = float(re.search(r"of the idle time ([\d.]+) s are certain", " ".join(report["degraded"])).group(1))
    return idle_share(gpu), real, certain * 1e9 / max(1, gpu["idle_ns"])


@limit(120)
@needs("bpf")
def test_inferred_where_waits_show_little(ctx):
    """Loops that wait a step late, or launch slowly."""
    told = []
    for shape in ("behind", "drained", "bound", "rare"):
        # Late returns on a busy machine make idle time look shorter: one quiet run is enough for the lower limit.
        for _ in range(TRIES):
            share, real, _ = inferred_and_real(ctx, shape)
            if share >= real / 2 - 0.02:
                break
        last = f"{shape} {share:.1%}, the device says {real:.1%}"
        assert share >= real / 2 - 0.02, f"{last}, and as little in each of {TRIES} runs"
        told.append(last)
    return "; ".join(told)


@limit(120)
@needs("bpf")
def test_inferred_from_queries(ctx):
    """Launched as by CUDA 13's compiler, and never waited for: events are asked. What they answer is certain."""
    told = []
    # Of a GPU that is hardly ever idle, only what was made up can be told: on a busy machine it is idle where no query shows it.
    for shape, found, proved in (("polled", 0.75, 0.8), ("asked", 0, 0)):
        for _ in range(TRIES):
            share, real, certain = inferred_and_real(ctx, shape)
            if share >= real * found - 0.02 and certain >= proved:
                break
        last = f"{shape} {share:.1%} ({certain:.0%} of it certain), the device says {real:.1%}"
        assert share >= real * found - 0.02 and certain >= proved, f"{last}, and as little in each of {TRIES} runs"
        told.append(last)
    return "; ".join(told)


@needs("bpf")
def test_inferred_where_a_larger_grid_was_launched(ctx):
    """What a function took with a small grid says nothing of a larger one."""
    share, real, _ = inferred_and_real(ctx, "larger")
    return f"idle {share:.1%}, the device says {real:.1%}"


@needs("bpf")
def test_top_cause_is_that_of_cupti(ctx):
    done = ctx.record(ctx.sim("sync_serial"), "--seconds", "2", options=QUIET, output="cupti.whyidle")
    assert done.status == 0, done
    done = ctx.record(ctx.sim("sync_serial"), "--seconds", "2", options=(*QUIET, "--no-bridge", "--uprobes", "always"))
    assert done.status == 0, done
    tops = []
    for name, timeline in (("cupti.whyidle", "cupti"), ("session.whyidle", "inferred")):
        report = ctx.report(name)
        assert report["source"]["gpu_timeline"] == timeline, report["source"]
        gpu, = report["gpus"]
        cause = next(c for c in gpu["causes"] if not c["code"].startswith("sched."))
        tops.append((cause["code"], cause["role"]))
    assert tops[0] == tops[1], tops


def doctor(ctx, pid, status=0):
    """The doctor's checks of a process by name; of several with one name, the last."""
    done = ctx.run(ctx.whyidle, "doctor", "-p", pid, "--json")
    assert done.status == status, done
    report = json.loads(done.out)
    assert report["pid"] == pid and report["can_record"] is (status == 0), report
    return {check["name"]: check for check in report["checks"] if check["process"]}


@needs("bpf", "namespace")
def test_doctor_of_a_process(ctx):
    """What it says of a process is what a recording then meets: its libraries, where it is, what is in the way."""
    library = ctx.build / "sim/lib/libcuda.so.1"
    target = Target(ctx, "--seconds", "50", library="/mnt/libcuda.so.1", env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)},
                    wrap=("unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /mnt && cp "$0" /mnt/libcuda.so.1 && exec "$@"', library))
    checks = doctor(ctx, target.pid, 1)
    assert checks["cuda_driver"]["status"] == "missing" and checks["cuda_driver"]["essential"], checks
    target.go()
    checks = doctor(ctx, target.pid)
    inode = os.stat(f"/proc/{target.pid}/root/mnt/libcuda.so.1").st_ino
    assert f"/mnt/libcuda.so.1, inode {inode};" in checks["cuda_driver"]["detail"], checks["cuda_driver"]
    assert "a mount namespace of its own" in checks["process"]["detail"], checks["process"]
    assert "linked statically" in checks["cuda_runtime"]["detail"], checks["cuda_runtime"]
    assert checks["attach"]["status"] == "ok" and checks["cupti_user"]["status"] == "ok", checks
    assert checks["process_cupti"]["status"] == "ok" and "libcupti.so.13" in checks["process_cupti"]["detail"], checks
    assert checks["stacks"]["status"] == "ok" and "no Python" in checks["python"]["detail"], checks
    text = ctx.run(ctx.whyidle, "doctor", "-p", target.pid)
    assert f"Recording is possible: whyidle record -p {target.pid} --inject" in text.out, text
    target.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: re.search(r"^State:\tT", pathlib.Path(f"/proc/{target.pid}/status").read_text(), re.M), "it to stop")
    stopped = doctor(ctx, target.pid)["attach"]
    assert stopped["status"] == "degraded" and "(stopped)" in stopped["detail"] and stopped["fix"], stopped
    text = ctx.run(ctx.whyidle, "doctor", "-p", target.pid)
    assert "inferred from its calls" in text.out.splitlines()[-1], text
    target.process.send_signal(signal.SIGCONT)
    target.end()


@needs("bpf")
def test_doctor_of_python_and_its_child(ctx):
    """The one that was named has no CUDA, what it started has; the fault of a wrong or gone process id is one line."""
    library = ctx.build / "sim/lib/libcuda.so.1"
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    parent = ctx.start("python3", "-c", script, ctx.sim("late_driver"), library, "--seconds", "40", text=True)
    assert parent.stdout.readline() == "running\n"
    checks = doctor(ctx, parent.pid)
    assert re.search(r"process \d+, which descends from it, has", checks["cuda_driver"]["detail"]), checks["cuda_driver"]
    assert re.match(r"Python 3\.\d+: ", checks["python"]["detail"]), checks["python"]
    child = int(re.search(r"process (\d+),", checks["cuda_driver"]["detail"]).group(1))
    os.kill(child, signal.SIGTERM)
    parent.communicate(timeout=20)
    one_line_error(ctx.run(ctx.whyidle, "doctor", "-p", parent.pid), 1, "no process", str(parent.pid))
    one_line_error(ctx.run(ctx.whyidle, "doctor", "-p", "0"), 2, "process id")


@needs("bpf")
def test_without_arguments(ctx):
    target = Target(ctx, "--seconds", "40").go()
    look = ctx.start(ctx.whyidle, text=True)
    out, err = look.communicate(timeout=50)
    target.process.kill()
    target.process.communicate()
    assert look.returncode == 0, f"{look.returncode}: {out}{err}"
    assert "idle" in out.splitlines()[0] and "late_driver" in out, out
    # One line for all processes, whole, that names them; and how to get more.
    limited = re.findall(r"^Limited: GPU times of .*?(?=^\S|^$)", out, re.M | re.S)
    assert len(limited) == 1 and f"late_driver ({target.pid})" in limited[0] and "estimated" in limited[0], out
    assert "record --all --inject" in out.splitlines()[-1], out
