#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What explaining a session costs: whyidle report on made-up sessions, each twice as long as the one before.

    analysis.py [--build DIR] [--steps N] [--doublings N] [--repeat N]

A step has one gap and ten off-CPU intervals (tests/bench/session_steps.c), so the default of 200,000 steps is a session
with 200,000 gaps and 2 million intervals. Time and memory are those of `whyidle report --json`, the best of --repeat
runs; "times" is the CPU time divided by that of the session half as long.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def measure(whyidle, session, folder):
    """(seconds, CPU seconds, peak MB, gaps)"""
    with open(f"{folder}/report.json", "w", encoding="utf-8") as output:
        begin = time.monotonic()
        with subprocess.Popen([whyidle, "report", "--json", session], stdout=output) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
    if process.returncode:
        sys.exit(f"whyidle report: exit status {process.returncode}")
    with open(f"{folder}/report.json", encoding="utf-8") as output:
        gaps = json.load(output)["gpus"][0]["gap_count"]
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, gaps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--steps", type=int, default=200000)
    parser.add_argument("--doublings", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    print(f"{'gaps':>10}  {'intervals':>10}  {'file MB':>8}  {'s':>6}  {'CPU s':>6}  {'peak MB':>8}  {'times':>6}")
    before = None
    with tempfile.TemporaryDirectory(prefix="whyidle-analysis-") as folder:
        session = f"{folder}/session.whyidle"
        for doubling in range(args.doublings + 1):
            steps = args.steps << doubling
            subprocess.run([args.build / "bench" / "session_steps", session, str(steps)], check=True)
            best = min(measure(args.build / "whyidle", session, folder) for _ in range(args.repeat))
            times = f"{best[1] / before:.2f}" if before else "-"
            print(f"{best[3]:10,}  {10 * steps:10,}  {os.path.getsize(session) / 1e6:8.1f}  {best[0]:6.2f}  {best[1]:6.2f}  "
                  f"{best[2]:8.0f}  {times:>6}", flush=True)
            before = best[1]


if __name__ == "__main__":
    main()
