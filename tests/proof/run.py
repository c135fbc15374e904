#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make proof: planted stalls on the simulated GPU, recorded on the real kernel, against their own truth.

    run.py [--build DIR] [--seconds S] [-k WORD]... [--list] [--out DIR] [--again]

Runs the matrix of plants.py, prints a line for each run, and writes proof.json and proof.md (to --out, docs/ of the
project if nothing else is said; with -k only to the build folder). Sessions of runs that were judged wrong stay in
build/proof/. --again takes over what other load did not disturb from the files that are there and runs only the rest,
for machines that are never quiet for long; the program must be the same. Exit status 1 if a run could not be made or
the causes of a run did not sum to its idle time.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import document  # noqa: E402  (needs the path above)
import plants as matrix  # noqa: E402
import runs  # noqa: E402


def wanted(name, words):
    return not words or any(word in name for word in words)


def plan(words):
    """[(kind, name, what)] of all runs in order."""
    entries = []
    for name, times, *extra in matrix.SINGLES:
        entries += [("single", f"{name}:{ms:g}", extra[0] if extra else ()) for ms in times]
    entries += [("double", " + ".join(pair), pair) for pair in matrix.DOUBLES]
    entries += [("null", f"null {noise}", noise) for noise in matrix.NULLS]
    return [e for e in entries if wanted(e[1], words)]


class Proof:
    def __init__(self, bench, kept):
        self.bench, self.kept = bench, kept
        self.without = {}  # truth of a loop without its plant, by loop
        self.results = {"single": {}, "double": {}, "null": {}}
        self.failures = {}
        self.skipped = {}

    def baseline(self, plant, extra):
        """The same loop with nothing planted, measured next to the first run that wants it."""
        name = runs.split(plant)[0]
        key = (name, runs.gpu_us(plant), tuple(extra))
        if key not in self.without:
            self.without[key] = runs.run_without(self.bench, name, key[1], extra)
        return self.without[key]

    def single(self, name, extra):
        verdict, truth, report = runs.run_plants(self.bench, [name], extra)
        if not verdict["top_ok"] or not verdict["time_ok"]:
            self.keep(name)
        verdict["replay"] = runs.replay_of(report)
        verdict["gain"] = runs.judge_gain(truth, report, self.baseline(name, extra))
        return verdict

    def double(self, name, pair):
        verdict, _, _ = runs.run_plants(self.bench, pair)
        if not verdict["top_ok"]:
            self.keep(name)
        return verdict

    def null(self, name, noise):
        verdict = runs.run_null(self.bench, noise)
        if not verdict["ok"]:
            self.keep(name)
        return verdict

    def take_over(self, folder):
        """Undisturbed results of the run before. Returns the seconds that it took."""
        before = document.read(folder)
        for kind, results in self.results.items():
            results.update({name: v for name, v in before["runs"][f"{kind}s"].items() if not v["disturbed"]})
        return before["took_s"]

    def keep(self, name):
        self.bench.keep(self.kept, name.replace(" ", "_").replace(":", "_").replace("@", "_"))

    def sort(self, entries):
        """Results in the order of the matrix."""
        order = [name for _, name, _ in entries]
        for kind, results in self.results.items():
            self.results[kind] = dict(sorted(results.items(), key=lambda item: order.index(item[0])))

    def run(self, entries):
        for number, (kind, name, what) in enumerate(entries, 1):
            begin = time.monotonic()
            try:
                verdict = getattr(self, kind)(name, what)
            except runs.Unavailable as reason:
                self.skipped[name] = str(reason)
                print(f"SKIP {name}: {reason}", flush=True)
                continue
            except Exception as error:  # one broken run must not hide the others
                self.failures[name] = str(error)
                print(f"FAIL {name}: {error}", flush=True)
                continue
            self.results[kind][name] = verdict
            took = time.monotonic() - begin
            print(f"[{number}/{len(entries)}] {document.line(kind, name, verdict)} ({took:.1f} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(HERE.parents[1] / "build"), type=pathlib.Path)
    parser.add_argument("--seconds", default="2")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("-k", action="append", metavar="WORD", dest="words")
    arguments = parser.parse_args()
    entries = plan(arguments.words)
    if arguments.list:
        print("\n".join(name for _, name, _ in entries))
        return 0
    if os.geteuid() != 0:
        print("proof: needs root (BPF)", file=sys.stderr)
        return 1
    build = arguments.build.resolve()
    target = arguments.out or (build / "proof" if arguments.words else HERE.parents[1] / "docs")
    begin = time.monotonic()
    # Not in /tmp, which may be no disk.
    os.makedirs(build / "proof", exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=build / "proof") as folder:
        os.chmod(folder, 0o755)
        proof = Proof(runs.Bench(build, folder, arguments.seconds), build / "proof")
        if arguments.again:
            begin -= proof.take_over(target)
            entries = [e for e in entries if e[1] not in proof.results[e[0]]]
        proof.run(entries)
        proof.sort(plan(arguments.words))
    edges = build / "synthetic.json"
    summary = document.summarise(proof, time.monotonic() - begin, arguments.seconds,
                                 json.loads(edges.read_text(encoding="utf-8")) if edges.exists() else None)
    document.write(target, summary)
    print(document.overview(summary))
    print(f"written: {target}/proof.md, {target}/proof.json")
    return 1 if proof.failures else 0


if __name__ == "__main__":
    sys.exit(main())
