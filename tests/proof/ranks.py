#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make proof-ranks: planted ranks on simulated GPUs and collectives, recorded on the real kernel, against their own truth.

    ranks.py [--build DIR] [--ranks 2,4,16] [--tries N] [-k WORD]...

Runs each of the causes of tests/e2e/test_ranks_sessions.py on one rank of 2, 4 and 16, stragglers that are drawn, and one
session a rank on shifted clocks, and prints a table in Markdown. A step is judged unless other load made another rank
later still or kept the stall from its CPU (all runs with the highest priority that is to be had); a run of which too little is left is repeated, at most --tries times, and then
listed as disturbed. Exit status 1 if less than 98 % of the judged steps are right, or something else is wrong.
"""
import argparse
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import test_ranks_sessions as sessions  # noqa: E402  (needs the path above)
from harness import Context, Skip  # noqa: E402

RIGHT = sessions.RIGHT
HEAD = ["ranks", "planted", "late rank right", "and its cause", "judged steps of", "waits off by, µs a collective", "verdict"]


class Proof:
    def __init__(self, build, tries, words):
        self.build, self.tries, self.words = build, tries, words
        self.late = self.right = self.count = 0
        self.failed = False

    def fresh(self):
        return Context(self.build, tempfile.mkdtemp(dir=self.folder))

    def row(self, *cells):
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)

    def run(self, name, ranks, once):
        """once(ctx) → cells after the name and whether they are right; raises Skip if other load was too much."""
        if self.words and not any(word in f"{ranks} {name}" for word in self.words):
            return
        for _ in range(self.tries):
            try:
                cells, ok = once(self.fresh())
            except Skip:
                continue
            except (AssertionError, KeyError, ValueError) as wrong:
                cells, ok = ["-"] * 4, False
                print(f"{name} on {ranks} ranks: {str(wrong)[:300]}", file=sys.stderr)
            self.failed |= not ok
            self.row(ranks, name, *cells, "right" if ok else "**wrong**")
            return
        self.row(ranks, name, *["-"] * 4, f"disturbed {self.tries} times")

    def steps(self, report, truth, cause):
        late, right, count = sessions.steps_right(report, truth, cause)
        self.late, self.right, self.count = self.late + late, self.right + right, self.count + count
        planted = sum(rank >= 0 for rank in truth.late)
        # Of thirty steps a single one is more than 2 %: what counts is the sum over all runs.
        missed = max(1, (1 - RIGHT) * count)
        return [f"{late}", f"{right}", f"{count} of {planted}"], right >= count - missed

    def one_slow(self, planted, ranks, slow):
        def once(ctx):
            report, truth = sessions.record(ctx, "job", ranks, planted, late=slow)
            if truth.is_mostly_disturbed(slow):
                raise Skip("other load")
            cells, ok = self.steps(report, truth, sessions.CAUSES[planted])
            spent = report["path"]["causes"]
            # What the job lost is the slow rank's alone; a longer kernel is no cause of idle time.
            ok &= report["slowest"] == slow and report["pattern"] == "steady" and \
                (planted == "slow" or spent[0]["root_rank"] == slow)
            return [*cells, f"{wait_error(report, truth):.2f}"], ok
        self.run(planted, ranks, once)

    def stragglers(self, ranks):
        def once(ctx):
            report, truth = sessions.record(ctx, "job", ranks, "sleep@launcher", late="any", share=0.35, steps=120)
            if len(truth.judged()) < 20:
                raise Skip("other load")
            cells, ok = self.steps(report, truth, ("idle", "wait.sleep", "launcher"))
            notable = truth.notable()
            off = [abs(member["last_count"] - notable.count(member["rank"])) for member in report["members"]]
            ok &= report["pattern"] == "random" and max(off) <= 1
            return [*cells, f"{wait_error(report, truth):.2f}"], ok
        self.run("sleep@launcher on a rank that is drawn", ranks, once)

    def clocks(self, ranks):
        def once(ctx):
            truth = sessions.record_hosts(ctx, ranks, "sleep@worker", late=1, steps=60)
            if truth.is_mostly_disturbed(1):
                raise Skip("other load")
            # Drifts in ppm.
            clocks = [((-1) ** rank * rank * 7_123_456_789, 35 * rank % 80 - 40 if rank else 0) for rank in range(ranks)]
            shifts = [sessions.Shift(ctx, rank, *clock) for rank, clock in enumerate(clocks)]
            report = sessions.report_ranks(ctx, *[shift.path for shift in shifts])
            pairs = [(shift.error_ns(member, truth) / 1e3, member["clock"]["error_ns"] / 1e3)
                     for member, shift in zip(report["members"][1:], shifts[1:])]
            cells, ok = self.steps(report, truth, sessions.CAUSES["sleep@worker"])
            cells[2] += "; clocks off by " + ", ".join(f"{off:.1f} of stated {stated:.1f} µs" for off, stated in pairs)
            return [*cells, f"{wait_error(report, truth):.2f}"], ok and all(off <= stated for off, stated in pairs)
        self.run("sleep@worker, a session and a clock for each rank", ranks, once)


def wait_error(report, truth):
    """Largest difference between a rank's wait in the report and in the collectives' own account, µs a collective."""
    return max(abs(member["wait_ns"] - truth.wait_ns(member["rank"])) / len(truth.kernels[0]) / 1e3
               for member in report["members"])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--build", default=str(HERE.parents[1] / "build"))
    p.add_argument("--ranks", default="2,4,16")
    p.add_argument("--tries", type=int, default=3)
    p.add_argument("-k", action="append", metavar="WORD", dest="words")
    options = p.parse_args()
    try:
        os.nice(-20)
    except PermissionError:
        pass
    proof = Proof(options.build, options.tries, options.words)
    with tempfile.TemporaryDirectory(prefix="whyidle-ranks-") as proof.folder:
        proof.row(*HEAD)
        proof.row(*["---"] * len(HEAD))
        for ranks in map(int, options.ranks.split(",")):
            for number, planted in enumerate(sessions.CAUSES):
                proof.one_slow(planted, ranks, (number * 5 + 1) % ranks)
            proof.stragglers(ranks)
            if ranks <= 4:
                proof.clocks(ranks)
    print(f"\nLate rank right in {proof.late}, its cause in {proof.right} of {proof.count} judged steps.")
    short = proof.late < RIGHT * proof.count or proof.right < RIGHT * proof.count
    return 1 if proof.failed or short or not proof.count else 0


if __name__ == "__main__":
    sys.exit(main())
