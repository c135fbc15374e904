#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Two ranks with planted stalls: is the late one named, with its cause, and is the wait what the ranks measured themselves?

    tests/gpu/ranks.py                                     two processes on one GPU (ranks_program.py)
    tests/gpu/ranks.py --ddp --pairs 5                     two GPUs, PyTorch DDP over NCCL (ranks_ddp.py), and what it costs
    tests/gpu/ranks.py --simulated build/sim/lib           without a GPU

Each plant is recorded with all its ranks in one session. It passes if the slowest rank is the planted one, the largest cause
(of checkpoints and of DDP: the finding) is the planted kind, on one GPU at least 95 % of the stalls lie in steps that the
report says this rank was the slowest of, and each rank's wait is within 5 % (and 50 µs a collective) of its own measure.
"""
import bisect
import json
import pathlib
import statistics
import sys

import harness

FOLDER = pathlib.Path(__file__).resolve().parent
# What is planted → late rank, and what has to be found: reason, code, role; or the kind of the finding.
ONE_GPU = {
    "sleep": (1, ("idle", "wait.sleep", "launcher")),
    "worker": (1, ("idle", "wait.sleep", "worker")),
    "gc": (1, ("idle", "host.gc", "launcher")),
    "slow": (1, ("compute", None, None)),
    "checkpoint": (0, "checkpoint"),
    "none": (1, None),
}
DDP = {
    "gc": (1, "gc"),
    "worker": (1, "workers"),
    "checkpoint": (0, "checkpoint"),
    "none": (1, None),
}
TOLERANCE, SLACK_NS, STEPS_RIGHT, OVERHEAD = 0.05, 50_000, 0.95, 1.02
PROGRAM_S = {False: 8, True: 40}
HEAD = ("plant", "verdict", "slowest", "stalls in its steps", "largest cause", "waits, report/own ms", "findings", "lost")


def command(args, plant, late, folder):
    program = FOLDER / ("ranks_ddp.py" if args.ddp else "ranks_program.py")
    simulated = ["--simulated", args.simulated] if args.simulated else []
    return [args.python, program, "--plant", plant, "--late", late, "--steps", args.steps, "--out", folder, *simulated]


def said_by(folder, ranks=2):
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(ranks)]


def stalls_right(ranks, late, stalls):
    """How many of the stalls end in a step whose slowest rank is this one. All on one clock."""
    ends = [step["end_ns"] for step in ranks["steps"]]
    right = 0
    for _, end in stalls:
        at = bisect.bisect_left(ends, end)
        right += at < len(ends) and ranks["steps"][at]["slowest"] == late
    return right


def check_waits(ranks, said):
    """[(report, own)] in ns by rank, and what is wrong with that of a rank that waits."""
    pairs, wrong = [], []
    for member in ranks["members"]:
        own = said[member["rank"]]["waits_ns"]
        if own is None:  # not measured
            pairs.append((member["wait_ns"], None))
            continue
        pairs.append((member["wait_ns"], sum(own)))
        if abs(member["wait_ns"] - sum(own)) > TOLERANCE * sum(own) + SLACK_NS * len(own):
            wrong.append(f"rank {member['rank']} waited {sum(own) / 1e6:.2f} ms by its own measure, "
                         f"{member['wait_ns'] / 1e6:.2f} by the report")
    return pairs, wrong


def judge(ranks, said, late, expected, by_steps=True):
    """What is wrong with a report about the ranks, [] if nothing is."""
    if [member["rank"] for member in ranks["members"]] != list(range(len(said))):
        return [f"ranks {[member['rank'] for member in ranks['members']]}"]
    wrong = check_waits(ranks, said)[1]
    if expected is None:
        named = [f for f in ranks["findings"] if f["kind"] in ("gc", "workers", "checkpoint")]
        return wrong + [f"a finding about a healthy job: {f['title']}" for f in named]
    stalls = said[late]["stalls"]
    right = stalls_right(ranks, late, stalls)
    if by_steps and right < STEPS_RIGHT * len(stalls):
        wrong.append(f"{right} of {len(stalls)} stalls in steps that rank {late} was the slowest of")
    if ranks["slowest"] != late:
        wrong.append(f"slowest is rank {ranks['slowest']}, not {late}")
    if isinstance(expected, str):
        if not [f for f in ranks["findings"] if f["kind"] == expected and f["rank"] == late]:
            wrong.append(f"no finding {expected} about rank {late}")
        return wrong
    top = ranks["causes"][0] if ranks["causes"] else None
    if not top or (top["root_rank"], top["reason"], top["code"], top["role"]) != (late, *expected):
        wrong.append(f"largest cause {describe(top)}, not {expected} on rank {late}")
    return wrong


def describe(cause):
    if not cause:
        return "none"
    what = f"{cause['code']}@{cause['role']}" if cause["code"] else cause["reason"]
    return f"rank {cause['root_rank']}: {what}"


def one_plant(args, budget, plant):
    """A row of the table."""
    late, expected = (DDP if args.ddp else ONE_GPU)[plant]
    folder = args.out / plant
    done = harness.record(args.whyidle, folder, command(args, plant, late, folder),
                          min(harness.RECORD_LIMIT_S, budget.left()))
    if done.status != 0:
        return [plant, f"FAIL: {harness.what_failed(done)}", *["-"] * (len(HEAD) - 2)]
    said = said_by(folder)
    told, document = harness.report(args.whyidle, folder)
    harness.run([args.whyidle, "report", folder / "session.whyidle"], harness.REPORT_LIMIT_S, folder, "report-text")
    ranks = (document or {}).get("ranks")
    if not ranks:
        return [plant, f"FAIL: no ranks in the report: {harness.what_failed(told)}", *["-"] * (len(HEAD) - 2)]
    wrong = judge(ranks, said, late, expected, not args.ddp)
    stalls, top = said[late]["stalls"], ranks["causes"][0] if ranks["causes"] else None
    pairs = ", ".join(f"{ours / 1e6:.2f}/" + ("-" if own is None else f"{own / 1e6:.2f}")
                      for ours, own in check_waits(ranks, said)[0])
    return [plant, "FAIL: " + "; ".join(wrong) if wrong else "pass", f"{ranks['slowest']} ({ranks['pattern']})",
            f"{stalls_right(ranks, late, stalls)}/{len(stalls)}",
            describe(top) + (f", {top['wait_ns'] / ranks['wait_ns']:.0%}" if top else ""),
            pairs, " ".join(f["kind"] for f in ranks["findings"]) or "-", harness.lost_text(document)]


def step_ms(folder):
    rank = said_by(folder)[0]
    return (rank["end_ns"] - rank["start_ns"]) / rank["measured_steps"] / 1e6


def overhead(args, budget):
    """(verdict, note) of runs side by side with and without recording; None if there was no time for two pairs."""
    ratios = []
    for number in range(args.pairs):
        if not budget.fits("pair", 2 * PROGRAM_S[args.ddp]):
            break
        before, times = budget.left(), {}
        for kind in sorted(("bare", "recorded"), reverse=number % 2 == 1):
            folder = args.out / f"pair-{number}-{kind}"
            words = command(args, "none", 1, folder)
            done = harness.record(args.whyidle, folder, words, budget.left()) if kind == "recorded" else \
                harness.run(words, budget.left(), folder, "bare")
            (folder / "session.whyidle").unlink(missing_ok=True)
            if done.status != 0:
                return f"FAIL: {kind}: {harness.what_failed(done)}", ""
            times[kind] = step_ms(folder)
        ratios.append(times["recorded"] / times["bare"])
        print(f"pair {number}: {times['bare']:.3f} ms a step, {times['recorded']:.3f} recorded", flush=True)
        budget.took("pair", before - budget.left())
    if len(ratios) < 2:
        return None
    middle = statistics.median(ratios)
    return (f"{'pass' if middle <= OVERHEAD else 'FAIL: overhead'}",
            f"time of a step, recorded by bare: {middle:.4f} (median of {len(ratios)} pairs, {harness.spread(ratios)}; "
            f"limit {OVERHEAD})")


def main():
    p = harness.parser(__doc__, "ranks")
    p.add_argument("--ddp", action="store_true", help="two GPUs, DDP over NCCL")
    p.add_argument("--simulated", default="", help="folder of the simulated driver")
    p.add_argument("--plants", default="", help="comma-separated, in this order; without: all")
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("--pairs", type=int, default=0, help="measure the overhead over so many pairs of runs")
    args = harness.parse(p)
    args.steps = args.steps or (200 if args.ddp else 60)
    args.simulated = args.simulated and str(pathlib.Path(args.simulated).resolve())
    known = DDP if args.ddp else ONE_GPU
    plants = args.plants.split(",") if args.plants else list(known)
    if set(plants) - set(known):
        p.error(f"plants are {', '.join(known)}")
    budget, rows, cost = harness.Budget(args.budget), [], None
    harness.end_on_sigterm()
    try:
        for plant in plants:
            before = budget.left()
            if not budget.fits("plant", PROGRAM_S[args.ddp]):
                rows.append([plant, "skip: no time left", *["-"] * (len(HEAD) - 2)])
                continue
            try:
                rows.append(one_plant(args, budget, plant))
            except harness.UNEXPECTED as odd:
                rows.append([plant, f"FAIL: {odd!r}", *["-"] * (len(HEAD) - 2)])
            budget.took("plant", before - budget.left())
            print(f"{plant}: {rows[-1][1]}", flush=True)
        if args.pairs:
            cost = overhead(args, budget)
    finally:
        (args.out / "ranks.json").write_text(json.dumps([dict(zip(HEAD, row)) for row in rows], indent=1) + "\n")
        verdicts = [row[1] for row in rows] + ([cost[0]] if cost else [])
        notes = harness.reasons((row[0], row[1]) for row in rows)
        if cost:
            notes.append(f"- {cost[0]}: {cost[1]}")
        elif args.pairs:
            notes.append("- overhead: skipped, no time left")
        if args.simulated:
            notes.append("- simulated GPU")
        where = "two GPUs, DDP over NCCL" if args.ddp else "one GPU"
        shown = [[row[0], harness.short(row[1]), *row[2:]] for row in rows]
        harness.finish(args, f"Ranks: {where}", harness.table(HEAD, shown), notes, verdicts)
    return any(v.startswith("FAIL") for v in verdicts)


if __name__ == "__main__":
    sys.exit(main())
