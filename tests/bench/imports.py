#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What opening a trace costs: whyidle report --json on given Kineto traces, or on a made-up one.

    imports.py [--build DIR] [--operations N] [--repeat N] [--folder DIR] [TRACE]...

Prints for each trace the size of its JSON text, time, text per second (of time, and of CPU time, which other load on the
machine hardly changes; a thread reads ahead, so it can be the larger) and peak memory: the best of --repeat runs, with
the file in the page cache. A made-up trace has about 450 bytes and one GPU operation each (tests/bench/make_kineto.c),
so the default of 5 million operations needs 2.3 GB in --folder.
"""
import argparse
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def text_size(path):
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if not packed:
        return os.path.getsize(path)
    size = 0
    with gzip.open(path) as file:
        while block := file.read(1 << 20):
            size += len(block)
    return size


def measure(whyidle, trace):
    """(seconds, CPU seconds, peak MB)"""
    begin = time.monotonic()
    with subprocess.Popen([whyidle, "report", "--json", trace], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"whyidle report {trace}: exit status {process.returncode}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def show(whyidle, trace, repeat):
    size = text_size(trace) / 1e6
    runs = [measure(whyidle, trace) for _ in range(repeat)]
    seconds, cpu, memory = (min(run[i] for run in runs) for i in range(3))
    print(f"{os.path.basename(trace):40} {size:8.1f} {seconds:7.2f} {cpu:7.2f} {size / seconds:7.0f} {size / cpu:10.0f} "
          f"{memory:8.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--operations", type=int, default=5000000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("traces", nargs="*", metavar="TRACE")
    args = parser.parse_args()
    print(f"{'trace':40} {'text MB':>8} {'s':>7} {'CPU s':>7} {'MB/s':>7} {'MB/CPU s':>10} {'peak MB':>8}")
    for trace in args.traces:
        show(args.build / "whyidle", trace, args.repeat)
    if not args.traces:
        with tempfile.NamedTemporaryFile(prefix="whyidle-made-up-", suffix=".json", dir=args.folder) as file:
            subprocess.run([args.build / "bench" / "make_kineto", str(args.operations)], stdout=file, check=True)
            show(args.build / "whyidle", file.name, args.repeat)


if __name__ == "__main__":
    main()
