#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a large HTML report costs in headless Chromium: size, first paint, zoom.

    html.py [--build DIR] [--gaps N] [--opens N] [--zooms N]

A made-up trace (tests/e2e/test_html.py) becomes a page, which is opened --opens times and zoomed --zooms times with the
wheel, from the whole run into single gaps. Shown are median and worst, with their CPU time (all threads of the browser
together, which other load on the machine hardly changes):
    first paint   the browser's own first-contentful-paint, from the start of the navigation
    page ready    the page's program has run, all is drawn
    zoom          from the wheel's event to the frame that shows it
    drawing       of that, in the page's program
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from browser import Browser  # noqa: E402
from harness import Skip  # noqa: E402
from test_html import make_trace  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
PAINT = """new Promise(done => new PerformanceObserver(list => list.getEntriesByName("first-contentful-paint").forEach(
    entry => done(entry.startTime))).observe({type: "paint", buffered: true}))"""
ZOOM = """new Promise(done => {
    const strip = document.querySelector("canvas.strip"), box = strip.getBoundingClientRect(), begin = performance.now();
    strip.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, clientX: box.left + box.width * 0.37, clientY: box.top + 50,
        bubbles: true, cancelable: true}));
    requestAnimationFrame(() => setTimeout(() => done([performance.now() - begin,
        +document.getElementById("status-0").dataset.drawMs])));
})"""


def cpu_seconds(group):
    """Of all processes of a group so far, those that it has waited for too."""
    ticks = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def show(name, times, cpu=None):
    print(f"{name:14} {statistics.median(times):9.1f} {max(times):9.1f} {'' if cpu is None else f'{1000 * cpu / len(times):9.0f}'}",
          flush=True)


def measure(path, folder, opens, zooms):
    with Browser(folder) as browser:
        paint, ready, zoom, draw = [], [], [], []
        before = cpu_seconds(browser.process.pid)
        for _ in range(opens):
            browser.open(path)
            paint.append(browser.run(PAINT))
            ready.append(browser.run("+document.documentElement.dataset.ready"))
        opened = cpu_seconds(browser.process.pid)
        for _ in range(zooms):
            whole, part = browser.run(ZOOM)
            zoom.append(whole)
            draw.append(part)
        zoomed = cpu_seconds(browser.process.pid)
    print(f"{'ms':14} {'median':>9} {'worst':>9} {'CPU each':>9}")
    show("first paint", paint, opened - before)
    show("page ready", ready)
    show("zoom", zoom, zoomed - opened)
    show("drawing", draw)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--gaps", type=int, default=200000)
    parser.add_argument("--opens", type=int, default=7)
    parser.add_argument("--zooms", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whyidle-html-") as folder:
        page = f"{folder}/report.html"
        make_trace(f"{folder}/trace.json", args.gaps + 1)
        subprocess.run([args.build / "whyidle", "report", "--html", page, f"{folder}/trace.json"], check=True)
        print(f"{args.gaps:,} gaps: {os.path.getsize(page) / 1e6:.2f} MB")
        try:
            measure(page, folder, args.opens, args.zooms)
        except Skip as reason:
            sys.exit(str(reason))


if __name__ == "__main__":
    main()
