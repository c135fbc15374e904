# SPDX-License-Identifier: GPL-2.0-only
"""Names come from the recorded program: whatever they hold, no output lets them act as anything but text."""
import csv
import io
import json
import re
import shutil
import sqlite3
import unicodedata

from browser import Browser
from harness import check_report, limit, needs
from test_export_timelines import read_profile, read_protobuf

BESIDE_OTHERS = True

NAMES = [b"</script><script>window.owned = 1</script>", b"<img src=x onerror='window.owned = 2'>", b"\x1b[2J\x1b]0;owned\x07",
         b"=HYPERLINK(\"http://example.invalid\")", b"+1+1", b"-2+3", b"@SUM(A1)", b"\t=1", b"\r\n=1", b"  =1", "＝1".encode(),
         b"\xff\xfe\x80 not UTF-8 \xc3", "\u202egnp.exe\u2066".encode(), b"\x9b31m\xc2\x9b31m", b"a;b\nc 7\n", b"'); drop table x;--",
         b"%s%n%n", b"nul\x01\x00end", b"x" * (1 << 20), b"-->", b"\\u003cb\\u003e", b"${jndi:ldap://x}"]
FORMULA = re.compile(r"^[\s'\"]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
# What may move a cursor or turn text around: control characters but line breaks, and invisible formatting.
BAD = {"Cc", "Cf", "Cs"}


def quoted(name):
    """As a JSON string of these bytes, whether they are UTF-8 or not."""
    out = bytearray()
    for byte in name:
        out += b"\\u%04x" % byte if byte < 32 or byte in b'"\\' else bytes([byte])
    return b'"' + bytes(out) + b'"'


def make_trace(path, swap=0):
    """A Kineto trace in which everything that can have a name has a hostile one."""
    parts, now = [], 1000.0

    def event(category, name, pid, tid, start, length, arguments=b""):
        parts.append(b'{"ph":"X","cat":"%s","name":%s,"pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{%s}}' % (
            category, name, pid, tid, start, length, arguments))

    for place in range(len(NAMES) * 4):
        name = quoted(NAMES[(place + swap) % len(NAMES)])
        now += 400
        ids = b'"correlation":%d,"device":0,"stream":7' % (place + 1)
        event(b"user_annotation", name, 5, 5, now - 300, 320)
        event(b"cpu_op", name, 5, 5, now - 200, 210)
        event(b"cuda_runtime", name if place % 3 == 0 else b'"cudaLaunchKernel"', 5, 5, now - 5, 3, ids)
        event(b"kernel", name, 0, 7, now, 50, ids)
    for pid, tid, name in ((5, 5, NAMES[2]), (5, 6, NAMES[0])):
        parts.append(b'{"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":%s}}' % (pid, tid, quoted(name)))
        parts.append(b'{"ph":"M","name":"process_name","pid":%d,"tid":%d,"args":{"name":%s}}' % (pid, tid, quoted(name)))
    with open(path, "wb") as file:
        file.write(b'{"deviceProperties":[{"id":0,"name":%s}],"traceEvents":[' % quoted(NAMES[1] + NAMES[2]))
        file.write(b",\n".join(parts) + b"]}\n")


def output(ctx, *argv, status=0):
    """The bytes of a command's standard output, which must be UTF-8."""
    with open(ctx.path("output"), "wb") as out:
        done = ctx.run("sh", "-c", 'exec "$@" > output', "sh", *argv)
    assert done.status == status, done.err
    with open(ctx.path("output"), "rb") as out:
        return out.read().decode("utf-8")


def check_text(text, what, most=2_000_000):
    found = {c for c in text if c not in "\n" and unicodedata.category(c) in BAD}
    assert not found, f"{what}: {sorted(map(hex, map(ord, found)))}"
    assert len(text) < most, f"{what}: {len(text)} characters"


def check_csv(text):
    for block in text.split("\n\n"):
        for row in csv.reader(io.StringIO(block.split("\n", 1)[1])):
            for cell in row:
                # A quote before it makes a spreadsheet take it for text.
                assert cell.startswith("'") or not FORMULA.match(cell), cell[:100]
                check_text(cell, "a cell", 10_000)


def check_pages(ctx, *pages):
    with Browser(ctx.folder) as browser:
        for page in pages:
            browser.open(page)
            assert browser.run("window.owned") is None, page
            assert browser.run("document.querySelectorAll('main img, main svg, main iframe, main script').length") == 0, page
            for selector in ("[data-part]", ".flame button:nth-child(2)", "button[data-start]"):
                if browser.run(f"!!document.querySelector({json.dumps(selector)})"):
                    browser.click(selector)
            assert browser.run("window.owned") is None and not browser.problems(), browser.problems()


def check_exports(ctx, source):
    def export(form, name):
        done = ctx.run(ctx.whyidle, "export", source, "--format", form, "-o", ctx.path(name), "--force")
        assert done.status == 0 and not done.err, done
        return ctx.path(name)

    with open(export("chrome", "out.json"), "rb") as file:
        assert json.loads(file.read().decode("utf-8"))["traceEvents"]
    with open(export("folded", "out.folded"), "rb") as file:
        for line in file.read().decode("utf-8").splitlines():
            assert re.fullmatch(r"(idle|gpu|off_cpu);.* \d+", line), line[:200]
            check_text(line, "folded")
    assert read_protobuf(ctx, "perfetto_trace.proto", "Trace", export("perfetto", "out.pftrace"))["packet"]
    assert read_profile(ctx, export("pprof", "out.pb.gz"))
    database = sqlite3.connect(export("sqlite", "out.sqlite"))
    assert database.execute("select count(*) from StringIds").fetchone()[0] > 5
    assert database.execute("pragma integrity_check").fetchone() == ("ok",)


def check_all(ctx, source):
    for options in ((), ("-v",), ("--tables", "-v")):
        check_text(output(ctx, ctx.whyidle, "report", *options, source), f"report {options}")
    check_csv(output(ctx, ctx.whyidle, "report", "--tables", "--csv", source))
    check_report(json.loads(output(ctx, ctx.whyidle, "report", "--json", source)))
    json.loads(output(ctx, ctx.whyidle, "report", "--tables", "--json", source))
    done = ctx.run(ctx.whyidle, "report", "--html", ctx.path("report.html"), source)
    assert done.status == 0, done
    check_exports(ctx, source)


@limit(120)
def test_names_in_a_trace(ctx):
    (ctx.folder / "job").mkdir()
    one, two = ctx.path("job/<b>=1\x1b[31m.json"), ctx.path("job/two.json")
    make_trace(one)
    make_trace(two, swap=3)
    check_all(ctx, one)
    check_text(output(ctx, ctx.whyidle, "report", "-v", ctx.path("job")), "ranks")
    check_text(output(ctx, ctx.whyidle, "compare", "-v", one, two), "compare")
    json.loads(output(ctx, ctx.whyidle, "report", "--json", ctx.path("job")))
    json.loads(output(ctx, ctx.whyidle, "compare", "--json", one, two))
    for argv in (("report", "--html", ctx.path("ranks.html"), ctx.path("job")),
                 ("compare", "--html", ctx.path("compare.html"), one, two)):
        done = ctx.run(ctx.whyidle, *argv)
        assert done.status == 0, done
    check_pages(ctx, ctx.path("report.html"), ctx.path("ranks.html"), ctx.path("compare.html"))


@limit(60)
@needs("bpf")
def test_names_of_a_recorded_program(ctx):
    program = ctx.path("=1\x1b[31m<b>\u202e")
    shutil.copy(ctx.sim("sync_serial"), program)
    shutil.copytree(ctx.build / "sim" / "lib", ctx.path("lib"), symlinks=True)
    done = ctx.record(program, "--seconds", "0.5", options=("-q",))
    assert done.status == 0, done
    check_text(done.err, "the report of record")
    check_all(ctx, ctx.path("session.whyidle"))
    check_pages(ctx, ctx.path("report.html"))
    text = output(ctx, ctx.whyidle, "dump", ctx.path("session.whyidle"))
    check_text(text, "dump", 100_000_000)
