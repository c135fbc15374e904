#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A program that uses CUPTI itself (through torch.profiler) is recorded: nobody is harmed and nobody is left in the dark.

    tests/gpu/cupti_taken.py

taken_program.py runs bare and under whyidle record, with the profiler started before CUDA, after it, and with libkineto
taking CUPTI as soon as torch is imported (KINETO_USE_DAEMON). Each run must print the same results and end with the same
status. Whoever got no GPU records must say so: the profiler on the program's stderr,
whyidle in the report (a line that names CUPTI). The report must succeed in any case.
"""
import json
import pathlib
import re
import sys

import harness

PROGRAM = pathlib.Path(__file__).resolve().parent / "taken_program.py"
KERNELS, STATUS = 5000, 7
ORDERS = {"profiler-first": ("profiler-first", {}), "cuda-first": ("cuda-first", {}),
          "at-import": ("profiler-first", {"KINETO_USE_DAEMON": "1"})}
HEAD = ("order", "verdict", "exit bare/recorded", "profiler saw bare/recorded", "whyidle saw", "whyidle says", "stderr says")


def lines_of(text, start):
    return [line for line in text.splitlines() if line.startswith(start)]


def seen_by_profiler(done):
    found = re.search(r"^profiler saw (-?\d+)$", done.stdout, re.M)
    return int(found.group(1)) if found else None


def about_cupti(text):
    """Lines that name CUPTI and are not whyidle's own."""
    return [line.strip() for line in text.splitlines() if "cupti" in line.lower() and not line.startswith("whyidle:")]


def judge(bare, recorded, told, document, said_by_whyidle):
    """'pass' or 'FAIL: why'."""
    if (bare.timed_out, bare.status) != (False, STATUS):
        return "FAIL: the program does not even work bare: " + harness.what_failed(bare)
    if (recorded.timed_out, recorded.status) != (False, bare.status):
        return "FAIL: recorded: " + harness.what_failed(recorded)
    if lines_of(recorded.stdout, "result") != lines_of(bare.stdout, "result"):
        return f"FAIL: other results: {lines_of(recorded.stdout, 'result')}"
    if document is None:
        return "FAIL: report: " + harness.what_failed(told)
    gpu = harness.busiest(document)
    saw, profiler_saw, profiler_saw_bare = gpu["op_count"] if gpu else 0, seen_by_profiler(recorded), seen_by_profiler(bare)
    # All of the work, not the few operations of before the profiler came.
    if saw < KERNELS and not said_by_whyidle:
        return f"FAIL: whyidle saw {saw} operations and does not say why"
    if profiler_saw is None or (profiler_saw < profiler_saw_bare and not about_cupti(recorded.stderr)):
        return f"FAIL: the profiler saw {profiler_saw} events instead of {profiler_saw_bare}, without a word"
    if saw < KERNELS and profiler_saw < profiler_saw_bare:
        return "FAIL: both lost their records"
    return "pass"


def one_order(args, budget, name):
    """A row of the table."""
    order, environment = ORDERS[name]
    folder, command = args.out / name, [args.python, PROGRAM, order, KERNELS, STATUS]
    bare = harness.run(command, min(harness.RECORD_LIMIT_S, budget.left()), folder, "bare", environment)
    recorded = harness.record(args.whyidle, folder, command, min(harness.RECORD_LIMIT_S, budget.left()), (), environment)
    told, document = harness.report(args.whyidle, folder)
    text = harness.run([args.whyidle, "report", folder / "session.whyidle"], harness.REPORT_LIMIT_S, folder, "report-text")
    said = [line for line in (document or {}).get("degraded", []) if "cupti" in line.lower()]
    verdict = judge(bare, recorded, told, document, said)
    if verdict == "pass" and said and "cupti" not in text.stdout.lower():
        verdict = "FAIL: the text report does not say what the JSON report says"
    gpu = harness.busiest(document) if document else None
    own = about_cupti(recorded.stderr)
    return [name, verdict, f"{bare.status}/{recorded.status}", f"{seen_by_profiler(bare)}/{seen_by_profiler(recorded)}",
            gpu["op_count"] if gpu else 0, (said or ["-"])[0][:160], (own or ["-"])[0][:160]]


def main():
    p = harness.parser(__doc__, "taken")
    args = harness.parse(p)
    budget, rows = harness.Budget(args.budget), []
    harness.end_on_sigterm()
    try:
        for order in ORDERS:
            if budget.fits("order", 2 * harness.STARTUP_S):
                before = budget.left()
                try:
                    rows.append(one_order(args, budget, order))
                except harness.UNEXPECTED as odd:
                    rows.append([order, f"FAIL: {odd!r}", *["-"] * (len(HEAD) - 2)])
                budget.took("order", before - budget.left())
            else:
                rows.append([order, "skip: no time left", *["-"] * (len(HEAD) - 2)])
            print(f"{order}: {rows[-1][1]}", flush=True)
    finally:
        (args.out / "taken.json").write_text(json.dumps([dict(zip(HEAD, row)) for row in rows], indent=1) + "\n")
        verdicts = [row[1] for row in rows]
        shown = [[row[0], harness.short(row[1]), *row[2:]] for row in rows]
        harness.finish(args, "CUPTI in use by the program itself", harness.table(HEAD, shown),
                       harness.reasons((row[0], row[1]) for row in rows), verdicts)
    return any(v.startswith("FAIL") for v in verdicts)


if __name__ == "__main__":
    sys.exit(main())
