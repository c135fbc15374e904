#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What the daemon costs, within one run of a program: its step rate with the daemon beside it and without, in turns.

    tests/gpu/daemon_within.py --workloads DIR --programs a12,a1 [--pairs 10] [--stretch 10] [--option='--interval 5s']

Each program runs once. A pair is two stretches of equal length next to each other, one with a daemon at its defaults and one
without; which comes first alternates, so that a drift of the program's speed cancels out. The time in which the daemon starts
and ends is not measured. The slow-down of a pair is the rate without divided by the rate beside the daemon.

daemon_cost.py runs the program anew for each figure, and so measures more of what differs from run to run than of the daemon.
A stretch has a window of full recording as often as the daemon's own schedule and budget say; how many is in the table. The
limit is 0.3 %; whether that can be told from noise, the interval says.
"""
import json
import pathlib
import shlex
import statistics
import sys
import time

import daemon_cost
import harness
from counted_program import Program

LIMIT = 1.003
SETTLE_S = 3
HEAD = ("program", "slow-down", "95 % interval", "min..max", "verdict", "pairs", "steps/s without", "CPU %", *daemon_cost.PARTS,
        "windows", "state", "lost", "MiB")


def rate_beside(args, folder, program):
    """(steps a second, what the daemon said of itself)"""
    daemon = daemon_cost.Daemon(args, folder, shlex.split(args.option))
    try:
        start, before = time.monotonic(), daemon.metrics()
        rate = program.rate(args.stretch)
        said = daemon_cost.told(before, daemon.metrics(), time.monotonic() - start, daemon.memory_mib())
        said["steps"] = [e["text"] for name in ("budget_step", "degraded", "window_failed") for e in daemon.events(name)]
    finally:
        daemon.end()
    return rate, said


def one_pair(args, program, number):
    """{"without": rate, "beside": rate, "said": dict}"""
    pair = {}
    for mode in ("without", "beside") if number % 2 == 0 else ("beside", "without"):
        if mode == "beside":
            pair[mode], pair["said"] = rate_beside(args, program.folder / f"daemon-{number}", program)
        else:
            pair[mode] = program.rate(args.stretch)
    return pair


def judge(ratios):
    """'pass' unless the interval of the median lies above the limit."""
    return "pass" if ratios and harness.bootstrap(ratios)[0] <= LIMIT else "FAIL"


def row_of(result):
    pairs = result["pairs"]
    if not pairs:
        return [result["program"], *["-"] * 3, harness.short(result["verdict"]), 0, *["-"] * (len(HEAD) - 6)]
    ratios, said = [p["without"] / p["beside"] for p in pairs], [p["said"] for p in pairs]
    low, high = harness.bootstrap(ratios)
    states = sorted({s["state"] for s in said})
    return [result["program"], f"{statistics.median(ratios):.4f}", f"{low:.4f}..{high:.4f}", harness.spread(ratios, 4),
            harness.short(result["verdict"]), len(pairs), f"{statistics.median(p['without'] for p in pairs):.2f}",
            f"{statistics.mean(s['cpu'] for s in said):.3f}",
            *(f"{statistics.mean(s['parts'][part] for s in said):.3f}" for part in daemon_cost.PARTS),
            f"{statistics.mean(s['windows'] for s in said):.1f}", ", ".join(states), f"{sum(s['lost'] for s in said):.0f}",
            f"{max(s['memory'] for s in said):.0f}"]


def one_program(args, budget, name, script, result):
    seconds = SETTLE_S + args.pairs * (2 * args.stretch + 4) + 10
    program = Program(args, args.out / name, script, seconds)
    try:
        program.wait_for_steps(min(4 * harness.STARTUP_S, budget.left()))
        time.sleep(SETTLE_S)  # clocks and caches, not a condition that could be asked for
        for number in range(args.pairs):
            if not budget.fits("pair", 2 * args.stretch + 6):
                break
            before = budget.left()
            result["pairs"].append(one_pair(args, program, number))
            budget.took("pair", before - budget.left())
    finally:
        program.close()
    result["verdict"] = judge([p["without"] / p["beside"] for p in result["pairs"]])


def main():
    p = harness.parser(__doc__, "daemon-within")
    p.add_argument("--workloads", type=pathlib.Path, default=harness.default_workloads(), help="folder of the workloads")
    p.add_argument("--programs", default="a12,a1,a5", help="comma-separated short names, or 'all'")
    p.add_argument("--pairs", type=int, default=10, help="pairs of stretches of each program")
    p.add_argument("--stretch", type=float, default=10, help="seconds of one stretch")
    p.add_argument("--option", default="", help="options of the daemon, in one word")
    args = harness.parse(p)
    budget, results = harness.Budget(args.budget), []
    harness.end_on_sigterm()
    try:
        for name, script in harness.find_scripts(args.workloads, args.programs):
            result = {"program": name, "verdict": "FAIL: not finished", "pairs": []}
            results.append(result)
            if not budget.fits("pair", 2 * args.stretch + harness.STARTUP_S):
                result["verdict"] = "skip: no time left"
                continue
            try:
                one_program(args, budget, name, script, result)
            except (RuntimeError, *harness.UNEXPECTED) as odd:
                result["verdict"] = f"FAIL: {odd}"
            print(f"{name}: {result['verdict']}", flush=True)
    finally:
        (args.out / "daemon-within.json").write_text(json.dumps(results, indent=1) + "\n")
        notes = harness.reasons((r["program"], r["verdict"]) for r in results)
        steps = sorted({(r["program"], step) for r in results for pair in r["pairs"] for step in pair["said"]["steps"]})
        notes += [f"- {program}: {step}" for program, step in steps[:6]]
        harness.finish(args, f"Cost of the daemon within a run, {args.stretch:g} s a stretch",
                       harness.table(HEAD, [row_of(r) for r in results]), notes, [r["verdict"] for r in results])
    return any(r["verdict"].startswith("FAIL") for r in results)


if __name__ == "__main__":
    sys.exit(main())
