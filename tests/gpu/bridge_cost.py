# SPDX-License-Identifier: GPL-2.0-only
"""What each choice of CUPTI records costs a launch-bound loop on a real GPU, and what it delivers.

    python3 tests/gpu/bridge_cost.py [--rounds N] [--launches N] [--variant NAME=KINDS]… [--check]

Runs are interleaved (bare, each variant, bare, …). --check looks at the records of the default choice in full:
every kernel has its launch by correlation id, on the right thread, within the loop's own times.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", os.path.join(HERE, "../../build"))
DUMP = os.path.join(BUILD, "sim/ring_dump")
BRIDGE = os.path.join(BUILD, "libwhyidle_bridge.so")
LOOP = os.path.join(HERE, "launch_loop.py")
OUT = os.environ.get("OUT", "/tmp")

VARIANTS = {
    "default": None,
    "kernels": "kernel,memcpy,memset,device",
    "no-driver": "kernel,memcpy,peer,memset,sync,overhead,device,runtime",
    "no-runtime": "kernel,memcpy,peer,memset,sync,overhead,device,driver",
    "no-sync": "kernel,memcpy,peer,memset,overhead,device,runtime,driver",
    "no-overhead": "kernel,memcpy,peer,memset,sync,device,runtime,driver",
    "cupti-flush": "kernel,memcpy,peer,memset,sync,overhead,device,runtime,driver,cupti-flush",
    "cupti-zero": "kernel,memcpy,peer,memset,sync,overhead,device,runtime,driver,cupti-zero",
    "driver-all": "kernel,memcpy,peer,memset,sync,overhead,device,driver-all",
}


def run(command, kinds=None):
    environment = dict(os.environ)
    if kinds:
        environment["WHYIDLE_BRIDGE_KINDS"] = kinds
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def loop_result(text):
    return json.loads(next(line for line in text.splitlines() if line.startswith('{"launches"')))


def measure(names, rounds, launches):
    times = {name: [] for name in ["bare"] + names}
    totals = {}
    for _ in range(rounds):
        for name in times:
            if name == "bare":
                text = run([sys.executable, LOOP, str(launches)])
            else:
                text = run([DUMP, "-q", "-b", str(64 << 20), BRIDGE, sys.executable, LOOP, str(launches)],
                           VARIANTS[name])
                totals[name] = [line for line in text.splitlines() if re.search(r"TOTAL|END|STATUS|LOSS", line)]
            times[name].append(loop_result(text)["us"])
    bare = statistics.median(times["bare"])
    for name, values in times.items():
        print(f"{name:12} median {statistics.median(values):6.2f} us  min {min(values):6.2f}  max {max(values):6.2f}"
              f"  ratio {statistics.median(values) / bare:.3f}  {[round(v, 2) for v in values]}")
    for name, lines in totals.items():
        print(f"-- {name}", *lines, sep="\n   ")


def fields(line):
    return dict(part.split("=", 1) for part in line.split() if "=" in part)


def check(launches):
    path = os.path.join(OUT, "bridge_dump.txt")
    text = run([DUMP, "-b", str(256 << 20), "-o", path, BRIDGE, sys.executable, LOOP, str(launches)])
    loop = loop_result(text)
    lines = open(path, encoding="utf-8", errors="replace").read().splitlines()
    for line in lines:
        if re.match(r"\d+ (HELLO|STATUS|DEVICE|LOSS|END)|TOTAL|EXIT", line):
            print("  ", line)
    apis, kernels = {}, []
    functions, syncs, overheads, copies = Counter(), Counter(), Counter(), Counter()
    per_correlation = Counter()
    for line in lines:
        kind = line.split()[1] if " " in line else ""
        if kind == "API":
            record = fields(line)
            functions[record["function"]] += 1
            per_correlation[record["correlation"]] += 1
            apis.setdefault(record["correlation"], []).append(record)
        elif kind == "KERNEL":
            kernels.append(fields(line))
        elif kind == "SYNC":
            record = fields(line)
            syncs[(record["type"], record["stream"])] += 1
        elif kind == "OVERHEAD":
            record = fields(line)
            overheads[(int(record["kind"]) >> 16, record["tid"] != "0")] += 1
        elif kind == "MEMCPY":
            record = fields(line)
            copies[(record["kind"], record["source"], record["target"], record["flags"])] += 1
    inside = [k for k in kernels if int(k["start"]) >= loop["start_ns"] and int(k["end"]) <= loop["end_ns"]]
    launched = [k for k in kernels if k["correlation"] in apis]
    late = [k for k in launched if any(int(a["start"]) > int(k["start"]) for a in apis[k["correlation"]])]
    right = [k for k in launched if all(int(a["tid"]) == loop["tid"] for a in apis[k["correlation"]])]
    print(f"  kernels {len(kernels)}, inside the loop {len(inside)} of {loop['launches']}, with a launch "
          f"{len(launched)}, of them started before it {len(late)}, on the main thread {len(right)}")
    print(f"  calls per correlation id: {Counter(per_correlation.values())}, in graphs: "
          f"{sum(k['graph'] != '0' for k in kernels)}")
    print(f"  functions {functions.most_common(20)}")
    print(f"  syncs {dict(syncs)} overheads {dict(overheads)} copies {dict(copies)}")
    example = next((a for a in apis.values() if len(a) > 1), None)
    print(f"  example of several calls with one id: {example}")
    bad = len(inside) < loop["launches"] or len(launched) != len(kernels) or late or len(right) != len(launched)
    print("check", "FAILED" if bad else "passed")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--launches", type=int, default=100000)
    parser.add_argument("--variant", action="append", default=[], help="NAME, or NAME=KINDS")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    names = []
    for variant in options.variant:
        name, equals, kinds = variant.partition("=")
        if equals:
            VARIANTS[name] = kinds
        names.append(name)
    status = check(options.launches) if options.check else 0
    if options.rounds:
        measure(names or list(VARIANTS), options.rounds, options.launches)
    sys.exit(status)


if __name__ == "__main__":
    main()
