# SPDX-License-Identifier: GPL-2.0-only
"""Running one plant, recorded, and what its truth and its report say of each other.

Nothing here takes a truth from the report: expected codes, roles and times come from the program's truth file.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import cgroups  # noqa: E402
import judging  # noqa: E402
from harness import ROOT, Context, cause_key, end_process, wait_until  # noqa: E402  (needs the path above)

TRIES = 3
FALSE_BLAME = 0.01
STOLEN = 0.1  # of a run: CPU time that the hypervisor took, which a program that waits cannot tell from its wait
SCRATCH_BYTES = 256 << 20
NULL_GPU_US = 2000
SYNCHRONISING = ("serial@", "cuda_api@")
PYTHON_KINDS = ("gil@", "gc@")


def split(plant):
    """KIND@PLACE:MS → (KIND@PLACE, MS)"""
    name, _, milliseconds = plant.partition(":")
    return name, float(milliseconds)


def gpu_us(plant):
    """Work of a step: much less than the stall, but where the launcher is to be in a synchronisation when it ends, long
    enough for the launcher to get there on a slow machine."""
    name, milliseconds = split(plant)
    if name.startswith(SYNCHRONISING):
        return 400
    return 20 if milliseconds < 1 else 100


class Unavailable(Exception):
    """A plant that this machine cannot have; the message says why."""


def require_slow_link():
    """What planted/network.c makes, tried: a network namespace whose loopback has a token bucket."""
    commands = "ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate 1mbit burst 1600 limit 1000000"
    try:
        done = subprocess.run(["unshare", "--net", "sh", "-c", commands], capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        raise Unavailable(f"{missing.filename} is not installed") from missing
    if done.returncode:
        raise Unavailable(f"no slow link can be made: {done.stderr.strip() or f'exit status {done.returncode}'}")


def stolen_ns():
    """CPU time of this virtual machine that went to others, since it was started (proc_stat(5): steal, in ticks)."""
    fields = pathlib.Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)
    return int(fields[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Bench:
    """Runs the program in a folder of its own, with what some plants need: a file to read, somebody outside."""

    def __init__(self, build, folder, seconds):
        self.context = Context(build, folder)
        self.seconds = seconds
        self.program = self.context.sim("planted")
        self.scratch = self.context.path("scratch")
        self.socket = self.context.path("socket")

    def make_scratch(self):
        if os.path.exists(self.scratch):
            return
        device = os.stat(self.context.folder).st_dev
        if not os.path.exists(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"):
            raise Unavailable("the build folder is on no block device")
        with open(self.scratch, "wb") as file:
            for _ in range(SCRATCH_BYTES >> 20):
                file.write(os.urandom(1 << 20))
            file.flush()
            os.fsync(file.fileno())

    @contextlib.contextmanager
    def outside(self, plants):
        """Whoever has to be there before the recording begins, and does not take part in it."""
        helper = None
        for plant in plants:
            name, milliseconds = split(plant)
            if name.endswith("@process"):
                helper = subprocess.Popen([self.program, "--serve", self.socket])
                wait_until(lambda: os.path.exists(self.socket), "the outside process")
            elif name.startswith("no_work@") and milliseconds:
                helper = subprocess.Popen([self.program, "--ask", self.socket, str(milliseconds)])
        try:
            yield
        finally:
            if helper:
                end_process(helper)
            if os.path.exists(self.socket):
                os.unlink(self.socket)

    @contextlib.contextmanager
    def quota(self, plants):
        """A control group for the plants that are throttled; None for the others."""
        times = [split(plant)[1] for plant in plants if plant.startswith("throttled@")]
        if not any(times):
            yield None
            return
        try:
            with cgroups.CpuQuota(int(max(times) * 1500), int(max(times) * 500)) as group:
                yield group
        except cgroups.NoGroup as reason:
            raise Unavailable(str(reason)) from reason

    def command(self, plants):
        if any(plant.startswith(PYTHON_KINDS) for plant in plants):
            script = ROOT / "tests" / "sim" / "workloads" / "planted" / "planted.py"
            return [sys.executable, script, "--lib", self.context.build / "sim" / "lib"]
        return [self.program]

    def record(self, plants, arguments):
        """(truth, report) of one recorded run."""
        arguments = list(arguments)
        for plant in plants:
            arguments += ["--plant", plant]
            if plant.startswith(("disk@", "major_fault@")):
                self.make_scratch()
            elif plant.startswith("network@"):
                require_slow_link()
        with self.outside(plants), self.quota(plants) as group:
            if group:
                arguments += ["--cgroup", group.folder]
            stolen = stolen_ns()
            done = self.context.record(*self.command(plants), "--seconds", self.seconds,
                                       "--truth", self.context.path("truth.json"), "--scratch", self.scratch,
                                       "--socket", self.socket, *arguments, options=("-q", "--no-report"))
            throttled, stolen = group.throttled_ns() if group else None, stolen_ns() - stolen
        assert done.status == 0, done
        with open(self.context.path("truth.json"), encoding="utf-8") as file:
            truth = json.load(file)
        truth["stolen"] = stolen / 1e9 / float(self.seconds)
        if throttled is not None:
            # The kernel's own account of the group: what the runner waited beyond it was other load.
            truth["contended_ns"] = max(truth["planted_ns"] - throttled, 0)
        return truth, self.context.report()

    def keep(self, folder, name):
        """Copies the last run's files to a folder for a look at what went wrong."""
        os.makedirs(folder, exist_ok=True)
        for file, ending in (("session.whyidle", "whyidle"), ("truth.json", "truth.json")):
            data = pathlib.Path(self.context.path(file)).read_bytes()
            pathlib.Path(folder, f"{name}.{ending}").write_bytes(data)


def expected_key(plant, causes=()):
    """CODE@ROLE; where the plant leaves the role open, with that of the largest such cause."""
    if plant["role"] == "any":
        return next((key for key in causes if key.startswith(plant["code"] + "@")), f"{plant['code']}@any")
    return f"{plant['code']}@{plant['role']}"


def is_quiet(truth):
    """Other load on the machine took less than the plants did, and other machines next to nothing."""
    return truth["contended_ns"] < truth["planted_ns"] / 2 and truth["stolen"] <= STOLEN


def judge(truth, report):
    """What a run with plants shows, as a dictionary."""
    gpu, = report["gpus"]
    causes = {cause_key(cause): cause for cause in gpu["causes"]}
    plants = sorted(truth["plants"], key=lambda p: -p["planted_ns"])
    top = next(iter(causes), "nothing")
    expected = [expected_key(p, causes) for p in plants]
    reported = [causes.get(key, {"ns": 0})["ns"] for key in expected]
    return {
        "expected": expected,
        "planted_ns": [p["planted_ns"] for p in plants],
        "reported_ns": reported,
        "contended_ns": truth["contended_ns"],
        "stalls": sum(p["count"] for p in plants),
        "steps": truth["steps"],
        "step_ns": truth["step_ns"]["median"],
        "top": top,
        "top_ok": top == expected[0],
        "time_ok": all(judging.time_is_right(p["planted_ns"], p["count"], ns) for p, ns in zip(plants, reported, strict=True)),
        "idle_ns": gpu["idle_ns"],
        "unknown_ns": sum(c["ns"] for key, c in causes.items() if key.startswith("unknown.")),
        "causes": {key: c["ns"] for key, c in causes.items()},
        "finding": f"{report['findings'][0]['code']}@{report['findings'][0]['role']}" if report["findings"] else None,
        "disturbed": not is_quiet(truth),
    }


def judge_gain(truth, report, without):
    """Predicted against measured gain a step; None where the report gives only the bound."""
    gpu, = report["gpus"]
    key = expected_key(truth["plants"][0], [cause_key(c) for c in gpu["causes"]])
    cause = next((c for c in gpu["causes"] if cause_key(c) == key), None)
    if cause is None:
        return None
    # The stall after the last operation is not in the window.
    steps = truth["steps"] - 1
    # Without the plant its code is gone as well, and so is what it had the device do: what that cost beside the
    # plant is no gain of the cause. Means, for what is predicted and what was beside are sums over all steps too.
    plant = truth["plants"][0]
    measured = (truth["step_ns"]["mean"] - without["step_ns"]["mean"] -
                (plant["beside_ns"] + plant["device_ns"]) / steps)
    return judging.gain(cause, steps, measured, truth["step_ns"], without["step_ns"])


def judge_null(truth, report):
    gpu, = report["gpus"]
    window = gpu["window"]["end_ns"] - gpu["window"]["start_ns"]
    blamed = {}
    for cause in gpu["causes"]:
        if not cause["code"].startswith("device.") and cause["code"] != "host.launch_bound":
            blamed[cause_key(cause)] = cause["ns"]
    # Where other load or the hypervisor really took the launcher's CPU, saying so is no false blame.
    real = sum(min(had, sum(ns for key, ns in blamed.items() if key.startswith(code)))
               for code, had in (("sched.cpu_contention", truth["contended_ns"]), ("sched.steal", truth["stolen"] * window)))
    false_ns = sum(blamed.values()) - real
    return {
        "false_blame": false_ns / window,
        "blamed_ns": blamed,
        "contended_ns": truth["contended_ns"],
        "idle_ns": gpu["idle_ns"],
        "window_ns": window,
        "findings": [f"{f['code']}@{f['role']}" for f in report["findings"]],
        "ok": false_ns <= FALSE_BLAME * window and not report["findings"],
        "disturbed": real > FALSE_BLAME * window or truth["stolen"] > STOLEN,
    }


def replay_of(report):
    """How well the report's replay of the unchanged graph fits; None where there was none."""
    return report["gpus"][0]["replay"] if report["gpus"] else None


def run_plants(bench, plants, extra=()):
    """One or several plants in turn: judgement, truth and report of the first quiet run, or of the last try."""
    arguments = list(extra)
    if "--gpu-us" not in arguments:
        arguments += ["--gpu-us", str(min(gpu_us(p) for p in plants))]
    for tries in range(1, TRIES + 1):
        truth, report = bench.record(plants, arguments)
        verdict = judge(truth, report)
        verdict["tries"] = tries
        if not verdict["disturbed"]:
            break
    return verdict, truth, report


def run_without(bench, name, step_gpu_us, extra=()):
    """Truth of the same loop with nothing planted."""
    truth, _ = bench.record([f"{name}:0"], [*extra, "--gpu-us", str(step_gpu_us)])
    return truth


def run_null(bench, noise):
    for tries in range(1, TRIES + 1):
        truth, report = bench.record([], ["--gpu-us", str(NULL_GPU_US), "--null", noise])
        verdict = judge_null(truth, report)
        verdict["tries"] = tries
        if not verdict["disturbed"]:
            break
    return verdict
