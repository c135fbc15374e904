#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Records a part of a program's life (record --delay, --duration, --kill) on a real GPU.

    tests/gpu/capture.py --seconds 20 --delay 12 --duration 4

capture_program.py launches kernels in chunks and tells when. The recording must begin after the delay and end after the
duration; each chunk that lies within it, a second from either end, must have all its kernels in the session, and nothing may
be there that ended before. A program that is left alone must run to its end, one that is killed must be gone. Shown are the
launches a second before, in and after the recording: CUPTI stays on in the program, so "after" tells what that costs.
"""
import json
import pathlib
import re
import sqlite3
import statistics
import sys

import harness

PROGRAM = pathlib.Path(__file__).resolve().parent / "capture_program.py"
MARGIN_NS = 1_000_000_000
HEAD = ("run", "chunks", "launches/s before", "in it", "after", "chunks judged", "kernels missing", "too early")


def chunks_of(text):
    """[(start, end, kernels)] and whether the program came to its end."""
    found = [tuple(map(int, line)) for line in re.findall(r"^chunk (\d+) (\d+) (\d+)$", text, re.M)]
    return found, bool(re.search(r"^whole \d+$", text, re.M))


def rate(chunks):
    return f"{statistics.median(k * 1e9 / (end - start) for start, end, k in chunks):,.0f}" if chunks else "-"


def judge_chunks(chunks, start_ns, end_ns, kernels):
    """(judged, missing, too early): against the times of the session's kernels, each (start, end)."""
    inside = [c for c in chunks if c[0] >= start_ns + MARGIN_NS and c[1] <= end_ns - MARGIN_NS]
    missing = sum(count - sum(start <= at and to <= end for at, to in kernels) for start, end, count in inside)
    return len(inside), missing, sum(to < start_ns for _, to in kernels)


def kernels_of(whyidle, folder, limit):
    """Times of all kernels of the session, from its SQLite export."""
    path = folder / "out.sqlite"
    done = harness.run([whyidle, "export", folder / "session.whyidle", "--format", "sqlite", "--force", "-o", path], limit,
                       folder, "export")
    if done.status != 0:
        raise ValueError(harness.what_failed(done))
    database = sqlite3.connect(path)
    rows = database.execute('select start, "end" from CUPTI_ACTIVITY_KIND_KERNEL').fetchall()
    database.close()
    path.unlink()
    return rows


def one_run(args, budget, kill):
    """A row of the table, and what is judged, by name."""
    folder = args.out / ("killed" if kill else "left-alone")
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--delay", str(args.delay), "--duration", str(args.duration), *(("--kill", kill) if kill else ())]
    command = [args.python, PROGRAM, "--seconds", str(args.seconds)]
    done = harness.record(args.whyidle, folder, command, min(harness.RECORD_LIMIT_S + args.seconds, budget.left()), options)
    if done.status != 0:
        raise ValueError(harness.what_failed(done))
    chunks, whole = chunks_of(done.stdout)
    told, report = harness.report(args.whyidle, folder)
    if report is None:
        raise ValueError("no report: " + harness.what_failed(told))
    start_ns, end_ns = report["session"]["start_ns"], report["session"]["end_ns"]
    judged, missing, early = judge_chunks(chunks, start_ns, end_ns, kernels_of(args.whyidle, folder, budget.left()))
    row = ["--kill " + kill if kill else "left alone", len(chunks), rate([c for c in chunks if c[1] < start_ns]),
           rate([c for c in chunks if start_ns <= c[0] and c[1] <= end_ns]), rate([c for c in chunks if c[0] > end_ns]),
           judged, missing, early]
    length = (end_ns - start_ns) / 1e9
    verdicts = {
        "length": "pass" if args.duration <= length <= args.duration + 1 else f"FAIL: {length:.2f} s",
        "chunks": "pass" if judged and not missing and not early else f"FAIL: {judged} judged, {missing} missing, {early} early",
        "end": "pass" if whole != bool(kill) else "FAIL: the program " + ("came to its end" if whole else "did not come to its end"),
        "incomplete": "FAIL: the session is incomplete" if report["source"]["incomplete"] else "pass",
    }
    (folder / "session.whyidle").unlink(missing_ok=True)
    return row, {f"{row[0]}: {name}": verdict for name, verdict in verdicts.items()}


def main():
    p = harness.parser(__doc__, "capture")
    p.add_argument("--seconds", type=float, default=20, help="of the program's loop")
    p.add_argument("--delay", type=float, default=12, help="from the program's start, which takes some seconds itself")
    p.add_argument("--duration", type=float, default=4)
    args = harness.parse(p)
    budget, rows, named = harness.Budget(args.budget), [], {}
    harness.end_on_sigterm()
    try:
        for kill in None, "sigterm":
            if not budget.fits("run", harness.STARTUP_S + args.seconds):
                named[f"kill {kill}"] = "FAIL: no time left"
                continue
            before = budget.left()
            try:
                row, verdicts = one_run(args, budget, kill)
                rows.append(row)
                named.update(verdicts)
            except harness.UNEXPECTED as failed:
                named[f"kill {kill}"] = f"FAIL: {failed!r}"
            budget.took("run", before - budget.left())
    finally:
        (args.out / "capture.json").write_text(json.dumps({"rows": rows, "verdicts": named}, indent=1) + "\n")
        notes = [f"- {name}: {verdict}" for name, verdict in named.items()]
        harness.finish(args, "A part of a run", harness.table(HEAD, rows), notes, list(named.values()))
    return any(v.startswith("FAIL") for v in named.values())


if __name__ == "__main__":
    sys.exit(main())
