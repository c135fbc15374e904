# SPDX-License-Identifier: GPL-2.0-only
"""Tables against queries of Nsight Systems' users on the SQLite export, and against each other in all forms."""
import csv
import io
import json
import sqlite3
import statistics
import subprocess
import sys

from harness import ROOT, limit, one_line_error

BESIDE_OTHERS = True

SAMPLE = str(ROOT / "docs" / "samples" / "starved-h200.whyidle")
WINDOW = "93397452832..96399870315"
# Table → what it adds up: names and values.
QUERIES = {
    "kernels": 'select s.value, k."end" - k.start from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.demangledName',
    "api": 'select s.value, r."end" - r.start from CUPTI_ACTIVITY_KIND_RUNTIME r join StringIds s on s.id = r.nameId',
    "copies-time": """select s.label, m."end" - m.start from CUPTI_ACTIVITY_KIND_MEMCPY m
        join ENUM_CUDA_MEMCPY_OPER s on s.id = m.copyKind
        union all select 'Memset', "end" - start from CUPTI_ACTIVITY_KIND_MEMSET""",
    "copies-size": """select s.label, m.bytes from CUPTI_ACTIVITY_KIND_MEMCPY m join ENUM_CUDA_MEMCPY_OPER s on s.id = m.copyKind
        union all select 'Memset', bytes from CUPTI_ACTIVITY_KIND_MEMSET""",
    "os-calls": 'select s.value, o."end" - o.start from OSRT_API o join StringIds s on s.id = o.nameId',
}


def read_tables(ctx, source, *options):
    done = ctx.run(ctx.whyidle, "report", "--tables", "--json", source, *options)
    assert done.status == 0 and not done.err, done
    return {table["name"]: table for table in json.loads(done.out)["tables"]}


def export(ctx, source, form="sqlite"):
    path = ctx.path(f"export.{form}")
    done = ctx.run(ctx.whyidle, "export", source, "--format", form, "-o", path)
    assert done.status == 0, done
    return path


def query(database, text):
    values = {}
    for name, value in database.execute(text):
        values.setdefault(name, []).append(value)
    return values


def check_row(row, values, unit):
    """A row holds the figures of these values."""
    assert row["count"] == len(values), (row, len(values))
    assert row[f"total_{unit}"] == sum(values), (row, sum(values))
    assert (row[f"min_{unit}"], row[f"max_{unit}"]) == (min(values), max(values)), row
    near = {"mean": statistics.fmean(values), "median": statistics.median(values),
            "stddev": statistics.stdev(values) if len(values) > 1 else 0}
    for name, wanted in near.items():
        assert abs(row[f"{name}_{unit}"] - wanted) <= 1e-6 * max(1, wanted), (name, row, wanted)


@limit(90)
def test_figures_are_those_of_queries(ctx):
    tables, database = read_tables(ctx, SAMPLE), sqlite3.connect(export(ctx, SAMPLE))
    for name in ("kernels", "api", "os-calls"):
        values = query(database, QUERIES[name])
        rows = {row["name"]: row for row in tables[name]["rows"]}
        if name == "api":  # the export has a call without length for each launch inside another call
            values = {key: [value for value in found if value] for key, found in values.items()}
        assert rows.keys() == values.keys(), (name, rows.keys() ^ values.keys())
        for row_name, row in rows.items():
            check_row(row, values[row_name], "ns")
    for name, unit in (("copies-time", "ns"), ("copies-size", "bytes")):
        values = query(database, QUERIES[name])
        assert sum(row[f"total_{unit}"] for row in tables[name]["rows"]) == sum(map(sum, values.values())), name
        memset = next(row for row in tables[name]["rows"] if row["name"].startswith("Memset"))
        check_row(memset, values["Memset"], unit)
    waits = query(database, 'select wait, ifnull(wake, "end") - start from WHYIDLE_WAITS where not preempted')
    blocked = {row["name"].removeprefix("blocked: "): row for row in tables["off-cpu"]["rows"]
               if row["name"].startswith("blocked: ")}
    assert blocked.keys() == {kind for kind, values in waits.items() if any(values)}, (blocked.keys(), waits.keys())
    for kind, row in blocked.items():
        check_row(row, [value for value in waits[kind] if value], "ns")
    return f"{sum(table['row_count'] for table in tables.values())} rows"


def parse_csv(text):
    """Table → (headings, rows)."""
    tables = {}
    for block in text.split("\n\n"):
        name, rest = block.split("\n", 1)
        rows = list(csv.reader(io.StringIO(rest)))
        tables[name.removeprefix("# ")] = (rows[0], rows[1:])
    return tables


def test_all_forms_say_the_same(ctx):
    tables = read_tables(ctx, SAMPLE, "--window", WINDOW)
    done = ctx.run(ctx.whyidle, "report", SAMPLE, "--tables", "--csv", "--window", WINDOW)
    assert done.status == 0 and not done.err, done
    found = parse_csv(done.out)
    assert list(found) == list(tables)
    text = ctx.run(ctx.whyidle, "report", SAMPLE, "--tables", "-v", "--window", WINDOW)
    for name, table in tables.items():
        heads, rows = found[name]
        assert len(heads) == len(table["columns"]) and len(rows) == table["row_count"] == len(table["rows"])
        for line, row in zip(rows, table["rows"]):
            for cell, column in zip(line, table["columns"]):
                if column["unit"] in ("count", "ns") and isinstance(row[column["key"]], int):
                    assert int(cell) == row[column["key"]], (name, column, cell, row)
                elif column["unit"] == "bytes" and isinstance(row[column["key"]], int):
                    assert round(float(cell) * 1e6) == row[column["key"]], (name, column, cell, row)
        assert f"[{name}]" in text.out
    one = ctx.run(ctx.whyidle, "report", SAMPLE, "--table", "cuda_gpu_kern_sum", "--csv").out
    assert one.startswith("Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"), one[:200]


def test_json_follows_its_schema(ctx):
    data = ROOT.parent / "shared" / "data"
    for source in [SAMPLE] + sorted(map(str, data.glob("nsys/*.sqlite")))[:1]:
        with open(ctx.path("tables.json"), "w", encoding="utf-8") as out:
            subprocess.run([ctx.whyidle, "report", "--tables", "--json", source], stdout=out, check=True)
        done = ctx.run(sys.executable, ROOT / "tests" / "e2e" / "schema.py", "--strict",
                       ROOT / "docs" / "tables.schema.json", ctx.path("tables.json"))
        assert done.status == 0, done


def test_bad_use_is_one_line(ctx):
    one_line_error(ctx.run(ctx.whyidle, "report", SAMPLE, "--table", "kernel"), 2)
    one_line_error(ctx.run(ctx.whyidle, "report", SAMPLE, "--csv", "--json"), 2)
    one_line_error(ctx.run(ctx.whyidle, "report", SAMPLE, "--tables", "--html", ctx.path("out.html")), 2)
    one_line_error(ctx.run(ctx.whyidle, "report", SAMPLE, "--tables", "--fail-if", "idle > 1%"), 2)
    one_line_error(ctx.run(ctx.whyidle, "report", SAMPLE, SAMPLE, "--tables"), 1)
    one_line_error(ctx.run(ctx.whyidle, "report", SAMPLE, "--tables", "--gpu", "7"), 1)
