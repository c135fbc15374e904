#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A PyTorch loop that goes through one planted stall after another, each for some time, and through none. Prints one JSON
line: of each part its CLOCK_MONOTONIC bounds, what was planted, how long the stalls and the steps took by its own clock.

    tests/gpu/planted_torch.py --seconds 1.5 --ms 8 [--only sleep@launcher,gc@launcher]

A plant is KIND@PLACE as in tests/sim/workloads/planted: the place says who runs it and why the launcher waits. Unless it
runs ahead, the loop waits for the GPU in each step before it stalls, so that all of a stall is idle time of the GPU.
"""
import argparse
import gc
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time

GPU_MS = 2.0
SIZE = 2048
SETTLE_STEPS = 20     # not measured
DISK_BYTES = 1 << 20  # a write

now = time.monotonic_ns


def spin(ms):
    end, x = now() + int(ms * 1e6), 0
    while now() < end:
        for k in range(100):
            x ^= k * k
    return x


def sleep(ms):
    time.sleep(ms / 1e3)


class Launcher:
    """The launching thread does it itself."""

    def __init__(self, work):
        self.work = work

    def stall(self, ms):
        self.work(ms)

    def stop(self):
        pass


class Thread:
    """Another thread does it; the launcher waits for its answer."""

    def __init__(self, work):
        self.work, self.asked, self.done = work, queue.SimpleQueue(), queue.SimpleQueue()
        self.thread = threading.Thread(target=self.run, name="helper", daemon=True)
        self.thread.start()

    def run(self):
        while (ms := self.asked.get()) is not None:
            self.work(ms)
            self.done.put(True)

    def stall(self, ms):
        self.asked.put(ms)
        self.done.get()

    def stop(self):
        self.asked.put(None)
        self.thread.join()


class Worker:
    """A forked process does it, asked through a pipe. To be made before CUDA is initialised."""

    ends = []  # ours, which later ones are not to keep open

    def __init__(self, work):
        ours, theirs = os.pipe(), os.pipe()
        self.pid = os.fork()
        if not self.pid:
            for end in [*self.ends, ours[1], theirs[0]]:
                os.close(end)
            while ms := os.read(ours[0], 16):
                work(float(ms))
                os.write(theirs[1], b".")
            os._exit(0)
        os.close(ours[0])
        os.close(theirs[1])
        self.ask, self.answer = ours[1], theirs[0]
        self.ends += [self.ask, self.answer]

    def stall(self, ms):
        os.write(self.ask, b"%-15.6f" % ms)
        os.read(self.answer, 1)

    def stop(self):
        os.close(self.ask)
        os.waitpid(self.pid, 0)


class Storage:
    """Writes to a file until what was written is on the disk."""

    def __init__(self):
        handle, self.path = tempfile.mkstemp(prefix="planted_", dir=os.environ.get("WORKLOAD_DIR", "/var/tmp"))
        os.close(handle)
        self.file, self.block = os.open(self.path, os.O_RDWR), os.urandom(DISK_BYTES)

    def __call__(self, ms):
        end = now() + int(ms * 1e6)
        while now() < end:
            os.pwrite(self.file, self.block, 0)
            os.fdatasync(self.file)

    def stop(self):
        os.close(self.file)
        os.unlink(self.path)


def collect(ms):
    """As many collections of a heap with cycles as fit; with what is left of the time nothing."""
    end = now() + int(ms * 1e6)
    while now() < end:
        gc.collect()


def child(ms):
    subprocess.run([sys.executable, "-S", "-c", f"import time; time.sleep({ms / 1e3})"], check=True)


# name → (place, what it does, accepted CODE@ROLE, whether the loop runs ahead, whether all of a stall is the cause's)
def plants():
    return {
        "sleep@launcher": (Launcher, sleep, ["wait.sleep@launcher"], False, True),
        "sleep@thread": (Thread, sleep, ["wait.sleep@thread"], False, True),
        "sleep@worker": (Worker, sleep, ["wait.sleep@worker"], False, True),
        "compute@launcher": (Launcher, spin, ["host.user_code@launcher"], True, False),
        "serial@launcher": (Launcher, spin, ["host.sync_then_serial@launcher"], False, True),
        "compute@thread": (Thread, spin, ["host.user_code@thread"], False, True),
        "compute@worker": (Worker, spin, ["host.user_code@worker"], False, True),
        "gc@launcher": (Launcher, collect, ["host.gc@launcher"], False, True),
        "disk@launcher": (Launcher, Storage(), ["wait.disk@launcher"], False, False),
        "child@launcher": (Launcher, child, ["wait.child@launcher"], False, False),
    }


class Loop:
    """Matrix products of about GPU_MS a step."""

    def __init__(self):
        import torch  # not before the workers are forked
        self.cuda = torch.cuda
        self.matrix = torch.randn(SIZE, SIZE, device="cuda")
        self.products, self.before = 1, None
        self.step()
        self.cuda.synchronize()
        begin = now()
        for _ in range(20):
            self.step()
        self.cuda.synchronize()
        self.products = max(1, round(GPU_MS * 20e6 / (now() - begin)))

    def step(self):
        for _ in range(self.products):
            self.matrix @ self.matrix

    def ahead(self):
        """At most one step ahead of the GPU."""
        done = self.cuda.Event()
        done.record()
        if self.before is not None:
            self.before.synchronize()
        self.before = done

    def run(self, seconds, stall, ahead):
        """Bounds, time of all stalls, and the steps by the program's own clock."""
        steps, stalled, start = [], 0, 0
        for number in range(-SETTLE_STEPS, 1 << 40):
            begun = now()
            if number == 0:
                self.cuda.synchronize()
                start, stalled, steps = now(), 0, []
                begun = start
            elif number > 0 and begun - start >= seconds * 1e9:
                break
            self.step()
            if ahead:
                self.ahead()
            else:
                self.cuda.synchronize()
            before = now()
            if stall:
                stall()
            stalled += now() - before if stall else 0
            steps.append(now() - begun)
        self.cuda.synchronize()
        quarters = statistics.quantiles(steps, n=4)
        return {"start_ns": start, "end_ns": now(), "stalled_ns": stalled, "steps": len(steps),
                "step_ns": {"mean": statistics.fmean(steps), "p25": quarters[0], "median": quarters[1], "p75": quarters[2],
                            "count": len(steps)}}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=1.5, help="of each part")
    p.add_argument("--ms", type=float, default=8, help="length of a stall")
    p.add_argument("--only", default="", help="comma-separated plants")
    args = p.parse_args()
    wanted = [w for w in args.only.split(",") if w]
    chosen = {name: plant for name, plant in plants().items() if not wanted or name in wanted}
    # Processes first: what they are forked from has no threads then.
    order = sorted(chosen, key=lambda name: chosen[name][0] is not Worker)
    runners = {name: chosen[name][0](chosen[name][1]) for name in order}
    gc.disable()  # but for the plant
    heap = [[] for _ in range(1 << 18)]  # what a collection has to look at
    for one in heap:
        one.append(heap)
    loop = Loop()
    parts = {f"nothing, {'ahead' if ahead else 'drained'}": {"plant": None, "ahead": ahead, **loop.run(args.seconds, None, ahead)}
             for ahead in sorted({plant[3] for plant in chosen.values()})}
    for name, (_, _, accepted, ahead, whole) in chosen.items():
        runner = runners[name]
        parts[name] = {"plant": name, "accepted": accepted, "ahead": ahead, "whole": whole,
                       **loop.run(args.seconds, lambda runner=runner: runner.stall(args.ms), ahead)}
    for name, (_, work, *_) in chosen.items():
        runners[name].stop()
        if isinstance(work, Storage):
            work.stop()
    print(json.dumps({"planted_torch": 1, "pid": os.getpid(), "ms": args.ms, "parts": parts}), flush=True)


if __name__ == "__main__":
    main()
