#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What writing a Perfetto trace costs: whyidle export --format perfetto of two made-up inputs.

    exports.py [--build DIR] [--operations N] [--steps N] [--repeat N] [--folder DIR]

One is a Kineto trace (tests/bench/make_kineto.c: operations, and a call for each), the other a session (session_steps.c:
gaps with their causes, and ten off-CPU intervals each). Events are the packets of the trace: a slice has two, a counter's
value one. "writing" is the CPU time of the export less that of `report --json`, which reads and explains the same; the
best of --repeat runs of each.
"""
import argparse
import mmap
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def cpu_seconds(*argv):
    with subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(map(str, argv))}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def count_packets(path):
    """A trace is nothing but packets: field 1, a length, so many bytes."""
    count = at = 0
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        size = len(data)
        while at < size:
            assert data[at] == 0x0a, f"no packet at {at}"
            at += 1
            length = shift = 0
            while True:
                byte = data[at]
                at += 1
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            at += length
            count += 1
    return count


def show(whyidle, name, source, folder, repeat):
    out = f"{folder}/out.pftrace"
    reading = min(cpu_seconds(whyidle, "report", "--json", source) for _ in range(repeat))
    whole = min(cpu_seconds(whyidle, "export", "--format", "perfetto", "-o", out, source) for _ in range(repeat))
    events, size = count_packets(out), os.path.getsize(out) / 1e6
    os.remove(out)
    writing = max(whole - reading, 1e-3)
    print(f"{name:30} {events:11,} {size:8.1f} {reading:8.2f} {writing:8.2f} {events / writing / 1e6:12.2f} "
          f"{events / whole / 1e6:10.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--operations", type=int, default=1000000)
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    args = parser.parse_args()
    print(f"{'source':30} {'events':>11} {'MB':>8} {'reading':>8} {'writing':>8} {'M events/CPU s':>12} {'with reading':>10}")
    with tempfile.TemporaryDirectory(prefix="whyidle-exports-", dir=args.folder) as folder:
        trace, session = f"{folder}/trace.json", f"{folder}/session.whyidle"
        with open(trace, "wb") as file:
            subprocess.run([args.build / "bench" / "make_kineto", str(args.operations)], stdout=file, check=True)
        show(args.build / "whyidle", f"Kineto, {args.operations:,} operations", trace, folder, args.repeat)
        os.remove(trace)
        subprocess.run([args.build / "bench" / "session_steps", session, str(args.steps)], check=True)
        show(args.build / "whyidle", f"session, {args.steps:,} steps", session, folder, args.repeat)


if __name__ == "__main__":
    main()
