#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Records planted PyTorch workloads and checks that the finding names file, line and function of the planted stall.

    tests/gpu/names.py --workloads DIR --seconds 4 [--only a1,a3,a4,a6,a10]

What is right is read from the workload's own source: the lines under its `with stall()`, in the function that it says the
stall is in (or, where the answer is the thread that held the lock, the lines under that thread's `with lock`). A run passes if
- the largest cause is one that was planted, in the planted role;
- its Python line is one of those lines, or of a function of the program's own that was called from there: then the line is
  in the cause's stack;
- the finding that is shown to people says that line;
- of the functions that were sampled in the whole recording 95 % have names, and 95 % of the waits of more than 1 ms a
  stack down to the thread's start.

A distribution's interpreter has no names of its own: unpack its debug symbols (python3.12-dbg, for example) and give the
folder with `.build-id` as --symbols.
"""
import ast
import collections
import json
import pathlib
import re
import sys

import harness
import workloads

PLANTED = "a1,a3,a4,a6,a10"
LIMIT = 0.95
# Who holds a lock runs this function under `with lock`, where a workload plants a lock.
LOCK_HELD = {"a10": "flush"}

HEAD = ("workload", "verdict", "cause", "line named", "planted in", "native function", "object", "functions named",
        "complete stacks", "copied MB/s", "sent MB/s", "stacks lost", "most unnamed")

Place = collections.namedtuple("Place", "file function lines")


# ---- what is right

def find_function(tree, name):
    return next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)


def lines_under(function, manager):
    """Lines inside the first `with MANAGER` of a function; all of it if it has none."""
    for node in ast.walk(function):
        if isinstance(node, ast.With) and any(manager in ast.dump(item.context_expr) for item in node.items):
            return range(node.body[0].lineno, node.end_lineno + 1)
    return range(function.lineno, function.end_lineno + 1)


def expected_place(script, truth, cause):
    """Where the stall is that this cause is about."""
    short = script.stem.split("_")[0]
    held = short in LOCK_HELD and cause["code"] != truth["expected_top"]
    name, manager = (LOCK_HELD[short], "'lock'") if held else (truth["expected_symbol"], "'stall'")
    return Place(script.name, name, lines_under(find_function(ast.parse(script.read_text()), name), manager))


# ---- what is named

def python_place(text):
    """(file, line, function) of "file.py:12 Class.function", None."""
    match = re.fullmatch(r"(.+):(\d+) (.+)", text or "")
    return (match[1], int(match[2]), match[3].split(".")[-1]) if match else None


def frame_place(text):
    """The same of a frame of a stack, "Class.function (/home/me/file.py:12)"."""
    match = re.fullmatch(r"(\S+) \((.+):(\d+)\)", text)
    return (pathlib.PurePath(match[2]).name, int(match[3]), match[1].split(".")[-1]) if match else None


def is_there(place, expected):
    return place is not None and place[0] == expected.file and place[2] == expected.function and place[1] in expected.lines


def judge_line(detail, expected, own_files):
    """'pass' or 'FAIL: why' for the line that a cause names."""
    named = python_place(detail.get("python"))
    if named is None:
        return f"FAIL: no line of Python, but {detail.get('function') or 'nothing'}"
    if is_there(named, expected):
        return "pass"
    frames = [frame_place(f) for f in detail.get("stack", [])]
    if named in frames and named[0] in own_files and \
            any(is_there(f, expected) for f in frames[frames.index(named) + 1:]):
        return "pass"
    return f"FAIL: {detail['python']} is named"


def judge_finding(document, cause):
    finding = next((f for f in document["findings"] if (f["code"], f["role"]) == (cause["code"], cause["role"])), None)
    if finding is None:
        return "FAIL: no finding of this cause"
    said, line = "\n".join([finding["title"], *finding["evidence"]]), cause["detail"].get("python")
    return "pass" if line and line in said else "FAIL: the finding does not say the line"


def part(stacks, some, of):
    """Share as text, and whether it reaches the limit; without any there is nothing to judge it by."""
    if not stacks[of]:
        return "none", False
    return f"{stacks[some] / stacks[of]:.1%} of {stacks[of]:,}", stacks[some] >= LIMIT * stacks[of]


def judge(script, truth, document):
    """Verdicts of everything that is checked of a run: the first that failed counts."""
    cause = harness.busiest(document)["causes"][0]
    yield workloads.judge(truth, document)
    yield judge_line(cause["detail"], expected_place(script, truth, cause), {p.name for p in script.parent.glob("*.py")})
    yield judge_finding(document, cause)
    stacks = document.get("user_stacks")
    if not stacks:
        yield "FAIL: no user stacks"
        return
    for what, some, of in (("sampled functions have names", "sampled_frames_named", "sampled_frames"),
                           ("long waits have a complete stack", "long_waits_complete", "long_waits")):
        text, enough = part(stacks, some, of)
        yield "pass" if enough else f"FAIL: {text} {what}"


def row_of(script, result):
    row = dict(zip(HEAD, [result["workload"], harness.short(result["verdict"]), *["-"] * (len(HEAD) - 2)]))
    gpu = harness.busiest(result.get("report") or {})
    if not gpu or not gpu["causes"]:
        return list(row.values())
    cause, stacks = gpu["causes"][0], result["report"].get("user_stacks")
    detail, expected = cause["detail"], expected_place(script, result["truth"], cause)
    row |= {"cause": f"{workloads.found_answer(cause)} {cause['ns'] / max(1, gpu['idle_ns']):.0%}",
            "line named": detail.get("python", "-"), "native function": detail.get("function", "-"),
            "planted in": f"{expected.file}:{expected.lines[0]}-{expected.lines[-1]} {expected.function}",
            "object": " on ".join(detail[k] for k in ("path", "device") if k in detail) or detail.get("holder", "-")}
    if stacks:
        row |= {"functions named": part(stacks, "sampled_frames_named", "sampled_frames")[0],
                "complete stacks": part(stacks, "long_waits_complete", "long_waits")[0],
                "copied MB/s": f"{stacks['copied_bytes_per_s'] / 1e6:.1f}",
                "sent MB/s": f"{stacks['sent_bytes_per_s'] / 1e6:.1f}",
                "stacks lost": result["report"]["losses"].get("user_stacks", "-"),
                "most unnamed": f"{stacks['unnamed_in_file']:,} in {pathlib.PurePath(stacks['unnamed_file']).name}"
                                if stacks.get("unnamed_file") else "-"}
    return list(row.values())


def one_run(args, budget, script, result):
    workloads.one_workload(args, budget, script, result)
    if result.get("report") is None or result["verdict"].startswith("skip"):
        return
    gpu = harness.busiest(result["report"])
    if gpu is None or not gpu["causes"]:
        return
    result["checks"] = list(judge(script, result["truth"], result["report"]))
    failed = [v.removeprefix("FAIL: ") for v in result["checks"] if v != "pass"]
    result["verdict"] = "FAIL: " + "; ".join(failed) if failed else "pass"


def stack_lines(results):
    """The innermost frames of each cause's stack, for a person who wonders why another line is named."""
    for result in results:
        gpu = harness.busiest(result.get("report") or {})
        if gpu and gpu["causes"] and gpu["causes"][0]["detail"].get("stack"):
            yield f"- {result['workload']}: " + " < ".join(gpu["causes"][0]["detail"]["stack"][:12])


def main():
    p = harness.parser(__doc__, "names")
    harness.add_workloads(p, "--only", PLANTED, 4)
    p.add_argument("--option", action="append", default=[], help="option for whyidle record (may repeat)")
    p.add_argument("--keep", action="append", default=[], metavar="NAME", help="keep this one's session (may repeat)")
    p.add_argument("--symbols", type=pathlib.Path, metavar="DIR", help="debug symbols for whyidle report")
    args = harness.parse(p)
    args.bare = False
    args.report_options = ["--symbols", args.symbols.resolve()] if args.symbols else []
    scripts, rows, results = harness.find_scripts(args.workloads, args.only), [], []
    budget = harness.Budget(args.budget)
    harness.end_on_sigterm()
    try:
        for name, script in scripts:
            result = {"workload": name, "verdict": "FAIL: not finished"}
            results.append(result)
            if not budget.fits("workload", args.seconds + harness.STARTUP_S):
                result["verdict"] = "skip: no time left"
                continue
            print(f"{name} …", flush=True)
            before = budget.left()
            try:
                one_run(args, budget, script, result)
                rows.append(row_of(script, result))
            except (*harness.UNEXPECTED, StopIteration, SyntaxError) as odd:
                result["verdict"] = f"FAIL: {odd!r}"
            budget.took("workload", before - budget.left())
            workloads.keep_session(args, name, result)
            print(f"{name}: {result['verdict']}", flush=True)
    finally:
        (args.out / "names.json").write_text(json.dumps(results, indent=1) + "\n")
        notes = harness.reasons((r["workload"], r["verdict"]) for r in results)
        notes += harness.degraded_lines((r["workload"], r.get("report")) for r in results)
        notes += stack_lines(results)
        harness.finish(args, f"Names of planted stalls, {args.seconds:g} s each", harness.table(HEAD, rows), notes,
                       [r["verdict"] for r in results])
    return any(r["verdict"].startswith("FAIL") for r in results)


if __name__ == "__main__":
    sys.exit(main())
