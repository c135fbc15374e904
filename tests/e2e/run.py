#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the end-to-end tests: the real program, real BPF, a simulated GPU.

    run.py [--build DIR] [--list] [-k WORD]...

Prints a line for each test and last "N passed, N failed, N skipped". With -k only tests whose name holds one of the
words run. Exit status 1 if a test failed.
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


def run_one(function, build, folder):
    """(kind, text, seconds)"""
    seconds = getattr(function, "limit", DEFAULT_LIMIT)
    read_end, write_end = os.pipe()
    begin = time.monotonic()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        child(function, build, folder, write_end)
    os.close(write_end)
    pidfd = os.pidfd_open(pid)
    ready, _, _ = select.select([pidfd], [], [], seconds)
    os.close(pidfd)
    # The group outlives its leader if the test left something behind.
    end_group(pid)
    os.waitpid(pid, 0)
    took = time.monotonic() - begin
    with os.fdopen(read_end, "rb") as result:
        data = result.read()
    if not ready:
        return FAIL, f"not done after {seconds} s", took
    if not data:
        return FAIL, "the test's process died", took
    return *pickle.loads(data), took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(HERE.parents[1] / "build"), type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-k", action="append", metavar="WORD", dest="words")
    arguments = parser.parse_args()
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
    for name, function in tests:
        reasons = [lacks[need] for need in getattr(function, "needs", ()) if need in lacks]
        if reasons:
            kind, text, took = SKIP, reasons[0], 0.0
        else:
            with tempfile.TemporaryDirectory(prefix="whyidle-e2e-") as folder:
                kind, text, took = run_one(function, build, folder)
        counts[kind] += 1
        head, _, rest = text.partition("\n")
        print(f"{kind} {name} ({took:.1f} s){': ' if head else ''}{head}", flush=True)
        if rest:
            print("\n".join("    " + line for line in rest.splitlines()), flush=True)
    print(f"{counts[PASS]} passed, {counts[FAIL]} failed, {counts[SKIP]} skipped")
    return 1 if counts[FAIL] else 0


if __name__ == "__main__":
    sys.exit(main())
