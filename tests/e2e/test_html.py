# SPDX-License-Identifier: GPL-2.0-only
"""The HTML report in a real browser: clicks, zooms and reads values back, and compares them with the JSON report."""
import json
import os
import random
import re

from browser import Browser
from harness import ROOT, alone, limit, needs, one_line_error
from test_ranks import make_job

BESIDE_OTHERS = True

SAMPLE = str(ROOT / "docs" / "samples" / "starved-h200.whyidle")
WINDOW = "93397452832..96399870315"
HOSTILE = ["</script><script>window.owned = 1</script>", "<img src=x onerror='window.owned = 2'>", "\u202egnp.exe",
           "\x1b[31m&lt;b&gt;\"'`", "<!--", "x" * 1000000, "]]><svg/onload=window.owned=3>", "http://example.invalid/"]


def write_html(ctx, source, *options):
    path = ctx.path("report.html")
    done = ctx.run(ctx.whyidle, "report", "--html", path, str(source), *options)
    assert done.status == 0 and not done.out and not done.err, done
    return path


def read_json(ctx, source, *options):
    return json.loads(ctx.run(ctx.whyidle, "report", "--json", str(source), *options).out)


def status(browser, index=0):
    """What the timeline shows now."""
    values = browser.run(f"({{...document.getElementById('status-{index}').dataset}})")
    return {key: float(value) for key, value in values.items()}


def strip(browser):
    """Left edge, width and middle height of the timeline on the screen."""
    return browser.run("""(() => { const e = document.querySelector("canvas.strip"); e.scrollIntoView({block: "center"});
        const r = e.getBoundingClientRect(); return [r.left, r.width, r.top + r.height / 2]; })()""")


def make_trace(path, operations, seed=1, names=("gemm", "add", "norm")):
    """One kernel after the other, each with a gap before it: the gaps in ns."""
    chance, gaps, now = random.Random(seed), [], 1000000
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"traceEvents": [\n')
        for i in range(operations):
            gap, length = chance.randrange(2000, 60000), chance.randrange(1000, 30000)
            now += gap
            gaps.append((now - gap, now))
            common = f'"args": {{"correlation": {i + 1}, "device": 0, "stream": 7}}'
            file.write(f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": {(now - 1500) / 1000}, '
                       f'"dur": 1, "pid": 5, "tid": 5, {common}}},\n')
            file.write(f'{{"ph": "X", "cat": "kernel", "name": {json.dumps(names[i % len(names)])}, "ts": {now / 1000}, '
                       f'"dur": {length / 1000}, "pid": 0, "tid": 7, {common}}}{"" if i + 1 == operations else ","}\n')
            now += length
        file.write("]}\n")
    return gaps[1:]


@limit(120)
def test_figures_are_those_of_the_json(ctx):
    path, report = write_html(ctx, SAMPLE, "--window", WINDOW), read_json(ctx, SAMPLE, "--window", WINDOW)
    gpu = report["gpus"][0]
    with Browser(ctx.folder) as browser:
        browser.open(path)
        assert browser.run("document.querySelector('h1').textContent").startswith("GPU 0 (NVIDIA H200) was idle 80.3 %")
        shown = status(browser)
        assert (shown["idle"], shown["gaps"]) == (gpu["idle_ns"], gpu["gap_count"]), shown
        assert shown["to"] - shown["from"] == gpu["window"]["end_ns"] - gpu["window"]["start_ns"]
        causes = browser.run("[...document.querySelectorAll('[data-cause]')].map(e => [e.dataset.cause, +e.dataset.ns])")
        assert causes == [[f"{c['code']}@{c['role']}", c["ns"]] for c in gpu["causes"]], causes
        flame = browser.run("+document.getElementById('flame-0').dataset.ns")
        assert flame == gpu["idle_ns"], "the flame graph holds all idle time"
        bins = browser.run("[...document.querySelectorAll('.bars [data-ns]')].map(e => [+e.dataset.count, +e.dataset.ns])")
        assert sum(b[0] for b in bins) == gpu["gap_count"] and sum(b[1] for b in bins) == gpu["idle_ns"]
        tables = browser.run("""[...document.querySelectorAll("[data-table]")].map(e => [e.dataset.table,
            [...e.querySelectorAll("tr[data-count]")].reduce((sum, row) => sum + +row.dataset.count, 0)])""")
        assert sum(number for name, number in tables if name in ("kernels", "copies-time")) == gpu["op_count"], tables
        titles = browser.run("[...document.querySelectorAll('ol > li > b')].map(e => e.textContent)")
        assert titles == [finding["title"] for finding in report["findings"]]
        assert not browser.problems(), browser.problems()


@limit(120)
def test_click_and_zoom(ctx):
    path, report = write_html(ctx, SAMPLE, "--window", WINDOW), read_json(ctx, SAMPLE, "--window", WINDOW)
    gpu, start = report["gpus"][0], report["gpus"][0]["window"]["start_ns"]
    top = gpu["top_gaps"][0]
    with Browser(ctx.folder) as browser:
        browser.open(path)
        whole = status(browser)
        # The worst gap, by its button: the timeline goes there, and its chain is told.
        browser.click("button[data-start]")
        chosen = browser.run("({...document.getElementById('gap-0').dataset})")
        assert (int(chosen["start"]), int(chosen["end"])) == (top["start_ns"] - start, top["end_ns"] - start), chosen
        shown = status(browser)
        assert shown["from"] <= int(chosen["start"]) and shown["to"] >= int(chosen["end"])
        rows = browser.run("[...document.querySelectorAll('#gap-0 tbody tr')].map(r => r.children[4].textContent)")
        assert rows == [f"{link['code']}@{link['role']}" for link in top["chain"]], rows
        lanes = browser.run("[...document.querySelectorAll('#gap-0 .lanes > span')].map(e => e.textContent)")
        assert any(name.startswith("GPU, stream") for name in lanes) and len(lanes) >= 3, lanes
        # A click into the strip finds the same gap again.
        at = ((top["start_ns"] + top["end_ns"]) / 2 - start - shown["from"]) / (shown["to"] - shown["from"])
        browser.click("button[data-action=next]")
        assert browser.run("+document.getElementById('gap-0').dataset.start") > top["start_ns"] - start
        browser.click("button[data-action=previous]")
        assert browser.run("+document.getElementById('gap-0').dataset.start") == top["start_ns"] - start
        browser.click("button[data-action=next]")
        browser.click("button[data-start]")
        left, width, middle = strip(browser)
        browser.click_at(left + at * width, middle)
        assert browser.run("+document.getElementById('gap-0').dataset.start") == top["start_ns"] - start
        # Zoom by buttons, wheel and keys.
        browser.click("button[data-action=all]")
        assert status(browser)["to"] == whole["to"]
        browser.click("button[data-action=in]")
        half = status(browser)
        assert abs((half["to"] - half["from"]) * 2 - (whole["to"] - whole["from"])) < 2
        left, width, middle = strip(browser)
        browser.wheel(left + width / 4, middle, -100)
        wheel = status(browser)
        assert wheel["to"] - wheel["from"] < half["to"] - half["from"]
        fixed = half["from"] + (half["to"] - half["from"]) / 4
        assert abs(wheel["from"] + (wheel["to"] - wheel["from"]) / 4 - fixed) < 0.01 * (half["to"] - half["from"])
        browser.run("document.querySelector('canvas.strip').focus()")
        browser.key("ArrowRight")
        assert status(browser)["from"] > wheel["from"]
        browser.key("Home")
        assert status(browser)["from"] == 0 and status(browser)["to"] == whole["to"]
        browser.key("+")
        browser.key("Enter")
        assert browser.run("document.querySelector('#gap-0 h3').textContent").startswith("Gap of ")
        # Into the largest cause of the flame graph, and back.
        browser.click(".flame button:nth-child(2)")
        assert browser.run("+document.getElementById('flame-0').dataset.ns") == gpu["causes"][0]["ns"]
        browser.click(".flame button:nth-child(1)")
        assert browser.run("+document.getElementById('flame-0').dataset.ns") == gpu["idle_ns"]
        # The same by keyboard, which stays where it is.
        browser.run("document.querySelector('.flame button:nth-child(2)').focus()")
        browser.key("Enter")
        assert browser.run("+document.getElementById('flame-0').dataset.ns") == gpu["causes"][0]["ns"]
        assert browser.run("+document.activeElement.dataset.ns") == gpu["causes"][0]["ns"], "the focus is lost"
        assert not browser.problems(), browser.problems()


def make_steps(path, slow, pause=20000):
    """30 steps of 4 kernels each with pauses between them; the step of that number pauses for longer."""
    now, events = 1000000, []
    for step in range(31):
        for kernel in range(4):
            common = {"args": {"correlation": len(events) + 1, "device": 0, "stream": 7}}
            now += 5000000 if step + 1 == slow and kernel == 2 else pause
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": (now - 1500) / 1000, "dur": 1,
                           "pid": 5, "tid": 5, **common})
            events.append({"ph": "X", "cat": "kernel", "name": f"k{kernel}", "ts": now / 1000, "dur": 100, "pid": 0, "tid": 7,
                           **common})
            now += 100000
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)


@limit(90)
def test_slow_steps(ctx):
    make_steps(ctx.path("steps.json"), 12)
    path, report = write_html(ctx, ctx.path("steps.json")), read_json(ctx, ctx.path("steps.json"))
    gpu, found = report["gpus"][0], report["gpus"][0]["steps"]
    assert (found["origin"], found["period_ops"], found["slow_count"]) == ("rhythm", 4, 1), found
    slow = found["slow"][0]
    assert slow["more_ns"] == 4980000 == slow["causes"][0]["more_ns"] and slow["causes"][0]["code"] == "unknown.no_sched", slow
    with Browser(ctx.folder) as browser:
        browser.open(path)
        rows = browser.run("[...document.querySelectorAll('[data-step]')].map(e => [+e.dataset.step, +e.dataset.more])")
        assert rows == [[slow["number"], slow["more_ns"]]], rows
        browser.click("[data-step] button")
        shown = status(browser)
        assert shown["from"] == slow["start_ns"] - gpu["window"]["start_ns"], shown
        assert shown["to"] - shown["from"] == slow["end_ns"] - slow["start_ns"] and shown["idle"] == slow["idle_ns"], shown
        assert not browser.problems(), browser.problems()
    part = read_json(ctx, ctx.path("steps.json"), "--steps", f"{slow['number']}..{slow['number']}")
    assert part["gpus"][0]["window"] == {"start_ns": slow["start_ns"], "end_ns": slow["end_ns"]}, part["gpus"][0]["window"]
    assert part["gpus"][0]["idle_ns"] == slow["idle_ns"]
    one_line_error(ctx.run(ctx.whyidle, "report", ctx.path("steps.json"), "--steps", "90.."), 1)
    one_line_error(ctx.run(ctx.whyidle, "report", ctx.path("steps.json"), "--steps", "5"), 2)


@alone
@limit(180)
def test_large_traces_are_quick(ctx):
    gaps = make_trace(ctx.path("large.json"), 200001)
    path = write_html(ctx, ctx.path("large.json"))
    size = os.path.getsize(path)
    assert size <= 10e6, f"{size} bytes"
    with Browser(ctx.folder) as browser:
        ready = []
        for _ in range(3):  # whatever else the machine does only adds to it
            browser.open(path)
            ready.append(browser.run("+document.documentElement.dataset.ready"))
        ready = min(ready)
        shown = status(browser)
        assert shown["gaps"] == len(gaps) == 200000 and shown["idle"] == sum(end - begin for begin, end in gaps)
        left, width, middle = strip(browser)
        slowest = 0
        for _ in range(40):
            browser.wheel(left + width * 0.37, middle, -100)
            slowest = max(slowest, status(browser)["drawMs"])
        assert status(browser)["gaps"] < 20
        assert ready < 1000 and slowest < 100, (ready, slowest)
        assert not browser.problems(), browser.problems()
    return f"{size / 1e6:.1f} MB, shown after {ready:.0f} ms, slowest zoom {slowest:.0f} ms"


@limit(120)
def test_hostile_names_stay_text(ctx):
    make_trace(ctx.path("hostile.json"), 40, names=HOSTILE)
    path = write_html(ctx, ctx.path("hostile.json"))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert len(text) < 5e6, "a name of a megabyte is cut"
    assert text.lower().count("</script") == len(re.findall(r"<script[ >]", text)), "a name ended a script element"
    assert not re.search(r"<(img|svg|iframe|link|object)\b", text, re.I)
    with Browser(ctx.folder) as browser:
        browser.open(path)
        assert browser.run("window.owned") is None
        names = browser.run("""[...document.querySelectorAll("[data-table=kernels] tbody tr")].map(
            row => row.firstChild.textContent)""")
        for name in HOSTILE[:2] + HOSTILE[4:5]:
            assert name in names, (name, names)
        assert browser.run("document.querySelectorAll('img, svg, iframe, main script').length") == 0
        browser.click("button[data-start]")
        assert not browser.problems(), browser.problems()


@limit(120)
def test_dark_narrow_and_named_for_readers(ctx):
    path = write_html(ctx, SAMPLE, "--window", WINDOW)
    with Browser(ctx.folder, 480, 900, dark=True) as browser:
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        browser.open(path)
        assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
        unnamed = browser.run("""[...document.querySelectorAll("button, canvas:not([aria-hidden]), [role=img], table")].filter(
            e => !(e.getAttribute("aria-label") || e.textContent.trim())).length""")
        assert unnamed == 0, f"{unnamed} elements have no name"
        tree = browser.send("Accessibility.getFullAXTree")["nodes"]
        roles = {node.get("role", {}).get("value") for node in tree if not node.get("ignored")}
        assert {"heading", "button", "table", "status"} <= roles, roles
        browser.send("Emulation.setEmulatedMedia", media="print")
        assert browser.run("getComputedStyle(document.querySelector('.tools')).display") == "none"
        pages = browser.send("Page.printToPDF")["data"]
        assert len(pages) > 10000
        assert not browser.problems(), browser.problems()


def flame_of(gpu):
    """Cause → process → thread → … of a box, and its time, from the JSON's causes: what the flame graph must hold."""
    return {f"{cause['code']}@{cause['role']}": cause["ns"] for cause in gpu["causes"] if cause["ns"]}


@alone
@limit(120)
@needs("bpf")
def test_stacks_in_flame_graph_and_lanes(ctx):
    """A recorded program's own functions: in the flame graph down to the innermost, and at the lanes of a gap."""
    done = ctx.record(ctx.sim("sync_serial"), "--seconds", "1", options=("-q", "--no-report"))
    assert done.status == 0, done
    path = write_html(ctx, ctx.path("session.whyidle"))
    with open(path, encoding="utf-8") as file:  # it holds more gaps than the JSON report
        gpu = json.loads(re.search(r'id="report">(.*?)</script>', file.read(), re.S)[1])["gpus"][0]
    top = next(cause for cause in gpu["causes"] if cause["code"].startswith("host."))
    frames = top["detail"]["stack"]
    assert any(frame.startswith("main ") for frame in frames), frames
    with Browser(ctx.folder) as browser:
        browser.open(path)
        # Cause, process and thread, then the stack from the outside in.
        found = []
        for word in (f"{top['code']}@{top['role']}", " (process ", " (thread ", "_start ", "main (", "compute_for ("):
            while True:  # frames of the C library may lie between
                boxes = browser.run("""[...document.querySelectorAll(".flame button")].map(e => [e.textContent, +e.dataset.ns])""")
                inside = boxes[len(found) + 1:]
                assert inside, (word, found)
                place = next((at for at, (name, _) in enumerate(inside) if word in name), 0)
                found.append(inside[place])
                browser.click(f".flame button:nth-child({len(found) + place + 1})")
                assert browser.run("+document.getElementById('flame-0').dataset.ns") == found[-1][1], found
                if word in found[-1][0]:
                    break
        assert found[0][1] == flame_of(gpu)[found[0][0]] and all(a[1] >= b[1] for a, b in zip(found, found[1:])), found
        # From the box to the worst of its gaps, to the lanes of that; of several one with a stack, for it is sampled.
        kept = {g["start_ns"] - gpu["window"]["start_ns"]: g["chain"] for g in gpu["top_gaps"]}
        chain = []
        for at in range(browser.run("document.querySelectorAll('#flame-gaps-0 button').length")):
            most = browser.run(f"+document.querySelectorAll('#flame-gaps-0 button')[{at}].dataset.ns")
            browser.click(f"#flame-gaps-0 button:nth-of-type({at + 1})")
            chain = kept.get(browser.run("+document.getElementById('gap-0').dataset.start"), [])
            held = sum(link["end_ns"] - link["start_ns"] for link in chain if f"{link['code']}@{link['role']}" == found[0][0])
            assert not chain or 0 < held == most <= found[0][1], (held, most)
            if any(link["detail"].get("stack") for link in chain):
                break
        stacks = browser.run("""[...document.querySelectorAll("#gap-0 tbody tr")].map(
            row => [...row.querySelectorAll("li")].map(e => e.textContent))""")
        assert stacks == [link["detail"].get("stack", []) for link in chain], stacks
        assert any(stacks), "no stretch of the worst gap has a stack"
        titles = browser.run("[...document.querySelectorAll('#gap-0 .lane > i')].map(e => e.title)")
        assert any("main (" in title for title in titles), titles
        assert not browser.problems(), browser.problems()


@limit(120)
def test_ranks_of_a_job(ctx):
    folder, _ = make_job(ctx, "host", ranks=4, steps=30)
    path, job = write_html(ctx, folder), read_json(ctx, folder)
    ranks = job["ranks"]
    with Browser(ctx.folder) as browser:
        browser.open(path)
        assert browser.run("document.querySelector('h1').textContent").startswith("Rank 2 cost the other ranks ")
        rows = browser.run("""[...document.querySelectorAll("[data-rank]")].map(row => [+row.dataset.rank, +row.dataset.idle,
            +row.dataset.wait, +row.dataset.caused])""")
        assert rows == [[m["rank"], m["idle_ns"], m["wait_ns"], m["caused_ns"]] for m in ranks["members"]], rows
        late = browser.run("[...document.querySelectorAll('[data-late]')].map(row => [+row.dataset.late, +row.dataset.wait])")
        assert late == [[cause["rank"], cause["wait_ns"]] for cause in ranks["causes"][:20]], late
        titles = browser.run("[...document.querySelectorAll('#ranks ol > li > b')].map(e => e.textContent)")
        assert titles == [finding["title"] for finding in ranks["findings"]], titles
        # The slowest rank is shown first; a click shows another.
        for part in (2, 0, 3):
            if part != 2:
                browser.click(f"[data-part='{part}']")
            gpu = job["reports"][part]["gpus"][0]
            assert browser.run("document.querySelector('[aria-pressed=true]').dataset.part") == str(part)
            shown = status(browser)
            assert (shown["idle"], shown["gaps"]) == (gpu["idle_ns"], gpu["gap_count"]), (part, shown)
            causes = browser.run("[...document.querySelectorAll('[data-cause]')].map(e => [e.dataset.cause, +e.dataset.ns])")
            assert causes == [[f"{c['code']}@{c['role']}", c["ns"]] for c in gpu["causes"]], (part, causes)
        assert browser.run("document.querySelectorAll('canvas.strip').length") == 1
        assert not browser.problems(), browser.problems()


@limit(120)
def test_two_runs_compared(ctx):
    make_steps(ctx.path("before.json"), 0)
    make_steps(ctx.path("<b>after&quot;.json"), 0, pause=60000)
    path = ctx.path("compared.html")
    sides = ctx.path("before.json"), ctx.path("<b>after&quot;.json")
    done = ctx.run(ctx.whyidle, "compare", "--html", path, *sides)
    assert done.status == 0 and not done.out and not done.err, done
    compared = json.loads(ctx.run(ctx.whyidle, "compare", "--json", *sides).out)
    text = ctx.run(ctx.whyidle, "compare", *sides).out.splitlines()
    pair = compared["gpus"][0]
    assert compared["verdict"] == "worse" and pair["basis"] == "step", compared
    with Browser(ctx.folder) as browser:
        browser.open(path)
        assert browser.run("document.querySelector('h1').textContent") == text[0]
        assert browser.run("document.getElementById('comparison').dataset.verdict") == "worse"
        rows = browser.run("""[...document.querySelectorAll("[data-figure]")].map(row => [row.dataset.figure,
            +row.dataset.before, +row.dataset.after, row.dataset.beyond === "true"])""")
        wanted = [("time per step", pair["step_ns"]), ("idle per step", pair["idle"]),
                  ("idle share of the time", pair["idle_share"])]
        wanted += [(f"{c['code']}@{c['role']}", c["figure"]) for c in pair["causes"]]
        wanted += [(k["name"], k["figure"]) for k in pair["kernels"]]
        assert rows == [[name, f["before"], f["after"], f["beyond_noise"]] for name, f in wanted], (rows, wanted)
        # Both runs are there, the one after first.
        for part, side in ((1, "after"), (0, "before")):
            if part == 0:
                browser.click("[data-part='0']")
            shown = status(browser)
            label = browser.run("document.querySelector('[aria-pressed=true]').textContent")
            assert label == f"{side}: {sides[part]}", label
            assert (shown["idle"], shown["gaps"]) == (pair[side]["idle_ns"], pair[side]["gap_count"]), (side, shown)
        assert not browser.problems(), browser.problems()


def test_every_kind_of_input(ctx):
    data = ROOT.parent / "shared" / "data"
    files = sorted(data.glob("kineto/*.gz")) + sorted(data.glob("nsys/*.sqlite")) + [SAMPLE]
    for source in files:
        text = open(write_html(ctx, source), encoding="utf-8").read()
        found = json.loads(re.search(r'id="report">(.*?)</script>', text, re.S)[1])
        assert [gpu["idle_ns"] for gpu in found["gpus"]] == [gpu["idle_ns"] for gpu in read_json(ctx, source)["gpus"]]
    return f"{len(files)} files"


def test_bad_use_is_one_line(ctx):
    make_trace(ctx.path("trace.json"), 10)
    trace = ctx.path("trace.json")
    one_line_error(ctx.run(ctx.whyidle, "report", "--html", "/nonexistent/out.html", trace), 1)
    one_line_error(ctx.run(ctx.whyidle, "report", "--html", ctx.path("out.html"), "/nonexistent/a", "/nonexistent/b"), 1)
    one_line_error(ctx.run(ctx.whyidle, "compare", "--html", ctx.path("out.html"), trace, "/nonexistent/b"), 1)
    one_line_error(ctx.run(ctx.whyidle, "compare", "--html", ctx.path("out.html"), "--json", trace, trace), 2)
    assert not os.path.exists(ctx.path("out.html")) and not list(ctx.folder.glob("*.partial*"))
    one_line_error(ctx.run(ctx.whyidle, "report", trace, "--html"), 2)
