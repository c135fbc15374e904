# SPDX-License-Identifier: GPL-2.0-only
"""What the end-to-end tests share: marks for tests, and a Context that runs the program.

A test is a function test_*(ctx) in a file test_*.py of this folder. It fails by an exception (assert), and skips by
raising Skip; a text that it returns is shown beside its name. Each test runs in a process of its own, in an empty folder
of its own, with a time limit.

A file whose tests judge neither times nor causes, and look at no process but their own, says BESIDE_OTHERS = True: they
run while others of that kind do. A test of it that does is marked @alone. All other tests run alone.
"""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

CAP_SYS_ADMIN, CAP_SYSLOG, CAP_PERFMON, CAP_BPF = 21, 34, 38, 39
NOBODY = 65534


class Skip(Exception):
    """The test cannot run here; the message says why."""


def limit(seconds):
    """Time limit of a test; 60 s where nothing is said."""
    def mark(function):
        function.limit = seconds
        return function
    return mark


def needs(*things):
    """What a test needs: 'root', 'bpf', 'namespace' (mounting in a namespace of its own)."""
    def mark(function):
        function.needs = things
        return function
    return mark


def alone(function):
    """A test that no other may run beside, in a file that says BESIDE_OTHERS."""
    function.alone = True
    return function


def runs_beside_others(function):
    """Whether this test may run while others do of which that is true."""
    return function.__globals__.get("BESIDE_OTHERS", False) and not getattr(function, "alone", False)


class Result:
    """How a command ended."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __str__(self):
        return f"status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    @property
    def errors(self):
        """Lines of the program itself on standard error."""
        return [line for line in self.err.splitlines() if line.startswith("whyidle: ")]


def grant_capabilities(path, capabilities):
    """File capabilities, as setcap does it: permitted and effective."""
    bits = sum(1 << number for number in capabilities)
    low, high = bits & 0xffffffff, bits >> 32
    os.setxattr(path, "security.capability", struct.pack("<IIIII", 0x02000001, low, 0, high, 0))


class Context:
    def __init__(self, build, folder):
        self.build = pathlib.Path(build).resolve()
        self.whyidle = str(self.build / "whyidle")
        self.folder = pathlib.Path(folder)

    def sim(self, name):
        """Path of a workload on the simulated GPU."""
        path = self.build / "sim" / name
        if not path.exists():
            raise Skip(f"the workload {name} is not built (make sim)")
        return str(path)

    def path(self, name):
        return str(self.folder / name)

    def run(self, *argv, env=None, timeout=50, **options):
        """Runs a command to its end, without standard input. env: variables to add (None takes one out)."""
        full = dict(os.environ)
        for name, value in (env or {}).items():
            if value is None:
                full.pop(name, None)
            else:
                full[name] = value
        options.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run([str(a) for a in argv], env=full, cwd=self.folder, capture_output=True, timeout=timeout,
                              check=False, **options)
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return Result(status, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def record(self, *argv, options=(), output="session.whyidle", **rest):
        """whyidle record -o OUTPUT OPTIONS -- ARGV"""
        return self.run(self.whyidle, "record", "-o", self.path(output), *options, "--", *argv, **rest)

    def report(self, output="session.whyidle", *options):
        """The JSON report of a session, checked against the schema where its validator is there."""
        done = self.run(self.whyidle, "report", self.path(output), "--json", *options)
        assert done.status == 0, f"no report: {done}"
        report = json.loads(done.out)
        check_report(report)
        return report

    def start(self, *argv, **options):
        """Starts a command that goes on; the caller waits for it."""
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([str(a) for a in argv], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                **options)


def wait_until(condition, what, timeout=20.0):
    """Polls until the condition holds; fails if it does not in time."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"waited {timeout} s in vain for: {what}"
        time.sleep(0.02)


def check_report(report):
    """What holds of every report, whatever was recorded."""
    assert report["schema"] == "whyidle.report/1", report["schema"]
    for gpu in report["gpus"]:
        total = sum(cause["ns"] for cause in gpu["causes"])
        assert total == gpu["idle_ns"], f"causes sum to {total}, idle time is {gpu['idle_ns']}"
        split = sum(gpu["idle_by_launch_ns"].values())
        assert split == gpu["idle_ns"], f"idle_by_launch_ns sums to {split}, idle time is {gpu['idle_ns']}"
        sizes = [cause["ns"] for cause in gpu["causes"]]
        assert sizes == sorted(sizes, reverse=True), "causes are not sorted by time"


def cause_key(cause):
    return f"{cause['code']}@{cause['role']}"


def one_line_error(done, status, *words):
    """The command failed with exactly one line, which holds all the words."""
    assert done.status == status, f"wrong exit status, wanted {status}: {done}"
    lines = done.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("whyidle: "), f"not exactly one line of error: {done}"
    for word in words:
        assert re.search(word, lines[0]), f"/{word}/ is not in: {lines[0]}"


def says(done, *words):
    """Some line of the program on standard error holds all the words."""
    for line in done.errors:
        if all(re.search(word, line) for word in words):
            return
    raise AssertionError(f"no line with {words}: {done}")


def end_process(process):
    """Ends a process that this test has started, if it still runs."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
