# SPDX-License-Identifier: GPL-2.0-only
"""Imported traces: every figure of the reference to the nanosecond, and bad Kineto files in one clear line."""
import gzip
import json
import os
import re

from harness import ROOT, Skip, alone, check_report, limit, one_line_error
from terminal import Terminal

BESIDE_OTHERS = True

DATA = ROOT.parent / "shared" / "data"


def reference():
    if not (DATA / "expected.json").exists():
        raise Skip("the reference traces (../shared/data) are not here")
    return json.loads((DATA / "expected.json").read_text())["files"]


def report(ctx, path):
    done = ctx.run(ctx.whyidle, "report", "--json", str(path))
    assert done.status == 0, done
    found = json.loads(done.out)
    check_report(found)
    return found


@limit(120)
def test_reference_figures_are_exact(ctx):
    for name, wanted in reference().items():
        gpus = {str(gpu["device"]): gpu for gpu in report(ctx, DATA / name)["gpus"]}
        assert sorted(gpus) == sorted(wanted["devices"]), (name, sorted(gpus))
        for device, figures in wanted["devices"].items():
            gpu = gpus[device]
            got = {"window_start_ns": gpu["window"]["start_ns"], "window_end_ns": gpu["window"]["end_ns"],
                   "busy_ns": gpu["busy_ns"], "idle_ns": gpu["idle_ns"], "gaps": gpu["gap_count"],
                   "gpu_ops": gpu["op_count"], "compute_busy_ns": gpu["compute_busy_ns"],
                   "idle_by_class_ns": gpu["idle_by_launch_ns"]}
            for key, value in got.items():
                assert value == figures[key], f"{name} GPU {device} {key}: {value}, not {figures[key]}"


def events():
    """Two kernels 7 µs apart, 5 µs of that before the second launch."""
    return [{"ph": "X", "cat": "kernel", "name": "one", "ts": 100, "dur": 10, "pid": 0, "tid": 7,
             "args": {"device": 0, "stream": 7, "correlation": 1}},
            {"ph": "X", "cat": "kernel", "name": "two", "ts": 117, "dur": 3, "pid": 0, "tid": 7,
             "args": {"device": 0, "stream": 7, "correlation": 2}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 90, "dur": 4, "pid": 5, "tid": 5,
             "args": {"correlation": 1}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 115, "dur": 1, "pid": 5, "tid": 5,
             "args": {"correlation": 2}}]


def write(ctx, text, name="trace.json"):
    path = ctx.path(name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def figures(found):
    gpu = found["gpus"][0]
    return gpu["busy_ns"], gpu["idle_ns"], gpu["gap_count"], gpu["idle_by_launch_ns"]


EXPECTED = (13000, 7000, 1, {"queued": 0, "late": 7000, "unknown": 0})


def test_shapes_of_one_trace(ctx):
    plain = json.dumps({"traceEvents": events()})
    assert figures(report(ctx, write(ctx, plain))) == EXPECTED
    assert figures(report(ctx, write(ctx, json.dumps(events())))) == EXPECTED
    assert figures(report(ctx, write(ctx, json.dumps({"traceEvents": events()}, indent=1)))) == EXPECTED
    assert figures(report(ctx, write(ctx, gzip.compress(plain.encode()), "odd.name"))) == EXPECTED
    assert figures(report(ctx, write(ctx, json.dumps({"traceEvents": events()[::-1]})))) == EXPECTED
    strings = [dict(event, ts=str(event["ts"]), dur=str(event["dur"])) for event in events()]
    assert figures(report(ctx, write(ctx, json.dumps({"traceEvents": strings})))) == EXPECTED


def test_digits_beyond_a_double_are_kept(ctx):
    text = json.dumps({"traceEvents": events()}).replace('"ts": 1', '"ts": 17121954955051').replace(
        '"ts": 90', '"ts": 1712195495505090')
    text = text.replace('"ts": 1712195495505117', '"ts": 1712195495505117.123')
    found = report(ctx, write(ctx, text))
    assert figures(found)[:2] == (13000, 7123), figures(found)
    assert found["gpus"][0]["window"]["start_ns"] == 1712195495505100000 - 0, found["gpus"][0]["window"]


def test_duplicate_ids_negative_and_missing(ctx):
    odd = events()
    odd.append(dict(odd[3], ts=116))             # a later call with the same id is not the launch
    odd.append({"ph": "X", "cat": "kernel", "name": "negative", "ts": 118, "dur": -5, "pid": 0, "tid": 7,
                "args": {"device": 0, "stream": 7}})
    assert figures(report(ctx, write(ctx, json.dumps(odd)))) == EXPECTED
    for event in odd:
        event["args"].pop("correlation", None)
    found = figures(report(ctx, write(ctx, json.dumps(odd))))
    assert found[3] == {"queued": 0, "late": 0, "unknown": 7000}, found


def test_kernels_that_overlap_on_a_stream(ctx):
    """Busy is the union: what runs twice at a time, or lies inside of another, counts once."""
    odd = events()
    for name, start, length in ("across", 105, 8), ("inside", 106, 1), ("equal", 117, 3):
        odd.append({"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": length, "pid": 0, "tid": 7,
                    "args": {"device": 0, "stream": 7}})
    found = report(ctx, write(ctx, json.dumps(odd)))
    assert figures(found)[:3] == (16000, 4000, 1), figures(found)
    assert found["gpus"][0]["op_count"] == 5


def on_terminal(*argv):
    """What a command shows on a terminal, and its exit status."""
    terminal = Terminal(*argv)
    seen = terminal.read(timeout=60)
    return terminal.wait(), seen.decode(errors="replace")


@alone
@limit(120)
def test_progress_bar(ctx):
    """On a terminal, from a second on. A GB of white space, which is next to nothing once it is packed."""
    text = json.dumps({"traceEvents": events()}).encode()
    room = gzip.compress(b" " * (16 << 20))
    long = write(ctx, gzip.compress(text[:-1]) + room * 96 + gzip.compress(text[-1:]), "long.json.gz")
    status, seen = on_terminal(ctx.whyidle, "report", long)
    assert status == 0, seen[-500:]
    shares = [int(share) for share in re.findall(r"reading long\.json\.gz \[#* *\] +(\d+) % of \d+ MB", seen)]
    assert len(shares) > 2 and shares == sorted(shares) and shares[0] < shares[-1] <= 100, (shares, seen[:500])
    assert re.search(r"\r\x1b\[K(\x1b\[1m)?GPU 0", seen), f"the line was not taken away: {seen[-3000:]!r}"
    status, seen = on_terminal(ctx.whyidle, "report", write(ctx, text))
    assert status == 0 and "reading" not in seen, "no line for what takes less than a second"


@limit(120)
def test_truncated_anywhere(ctx):
    text = json.dumps({"traceEvents": events()}).encode()
    for size in range(len(text)):
        done = ctx.run(ctx.whyidle, "report", "--json", write(ctx, text[:size]))
        if done.status == 0:
            assert json.loads(done.out)["degraded"], f"cut at {size}: not said"
        else:
            one_line_error(done, 1)


def test_bad_files_are_one_line(ctx):
    compressed = gzip.compress(json.dumps({"traceEvents": events()}).encode())
    bad = [b"", b"hello", b"{", b"[", b"{}", b"[]", b"null", b'{"a": [1, 2, {"b": 3}]}', compressed[:25],
           compressed[:12] + b"\xff" * 40, b"[" * 100000, b'{"traceEvents": []}', b'{"traceEvents": 5}',
           b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}']
    for text in bad:
        done = ctx.run(ctx.whyidle, "report", "--json", write(ctx, text))
        if done.status == 0:
            found = json.loads(done.out)
            assert not found["gpus"], (text[:40], done)
            assert any("no GPU operations" in line for line in found["degraded"]), (text[:40], found["degraded"])
        else:
            one_line_error(done, 1)


def test_long_names_and_deep_nesting(ctx):
    odd = events()
    odd[0]["name"] = "n" * (10 << 20)
    odd[1]["args"]["deep"] = json.loads("[" * 400 + "]" * 400)
    assert figures(report(ctx, write(ctx, json.dumps(odd)))) == EXPECTED


def test_memory_does_not_follow_the_file(ctx):
    """A hundred thousand events that are no GPU work must not cost memory each."""
    filler = [{"ph": "i", "cat": "x", "name": "marker %d" % i, "ts": i, "pid": 1, "tid": 1,
               "args": {"text": "y" * 600}} for i in range(100000)]
    path = write(ctx, json.dumps({"traceEvents": filler + events()}))
    assert os.path.getsize(path) > 56 << 20
    # Less address space than the file is long.
    limited = 'ulimit -v 49152; exec "$0" report --json "$1"'
    done = ctx.run("sh", "-c", limited, ctx.whyidle, path)
    assert done.status == 0, done
    assert figures(json.loads(done.out)) == EXPECTED
