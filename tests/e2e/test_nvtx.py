# SPDX-License-Identifier: GPL-2.0-only
"""NVTX ranges: those that a program says it made, in tables, steps and exports; simulated GPU."""
import collections
import json
import sqlite3

from harness import limit, needs, one_line_error
from test_export import export, load_chrome
from test_export_timelines import Timeline, read_protobuf

# Ranges that the program makes, but does not print: see nvtx_ranges.c.
UNTOLD = {"deep", "", "of_a_child", "never_popped"}
STEPS = 8


def told_ranges(out):
    """Name → [(start, end)] by the program's own clock, in the domain that they are in."""
    told = collections.defaultdict(list)
    for line in out.splitlines():
        _, name, start, end = line.split()
        told["loader:fetch" if name == "fetch" else name].append((int(start), int(end)))
    return told


def record(ctx, program):
    done = ctx.record(ctx.sim(program), options=("-q", "--no-report"))
    assert done.status == 0, done
    return told_ranges(done.out)


def check_spans(told, seen):
    """Each range lies within the times that the program took just outside of it."""
    assert seen.keys() - UNTOLD == told.keys(), (seen.keys(), told.keys())
    for name, spans in told.items():
        assert len(seen[name]) == len(spans), (name, seen[name], spans)
        for (start, end), (before, after) in zip(sorted(seen[name]), sorted(spans)):
            assert before <= start <= end <= after, (name, start, end, before, after)


def ranges_of_table(ctx):
    # The GPU's window would leave out what lies beyond its first and last operation.
    done = ctx.run(ctx.whyidle, "report", "--table", "ranges", "--json", "--window", f"0..{2**63 - 1}",
                   ctx.path("session.whyidle"))
    assert done.status == 0, done
    return json.loads(done.out)["tables"][0]["rows"]


def check_table(told, rows):
    for row in rows:
        if row["name"] in UNTOLD:
            continue
        spans = told[row["name"]]
        assert row["count"] == len(spans), row
        assert row["style"] == ("StartEnd" if row["name"] == "epoch" else "PushPop"), row
        assert row["total_ns"] <= sum(end - start for start, end in spans), row
    assert {row["name"] for row in rows} - UNTOLD == told.keys()
    assert not {"of_a_child", "never_popped"} & {row["name"] for row in rows}, rows


def check_sqlite(ctx, told):
    database = sqlite3.connect(export(ctx, ctx.path("session.whyidle"), "sqlite", "out.sqlite"))
    seen, kinds = collections.defaultdict(list), {}
    for name, start, end, kind in database.execute(
            """select ifnull(e.text, s.value), e.start, e."end", e.eventType from NVTX_EVENTS e
               left join StringIds s on s.id = e.textId where e."end" is not null"""):
        seen[name].append((start, end))
        kinds[name] = kind
    check_spans(told, seen)
    assert kinds["epoch"] == 60 and kinds["train_step"] == 59, kinds
    return seen


def check_perfetto(ctx, seen):
    path = export(ctx, ctx.path("session.whyidle"), "perfetto", "out.pftrace")
    timeline = Timeline(read_protobuf(ctx, "perfetto_trace.proto", "Trace", path)["packet"])
    drawn = collections.defaultdict(list)
    for entry in timeline.slices:
        if entry.category == "annotation":
            drawn[entry.name].append((entry.start, entry.end))
    assert {n: sorted(s) for n, s in drawn.items() if n} == {n: sorted(s) for n, s in seen.items() if n}


def check_chrome(ctx, seen):
    drawn, begun = collections.defaultdict(list), {}
    for event in load_chrome(export(ctx, ctx.path("session.whyidle"), "chrome", "out.json"))["traceEvents"]:
        if event.get("cat") != "user_annotation":
            continue
        time = int(event["ts"] * 1000)
        if event["ph"] == "X":
            drawn[event["name"]].append((time, time + int(event["dur"] * 1000)))
        elif event["ph"] == "b":
            assert event["id"] not in begun
            begun[event["id"]] = time
        elif event["ph"] == "e":
            drawn[event["name"]].append((begun.pop(event["id"]), time))
    assert not begun
    assert {n: sorted(s) for n, s in drawn.items() if n} == {n: sorted(s) for n, s in seen.items() if n}


@limit(120)
@needs("root", "bpf")
def test_ranges_are_those_of_the_program(ctx):
    told = record(ctx, "nvtx_ranges")
    check_table(told, ranges_of_table(ctx))
    seen = check_sqlite(ctx, told)
    check_chrome(ctx, seen)
    check_perfetto(ctx, seen)
    report = ctx.report()
    assert not any("NVTX" in line for line in report["degraded"]), report["degraded"]
    steps = report["gpus"][0]["steps"]
    # The window begins with the first operation, so a step that begins before it may not count.
    assert steps["origin"] == "named" and steps["name"] == "train_step" and steps["count"] >= STEPS - 1, steps


@limit(60)
@needs("root", "bpf")
def test_anothers_tool_is_left_its_nvtx(ctx):
    done = ctx.record(ctx.sim("nvtx_ranges"), options=("-q", "--no-report"), env={"NVTX_INJECTION64_PATH": "/of/another.so"})
    assert done.status == 0 and len(told_ranges(done.out)["train_step"]) == STEPS, done
    assert not ranges_of_table(ctx)
    assert any("NVTX_INJECTION64_PATH is used by another tool (/of/another.so)" in line for line in ctx.report()["degraded"])


@limit(90)
@needs("root", "bpf")
def test_capture_ranges(ctx):
    """What the program marked, as nsys' users know it, at the report: the recording holds all."""
    done = ctx.record(ctx.sim("nvtx_ranges"), "profiled", options=("-q", "--no-report"))
    assert done.status == 0, done
    told = told_ranges(done.out)
    steps = sorted(told["train_step"])
    profiled = ctx.report("session.whyidle", "--capture-range", "cudaProfilerApi")["gpus"][0]
    window = profiled["window"]
    assert steps[1][1] <= window["start_ns"] <= steps[2][0], (window, steps)
    assert steps[5][1] <= window["end_ns"] <= steps[6][0], (window, steps)
    assert profiled["op_count"] < ctx.report()["gpus"][0]["op_count"]
    for name, (start, end) in (("train_step", steps[0]), ("epoch", told["epoch"][0]), ("fetch@loader", told["loader:fetch"][0])):
        window = ctx.report("session.whyidle", "--capture-range", f"nvtx:{name}")["gpus"][0]["window"]
        assert start <= window["start_ns"] <= window["end_ns"] <= end, (name, window, start, end)
    for options, status, words in (
            (["nvtx:nothing"], 1, ["no range of that name"]), (["nvtx:"], 2, ["neither cudaProfilerApi nor nvtx:NAME"]),
            (["cudaProfilerApi", "--steps", "1..2"], 2, ["one of --window"])):
        one_line_error(ctx.run(ctx.whyidle, "report", ctx.path("session.whyidle"), "--capture-range", *options), status, *words)
