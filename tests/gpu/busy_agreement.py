#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares whyidle's busy time with torch.profiler's, over the same GPU work.

    tests/gpu/busy_agreement.py --repeats 4 --steps 300
    tests/gpu/busy_agreement.py --program a11 --seconds 3 --workloads DIR

Only one of the two can use CUPTI in a process, so busy_program.py runs in turn under each, in alternating order, and the
medians over the repeats are compared, per step. From torch.profiler's (Kineto's) trace the union of kernels, copies and
memsets is computed here; from whyidle come busy_ns, compute_busy_ns (kernels) and op_count of `report --json`. Passes if
both unions agree within 1 % and the number of operations is the same. Kernels by name are counted in the traces alone (the
report does not list them): they show that the program did the same in every run.

busy_program.py moves about as much time in copies as in kernels, and copies over the bus vary from run to run by more than
one per cent under either tool. With --program the same comparison is made of the measured phase of a planted workload.
"""
import collections
import decimal
import json
import pathlib
import statistics
import sys

import harness

FOLDER = pathlib.Path(__file__).resolve().parent
PROGRAM, PROFILER = FOLDER / "busy_program.py", FOLDER / "under_profiler.py"
KINDS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}
LIMIT = 0.01
PAUSE_NS = 400_000  # the GPU is idle for longer than this between two steps
HEAD = ("per step", "whyidle", "min..max", "torch.profiler", "min..max", "difference", "limit", "verdict")


def nanoseconds(microseconds):
    return int((decimal.Decimal(microseconds) * 1000).to_integral_value())


def trace_operations(path):
    """[(start, end, kind, name)] of a Kineto trace, in ns, by start."""
    # Times can have more digits than a double.
    events = json.loads(path.read_text(errors="replace"), parse_float=decimal.Decimal)["traceEvents"]
    found = [(nanoseconds(e["ts"]), nanoseconds(e["ts"]) + nanoseconds(e["dur"]), KINDS[e["cat"]], e["name"])
             for e in events if e.get("ph") == "X" and e.get("cat") in KINDS]
    return sorted(found)


def union(intervals):
    """Length of the union of (start, end, …) that are sorted by start."""
    total, reach = 0, 0
    for start, end, *_ in intervals:
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total


def names_of(operations):
    return collections.Counter(o[3] if o[2] == "kernel" else o[2] for o in operations)


def same_steps(before, after):
    """True for the operations of two steps that follow each other and did the same."""
    return after[0][0] - max(o[1] for o in before) >= PAUSE_NS and names_of(before) == names_of(after)


def figures_of(operations, steps):
    names = names_of(operations)
    return {"busy": union(operations) / steps, "kernels": union([o for o in operations if o[2] == "kernel"]) / steps,
            "operations": len(operations) / steps, "sum": sum(o[1] - o[0] for o in operations) / steps,
            "names": {n: c / steps for n, c in names.items()}}


def by_trace(path, said):
    """Figures per step of the measured steps of a trace, which are its last ones. The first operations after a profiler's
    start may be missing; those belong to steps that are not measured."""
    operations = trace_operations(path)
    steps, all_steps = said["steps"], said["steps"] + said["settle_steps"]
    per_step = -(-len(operations) // all_steps)
    measured = operations[-per_step * steps:] if per_step else []
    parts = [measured[k:k + per_step] for k in range(0, len(measured), per_step or 1)]
    if len(parts) != steps or not all(same_steps(*pair) for pair in zip(parts, parts[1:])):
        raise ValueError(f"{len(operations)} operations in {all_steps} equal steps: the trace is not complete")
    return figures_of(measured, steps)


def by_report(gpu, said):
    return {"busy": gpu["busy_ns"] / said["steps"], "kernels": gpu["compute_busy_ns"] / said["steps"],
            "operations": gpu["op_count"] / said["steps"]}


def one_run(args, budget, kind, number):
    """Figures per step of one run under whyidle or torch.profiler; raises ValueError with what failed."""
    folder = args.out / f"{kind}-{number}"
    script, *options = ([args.script, "--seconds", f"{args.seconds:g}"] if args.script else
                        [PROGRAM, "--steps", str(args.steps)])
    limit, trace = min(harness.RECORD_LIMIT_S + args.seconds, budget.left()), folder / "trace.json"
    if kind == "whyidle":
        done = harness.record(args.whyidle, folder, [args.python, script, *options], limit)
    elif args.script:
        done = harness.run([args.python, PROFILER, script, *options], limit, folder, "profiler",
                           {"UNDER_PROFILER_TRACE": str(trace)})
    else:
        done = harness.run([args.python, script, *options, "--trace", trace], limit, folder, "profiler")
    said = harness.json_line(done.stdout, "workload" if args.script else "busy_program")
    if done.status != 0 or said is None:
        raise ValueError(harness.what_failed(done))
    if kind == "whyidle":
        told, document = harness.report(args.whyidle, folder, harness.window_of(said))
        (folder / "session.whyidle").unlink(missing_ok=True)
        gpu = harness.busiest(document) if document else None
        if gpu is None:
            raise ValueError("no GPU in the report: " + harness.what_failed(told))
        return by_report(gpu, said) | {"lost": harness.lost_text(document)}
    figures = figures_of(trace_operations(trace), said["steps"]) if args.script else by_trace(trace, said)
    trace.unlink()
    return figures


def compare(label, ours, theirs, key, digits, limit):
    """A row of the table."""
    scale = 1 if key == "operations" else 1e3
    mine, other = ([run[key] / scale for run in runs] for runs in (ours, theirs))
    middle, reference = statistics.median(mine), statistics.median(other)
    difference = middle / reference - 1
    verdict = "pass" if abs(difference) <= limit else "FAIL"
    return [label, f"{middle:.{digits}f}", harness.spread(mine, digits), f"{reference:.{digits}f}",
            harness.spread(other, digits), f"{difference:+.3%}", f"{limit:.0%}", verdict]


def main():
    p = harness.parser(__doc__, "busy")
    p.add_argument("--repeats", type=int, default=4)
    p.add_argument("--steps", type=int, default=300, help="of busy_program.py")
    harness.add_workloads(p, "--program", "", 3)
    args = harness.parse(p)
    args.script = harness.find_scripts(args.workloads, args.program)[0][1] if args.program else None
    budget, runs, failures = harness.Budget(args.budget), {"whyidle": [], "profiler": []}, []
    harness.end_on_sigterm()
    try:
        for number in range(args.repeats):
            for kind in sorted(runs, reverse=number % 2 == 0):
                if not budget.fits(kind, harness.STARTUP_S + (args.seconds if args.script else args.steps * 0.01)):
                    continue
                before = budget.left()
                try:
                    runs[kind].append(one_run(args, budget, kind, number))
                    print(f"{kind} {number}: busy {runs[kind][-1]['busy'] / 1e3:.1f} us a step", flush=True)
                except harness.UNEXPECTED as failed:
                    failures.append(f"{kind} {number}: {failed!r}")
                    print(failures[-1], flush=True)
                budget.took(kind, before - budget.left())
    finally:
        ours, theirs, rows = runs["whyidle"], runs["profiler"], []
        if ours and theirs:
            rows = [compare("busy time, µs", ours, theirs, "busy", 1, LIMIT),
                    compare("kernel time, µs", ours, theirs, "kernels", 1, LIMIT),
                    compare("operations", ours, theirs, "operations", 3, 0.001 if args.script else 0)]
        (args.out / "busy.json").write_text(json.dumps({"runs": runs, "failures": failures}, indent=1) + "\n")
        notes = [f"FAIL: {f}" for f in failures] + ([] if rows else ["FAIL: nothing to compare"])
        if theirs:
            sums = statistics.median(run["sum"] for run in theirs) / 1e3
            notes.append(f"torch.profiler: sum of operations {sums:.1f} µs a step; {len(theirs[0]['names'])} names"
                         + ("." if args.script else ", counts equal in every run." if
                            all(run["names"] == theirs[0]["names"] for run in theirs) else
                            ", counts NOT equal in every run."))
        if ours:
            notes.append(f"whyidle: lost {', '.join(sorted({run['lost'] for run in ours}))}.")
        length = f"{args.script.stem}, {args.seconds:g} s" if args.script else f"{args.steps} steps"
        notes.append(f"{len(ours)} runs under whyidle, {len(theirs)} under torch.profiler, {length} each.")
        verdicts = [row[-1] for row in rows] + [n for n in notes if n.startswith("FAIL")]
        harness.finish(args, "Busy time against torch.profiler", harness.table(HEAD, rows), [f"- {n}" for n in notes],
                       verdicts)
    return any(v.startswith("FAIL") for v in verdicts)


if __name__ == "__main__":
    sys.exit(main())
