#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the end-to-end tests: the real program, real BPF, a simulated GPU.

    run.py [--build DIR] [--list] [-k WORD]... [--jobs N]

Prints a line for each test and last "N passed, N failed, N skipped". With -k only tests whose name holds one of the
words run. Exit status 1 if a test failed.

Tests of files that say BESIDE_OTHERS (harness.py) run first, N at a time; then each of the others alone.
"""
import argparse
import importlib.util
import os
import pathlib
import pickle
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import harness  # noqa: E402  (needs the path above)

DEFAULT_LIMIT = 60
MOST_JOBS = 2  # by default: more was not tried
PASS, FAIL, SKIP = "PASS", "FAIL", "SKIP"


def discover(words):
    """(name, function) of every test, in the order of files and of their lines."""
    tests = []
    for path in sorted(HERE.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        functions = [f for n, f in vars(module).items() if n.startswith("test_") and callable(f)]
        functions.sort(key=lambda f: f.__code__.co_firstlineno)
        tests += [(f"{path.stem.removeprefix('test_')}::{f.__name__.removeprefix('test_')}", f) for f in functions]
    return [t for t in tests if not words or any(word in t[0] for word in words)]


def can_mount():
    """True if a mount namespace of our own can be had."""
    if not shutil.which("unshare"):
        return False
    command = "mount -t tmpfs tmpfs /mnt"
    return subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, check=False).returncode == 0


def find_lacks(build):
    """What this machine lacks: need → reason."""
    lacks = {}
    if os.geteuid() != 0:
        lacks["root"] = "needs root"
    doctor = subprocess.run([str(build / "whyidle"), "doctor"], capture_output=True, text=True, check=False)
    if doctor.returncode != 0:
        missing = [line for line in doctor.stdout.splitlines() if line.startswith("missing") and "bpf" in line]
        lacks["bpf"] = "BPF cannot be used: " + (" ".join(missing[0].split()[2:]) if missing else "see whyidle doctor")
    if "root" in lacks or not can_mount():
        lacks["namespace"] = "cannot mount in a namespace of its own"
    return lacks


def child(function, build, folder, result_fd):
    """Runs one test; its outcome goes to the parent as a pickled (kind, text)."""
    os.setpgid(0, 0)
    os.chmod(folder, 0o755)
    try:
        outcome = (PASS, function(harness.Context(build, folder)) or "")
    except harness.Skip as reason:
        outcome = (SKIP, str(reason))
    except BaseException as error:  # whatever it is, it is this test's failure
        place = traceback.extract_tb(error.__traceback__)[-1]
        for frame in traceback.extract_tb(error.__traceback__):
            if pathlib.Path(frame.filename).name.startswith("test_"):
                place = frame
        name = type(error).__name__
        outcome = (FAIL, f"{pathlib.Path(place.filename).name}:{place.lineno}: {name}: {error}")
    with os.fdopen(result_fd, "wb") as result:
        pickle.dump(outcome, result)
    os._exit(0)


def end_group(pgid):
    try:
        os.killpg(pgid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Running:
    """A test in a process and a folder of its own."""

    def __init__(self, name, function, build):
        self.name, self.seconds = name, getattr(function, "limit", DEFAULT_LIMIT)
        self.folder = tempfile.TemporaryDirectory(prefix="whyidle-e2e-")
        self.read_end, write_end = os.pipe()
        self.begin = time.monotonic()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.read_end)
            child(function, build, self.folder.name, write_end)
        os.close(write_end)
        self.pidfd = os.pidfd_open(self.pid)

    def left(self):
        """Seconds until its limit, not below 0."""
        return max(0.0, self.begin + self.seconds - time.monotonic())

    def end(self, in_time):
        """(kind, text, seconds); call once it has ended, or its time has."""
        os.close(self.pidfd)
        # The group outlives its leader if the test left something behind.
        end_group(self.pid)
        os.waitpid(self.pid, 0)
        took = time.monotonic() - self.begin
        with os.fdopen(self.read_end, "rb") as result:
            data = result.read()
        self.folder.cleanup()
        if not in_time:
            return FAIL, f"not done after {self.seconds} s", took
        if not data:
            return FAIL, "the test's process died", took
        return *pickle.loads(data), took


def run_all(tests, build, jobs):
    """Runs (name, function) pairs, so many at a time; gives (name, kind, text, seconds) as they end."""
    waiting, running = list(tests), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            one = Running(*waiting.pop(0), build)
            running[one.pidfd] = one
        ready, _, _ = select.select(list(running), [], [], min(one.left() for one in running.values()))
        for pidfd in ready or [pidfd for pidfd, one in running.items() if not one.left()]:
            one = running.pop(pidfd)
            yield one.name, *one.end(pidfd in ready)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(HERE.parents[1] / "build"), type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-k", action="append", metavar="WORD", dest="words")
    parser.add_argument("--jobs", type=int, default=min(MOST_JOBS, len(os.sched_getaffinity(0))), metavar="N")
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error("--jobs: at least 1")
    build = arguments.build.resolve()
    tests = discover(arguments.words)
    if arguments.list:
        print("\n".join(name for name, _ in tests))
        return 0
    if not (build / "whyidle").exists():
        print(f"{build}/whyidle is missing: build it first (make)", file=sys.stderr)
        return 1

    lacks = find_lacks(build)
    counts = {PASS: 0, FAIL: 0, SKIP: 0}

    def say(name, kind, text, took):
        counts[kind] += 1
        head, _, rest = text.partition("\n")
        print(f"{kind} {name} ({took:.1f} s){': ' if head else ''}{head}", flush=True)
        if rest:
            print("\n".join("    " + line for line in rest.splitlines()), flush=True)

    beside, alone = [], []
    for name, function in tests:
        reasons = [lacks[need] for need in getattr(function, "needs", ()) if need in lacks]
        if reasons:
            say(name, SKIP, reasons[0], 0.0)
        else:
            (beside if harness.runs_beside_others(function) else alone).append((name, function))
    for group, jobs in (beside, arguments.jobs), (alone, 1):
        for outcome in run_all(group, build, jobs):
            say(*outcome)
    print(f"{counts[PASS]} passed, {counts[FAIL]} failed, {counts[SKIP]} skipped")
    return 1 if counts[FAIL] else 0


if __name__ == "__main__":
    sys.exit(main())
