#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""How far the GPU timeline that is inferred from CUDA calls is from CUPTI's, on runs of the same programs.

    tests/gpu/inferred.py --workloads DIR [--programs a1,a4,a11,a12] [--rounds 1]

Each round records a program twice, with CUPTI and with probes on its CUDA calls alone, in an order that alternates; the
reports are asked for exactly the measured phase. The shares of idle time may differ by at most 5 points, and in a1 and a4
the cause with most idle time has to be the same. Nothing is passed on one recording alone: each must say by itself which
timeline it has, and have seen work. "certain + estimated" are the seconds of idle time that the inferred
report says so of; they are of the whole recording, start-up included, and so more than "idle inferred" of the phase. The two
are different runs: the steps per second of both are in the table, and CUPTI's
own spread can be had from more rounds.
"""
import json
import re
import statistics
import sys

import harness

MODES = {"cupti": (), "inferred": ("--no-bridge", "--uprobes", "always")}
POINTS = 0.05
SAME_CAUSE = ("a1", "a4")
HEAD = ("program", "verdict", "idle CUPTI", "idle inferred", "points", "busy ms CUPTI", "busy ms inferred", "top CUPTI",
        "top inferred", "certain + estimated", "steps/s CUPTI → inferred", "lost")
CERTAIN = re.compile(r"idle time ([\d.]+) s are certain.* ([\d.]+) s estimated")


def top_of(gpu):
    """What the largest cause is; time that the scheduler took differs from run to run, as in the e2e tests."""
    causes = [c for c in gpu["causes"] if not c["code"].startswith("sched.")]
    return f"{causes[0]['code']}@{causes[0]['role']}" if causes else "nothing"


def certain_text(document):
    """'1.2 + 3.4 s': what the report says of idle time that is certain and of what is estimated, of all processes."""
    said = [found.groups() for found in map(CERTAIN.search, document.get("degraded", [])) if found]
    return " + ".join(f"{sum(map(float, column)):.2f}" for column in zip(*said)) + " s" if said else "-"


def figures(mode, truth, document):
    """What is compared, of one recording. ValueError says why there is nothing to compare."""
    timeline = document["source"]["gpu_timeline"]
    if timeline != mode:
        raise ValueError(f"the timeline of the {mode} run is {timeline}: {'; '.join(document.get('degraded', []))[:300]}")
    gpu = harness.busiest(document)
    if gpu is None or not gpu["busy_ns"]:
        raise ValueError(f"no work was seen in the {mode} run")
    # Of the same phase, whatever the report's window became: an inferred timeline has no say outside of it.
    wall = truth["end_ns"] - truth["start_ns"]
    return {"idle": gpu["idle_ns"] / wall, "busy_ms": gpu["busy_ns"] / 1e6, "top": top_of(gpu),
            "rate": truth["steps_per_s"], "lost": harness.lost_text(document), "certain": certain_text(document)}


def record_one(args, budget, name, script, mode, number):
    folder = args.out / f"{name}-{number}-{mode}"
    limit = min(args.seconds + harness.RECORD_LIMIT_S, budget.left())
    done = harness.record(args.whyidle, folder, [args.python, script, "--seconds", f"{args.seconds:g}"], limit, MODES[mode])
    truth = harness.json_line(done.stdout, "workload")
    if done.status != 0 or truth is None:
        raise ValueError(f"record ({mode}): {harness.what_failed(done)}")
    told, document = harness.report(args.whyidle, folder, harness.window_of(truth))
    if document is None:
        raise ValueError(f"report ({mode}): {harness.what_failed(told)}")
    (folder / "session.whyidle").unlink()
    return figures(mode, truth, document)


def judge(name, rounds):
    """'pass' or 'FAIL: why'; rounds: [{mode: figures}]."""
    middle = {mode: statistics.median(r[mode]["idle"] for r in rounds) for mode in MODES}
    points = middle["inferred"] - middle["cupti"]
    if abs(points) > POINTS:
        return f"FAIL: idle time differs by {points * 100:+.1f} points"
    differ = [(r["cupti"]["top"], r["inferred"]["top"]) for r in rounds if r["cupti"]["top"] != r["inferred"]["top"]]
    if name.split("_")[0] in SAME_CAUSE and differ:
        return f"FAIL: top cause {differ[0][0]} by CUPTI, {differ[0][1]} by what is inferred"
    return "pass"


def row_of(name, verdict, rounds):
    if not rounds:
        return [name, harness.short(verdict), *["-"] * (len(HEAD) - 2)]

    def both(key, form):
        return [form(statistics.median(r[mode][key] for r in rounds)) for mode in MODES]

    idle = [statistics.median(r[mode]["idle"] for r in rounds) for mode in MODES]
    tops = [", ".join(sorted({r[mode]["top"] for r in rounds})) for mode in MODES]
    lost = sorted({r[mode]["lost"] for r in rounds for mode in MODES})
    return [name, harness.short(verdict), *both("idle", "{:.1%}".format), f"{(idle[1] - idle[0]) * 100:+.1f}",
            *both("busy_ms", "{:.0f}".format), *tops, ", ".join(r["inferred"]["certain"] for r in rounds), " → ".join(both("rate", "{:.1f}".format)), "; ".join(lost)]


def one_program(args, budget, name, script, result):
    for number in range(args.rounds):
        if number and not budget.fits("pair", 2 * (args.seconds + harness.STARTUP_S)):
            break
        before, pair = budget.left(), {}
        for mode in sorted(MODES, reverse=number % 2 == 1):
            pair[mode] = record_one(args, budget, name, script, mode, number)
        result["rounds"].append(pair)
        budget.took("pair", before - budget.left())
    result["verdict"] = judge(name, result["rounds"])


def main():
    p = harness.parser(__doc__, "inferred")
    harness.add_workloads(p, "--programs", "a1,a4,a11,a12", 4)
    p.add_argument("--rounds", type=int, default=1, help="pairs of recordings of each program")
    args = harness.parse(p)
    budget, results = harness.Budget(args.budget), []
    harness.end_on_sigterm()
    try:
        for name, script in harness.find_scripts(args.workloads, args.programs):
            result = {"program": name, "verdict": "FAIL: not finished", "rounds": []}
            results.append(result)
            if not budget.fits("pair", 2 * (args.seconds + harness.STARTUP_S)):
                result["verdict"] = "skip: no time left"
                continue
            try:
                one_program(args, budget, name, script, result)
            except harness.UNEXPECTED as odd:
                result["verdict"] = f"FAIL: {odd}"
            print(f"{name}: {result['verdict']}", flush=True)
    finally:
        (args.out / "inferred.json").write_text(json.dumps(results, indent=1) + "\n")
        rows = [row_of(r["program"], r["verdict"], r["rounds"]) for r in results]
        verdicts = [r["verdict"] for r in results]
        notes = harness.reasons((r["program"], r["verdict"]) for r in results)
        harness.finish(args, f"Inferred GPU timeline against CUPTI, {args.seconds:g} s each", harness.table(HEAD, rows), notes,
                       verdicts)
    return any(v.startswith("FAIL") for v in verdicts)


if __name__ == "__main__":
    sys.exit(main())
