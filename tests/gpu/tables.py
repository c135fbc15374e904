#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares whyidle's tables with torch.profiler's key_averages (kernels) and with the program's own clock (NVTX ranges).

    tests/gpu/tables.py --repeats 3 --steps 200

Only one of the two can use CUPTI in a process, so tables_program.py runs in turn under each, in alternating order.
Kernels: in every run of either, each name must have come equally often; the time of all kernels, and of each that takes a
tenth of it or more, must agree within 1 % between the medians over the repeats (those of shorter kernels are shown).
Ranges: `report --table ranges` of each recorded run has each range as often as the program made it, with a time between what
the program's own clock says inside and outside of the calls, and in the right style; `--table ranges-gpu` has work of each on
the GPU.
"""
import json
import pathlib
import statistics
import sys

import harness

PROGRAM = pathlib.Path(__file__).resolve().parent / "tables_program.py"
LIMIT, LARGE = 0.01, 0.1
STYLES = {"step": "PushPop", "forward": "PushPop", "more kernels": "PushPop", "epoch": "StartEnd"}
COPIES = ("Memcpy", "Memset")  # how torch.profiler's names of what is no kernel begin
HEAD = ("kernel", "count", "whyidle, µs", "torch.profiler, µs", "difference", "verdict")


def plain(name):
    """A kernel's name without what the two demanglers do differently: blanks."""
    return "".join(name.split())


def figures(rows):
    """Plain name → (count, ns) of (name, count, ns); names that became equal are one."""
    found = {}
    for name, count, ns in rows:
        old = found.get(plain(name), (0, 0))
        found[plain(name)] = (old[0] + count, old[1] + ns)
    return found


def by_profiler(said):
    return figures((name, count, ns) for name, (count, ns) in said["kernels"].items() if not name.startswith(COPIES))


def table_rows(tables, name):
    return next(table["rows"] for table in tables["tables"] if table["name"] == name)


def by_tables(tables):
    return figures((row["name"], row["count"], row["total_ns"]) for row in table_rows(tables, "kernels"))


def judge_counts(runs):
    """One verdict: the same names, equally often, in all runs."""
    reference = {name: count for name, (count, _) in runs[0].items()}
    for run in runs[1:]:
        counts = {name: count for name, (count, _) in run.items()}
        if counts != reference:
            odd = sorted(name for name in counts.keys() | reference.keys() if counts.get(name) != reference.get(name))
            return (f"FAIL: counts differ for {len(odd)} of {len(reference)} names: " +
                    "; ".join(f"{n[:80]}: {reference.get(n, 0)} and {counts.get(n, 0)}" for n in odd[:3]))
    return "pass" if reference else "FAIL: no kernels"


def judge_times(ours, theirs):
    """Rows of the table, largest first, the sum of all before them."""
    def row(label, count, mine, other, judged):
        mine, other = statistics.median(mine) / 1e3, statistics.median(other) / 1e3
        difference = mine / other - 1 if other else float("inf")
        verdict = "" if not judged else "pass" if abs(difference) <= LIMIT else "FAIL"
        return [label, count, f"{mine:.1f}", f"{other:.1f}", f"{difference:+.2%}", verdict]

    def values(runs, name):
        return [run.get(name, (0, 0))[1] for run in runs]
    sums = [[sum(ns for _, ns in run.values()) for run in runs] for runs in (ours, theirs)]
    total = statistics.median(sums[1])
    rows = [row("all", sum(count for count, _ in theirs[0].values()), *sums, True)]
    for name, (count, _) in sorted(theirs[0].items(), key=lambda item: -item[1][1]):
        other = values(theirs, name)
        rows.append(row(name[:70], count, values(ours, name), other, statistics.median(other) >= LARGE * total))
    return rows


def judge_ranges(said, tables):
    """'pass' or 'FAIL: why', for each range of the program."""
    rows = {row["name"]: row for row in table_rows(tables, "ranges")}
    on_gpu = {row["name"]: row for row in table_rows(tables, "ranges-gpu")}
    verdicts = {}
    for name, (count, inside_ns, outside_ns) in said["ranges"].items():
        row = rows.get(name)
        if row is None or row["count"] != count:
            verdict = f"FAIL: {row['count'] if row else 0} of {count} ranges"
        elif row["style"] != STYLES[name]:
            verdict = f"FAIL: its style is {row['style']}"
        elif not inside_ns <= row["total_ns"] <= outside_ns:
            verdict = f"FAIL: {row['total_ns']} ns, by the program's clock {inside_ns} to {outside_ns} ns"
        elif on_gpu.get(name, {"count": 0})["count"] != count:
            verdict = "FAIL: not each has work on the GPU"
        else:
            verdict = "pass"
        verdicts[name] = verdict
    return verdicts or {"ranges": "FAIL: the program made none"}


def one_run(args, budget, kind, number):
    """(what the program said, tables or None) of one run; raises ValueError with what failed."""
    folder, limit = args.out / f"{kind}-{number}", min(harness.RECORD_LIMIT_S, budget.left())
    command = [args.python, PROGRAM, "--steps", str(args.steps)]
    if kind == "whyidle":
        done = harness.record(args.whyidle, folder, command, limit)
    else:
        done = harness.run([*command, "--profile"], limit, folder, "profiler")
    said = harness.json_line(done.stdout, "tables_program")
    if done.status != 0 or said is None:
        raise ValueError(harness.what_failed(done))
    if kind != "whyidle":
        return said, None
    told, tables = harness.report(args.whyidle, folder, ["--tables", *harness.window_of(said)])
    (folder / "session.whyidle").unlink(missing_ok=True)
    if tables is None:
        raise ValueError("no tables: " + harness.what_failed(told))
    return said, tables


def main():
    p = harness.parser(__doc__, "tables")
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--steps", type=int, default=200, help="of tables_program.py")
    args = harness.parse(p)
    budget, runs, failures = harness.Budget(args.budget), {"whyidle": [], "profiler": []}, []
    harness.end_on_sigterm()
    try:
        for number in range(args.repeats):
            for kind in sorted(runs, reverse=number % 2 == 0):
                if not budget.fits(kind, harness.STARTUP_S + args.steps * 0.01):
                    continue
                before = budget.left()
                try:
                    runs[kind].append(one_run(args, budget, kind, number))
                    print(f"{kind} {number}: done", flush=True)
                except harness.UNEXPECTED as failed:
                    failures.append(f"{kind} {number}: {failed!r}")
                    print(failures[-1], flush=True)
                budget.took(kind, before - budget.left())
    finally:
        rows, named = [], [(f, "FAIL: " + f) for f in failures]
        if all(runs.values()):
            ours = [by_tables(tables) for _, tables in runs["whyidle"]]
            theirs = [by_profiler(said) for said, _ in runs["profiler"]]
            named.append(("counts", judge_counts([*theirs, *ours])))
            rows = judge_times(ours, theirs) if theirs[0] else []
        else:
            named.append(("kernels", "FAIL: nothing to compare"))
        for number, (said, tables) in enumerate(runs["whyidle"]):
            named += [(f"range '{name}', run {number}", v) for name, v in judge_ranges(said, tables).items()]
        (args.out / "tables.json").write_text(json.dumps({"runs": runs, "failures": failures}, indent=1) + "\n")
        verdicts = [row[-1] for row in rows if row[-1]] + [v for _, v in named]
        notes = [f"- {name}: {verdict}" for name, verdict in named]
        notes.append(f"- {len(runs['whyidle'])} runs under whyidle, {len(runs['profiler'])} under torch.profiler, "
                     f"{args.steps} steps each; {len(rows)} rows, the largest are shown.")
        harness.finish(args, "Tables against torch.profiler and NVTX", harness.table(HEAD, rows[:12]), notes, verdicts)
    return any(v.startswith("FAIL") for v in verdicts)


if __name__ == "__main__":
    sys.exit(main())
