# SPDX-License-Identifier: GPL-2.0-only
"""Attaching to processes that run already: what they notice (nothing), and what is left behind (two libraries).

tests/inject/attach_target.c checks every return value of its own waits; tests/inject/attach_tool.c attaches as the
recorder does. The GPU and its CUPTI are simulated.
"""
import ctypes
import os
import re
import signal
import subprocess
import time

from harness import Skip, end_process, limit, needs, wait_until
from target_state import CUPTI_THREAD, LIBRARIES, check_left, maps, own_threads, state, status_field, threads

WAITS = ("cond", "sleep", "poll", "epoll", "receive", "pipe", "signal", "restart")
SIM_BLOCKED = "fffffffe7ffbfeff"  # of the simulated GPU's thread


class Target:
    """attach_target, from "ready" to its account of itself."""

    def __init__(self, ctx, *things, prefix=(), env=None):
        self.process = ctx.start(*prefix, ctx.sim("attach_target"), *things, stdin=subprocess.PIPE,
                                 env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        line = self.process.stdout.readline().decode()
        assert line == "ready\n", f"the target said {line!r}: {self.process.stderr.read().decode()}"

    def ask(self):
        """Counts so far."""
        self.process.stdin.write(b"?")
        self.process.stdin.flush()
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", self.process.stdout.readline().decode())}

    def end(self):
        """Ends it in order; fails if it noticed anything."""
        out, err = self.process.communicate(timeout=30)
        text = out.decode() + err.decode()
        assert self.process.returncode == 0, f"the target ended with {self.process.returncode}: {text}"
        assert "anomalies=0" in text, text
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", text)}


def tool(ctx, pid, *options, timeout=50):
    """Lines of attach_tool, parsed."""
    done = ctx.run(ctx.sim("attach_tool"), *options, pid, timeout=timeout)
    cycles = []
    for line in done.out.splitlines():
        cycle = dict(re.findall(r"(\w+)=((?<=text=).*|\S*)", line))
        cycle["attached"] = line.startswith("attached ")
        cycles.append({k: int(v) if isinstance(v, str) and v.isdigit() else v for k, v in cycle.items()})
    assert done.status in (0, 3) and cycles, f"attach_tool: {done}"
    return cycles


def settled(target):
    """The state of a target that has started all its threads, at a moment at which none of them runs a handler."""
    wait_until(lambda: target.ask()["steps"] > 20, "the target to work")
    seen = []

    def at_rest():
        # What is compared later is what was looked at: a second look could meet a handler, whose mask never returns.
        seen[:] = [state(target.pid)]
        return all(blocked in ("0" * 16, SIM_BLOCKED) for _, _, blocked in seen[0]["threads"])

    wait_until(at_rest, "its threads")
    return seen[0]


def count_maps(pid, word):
    return sum(word in line for line in maps(pid))


@needs("root")
@limit(90)
def test_twenty_times(ctx):
    target = Target(ctx, "launch", "malloc", "idle", *WAITS)
    before = settled(target)
    cycles = tool(ctx, target.pid, "-c", 2, "-m", 30)
    mapped = count_maps(target.pid, LIBRARIES[0]), count_maps(target.pid, LIBRARIES[1])
    cycles += tool(ctx, target.pid, "-c", 18, "-m", 30)
    for cycle in cycles:
        assert cycle["attached"], f"not attached: {cycle}"
        assert cycle["phase"] == 4 and not cycle["text"], f"CUPTI was not stopped in order: {cycle}"
        assert cycle["operations"] > 0 and cycle["names"] > 0 and cycle["devices"] > 0, f"no records: {cycle}"
    check_left(target.pid, before)
    assert mapped == (count_maps(target.pid, LIBRARIES[0]), count_maps(target.pid, LIBRARIES[1])), "mappings grow"
    assert mapped[0] > 0, "the bridge was never mapped"
    target.end()
    worst = max(cycle["borrow_us"] for cycle in cycles)
    load = sorted(cycle["load_us"] for cycle in cycles)[len(cycles) // 2]
    first = sorted(cycle["first_us"] for cycle in cycles)[len(cycles) // 2]
    return f"thread stopped {worst / 1000:.1f} ms at most; loaded after {load / 1000:.1f} ms, first record " \
           f"{first / 1000:.1f} ms (medians)"


def cupti_runs(pid):
    """The simulated CUPTI has a thread from its first client on until it is finalised."""
    return any(name == CUPTI_THREAD for _, name, _ in threads(pid))


@needs("root")
@limit(90)
def test_finalized_twenty_times(ctx):
    """In a call of one of three threads that launch; each time CUPTI is gone, and comes back the next time."""
    target = Target(ctx, "launch", "launch", "launch", "malloc", "idle")
    before = settled(target)
    for number in range(20):
        cycle, = tool(ctx, target.pid, "-f", "-m", 20)
        assert cycle["attached"] and cycle["phase"] == 4 and not cycle["text"], f"time {number}: {cycle}"
        assert cycle["operations"] > 0 and cycle["names"] > 0 and cycle["devices"] > 0, f"no records: {cycle}"
        wait_until(lambda: not cupti_runs(target.pid), f"CUPTI to be gone, time {number}", 5)
    check_left(target.pid, before)
    cycle, = tool(ctx, target.pid, "-m", 20)  # and without, after it
    assert cycle["attached"] and cycle["operations"] > 0 and cupti_runs(target.pid), cycle
    check_left(target.pid, before)
    target.end()


@needs("root")
@limit(90)
def test_finalized_while_the_target_forks_or_the_collector_goes(ctx):
    """A slow cuptiFinalize, so that there is time for it."""
    target = Target(ctx, "launch", "fork", "malloc", "idle", env={"SIM_FINALIZE_MS": "100"})
    cycles = tool(ctx, target.pid, "-f", "-c", 5, "-m", 20)
    assert all(cycle["attached"] and cycle["operations"] > 0 and not cycle["text"] for cycle in cycles), cycles
    target.end()
    target = Target(ctx, "launch", "idle", env={"SIM_FINALIZE_MS": "300"})
    before = settled(target)
    done = ctx.run(ctx.sim("attach_tool"), "-f", "-g", "-m", 50, target.pid)
    assert done.status == 0, done
    second, = tool(ctx, target.pid, "-m", 10)  # while the first leaves
    assert second["attached"] or second["reason"] in ("busy", "traced"), second
    check_left(target.pid, before)
    cycle, = tool(ctx, target.pid, "-f", "-m", 30)
    assert cycle["attached"] and cycle["operations"] > 0, cycle
    wait_until(lambda: not cupti_runs(target.pid), "CUPTI to be gone", 5)
    target.end()


def end_under(collector, target, killed):
    """The target ends while a collector is at it, which has to end as well."""
    if killed:
        target.process.kill()
        target.process.wait()
    else:
        target.end()
    out, err = collector.communicate(timeout=20)
    assert collector.returncode in (0, 3), f"attach_tool ended with {collector.returncode}: {out} {err}"


@needs("root")
@limit(90)
def test_target_ends_while_it_is_finalized(ctx):
    for step in range(8):
        target = Target(ctx, "launch", "malloc", "idle", env={"SIM_FINALIZE_MS": "150"})
        collector = ctx.start(ctx.sim("attach_tool"), "-f", "-m", 20, target.pid)
        wait_until(lambda pid=target.pid: cupti_runs(pid), "CUPTI to be started")
        time.sleep(0.03 * step)  # the moment itself is arbitrary
        end_under(collector, target, killed=step % 2)


# Launches kernels, and makes no call between the lines "pause" and "go on".
PAUSING = """
import ctypes, select, sys
cuda = ctypes.CDLL(sys.argv[1])
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
cuda.simKernelCreate.restype = ctypes.c_void_p
kernel = ctypes.c_void_p(cuda.simKernelCreate(b"kernel", ctypes.c_uint64(1000000)))
print("ready", flush=True)
while True:
    assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None) == 0 and cuda.cuCtxSynchronize() == 0
    if select.select([sys.stdin], [], [], 0.002)[0]:
        if sys.stdin.readline() != "pause\\n":
            break
        print("paused", flush=True)
        if sys.stdin.readline() != "go on\\n":
            break
"""


@needs("bpf")
@limit(120)
def test_finalize_needs_a_call(ctx):
    """Without one CUPTI is switched off as always, after two seconds, and the recorder says so; exit in that time is no harm."""
    target = ctx.start("python3", "-c", PAUSING, ctx.build / "sim/lib/libcuda.so.1", stdin=subprocess.PIPE, text=True,
                       env={**os.environ, "LD_LIBRARY_PATH": str(ctx.build / "sim/lib")})
    assert target.stdout.readline() == "ready\n"
    before = state(target.pid)

    def say(line):
        target.stdin.write(line + "\n")
        target.stdin.flush()

    def begin():
        recording = ctx.start(ctx.whyidle, "record", "--no-report", "-o", ctx.path("session.whyidle"), "-p", target.pid, "--inject",
                              "--inject-finalize", text=True)
        dumped = lambda: ctx.run(ctx.whyidle, "dump", ctx.path("session.whyidle")).out.count("\ngpu_op ")
        wait_until(lambda: os.path.exists(ctx.path("session.whyidle")) and dumped() > 10, "operations of CUPTI", 40)
        return recording

    def end(recording):
        recording.send_signal(signal.SIGINT)
        _, err = recording.communicate(timeout=50)
        assert recording.returncode == 0 and "got the CUPTI bridge" in err and "in time" not in err, err
        os.unlink(ctx.path("session.whyidle"))
        return "CUPTI was not finalised: the program made no CUDA call for 2 s" in err

    recording = begin()
    say("pause")
    assert target.stdout.readline() == "paused\n"
    assert end(recording) and cupti_runs(target.pid)
    check_left(target.pid, before)
    say("go on")
    assert not end(begin())
    wait_until(lambda: not cupti_runs(target.pid), "CUPTI to be gone", 5)
    check_left(target.pid, before)
    recording = begin()
    say("pause")
    assert target.stdout.readline() == "paused\n"
    recording.send_signal(signal.SIGINT)
    time.sleep(0.5)  # the moment itself is arbitrary; the two seconds have most likely begun
    say("end")
    assert target.wait(timeout=20) == 0, target.stderr.read()
    recording.communicate(timeout=50)
    assert recording.returncode == 0
    assert ctx.run(ctx.whyidle, "record", "--inject-finalize", "-p", os.getpid()).status == 2


@needs("root")
def test_while_the_loader_and_the_allocator_are_busy(ctx):
    target = Target(ctx, "launch", "dlopen", "malloc", "malloc")
    cycles = tool(ctx, target.pid, "-c", 5, "-m", 20)
    assert all(cycle["attached"] and cycle["operations"] > 0 for cycle in cycles), cycles
    target.end()


@needs("root")
def test_target_forks(ctx):
    target = Target(ctx, "launch", "fork", "malloc", "idle")
    cycles = tool(ctx, target.pid, "-c", 8, "-m", 20)
    assert all(cycle["attached"] and cycle["operations"] > 0 for cycle in cycles), cycles
    target.end()


STEPS = ("seized", "interrupted", "held", "frames written", "call set", "signals blocked", "call entered", "region mapped",
         "region filled", "code set", "let go", "answered", "handed over", "ring made", "ring open")


@needs("bpf")
@limit(90)
def test_record_with_inject(ctx):
    """In a mount namespace of its own, twice; what the recorder says, what the report has, and what is left."""
    target = Target(ctx, "launch", "idle", *WAITS, prefix=("unshare", "-m"))
    before = settled(target)
    for name in ("first.whyidle", "second.whyidle"):
        done = ctx.run(ctx.whyidle, "record", "-q", "--no-report", "-o", name, "-p", target.pid, "--inject", "-d", "1.5",
                       timeout=60)
        assert done.status == 0 and "got the CUPTI bridge" in done.err and "no sense" not in done.err, done
        report = ctx.report(name)
        assert report["source"]["gpu_timeline"] == "cupti" and report["gpus"][0]["op_count"] > 0, report["source"]
        assert not any("not attached" in line for line in report["degraded"]), report["degraded"]
        check_left(target.pid, before)
    target.end()


def read_until_attached(recording, pid):
    """What the recorder says, up to the line that it attached to the process."""
    said = ""
    for line in recording.stderr:
        said += line
        if f"process {pid} got the CUPTI bridge" in line:
            return
    raise AssertionError(f"the recorder ended: {said}")


@needs("bpf")
def test_another_program_in_the_same_process(ctx):
    """After exec the process id and its start are those of before: it has to be attached once more."""
    script = ("import ctypes, os, sys; cuda = ctypes.CDLL(sys.argv[1]); assert cuda.cuInit(0) == 0; print('ready', flush=True);"
              "sys.stdin.readline(); os.execv(sys.argv[2], sys.argv[2:])")
    library = ctx.build / "sim/lib/libcuda.so.1"
    first = ctx.start("python3", "-c", script, library, ctx.sim("late_driver"), library, "--seconds", "60", stdin=subprocess.PIPE,
                      text=True, env={**os.environ, "LD_LIBRARY_PATH": str(ctx.build / "sim/lib")})
    assert first.stdout.readline() == "ready\n"
    recording = ctx.start(ctx.whyidle, "record", "--no-report", "-o", ctx.path("session.whyidle"), "-p", first.pid, "--inject",
                          text=True)
    read_until_attached(recording, first.pid)
    first.stdin.write("go\n")
    first.stdin.flush()
    assert first.stdout.readline() == "running\n"
    read_until_attached(recording, first.pid)
    recording.send_signal(signal.SIGINT)
    _, err = recording.communicate(timeout=50)
    assert recording.returncode == 0 and "got the CUPTI bridge" not in err, err
    end_process(first)


# Launches kernels of 2 ms with a pause of 6 ms after each, and holds CUPTI until a line comes.
HOLDER = """
import ctypes, select, sys, time
cuda, cupti = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
context, holder = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
cuda.simKernelCreate.restype = ctypes.c_void_p
kernel = ctypes.c_void_p(cuda.simKernelCreate(b"kernel", ctypes.c_uint64(2000000)))
assert cupti.cuptiSubscribe(ctypes.byref(holder), None, None) == 0
print("ready", flush=True)
while True:
    assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None) == 0 and cuda.cuCtxSynchronize() == 0
    if select.select([sys.stdin], [], [], 0.006)[0]:
        if sys.stdin.readline() != "let go\\n":
            break
        assert cupti.cuptiUnsubscribe(holder) == 0
"""


@needs("bpf")
def test_another_tool_lets_go_of_cupti(ctx):
    """Inferred while it has CUPTI, measured from then on, in one timeline; and the report says so."""
    target = ctx.start("python3", "-c", HOLDER, ctx.build / "sim/lib/libcuda.so.1", ctx.build / "sim/lib/libcupti.so.13",
                       stdin=subprocess.PIPE, text=True)
    assert target.stdout.readline() == "ready\n"
    recording = ctx.start(ctx.whyidle, "record", "--no-report", "-o", ctx.path("session.whyidle"), "-p", target.pid, "--inject",
                          text=True)
    dumped = lambda word: ctx.run(ctx.whyidle, "dump", ctx.path("session.whyidle")).out.count(f"\n{word} ")
    wait_until(lambda: os.path.exists(ctx.path("session.whyidle")) and dumped("call") > 60, "its probed calls", 40)
    assert not dumped("gpu_op")
    target.stdin.write("let go\n")
    target.stdin.flush()
    wait_until(lambda: dumped("gpu_op") > 30, "operations of CUPTI", 40)
    recording.send_signal(signal.SIGINT)
    _, err = recording.communicate(timeout=50)
    assert recording.returncode == 0 and "CUPTI was let go of" in err, err
    report = ctx.report()
    gpu, = report["gpus"]
    inferred, measured = (ctx.run(ctx.whyidle, "dump", ctx.path("session.whyidle")).out.count(text)
                          for text in (" source=2 ", "\ngpu_op "))
    assert any("inferred before" in line for line in report["degraded"]), report["degraded"]
    # Both parts are there, each with its own operations: more than CUPTI's, and none twice.
    assert measured < gpu["op_count"] <= measured + inferred / 2 + 1, (gpu["op_count"], measured, inferred)
    share = gpu["idle_ns"] / (gpu["busy_ns"] + gpu["idle_ns"])
    assert 0.6 < share < 0.9, f"idle {share:.1%} of a program that leaves the GPU idle for 6 ms of 8"
    target.communicate("end\n", timeout=20)
    return f"{gpu['op_count']} operations, {measured} of them by CUPTI; idle {share:.1%}"


@needs("bpf")
def test_inject_refused_or_without_cupti(ctx):
    """The calls are probed instead, and the report says why."""
    target = Target(ctx, "launch", "idle", env={"SIM_CUPTI_TAKEN": "1"})
    before = settled(target)
    done = ctx.run(ctx.whyidle, "record", "-q", "--no-report", "-o", "taken.whyidle", "-p", target.pid, "--inject", "-d", "2",
                   timeout=60)
    report = ctx.report("taken.whyidle")
    assert done.status == 0 and any("CUPTI" in line for line in report["degraded"]), (done, report["degraded"])
    assert report["source"]["gpu_timeline"] == "inferred" and report["gpus"][0]["op_count"] > 0, report["source"]
    check_left(target.pid, before)
    os.kill(target.pid, signal.SIGSTOP)
    wait_until(lambda: status_field(target.pid, target.pid, "State").startswith("T"), "the target to stop")
    done = ctx.run(ctx.whyidle, "record", "-q", "--no-report", "-o", "stopped.whyidle", "-p", target.pid, "--inject", "-d",
                   "1", timeout=60)
    os.kill(target.pid, signal.SIGCONT)
    assert done.status == 0 and "was not attached (stopped)" in done.err, done
    target.end()
    for wrong in (("--inject", "--", "true"), ("--inject", "-p", os.getpid(), "--no-bridge")):
        assert ctx.run(ctx.whyidle, "record", *wrong).status == 2


@needs("root")
@limit(90)
def test_collector_killed_at_each_step(ctx):
    """One target for all of them: what one death left would be in the way of the next, and is looked for after each."""
    target = Target(ctx, "launch", "idle", *WAITS)
    before = settled(target)
    for number, step in enumerate(STEPS):
        collector = ctx.start(ctx.sim("attach_tool"), "-k", number, "-w", 200, "-m", 10, target.pid)
        out, err = collector.communicate(timeout=40)
        assert collector.returncode == -signal.SIGKILL, f"{step} was never reached: {collector.returncode} {out} {err}"
        steps = target.ask()["steps"]
        wait_until(lambda steps=steps: target.ask()["steps"] > steps, f"the target to go on ({step})")
        check_left(target.pid, before)
    cycle, = tool(ctx, target.pid, "-m", 30)
    assert cycle["attached"] and cycle["operations"] > 0, cycle
    check_left(target.pid, before)
    target.end()


@needs("root")
@limit(90)
def test_collector_killed_anywhere(ctx):
    """At whatever moment whyidle dies, the target goes on, tidies up by itself and can be attached again."""
    target = Target(ctx, "launch", "idle", *WAITS)
    before = settled(target)
    for delay_us in (300, 1500, 3000, 6000, 12000, 25000):
        collector = ctx.start(ctx.sim("attach_tool"), "-w", 200, "-m", 10000, target.pid)
        time.sleep(delay_us / 1e6)  # the moment itself is arbitrary; the test above has them all
        end_process(collector)
        check_left(target.pid, before)
    cycle, = tool(ctx, target.pid, "-m", 30)
    assert cycle["attached"] and cycle["operations"] > 0, cycle
    check_left(target.pid, before)
    target.end()


@needs("root")
def test_collector_goes_without_a_word(ctx):
    target = Target(ctx, "launch", "idle")
    before = settled(target)
    done = ctx.run(ctx.sim("attach_tool"), "-g", "-m", 50, target.pid)
    assert done.status == 0, done
    check_left(target.pid, before)
    assert tool(ctx, target.pid, "-m", 30)[0]["operations"] > 0
    target.end()


@needs("root")
@limit(90)
def test_target_ends_meanwhile(ctx):
    for step in range(12):
        target = Target(ctx, "launch", "malloc", "poll", "idle")
        collector = ctx.start(ctx.sim("attach_tool"), "-m", 200, target.pid)
        time.sleep(step * 0.003)  # the moment itself is arbitrary
        end_under(collector, target, killed=step % 2)


@needs("root")
def test_two_collectors(ctx):
    target = Target(ctx, "launch", "idle")
    first = ctx.start(ctx.sim("attach_tool"), "-m", 3000, target.pid)
    wait_until(lambda: len(own_threads(target.pid)) == 2, "the first to be attached")
    second = tool(ctx, target.pid, "-m", 10)[0]
    assert not second["attached"] and second["reason"] in ("busy", "traced"), second
    out, _ = first.communicate(timeout=20)
    assert b"attached" in out and b"phase=4" in out, out
    target.end()


@needs("root")
def test_another_user_of_cupti(ctx):
    target = Target(ctx, "launch", "idle", env={"SIM_CUPTI_TAKEN": "1"})
    cycle = tool(ctx, target.pid, "-m", 20)[0]
    assert cycle["attached"] and cycle["phase"] == 3 and "another tool" in cycle["text"], cycle
    target.end()
    # One that comes and goes: either of the two has CUPTI, and nothing breaks.
    target = Target(ctx, "launch", "profiler", "idle", env={"ATTACH_CUPTI": ctx.sim("lib/libcupti.so.13")})
    wait_until(lambda: target.ask()["subscribed"] > 0, "the other to subscribe")
    cycles = tool(ctx, target.pid, "-c", 6, "-m", 20)
    assert all(cycle["attached"] and cycle["phase"] in (3, 4) for cycle in cycles), cycles
    held = target.ask()["subscribed"]
    wait_until(lambda: target.ask()["subscribed"] > held, "the other to have CUPTI again")
    target.end()


def refused(ctx, pid, reason):
    cycle = tool(ctx, pid, "-m", 10, "-t", 2000)[0]
    assert not cycle["attached"] and cycle["reason"] == reason and cycle["text"], f"wanted {reason}: {cycle}"


@needs("root")
def test_refusals(ctx):
    target = Target(ctx, "launch", "idle")
    os.kill(target.pid, signal.SIGSTOP)
    wait_until(lambda: status_field(target.pid, target.pid, "State").startswith("T"), "the target to stop")
    refused(ctx, target.pid, "stopped")
    assert status_field(target.pid, target.pid, "State").startswith("T"), "it was made to go on"
    os.kill(target.pid, signal.SIGCONT)
    libc = ctypes.CDLL(None, use_errno=True)
    seize, detach, interrupt = 0x4206, 17, 0x4207
    assert libc.ptrace(seize, target.pid, 0, 0) == 0, "PTRACE_SEIZE"
    refused(ctx, target.pid, "traced")
    libc.ptrace(interrupt, target.pid, 0, 0)
    os.waitpid(target.pid, 0)
    assert libc.ptrace(detach, target.pid, 0, 0) == 0, "PTRACE_DETACH"
    assert tool(ctx, target.pid, "-m", 20)[0]["operations"] > 0
    target.end()

    plain = ctx.start("sleep", "60")
    refused(ctx, plain.pid, "no-cuda")
    end_process(plain)
    refused(ctx, plain.pid, "gone")


@needs("root")
def test_seccomp_is_left_alone(ctx):
    """A filter that allows everything: it cannot be known here, so the target is left alone."""
    code = ("import ctypes,os,struct,sys\n"
            "libc = ctypes.CDLL(None)\n"
            "rule = ctypes.create_string_buffer(struct.pack('<HBBI', 6, 0, 0, 0x7fff0000))\n"
            "program = struct.pack('<H6xQ', 1, ctypes.addressof(rule))\n"
            "libc.prctl(38, 1, 0, 0, 0)\n"
            "libc.prctl(22, 2, ctypes.create_string_buffer(program)) and sys.exit(9)\n"
            "os.execv(sys.argv[1], sys.argv[1:])\n")
    target = Target(ctx, "launch", "idle", prefix=("python3", "-c", code))
    if status_field(target.pid, target.pid, "Seccomp") != "2":
        raise Skip("no seccomp filters here")
    refused(ctx, target.pid, "seccomp")
    target.end()
