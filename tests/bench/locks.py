#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What naming locks costs: calls of the C library recorded with --locks waits and mutexes against --locks off.

    locks.py [--build DIR] [--rounds N] [--seconds N]

Each round runs tests/bench/lock_calls.c once in each way, in an order that turns from round to round: bare, recorded with
--locks off, waits and mutexes, and bare beside a recording of another program with --locks mutexes (probes are in the C
library's file, so every program that uses it meets them). The first column is the CPU time of a call bare; the others are what a
call took longer than in the same round without probes (recorded against --locks off, beside against bare): the median of the
rounds, with quartiles. All in nanoseconds. Needs root and BPF.
"""
import argparse
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAYS = ("bare", "off", "waits", "mutexes", "beside")
AGAINST = {"off": "bare", "waits": "off", "mutexes": "off", "beside": "bare"}
HEADS = {"off": "off", "waits": "waits", "mutexes": "mutexes", "beside": "mutexes, in others"}


def calls_of(output):
    """{kind: ns a call} of what lock_calls printed."""
    return {kind: float(ns) for kind, ns, _ in (line.split() for line in output.splitlines())}


class Bench:
    def __init__(self, build, folder, seconds):
        self.whyidle = str(build / "whyidle")
        self.program = [str(build / "bench" / "lock_calls"), str(seconds)]
        self.folder = folder

    def record(self, locks, command):
        return [self.whyidle, "record", "-q", "--no-report", "-o", f"{self.folder}/session.whyidle", "--locks", locks,
                "--", *command]

    def run(self, argv):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        said = [line for line in done.stderr.splitlines() if line and line != "whyidle: no process used CUDA"]
        if done.returncode or said:
            sys.exit(f"{' '.join(argv)}: exit status {done.returncode}\n{done.stderr}")
        return calls_of(done.stdout)

    def bare(self):
        return self.run(self.program)

    def beside(self):
        """The recorded program says when it runs, which is after the probes are in, and stays until it is let go."""
        other = self.record("mutexes", ["sh", "-c", "echo runs; read line"])
        with subprocess.Popen(other, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            if process.stdout.readline() != "runs\n":
                sys.exit(f"{' '.join(other)}: did not start its command")
            calls = self.bare()
            process.communicate("\n")
        if process.returncode:
            sys.exit(f"{' '.join(other)}: exit status {process.returncode}")
        return calls

    def one(self, way):
        if way in ("bare", "beside"):
            return getattr(self, way)()
        return self.run(self.record(way, self.program))


def measure(bench, rounds):
    """[{way: {kind: ns a call}}]"""
    results = []
    for number in range(rounds):
        turn = number % len(WAYS)
        results.append({way: bench.one(way) for way in WAYS[turn:] + WAYS[:turn]})
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return results


def added(results, way, kind):
    values = [r[way][kind] - r[AGAINST[way]][kind] for r in results]
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:+,.0f} ({low:+,.0f} to {high:+,.0f})"


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine())


def is_virtual():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return " hypervisor" in file.read()


def describe(results, rounds, seconds):
    print(f"{len(os.sched_getaffinity(0))} CPUs ({cpu_model()}{', virtual' if is_virtual() else ''}), "
          f"Linux {platform.release()}, {' '.join(platform.libc_ver())}, load {os.getloadavg()[0]:.1f}; "
          f"{rounds} rounds of {seconds:g} s for each kind of call")
    table = [("ns a call", "bare", *HEADS.values())]
    for kind in results[0]["bare"]:
        bare = statistics.median(r["bare"][kind] for r in results)
        table.append((kind, f"{bare:,.0f}", *(added(results, way, kind) for way in HEADS)))
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.3)
    args = parser.parse_args()
    if os.geteuid():
        sys.exit("bench-locks: needs root (BPF)")
    if args.rounds < 2:
        parser.error("--rounds: at least 2, for the spread")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="whyidle-locks-") as folder:
        results = measure(Bench(args.build, folder, args.seconds), args.rounds)
    describe(results, args.rounds, args.seconds)
    print(f"took {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
