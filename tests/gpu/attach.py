#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Attaches to PyTorch programs that run already and lets go of them again, several times: do they notice?

    tests/gpu/attach.py --workloads DIR [--programs a5,a12] [--times 5] [--record 2] [--finalize]

Each program is started bare. A thread in it that this script brings along counts its steps (calls of the loop of the
workloads' common.py) into a file. Once the steps go on evenly, `whyidle record -p PID --inject` runs for some seconds,
TIMES times, with a pause after each. Checked:

- the program goes on to its end with status 0, and its rate after the last time is within 2 % of before
- each session has CUPTI's timeline with operations in it, and lost nothing in the bridge
- the report of each session has a cause on top that the program itself expects (those of a12 and a11 expect none)
- descriptors and threads are those of before (by number and name), but for those of CUPTI, which is not taken out again: two
  threads, with our name because ours started them, and two descriptors of the GPU, once; and so are the mappings but for
  libcupti, the bridge and anonymous memory, which is only counted

The rate while it is attached is shown and not judged. With --finalize CUPTI is finalised at the end of each recording, in a call
of the program (docs/attach.md), which must happen each time; run both ways to compare them.
"""
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import harness
import workloads
from counted_program import Program

RATE_LIMIT = 0.02
SETTLE_S, RATE_S, PAUSE_S = 3, 4, 1
LOOKS, LOOK_PAUSE_S = 12, 0.05
CUPTI_KEEPS = 2
CUPTI_NAMES = {"threads": ("whyidle",), "descriptors": [f"/dev/nvidia{i}" for i in range(16)]}
LEFT_BEHIND = re.compile(r"memfd:whyidle-bridge|libcupti|libnvperf|libpcsampling|\[uprobes\]")

HEAD = ("program", "verdict", "attached", "steps/s before", "attached", "after", "change", "ops/s", "got the bridge after ms",
        "held ms", "left behind", "top cause")


def read_names(folder, read):
    found = {}
    for entry in os.listdir(folder):
        try:
            found[entry] = read(f"{folder}/{entry}")
        except OSError:
            continue  # it has gone
    return found


def look(pid):
    """What has to be as before, now."""
    threads = read_names(f"/proc/{pid}/task", lambda path: pathlib.Path(path, "comm").read_text().strip())
    descriptors = read_names(f"/proc/{pid}/fd", os.readlink)
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    names = [fields[5] for fields in (line.split(None, 5) for line in lines) if len(fields) == 6]
    return {"threads": set(threads.items()),
            "descriptors": {one for one in descriptors.items() if "/proc/" not in one[1]},
            "mappings": {name for name in names if not LEFT_BEHIND.search(name)},
            "anonymous": sum(len(line.split(None, 5)) == 5 for line in lines)}


def state(pid):
    """Of several looks, "always" what was there each time and "ever" what was there once: a program that works opens and
    closes things of its own (a loader passes descriptors of tensors from its workers)."""
    looks = []
    for _ in range(LOOKS):
        looks.append(look(pid))
        time.sleep(LOOK_PAUSE_S)  # so that what the program has for a moment is not there each time
    kinds = "threads", "descriptors", "mappings"
    return {"always": {what: set.intersection(*(one[what] for one in looks)) for what in kinds},
            "ever": {what: set.union(*(one[what] for one in looks)) for what in kinds},
            "anonymous": looks[-1]["anonymous"]}


def differences(before, now):
    """Short texts; anonymous memory is the allocators' and not compared."""
    texts = []
    for what in "threads", "descriptors":
        gone, new = before["always"][what] - now["ever"][what], now["always"][what] - before["ever"][what]
        if gone or len(new) > CUPTI_KEEPS or any(name not in CUPTI_NAMES[what] for _, name in new):
            texts.append(f"{what}: {len(gone)} gone, {len(new)} new {sorted(map(str, new))[:2]}")
    new = now["always"]["mappings"] - before["ever"]["mappings"]
    if new:
        texts.append(f"mappings: new {sorted(new)[:3]}")
    return texts


def attach_once(args, program, number, limit_s):
    """Figures of one recording."""
    folder = program.folder / f"attach-{number}"
    session = folder / "session.whyidle"
    folder.mkdir(parents=True, exist_ok=True)
    session.unlink(missing_ok=True)
    start = program.steps()
    begin = time.monotonic()
    done = harness.run([args.whyidle, "record", "-q", "--no-report", "-o", session, "-p", program.pid, "--inject", "-d",
                        f"{args.record:g}", *(["--inject-finalize"] if args.finalize else [])], limit_s, folder, "record")
    rate = (program.steps() - start) / (time.monotonic() - begin)
    told = re.search(r"got the CUPTI bridge after (\d+) ms; a thread of it was held for ([\d.]+) ms", done.stderr)
    if done.status != 0 or not told:
        raise ValueError(f"attaching, time {number}: {harness.what_failed(done)}")
    unfinished = re.search(r"CUPTI was not finalised.*|CUPTI takes longer than.*", done.stderr)
    if unfinished:
        raise ValueError(f"time {number}: {unfinished.group()}")
    _, document = harness.report(args.whyidle, folder)
    if document is None or document["source"]["gpu_timeline"] != "cupti":
        raise ValueError(f"time {number}: no timeline of CUPTI: {harness.what_failed(done)}")
    gpu = harness.busiest(document)
    session.unlink()
    return {"rate": rate, "after_ms": int(told.group(1)), "held_ms": float(told.group(2)), "lost": document.get("losses", {}),
            "operations_per_s": (gpu["op_count"] if gpu else 0) / args.record,
            "top": workloads.found_answer(gpu["causes"][0]) if gpu and gpu["causes"] else "nothing"}


def judge(result):
    """'pass' or 'FAIL: why'."""
    if not all(one["operations_per_s"] for one in result["times"]):
        return "FAIL: a recording has no GPU operations"
    lost = {key: value for one in result["times"] for key, value in one["lost"].items() if value and "bridge" in key}
    if lost:
        return f"FAIL: records were lost: {lost}"
    change = result["after"] / result["before"] - 1
    if abs(change) > RATE_LIMIT:
        return f"FAIL: the rate changed by {change:+.1%}"
    if result["differences"]:
        return "FAIL: " + "; ".join(result["differences"])
    if result["status"] != 0:
        return f"FAIL: the program ended with {result['status']}"
    truth = result["truth"]
    if truth is None:
        return "FAIL: the program did not say what it planted"
    wrong = collections.Counter(one["top"] for one in result["times"]) - collections.Counter(
        dict.fromkeys(workloads.expected_answers(truth), len(result["times"])))
    if truth["expected_top"] != "none" and wrong:
        return f"FAIL: top cause {wrong.most_common(1)[0]}, expected {workloads.expected_answers(truth)}"
    return "pass"


def program_seconds(args):
    """How long the program has to run: all of it with some to spare, as it must not end while it is looked at."""
    return SETTLE_S + 2 * RATE_S + args.times * (args.record + PAUSE_S + 2.5) + 8


def one_program(args, budget, name, script, result):
    program = Program(args, args.out / name, script, program_seconds(args))
    try:
        program.wait_for_steps(min(4 * harness.STARTUP_S, budget.left()))
        time.sleep(SETTLE_S)  # clocks and caches, not a condition that could be asked for
        result["before"] = program.rate(RATE_S)
        before = state(program.pid)
        for number in range(args.times):
            result["times"].append(attach_once(args, program, number, min(args.record + 40, budget.left())))
            program.rate(PAUSE_S)
        result["after"] = program.rate(RATE_S)
        now = state(program.pid)
        result["differences"] = differences(before, now)
        result["anonymous"] = now["anonymous"] - before["anonymous"]
        program.process.wait(timeout=max(1, min(program_seconds(args) + 60, budget.left())))
        result["status"] = program.process.returncode
        result["truth"] = harness.json_line((program.folder / "program.stdout").read_text(errors="replace"), "workload")
        result["verdict"] = judge(result)
    except subprocess.TimeoutExpired:
        result["verdict"] = "FAIL: the program did not end: it hangs, or the budget is too small"
    finally:
        program.close()


def row_of(result):
    times = result["times"]
    if not times:
        return [result["program"], harness.short(result["verdict"]), *["-"] * (len(HEAD) - 2)]
    after = result.get("after")
    return [result["program"], harness.short(result["verdict"]), f"{len(times)} times", f"{result['before']:.1f}",
            f"{statistics.median(t['rate'] for t in times):.1f}", f"{after:.1f}" if after else "-",
            f"{after / result['before'] - 1:+.1%}" if after else "-",
            f"{statistics.median(t['operations_per_s'] for t in times):.0f}",
            harness.spread([t["after_ms"] for t in times], 0), harness.spread([t["held_ms"] for t in times], 1),
            f"{result['anonymous']:+d} anonymous mappings" if "anonymous" in result else "-",
            ", ".join(f"{top} {count}" for top, count in collections.Counter(t["top"] for t in times).most_common(2))]


def main():
    p = harness.parser(__doc__, "attach")
    p.add_argument("--workloads", type=pathlib.Path, default=harness.default_workloads(), help="folder of the workloads")
    p.add_argument("--programs", default="a5,a12", help="comma-separated short names, or 'all'")
    p.add_argument("--times", type=int, default=5, help="how often each program is attached")
    p.add_argument("--record", type=float, default=2, help="seconds of each recording")
    p.add_argument("--finalize", action="store_true", help="finalise CUPTI at the end of each (record --inject-finalize)")
    args = harness.parse(p)
    budget, results = harness.Budget(args.budget), []
    harness.end_on_sigterm()
    try:
        for name, script in harness.find_scripts(args.workloads, args.programs):
            result = {"program": name, "verdict": "FAIL: not finished", "times": []}
            results.append(result)
            if not budget.fits("program", program_seconds(args) + harness.STARTUP_S):
                result["verdict"] = "skip: no time left"
                continue
            before = budget.left()
            try:
                one_program(args, budget, name, script, result)
            except harness.UNEXPECTED as odd:
                result["verdict"] = f"FAIL: {odd}"
            budget.took("program", before - budget.left())
            print(f"{name}: {result['verdict']}", flush=True)
    finally:
        (args.out / "attach.json").write_text(json.dumps(results, indent=1) + "\n")
        verdicts = [r["verdict"] for r in results]
        harness.finish(args, f"Attached {args.times} times for {args.record:g} s{', with cuptiFinalize' * args.finalize}", harness.table(HEAD, [row_of(r) for r in results]),
                       harness.reasons((r["program"], r["verdict"]) for r in results), verdicts)
    return any(v.startswith("FAIL") for v in verdicts)


if __name__ == "__main__":
    sys.exit(main())
