#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""How each cause code was tested: the table in docs/causes.md, made from the tests themselves.

    causes.py [--check]

Writes the table anew; with --check it changes nothing, says what would change, and exits with 1 then. What has no plant must
have a reason here, and what has one must not.
"""
import argparse
import difflib
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "sim" / "workloads" / "planted")]

import planted  # noqa: E402  (needs the path above)
import plants as matrix  # noqa: E402

DOCUMENT = ROOT / "docs" / "causes.md"
BEGIN, END = "<!-- made by tests/proof/causes.py: begin -->", "<!-- end -->"

# Suites in which timelines are analysed and causes compared, not printed.
UNIT = ("attribute", "causes", "model_finish", "owner", "ranks", "run_rules", "wait_rules", "walk")
# Real recordings that are no plants of the matrix, and imported traces: files of tests/ that ask for the code.
ELSEWHERE = {
    "host.cuda_alloc": ["e2e/test_ranks.py"],
    "host.gc": ["e2e/test_python_gc.py"],
    "host.user_code": ["e2e/test_scenarios.py"],
    "unknown.lost": ["e2e/test_throughput.py"],
    "unknown.no_sched": ["e2e/test_ranks.py"],
    "wait.lock": ["unit/test_nsys.c"],
}

NO_TEST = ("external.peer",)  # nothing gives it
NOT_PLANTED = {
    "device.peer": "one process of the simulated GPU is one rank: `make proof-ranks` plants late ranks ([ranks.md](ranks.md))",
    "device.other_process": "the simulated GPU belongs to one process; workload a15 has two on a real one",
    "device.floor": "the device's own time stands in every run; a plant of it would be a slower simulator",
    "sched.irq": "a program cannot have interrupts to order, nor tell how long they took",
    "sched.steal": "a program cannot have the hypervisor take its CPU: an end-to-end test compares what is recorded with what is "
                   "missing between two programs' clocks, however much that is",
    "memory.reclaim": "tried with a control group whose limit is lowered in each step: of the time in that call, faults and waits for "
                      "other CPUs to forget the pages cannot be told from reclaim by the program, so there is no truth to compare with",
    "external.no_work": "given only for a window that the user chose; a client that asks for nothing is on the same machine and "
                        "shows as what it is (`no_work@launcher`)",
    "external.peer": "nothing gives it ([why](attribution.md#where-this-departs-from-the-first-design))",
    "tool.overhead": "the simulated CUPTI costs nothing worth a record; its records are made in unit tests",
    "unknown.lost": "no stall: losses are forced in an end-to-end test",
    "unknown.no_waker": "no stall: what was seen must be missing",
    "unknown.untraced": "no stall: who was waited for must not be recorded",
    "unknown.no_sched": "only without scheduler records, as in imported traces",
    "unknown.before_trace": "only of a thread that is recorded from later on than its waiter",
    "unknown.clock": "only where clocks are uncertain by more than a gap",
}


def codes():
    """{code: enumerator} in the order of the table of codes."""
    text = (ROOT / "userspace/attribute/cause.h").read_text(encoding="utf-8")
    return {code: name for name, code in re.findall(r'X\((\w+), "([a-z]+\.[a-z_]+)"', text)}


def kinds():
    """{kind of plant: code}, of the C program and of the Python one."""
    found = {name: kind.code for name, kind in planted.KINDS.items()}
    for file in sorted((ROOT / "tests/sim/workloads/planted").glob("*.c")):
        found.update(re.findall(r'\{\.name = "(\w+)",\s*\.code = "([a-z]+\.[a-z_]+)"', file.read_text(encoding="utf-8")))
    return found


def plants_of():
    """{code: [KIND@PLACE]} of the matrix."""
    code_of, found = kinds(), {}
    for name, *_ in matrix.SINGLES:
        found.setdefault(code_of[name.partition("@")[0]], []).append(name)
    unused = sorted(set(code_of) - {name.partition("@")[0] for name, *_ in matrix.SINGLES})
    if unused:
        sys.exit(f"causes.py: kinds of plants that the matrix does not have: {', '.join(unused)}")
    return found


def stands_in(file, code, enumerator):
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    return bool(re.search(rf"\bCAUSE_{enumerator}\b" if file.endswith(".c") else rf'"{re.escape(code)}[@"]', text))


def elsewhere(code, enumerator):
    for file in ELSEWHERE.get(code, []):
        if not stands_in(file, code, enumerator):
            sys.exit(f"causes.py: tests/{file} does not ask for {code}")
    return [f"`{file}`" for file in ELSEWHERE.get(code, [])]


def gpu_programs():
    """{code: [workload or plant]} of `make proof-gpu`, by what was planted, where the answer was right."""
    runs = json.loads((ROOT / "docs/proof.json").read_text(encoding="utf-8")).get("gpu", {}).get("runs", {})
    found = {}
    for result in runs.get("workloads", []):
        if result["top_ok"] and result["accepted"]:
            found.setdefault(result["accepted"][0].split("@")[0], []).append(result["workload"].split("_")[0])
    for name, result in runs.get("plants", {}).items():
        if result["top_ok"]:
            found.setdefault(result["accepted"][0].split("@")[0], []).append(f"`{name}`")
    return found


def rows():
    with_plants, on_gpu = plants_of(), gpu_programs()
    for code, enumerator in codes().items():
        planted_as = with_plants.pop(code, [])
        if bool(planted_as) == (code in NOT_PLANTED):
            sys.exit(f"causes.py: {code} has {'a plant and a reason for none' if planted_as else 'neither a plant nor a reason'}")
        unit = [suite for suite in UNIT if stands_in(f"unit/test_{suite}.c", code, enumerator)]
        if not unit and code not in NO_TEST:
            sys.exit(f"causes.py: no unit test asks for {code}")
        yield (f"`{code}`", ", ".join(f"`{name}`" for name in planted_as) or "–", ", ".join(unit) or "–",
               ", ".join(elsewhere(code, enumerator)) or "–", ", ".join(on_gpu.get(code, [])) or "–")
    if with_plants:
        sys.exit(f"causes.py: plants of codes that there are not: {with_plants}")


def table():
    yield BEGIN
    yield "| code | plants | unit tests | other tests | on a GPU |"
    yield "|---|---|---|---|---|"
    for row in rows():
        yield "| " + " | ".join(row) + " |"
    yield ""
    yield "Without a plant:"
    yield ""
    for code in codes():
        if code in NOT_PLANTED:
            yield f"- `{code}`: {NOT_PLANTED[code]}."
    yield END


def check_names(text):
    """Every plant that the text names in `KIND@PLACE` is in the matrix."""
    known = {name for name, *_ in matrix.SINGLES} | {name.partition(":")[0] for pair in matrix.DOUBLES for name in pair}
    named = set(re.findall(r"`([a-z_]+@(?:launcher|thread|worker|process))`", text))
    unknown = sorted(name for name in named if name not in known and "." not in name)
    if unknown:
        sys.exit(f"causes.py: docs/causes.md names plants that there are not: {', '.join(unknown)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    before = DOCUMENT.read_text(encoding="utf-8")
    if before.count(BEGIN) != 1 or before.count(END) != 1:
        sys.exit(f"causes.py: {DOCUMENT.name} has no place for the table")
    after = before[:before.index(BEGIN)] + "\n".join(table()) + before[before.index(END) + len(END):]
    check_names(after)
    if not arguments.check:
        DOCUMENT.write_text(after, encoding="utf-8")
    elif after != before:
        print("\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), "docs/causes.md", "made anew", lineterm="")))
        print("causes.py: docs/causes.md is not what the tests are: make causes")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
