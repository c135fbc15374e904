# SPDX-License-Identifier: GPL-2.0-only
"""Exports: other tools' parsers and queries work on them, and the figures of a report survive the way there and back.

The figures are also reckoned by the script beside the reference traces (../shared/data), which shares no code with the
program.
"""
import decimal
import gzip
import importlib.util
import json
import os
import sqlite3

from harness import ROOT, Skip, limit, needs, one_line_error

BESIDE_OTHERS = True

DATA = ROOT.parent / "shared" / "data"
SAMPLES = sorted((ROOT / "docs" / "samples").glob("*.whyidle"))
FORMATS = {"chrome": ".trace.json", "sqlite": ".sqlite"}  # that report reads back
ENDINGS = {**FORMATS, "perfetto": ".pftrace", "pprof": ".pb.gz", "folded": ".folded"}


def export(ctx, source, form, output, *options):
    done = ctx.run(ctx.whyidle, "export", source, "--format", form, "-o", ctx.path(output), *options)
    assert done.status == 0 and not done.err, f"export {form}: {done}"
    return ctx.path(output)


def figures(report):
    """What must be the same after any number of exports and imports."""
    wanted = {}
    for gpu in report["gpus"]:
        wanted[gpu["device"]] = {
            "window": (gpu["window"]["start_ns"], gpu["window"]["end_ns"]),
            "busy": gpu["busy_ns"], "idle": gpu["idle_ns"], "compute": gpu["compute_busy_ns"],
            "gaps": gpu["gap_count"], "operations": gpu["op_count"], **gpu["idle_by_launch_ns"]}
    return {device: values for device, values in wanted.items() if values["operations"]}


def report_of(ctx, path):
    done = ctx.run(ctx.whyidle, "report", path, "--json")
    assert done.status == 0, f"no report of {path}: {done}"
    return json.loads(done.out)


def reference_figures(path):
    """The same by the reference script."""
    script = DATA / "reference_idle.py"
    if not script.exists():
        return None
    spec = importlib.util.spec_from_file_location("reference_idle", script)
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    wanted = {}
    for device, values in reference.measure_file(str(path))["devices"].items():
        wanted[int(device)] = {
            "window": (values["window_start_ns"], values["window_end_ns"]),
            "busy": values["busy_ns"], "idle": values["idle_ns"], "compute": values["compute_busy_ns"],
            "gaps": values["gaps"], "operations": values["gpu_ops"], **values["idle_by_class_ns"]}
    return wanted


def load_chrome(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        return json.loads(file.read().decode("utf-8"), parse_float=decimal.Decimal)


def check_chrome(path, report):
    """The trace is what Kineto's readers take for granted, and tells all idle time."""
    trace = load_chrome(path)
    assert trace["schemaVersion"] == 1
    devices = {device["id"]: device["name"] for device in trace["deviceProperties"]}
    events = trace["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    for event in slices:
        assert {"name", "cat", "pid", "tid", "ts", "dur"} <= event.keys(), event
    operations = [e for e in slices if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    calls = {e["args"]["correlation"]: e for e in slices
             if e["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}
    starts = {e["id"] for e in events if e["ph"] == "s" and e["cat"] == "ac2g"}
    for event in operations:
        assert event["args"]["device"] in devices
        assert "stream" in event["args"] and "context" in event["args"]
    for event in (e for e in events if e["ph"] == "f"):
        assert event["id"] in starts and event["id"] in calls, f"an arrow from nowhere: {event}"
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in slices} <= named, "a track without a name"
    check_as_hta(trace)
    check_nesting([e for e in slices if e["cat"] in ("whyidle_sched", "whyidle_gap", "whyidle_cause")])
    for gpu in report["gpus"]:
        gaps = [e["args"] for e in slices if e["cat"] == "whyidle_gap" and
                trace_device(e, operations) == gpu["device"]]
        assert sum(gap["ns"] for gap in gaps) == gpu["idle_ns"]
        assert len(gaps) == gpu["gap_count"]
        for gap in gaps:
            assert gap["code"] and gap["role"] and gap["confidence"] and gap["launched"]


def check_as_hta(trace):
    """What HTA 0.5 asks of a trace, by its own rules (it is on PyPI only, which is not everywhere): it refuses one without
    a rank, keeps what has a category and a length, takes whatever has a stream for the GPU's, and joins the two sides by
    correlation alone."""
    rank = trace["distributedInfo"]["rank"]
    assert isinstance(rank, int) and rank >= 0
    kept = [e for e in trace["traceEvents"] if "dur" in e and "cat" in e and e["cat"] != "Trace"]
    device = [e for e in kept if int(e.get("args", {}).get("stream", -1)) >= 0]
    assert {e["cat"] for e in device} <= {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"}, {e["cat"] for e in device}
    host = {}
    for event in kept:
        correlation = event.get("args", {}).get("correlation", -1)
        if event["cat"] in ("cuda_runtime", "cuda_driver") and correlation >= 0:
            assert correlation not in host, f"two calls with correlation {correlation}"
            host[correlation] = event
    operations = [e for e in device if e["cat"] != "cuda_sync"]
    joined = [e for e in operations if e["args"].get("correlation", -1) in host]
    assert all(host[e["args"]["correlation"]]["ts"] <= e["ts"] for e in joined[:1000])
    return len(operations), len(joined)


def trace_device(gap, operations):
    """Number of the GPU whose process a gap is shown in."""
    return next((e["args"]["device"] for e in operations if e["pid"] == gap["pid"]), None)


def check_nesting(slices):
    """Slices of a track lie within or beside each other: viewers drop others. Times as exact ns."""
    tracks = {}
    for event in slices:
        start, length = int(event["ts"] * 1000), int(event["dur"] * 1000)
        tracks.setdefault((event["pid"], event["tid"]), []).append((start, -length))
    for track, spans in tracks.items():
        open_ends = []
        for start, length in sorted(spans):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or start - length <= open_ends[-1], f"slices cross on track {track} at {start}"
            open_ends.append(start - length)


def check_sqlite(path, report):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    for table, in database.execute("select name from sqlite_master where type = 'table'").fetchall():
        for _ in database.execute(f'select * from "{table}"'):  # decodes every text
            pass
    for gpu in report["gpus"]:
        idle, gaps = database.execute('select sum("end" - start), count(*) from WHYIDLE_GAPS where deviceId = ?',
                                      (gpu["device"],)).fetchone()
        assert (idle or 0, gaps) == (gpu["idle_ns"], gpu["gap_count"])
        causes = database.execute(
            'select c.code, c.role, sum(c."end" - c.start) from WHYIDLE_CAUSES c join WHYIDLE_GAPS g on g.id = c.gapId '
            "where g.deviceId = ? group by 1, 2", (gpu["device"],)).fetchall()
        assert {(code, role): ns for code, role, ns in causes if ns} == \
            {(cause["code"], cause["role"]): cause["ns"] for cause in gpu["causes"]}
    check_queries(database, sum(gpu["op_count"] for gpu in report["gpus"]))
    database.close()


def check_queries(database, operations):
    """What people run on nsys' exports gives the same as the rows themselves."""
    kernels = database.execute('select "end" - start, demangledName, shortName from CUPTI_ACTIVITY_KIND_KERNEL').fetchall()
    strings = dict(database.execute("select id, value from StringIds"))
    by_name = {}
    for ns, name, short in kernels:
        by_name[strings[name]] = by_name.get(strings[name], 0) + ns
        assert strings[short] in strings[name], f"{strings[short]} is no part of {strings[name]}"
    top = database.execute(
        'select s.value, sum(k."end" - k.start) as total, count(*) from CUPTI_ACTIVITY_KIND_KERNEL k '
        "join StringIds s on k.demangledName = s.id group by s.value order by total desc").fetchall()
    assert {name: total for name, total, _ in top} == by_name
    summary = database.execute(
        'select s.value, count(*), sum(r."end" - r.start) from CUPTI_ACTIVITY_KIND_RUNTIME r '
        "join StringIds s on r.nameId = s.id group by s.value").fetchall()
    assert sum(count for _, count, _ in summary) == \
        database.execute("select count(*) from CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()[0]
    copies = database.execute(
        "select e.label, count(*), sum(m.bytes) from CUPTI_ACTIVITY_KIND_MEMCPY m "
        "join ENUM_CUDA_MEMCPY_OPER e on m.copyKind = e.id "
        "join ENUM_CUDA_MEM_KIND k on m.srcKind = k.id group by e.label").fetchall()
    assert sum(count for _, count, _ in copies) == \
        database.execute("select count(*) from CUPTI_ACTIVITY_KIND_MEMCPY").fetchone()[0]
    # Gaps of each GPU by window functions, as nsys' own gpu_gaps rule does it.
    tables = ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"]
    if database.execute("select 1 from sqlite_master where name = 'CUPTI_ACTIVITY_KIND_GRAPH_TRACE'").fetchone():
        tables.append("CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
    union = " union all ".join(f'select deviceId, start, "end" from {table}' for table in tables)
    gaps = database.execute(
        f'with ops as ({union}), ordered as (select deviceId, start, max("end") over (partition by deviceId order by '
        "start rows between unbounded preceding and 1 preceding) as reach from ops) "
        "select count(*) from ordered where start > reach").fetchone()[0]
    assert gaps == database.execute(
        "select count(*) from WHYIDLE_GAPS").fetchone()[0]
    assert database.execute(f"select count(*) from ({union})").fetchone()[0] == operations
    # Launches by (process, correlation id): globalPid is globalTid without the thread.
    late = database.execute(
        "select count(*) from CUPTI_ACTIVITY_KIND_KERNEL k join CUPTI_ACTIVITY_KIND_RUNTIME r on "
        "r.correlationId = k.correlationId and r.globalTid & ~0xffffff = k.globalPid where r.start > k.\"end\"").fetchone()[0]
    assert late == 0, f"{late} kernels ended before they were launched"
    names = database.execute(
        "select t.value from CUPTI_ACTIVITY_KIND_RUNTIME r join ThreadNames n on n.globalTid = r.globalTid "
        "join StringIds t on t.id = n.nameId limit 1").fetchall()
    assert names, "the calling threads have no names"


CHECKS = {"chrome": check_chrome, "sqlite": check_sqlite}


def check_equal(form, found, wanted, ties=None):
    """Exact. ties, for readers that know nothing but nsys' own columns: operations of different kinds that start in the
    same nanosecond are in tables of their own there, so which came first, and with it whose launch a gap is counted by,
    is not to be seen."""
    assert found.keys() == wanted.keys(), f"{form}: devices {list(found)}, exported {list(wanted)}"
    for device, values in wanted.items():
        again = dict(found[device])
        if ties and ties.get(device):
            for name in ("queued", "late", "unknown"):
                assert abs(again[name] - values[name]) <= values["idle"] / 10000, f"{name}: {again}, exported {values}"
                again[name] = values[name]
        assert again == values, f"{form}: GPU {device} is {again}, exported {values}"


def check_round_trip(ctx, source, ties=None):
    """Exports are valid, and what is read from them gives the figures of what was exported."""
    report = report_of(ctx, source)
    wanted = figures(report)
    assert wanted, f"{source} has no operations"
    for form, ending in FORMATS.items():
        path = export(ctx, source, form, "export" + ending + (".gz" if form == "chrome" else ""))
        CHECKS[form](path, report)
        check_equal(form, reference_figures(path) or wanted, wanted, ties if form == "sqlite" else None)
        check_equal(form, figures(report_of(ctx, path)), wanted)
        os.unlink(path)


@limit(120)
def test_shipped_session(ctx):
    if not SAMPLES:
        raise Skip("docs/samples has no session")
    for sample in SAMPLES:
        check_round_trip(ctx, sample)


@limit(120)
@needs("bpf")
def test_recorded_session(ctx):
    done = ctx.record(ctx.sim("loader_starved"), "--seconds", "1", options=("-q", "--no-report"))
    assert done.status == 0, done
    check_round_trip(ctx, ctx.path("session.whyidle"))


def check_files(ctx, folder):
    paths = sorted(DATA.glob(folder + "/*"))
    if not paths:
        raise Skip(f"no reference traces in {DATA}")
    expected = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["files"]
    for path in paths:
        devices = expected[f"{folder}/{path.name}"]["devices"]
        check_round_trip(ctx, path, {int(name): values["gaps_where_those_disagree"] for name, values in devices.items()})


@limit(300)
def test_kineto_there_and_back(ctx):
    check_files(ctx, "kineto")


@limit(120)
def test_nsys_there_and_back(ctx):
    check_files(ctx, "nsys")


@limit(60)
def test_names_and_overwriting(ctx):
    if not SAMPLES:
        raise Skip("docs/samples has no session")
    session = ctx.path("run.whyidle")
    with open(session, "wb") as file:
        file.write(SAMPLES[0].read_bytes())
    for form, ending in ENDINGS.items():
        argv = (ctx.whyidle, "export", session, "--format", form)
        assert ctx.run(*argv).status == 0
        output = ctx.path("run" + ending)
        assert os.stat(output).st_mode & 0o077 == 0, "others may read it"
        one_line_error(ctx.run(*argv), 1, "run" + ending, "exists", "--force")
        before = os.stat(output).st_ino
        assert ctx.run(*argv, "--force").status == 0
        assert os.stat(output).st_ino != before, "not replaced"
        assert ctx.run(*argv, "-o", output).status == 0, "-o names it, so it may be replaced"
        one_line_error(ctx.run(*argv, "-o", session), 1, "is the input")
        one_line_error(ctx.run(*argv, "-o", ctx.path("no/such")), 1, "no/such", "No such file")
        one_line_error(ctx.run(*argv, "-o", str(ctx.folder)), 1, "is a directory")
    assert sorted(os.listdir(ctx.folder)) == sorted(["run.whyidle"] + ["run" + e for e in ENDINGS.values()]), os.listdir(ctx.folder)


@limit(60)
def test_bad_usage_and_full_disk(ctx):
    if not SAMPLES:
        raise Skip("docs/samples has no session")
    session = str(SAMPLES[0])
    one_line_error(ctx.run(ctx.whyidle, "export", session), 2, "--format")
    one_line_error(ctx.run(ctx.whyidle, "export", session, "--format", "tar"), 2, "chrome sqlite perfetto pprof folded")
    one_line_error(ctx.run(ctx.whyidle, "export", "--format", "chrome"), 2, "which file")
    one_line_error(ctx.run(ctx.whyidle, "export", ctx.path("none"), "--format", "chrome"), 1, "none")
    one_line_error(ctx.run(ctx.whyidle, "export", session, "--format", "chrome", "-o", "/dev/full"), 1, "No space left")
    for form in ENDINGS:
        done = ctx.run("sh", "-c", 'ulimit -f 8; exec "$@"', "sh", ctx.whyidle, "export", session, "--format", form,
                       "-o", ctx.path("limited"))
        one_line_error(done, 1, "limited")
    assert os.listdir(ctx.folder) == [], f"left behind: {os.listdir(ctx.folder)}"


HOSTILE = ['quote " backslash \\ slash / </script>', "bell \x07 newline \n tab \t del \x7f", "arrow \u2190 face \U0001f600",
           "right-to-left \u202e", "'); drop table StringIds; --", "%s%n{0}${HOME}", "x" * 5000]


def hostile_trace(ctx):
    """A trace whose names are made to break readers."""
    events = [{"ph": "M", "name": "process_name", "pid": 50, "tid": 0, "ts": 1, "args": {"name": HOSTILE[0]}}]
    for i, name in enumerate(HOSTILE):
        launch, start = 1000 + 100 * i, 1050 + 100 * i
        events += [
            {"ph": "X", "cat": "user_annotation", "name": name, "pid": 50, "tid": 50, "ts": launch - 5, "dur": 40},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 50, "tid": 50, "ts": launch, "dur": 5,
             "args": {"correlation": i + 1}},
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": 20,
             "args": {"device": 0, "context": 1, "stream": 7, "correlation": i + 1}}]
    text = json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": HOSTILE[1]}], "traceEvents": events})
    # Half a surrogate pair is no character; JSON can name one all the same.
    text = text.replace("right-to-left", "right-to-left \\ud800")
    source = ctx.path("hostile.json")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    return source


@limit(60)
def test_hostile_names(ctx):
    source = hostile_trace(ctx)
    check_round_trip(ctx, source)
    trace = load_chrome(export(ctx, source, "chrome", "out.json"))
    names = {e["name"] for e in trace["traceEvents"] if e.get("cat") == "kernel"}
    database = sqlite3.connect(export(ctx, source, "sqlite", "out.sqlite"))
    strings = {value for value, in database.execute("select value from StringIds")}
    database.close()
    for name in HOSTILE:
        if not name.startswith("right"):
            assert name in names, f"{name[:60]!r} is not among the kernels of the JSON: {[n[:60] for n in names]}"
            assert name in strings, f"{name[:60]!r} is not among the strings of the database"
