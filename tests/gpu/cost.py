#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What recording costs: the step rate of a program bare, under whyidle record and under torch.profiler.

    tests/gpu/cost.py --workloads DIR --pairs 5 --seconds 4 --programs a5,a12,a1 [--no-profiler]
                      [--variant no-bpf='--no-bpf' --variant nosample='--sample-period 0' --variant x='ENV=1 --option']

In each round every program runs once in every mode, in a random order (seeded). A mode's slow-down in a round is the bare
rate divided by its own; the table gives the median over the rounds. The rate is the program's own, of its measured phase:
start-up and end do not count (they are in the column of wall times). That a mode recorded anything is checked by the GPU
operations that the first of its sessions holds.
"""
import collections
import json
import pathlib
import shlex
import statistics
import sys

import harness

LIMITS = {"a5": 1.25, "a12": 1.02, "a1": 1.02}  # of the mode "record", by program
PROFILER = pathlib.Path(__file__).resolve().parent / "under_profiler.py"
HEAD = ("program", "mode", "slow-down", "min..max", "95 % interval", "limit", "verdict", "pairs", "bare steps/s", "steps/s",
        "wall s", "GPU ops/s", "lost")

Mode = collections.namedtuple("Mode", "name kind environment options")  # kind: bare, record or profiler


def variant(text):
    """NAME='ENV=value … options': leading words with a = are environment."""
    name, separator, rest = text.partition("=")
    if not separator or not name:
        raise ValueError(text)
    environment, words = {}, shlex.split(rest)
    while words and not words[0].startswith("-") and "=" in words[0]:
        key, _, value = words.pop(0).partition("=")
        environment[key] = value
    return Mode(name, "record", environment, words)


def modes_of(args):
    modes = [Mode("bare", "bare", {}, []), Mode("record", "record", {}, [])]
    if not args.no_profiler:
        modes.append(Mode("torch.profiler", "profiler", {}, []))
    return modes + args.variant


def run_once(args, folder, mode, script, budget):
    """(Finished, what the program said of itself or None)."""
    command = [args.python, script, "--seconds", f"{args.seconds:g}"]
    limit = min(args.seconds + harness.RECORD_LIMIT_S, budget.left())
    if mode.kind == "record":
        done = harness.record(args.whyidle, folder, command, limit, mode.options, mode.environment)
    elif mode.kind == "profiler":
        done = harness.run([args.python, PROFILER, *command[1:]], limit, folder, "profiler")
    else:
        done = harness.run(command, limit, folder, "bare")
    truth = harness.json_line(done.stdout, "workload")
    return done, truth if done.status == 0 else None


def recorded(args, folder, mode, done, truth):
    """(GPU operations per second, losses) that this run recorded, as text."""
    seconds = (truth["end_ns"] - truth["start_ns"]) / 1e9
    if mode.kind == "profiler":
        seen = harness.json_line(done.stderr, "profiler_gpu_events")
        return (f"{seen['profiler_gpu_events'] / seconds:.0f}", "-") if seen else ("?", "-")
    if mode.kind == "record":
        told, document = harness.report(args.whyidle, folder, harness.window_of(truth))
        if document is None:
            return "no report: " + harness.what_failed(told, 1)[:60], "-"
        gpu = harness.busiest(document)
        return f"{gpu['op_count'] / seconds:.0f}" if gpu else "0", harness.lost_text(document)
    return "-", "-"


class Figures:
    """Rates by (program, mode name), one item a round, None where a run failed."""

    def __init__(self):
        self.rates, self.walls = collections.defaultdict(list), collections.defaultdict(list)
        self.evidence, self.failures = {}, collections.defaultdict(list)

    def ratios(self, program, mode):
        return [bare / rate for bare, rate in zip(self.rates[program, "bare"], self.rates[program, mode]) if bare and rate]

    def row(self, program, mode):
        """(cells, summary for JSON) of a mode of a program."""
        key, ratios = (program, mode.name), self.ratios(program, mode.name)
        rates = [r for r in self.rates[key] if r]
        bare = [r for r in self.rates[program, "bare"] if r]
        limit = LIMITS.get(program.split("_")[0]) if mode.name == "record" else None
        summary = {"program": program, "mode": mode.name, "options": mode.options, "environment": mode.environment,
                   "rates": self.rates[key], "bare_rates": self.rates[program, "bare"], "ratios": ratios,
                   "wall_s": self.walls[key], "failures": self.failures[key], "limit": limit}
        if not ratios:
            summary["verdict"] = verdict = "FAIL" if mode.name == "record" else "-"
            return [program, mode.name, "-", "-", "-", limit or "-", verdict, 0, *["-"] * 5], summary
        middle, (low, high) = statistics.median(ratios), harness.bootstrap(ratios)
        operations, lost = self.evidence.get(key, ("-", "-"))
        verdict = "-" if limit is None else "pass" if middle <= limit and not self.failures[key] else "FAIL"
        summary |= {"median": middle, "interval": [low, high], "verdict": verdict, "operations_per_s": operations,
                    "lost": lost}
        return [program, mode.name, f"{middle:.3f}", harness.spread(ratios), f"{low:.3f}..{high:.3f}", limit or "-", verdict,
                len(ratios), f"{statistics.median(bare):.1f}", f"{statistics.median(rates):.1f}",
                f"{statistics.median(self.walls[key]):.1f}", operations, lost], summary


def one_round(args, budget, figures, program, script, order):
    for mode in order:
        folder = args.out / f"{program}-{mode.name}"
        done, truth = run_once(args, folder, mode, script, budget)
        key = (program, mode.name)
        figures.rates[key].append(truth["steps_per_s"] if truth else None)
        figures.walls[key].append(round(done.wall_s, 2))
        if truth is None:
            figures.failures[key].append(harness.what_failed(done))
        elif key not in figures.evidence:
            try:
                figures.evidence[key] = recorded(args, folder, mode, done, truth)
            except harness.UNEXPECTED as odd:
                figures.evidence[key] = (f"{odd!r}"[:60], "-")
        (folder / "session.whyidle").unlink(missing_ok=True)
        print(f"  {program} {mode.name}: {figures.rates[key][-1]} steps/s, wall {done.wall_s:.1f} s", flush=True)


def main():
    p = harness.parser(__doc__, "cost")
    harness.add_workloads(p, "--programs", "a5,a12,a1", 4)
    p.add_argument("--pairs", type=int, default=5, help="rounds")
    p.add_argument("--no-profiler", action="store_true", help="leave torch.profiler out")
    p.add_argument("--variant", action="append", default=[], type=variant, metavar="NAME='ENV=… options'",
                   help="one more way to record (may repeat)")
    p.add_argument("--seed", type=int, default=1)
    args = harness.parse(p)
    scripts = harness.find_scripts(args.workloads, args.programs)
    modes, figures = modes_of(args), Figures()
    budget, notes = harness.Budget(args.budget), []
    harness.end_on_sigterm()
    try:
        for program, script, order in harness.rounds(args, budget, scripts, modes, notes):
            one_round(args, budget, figures, program, script, order)
    finally:
        rows = [figures.row(program, mode) for program, _ in scripts for mode in modes if mode.kind != "bare"]
        (args.out / "cost.json").write_text(json.dumps([summary for _, summary in rows], indent=1) + "\n")
        verdicts = [summary["verdict"] for _, summary in rows]
        notes += [f"- {program} {mode}: failed: {why}" for (program, mode), all_of in figures.failures.items() for why in all_of]
        harness.finish(args, f"Cost of recording, {args.seconds:g} s a run, seed {args.seed}",
                       harness.table(HEAD, [cells for cells, _ in rows]), notes, verdicts)
    return any(v.startswith("FAIL") for v in verdicts)


if __name__ == "__main__":
    sys.exit(main())
