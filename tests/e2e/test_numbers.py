# SPDX-License-Identifier: GPL-2.0-only
"""One session in every form: text, JSON, HTML, tables, SQLite, Chrome, Perfetto and pprof hold the same numbers, to the
nanosecond (text: to what it prints)."""
import collections
import json
import re
import sqlite3

from harness import ROOT, limit
from test_export import export, load_chrome, report_of
from test_export_timelines import Timeline, read_profile, read_protobuf

BESIDE_OTHERS = True

SAMPLE = str(ROOT / "docs" / "samples" / "starved-h200.whyidle")
UNITS = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}


def causes_of_json(gpu):
    return {(c["code"], c["role"]): c["ns"] for c in gpu["causes"] if c["ns"]}


def kernels_of_tables(ctx):
    done = ctx.run(ctx.whyidle, "report", "--table", "kernels", "--json", SAMPLE)
    return {row["name"]: (row["count"], row["total_ns"]) for row in json.loads(done.out)["tables"][0]["rows"]}


def grouped(pairs):
    """Key → (count, sum) of (key, ns)."""
    found = {}
    for key, ns in pairs:
        count, total = found.get(key, (0, 0))
        found[key] = (count + 1, total + ns)
    return found


def check_text(ctx, gpu):
    """Each figure of the text is the JSON's, as far as its digits go."""
    text = ctx.run(ctx.whyidle, "report", "-v", SAMPLE).out
    shown = {}
    for code, role, number, unit in re.findall(r"^  ([a-z_]+\.[a-z_]+) +(\w+) +([\d.,]+) (s|ms|µs|ns) ", text, re.M):
        shown.setdefault((code, role), (number, unit))
    wanted = causes_of_json(gpu)
    assert shown.keys() == wanted.keys(), shown.keys() ^ wanted.keys()
    busy, idle = re.search(r"^  busy ([\d.]+ \w+) .*, idle ([\d.]+ \w+) ", text, re.M).groups()
    for value, ns in [(shown[key], ns) for key, ns in wanted.items()] + [
            (tuple(busy.split()), gpu["busy_ns"]), (tuple(idle.split()), gpu["idle_ns"])]:
        number, unit = value
        digits = len(number.split(".")[1]) if "." in number else 0
        error = abs(float(number.replace(",", "")) * UNITS[unit] - ns)
        assert error <= 0.5001 * UNITS[unit] / 10 ** digits, (value, ns)


def check_html(ctx, report):
    """The page holds the report as it is; the browser's tests tell that it shows that."""
    path = ctx.path("report.html")
    assert ctx.run(ctx.whyidle, "report", "--html", path, SAMPLE).status == 0
    with open(path, encoding="utf-8") as file:
        page = file.read()
    held = json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', page, re.S)[1])
    for ours, theirs in zip(held["gpus"], report["gpus"], strict=True):
        for name in ("busy_ns", "idle_ns", "gap_count", "op_count", "window", "idle_by_launch_ns"):
            assert ours[name] == theirs[name], name
        assert causes_of_json(ours) == causes_of_json(theirs)


def check_sqlite(ctx, gpu, kernels):
    database = sqlite3.connect(export(ctx, SAMPLE, "sqlite", "out.sqlite"))
    row = database.execute('select busy, idle, gaps, operations, windowStart, windowEnd from WHYIDLE_GPUS').fetchone()
    assert row == (gpu["busy_ns"], gpu["idle_ns"], gpu["gap_count"], gpu["op_count"], gpu["window"]["start_ns"],
                   gpu["window"]["end_ns"])
    causes = grouped(((code, role), ns) for code, role, ns in database.execute(
        'select code, role, "end" - start from WHYIDLE_CAUSES'))
    assert {key: ns for key, (_, ns) in causes.items() if ns} == causes_of_json(gpu)
    assert kernels == grouped(database.execute(
        'select s.value, k."end" - k.start from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.demangledName'))


def check_chrome(ctx, gpu, kernels):
    events = load_chrome(export(ctx, SAMPLE, "chrome", "out.json"))["traceEvents"]
    gaps = [e for e in events if e.get("cat") == "whyidle_gap"]
    assert len(gaps) == gpu["gap_count"] and sum(int(e["dur"] * 1000) for e in gaps) == gpu["idle_ns"]
    assert kernels == grouped((e["name"], int(e["dur"] * 1000)) for e in events if e.get("cat") == "kernel")


def check_perfetto(ctx, gpu, kernels):
    path = export(ctx, SAMPLE, "perfetto", "out.pftrace")
    slices = Timeline(read_protobuf(ctx, "perfetto_trace.proto", "Trace", path)["packet"]).slices
    gaps = [s for s in slices if s.category == "gap"]
    assert len(gaps) == gpu["gap_count"] and sum(s.ns for s in gaps) == gpu["idle_ns"]
    assert kernels == grouped((s.name, s.ns) for s in slices if s.category == "kernel")


def check_pprof(ctx, gpu, kernels):
    stacks = read_profile(ctx, export(ctx, SAMPLE, "pprof", "out.pb.gz"))
    causes = collections.Counter()
    for kind, frames, ns in stacks:
        if kind == "idle":
            causes[frames[1]] += ns
    assert causes == {f"{code} ({role})": ns for (code, role), ns in causes_of_json(gpu).items()}
    spent = collections.Counter()
    for kind, frames, ns in stacks:
        if kind == "gpu":
            spent[frames[-1]] += ns
    assert all(spent[name] == total for name, (_, total) in kernels.items())


@limit(240)
def test_all_forms_hold_the_same_numbers(ctx):
    report, kernels = report_of(ctx, SAMPLE), kernels_of_tables(ctx)
    gpu, = report["gpus"]
    assert len(gpu["causes"]) > 5 and len(kernels) > 10
    check_text(ctx, gpu)
    check_html(ctx, report)
    for check in check_sqlite, check_chrome, check_perfetto, check_pprof:
        check(ctx, gpu, kernels)
