# SPDX-License-Identifier: GPL-2.0-only
"""Nsight Systems exports through the program: odd ones give the reference's figures, bad ones one line or a report
that says what it lacks."""
import importlib.util
import json
import os
import random
import shutil
import sqlite3

from harness import NOBODY, ROOT, Skip, limit, needs, one_line_error

BESIDE_OTHERS = True

DATA = ROOT.parent / "shared" / "data"
GPU_COLUMNS = "start integer, end integer, deviceId integer, contextId integer, streamId integer, correlationId integer"


def thread(pid, tid=None):
    return 1 << 48 | pid << 24 | (tid or pid)


def process(pid):
    return 1 << 48 | pid << 24


class Export:
    """A file with the tables of an export, made row by row."""

    def __init__(self, path, with_process=True):
        self.path = path
        self.with_process = with_process
        self.database = sqlite3.connect(path)
        self.sql("create table StringIds (id integer primary key, value text not null)")
        self.sql("create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, end integer, globalTid integer, "
                 "correlationId integer, nameId integer)")
        owner = ", globalPid integer" if with_process else ""
        self.sql(f"create table CUPTI_ACTIVITY_KIND_KERNEL ({GPU_COLUMNS}{owner}, demangledName integer)")
        for kind in ("MEMCPY", "MEMSET"):
            self.sql(f"create table CUPTI_ACTIVITY_KIND_{kind} ({GPU_COLUMNS}{owner}, bytes integer)")
        for number, name in enumerate(("cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "gemm", "ncclDevKernel_Sum",
                                       "prefix_RCCL_suffix", "kernel"), 1):
            self.sql("insert into StringIds values (?, ?)", number, name)

    def sql(self, statement, *values):
        self.database.execute(statement, values)

    def call(self, start, end, pid, correlation, name=1):
        self.sql("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?, ?, ?, ?, ?)", start, end, thread(pid), correlation,
                 name)

    def operation(self, kind, start, end, device, stream, correlation, pid, last=3):
        owner = (process(pid),) if self.with_process else ()
        values = (start, end, device, 1, stream, correlation, *owner, last)
        marks = ", ".join("?" * len(values))
        self.sql(f"insert into CUPTI_ACTIVITY_KIND_{kind} values ({marks})", *values)

    def close(self):
        self.database.commit()
        self.database.close()
        return self.path


def ordinary(path, *more, count=200):
    export = Export(path)
    for number in range(1, count + 1):
        export.call(number * 1000, number * 1000 + 10, 7, number)
        export.operation("KERNEL", number * 1000 + 20, number * 1000 + 500, 0, 7, number, 7)
    for statement in more:
        export.sql(statement)
    return export.close()


def report_of(ctx, path):
    return ctx.report(os.path.basename(path))


# ---- figures ----

def reference():
    script = DATA / "reference_idle.py"
    if not script.exists():
        raise Skip(f"no {script}")
    spec = importlib.util.spec_from_file_location("reference_idle", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_random(path, seed):
    """Ids shared by processes, several calls with one id, ties, overlaps, nothing in time order."""
    dice = random.Random(seed)
    export = Export(path, with_process=dice.random() < 0.8)
    step = dice.choice((1, 10, 1000))
    start = dice.choice((0, 10 ** 6, 1 << 60))
    for _ in range(dice.randrange(1, 60)):
        begin = start + dice.randrange(200) * step
        export.call(begin, begin + dice.randrange(5) * step, dice.choice((7, 8)), dice.randrange(1, 40))
    for _ in range(dice.randrange(1, 80)):
        kind = dice.choice(("KERNEL", "KERNEL", "MEMCPY", "MEMSET"))
        begin = start + dice.randrange(200) * step
        export.operation(kind, begin, begin + dice.randrange(-1, 6) * step, dice.choice((0, 0, 3)),
                         dice.choice((7, 13)), dice.randrange(1, 50), dice.choice((7, 8)), dice.choice((3, 4, 5, 6)))
    if dice.random() < 0.5:
        export.sql("create index by_end on CUPTI_ACTIVITY_KIND_KERNEL (end, start, deviceId, streamId)")
    return export.close()


@limit(120)
def test_figures_of_random_exports(ctx):
    module = reference()
    for seed in range(60):
        path = make_random(ctx.path(f"random-{seed}.sqlite"), seed)
        wanted = module.measure_file(path)["devices"]
        report = report_of(ctx, path)
        assert {str(gpu["device"]) for gpu in report["gpus"]} == set(wanted), f"seed {seed}"
        for gpu in report["gpus"]:
            values = wanted[str(gpu["device"])]
            mine = (gpu["window"]["start_ns"], gpu["window"]["end_ns"], gpu["busy_ns"], gpu["idle_ns"],
                    gpu["gap_count"], gpu["op_count"], gpu["compute_busy_ns"], gpu["idle_by_launch_ns"])
            theirs = (values["window_start_ns"], values["window_end_ns"], values["busy_ns"], values["idle_ns"],
                      values["gaps"], values["gpu_ops"], values["compute_busy_ns"], values["idle_by_class_ns"])
            assert mine == theirs, f"seed {seed}, device {gpu['device']}: {mine}, reference {theirs}"


# ---- files that are not what they should be ----

def test_not_an_export(ctx):
    for name, content in (("text.sqlite", b"hello\n"), ("empty.sqlite", b""), ("short.sqlite", b"SQLite format 3\0"),
                          ("noise.sqlite", b"SQLite format 3\0" + bytes(range(256)) * 32)):
        with open(ctx.path(name), "wb") as handle:
            handle.write(content)
        one_line_error(ctx.run(ctx.whyidle, "report", ctx.path(name)), 1, name)
    other = sqlite3.connect(ctx.path("other.sqlite"))
    other.execute("create table bookmarks (url text)")
    other.close()
    one_line_error(ctx.run(ctx.whyidle, "report", ctx.path("other.sqlite")), 1, "not an Nsight Systems export")


@limit(120)
def test_cut_off_anywhere(ctx):
    path = ordinary(ctx.path("whole.sqlite"))
    with open(path, "rb") as handle:
        whole = handle.read()
    most = 0
    for size in range(0, len(whole), 997):
        with open(ctx.path("cut.sqlite"), "wb") as handle:
            handle.write(whole[:size])
        done = ctx.run(ctx.whyidle, "report", "--json", ctx.path("cut.sqlite"))
        if done.status:
            one_line_error(done, 1, "cut.sqlite")
            continue
        report = report_of(ctx, "cut.sqlite")
        assert any("cut off" in line for line in report["degraded"]), report["degraded"]
        assert report["source"]["incomplete"], report["source"]
        operations = sum(gpu["op_count"] for gpu in report["gpus"])
        assert operations >= most, f"{size} bytes give {operations}, fewer gave {most}"
        most = operations
    assert 0 < most <= 200


@needs("root")
def test_read_only_for_another_user(ctx):
    """Media that nobody can write to: no lock, no journal, nothing beside the file."""
    os.chmod(ctx.folder, 0o777)
    whyidle = shutil.copy(ctx.whyidle, ctx.path("whyidle"))
    folder = ctx.path("media")
    os.mkdir(folder)
    path = ordinary(os.path.join(folder, "a b%41?c#d.sqlite"), "pragma journal_mode = wal")
    os.chmod(path, 0o444)
    os.chmod(folder, 0o555)
    before = sorted(os.listdir(folder))
    done = ctx.run("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", whyidle, "report", "--json",
                   path)
    assert done.status == 0, done
    assert json.loads(done.out)["gpus"][0]["op_count"] == 200
    assert sorted(os.listdir(folder)) == before, os.listdir(folder)


# ---- exports that lack things ----

LACKING = (
    ("drop table StringIds", "StringIds is missing", 200),
    ("drop table CUPTI_ACTIVITY_KIND_RUNTIME", "holds no CUDA calls", 200),
    ("drop table CUPTI_ACTIVITY_KIND_KERNEL", "holds no GPU operations", 0),
    ("delete from CUPTI_ACTIVITY_KIND_KERNEL", "holds no GPU operations", 0),
    ("alter table CUPTI_ACTIVITY_KIND_KERNEL drop column start", 'has no column "start"', 0),
    ("alter table CUPTI_ACTIVITY_KIND_RUNTIME drop column globalTid", 'has no column "globalTid"', 200),
    ("alter table CUPTI_ACTIVITY_KIND_KERNEL drop column demangledName", "no scheduler data", 200),
    ("update CUPTI_ACTIVITY_KIND_KERNEL set start = 'soon' where rowid % 2", "100 of 200 rows make no sense", 100),
    ("update CUPTI_ACTIVITY_KIND_KERNEL set deviceId = null where rowid = 3", "1 of 200 rows make no sense", 199),
    ("update CUPTI_ACTIVITY_KIND_KERNEL set end = start - 5 where rowid = 3", "end before they start", 200),
)


def test_exports_that_lack_something(ctx):
    for number, (change, line, operations) in enumerate(LACKING):
        path = ordinary(ctx.path(f"lacking-{number}.sqlite"), change)
        report = report_of(ctx, path)
        assert any(line in said for said in report["degraded"]), f"{change}: {report['degraded']}"
        assert sum(gpu["op_count"] for gpu in report["gpus"]) == operations, change
        done = ctx.run(ctx.whyidle, "report", path)
        assert done.status == 0 and done.out, f"{change}: {done}"


def test_schema_that_would_run_something(ctx):
    path = ordinary(ctx.path("hostile.sqlite"),
                    "create view CUPTI_ACTIVITY_KIND_GRAPH_TRACE as with recursive c(n) as (select 1 union all select "
                    "n + 1 from c) select n as start, n as end, 0 as deviceId from c",
                    "create trigger t after insert on StringIds begin delete from StringIds; end",
                    "create view NVTX_EVENTS as select randomblob(1000000000) as text, 1 as start, 2 as end, 1 as "
                    "globalTid")
    report = report_of(ctx, path)
    assert sum(gpu["op_count"] for gpu in report["gpus"]) == 200
