#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The whole program under load: whyidle record around threads that do nothing but hand over to each other.

    throughput.py [--build DIR] [--seconds N] [--rounds N] [--option OPTION]... [SETTING]...

A simulated GPU is busy beside them. Each round runs every setting bare and recorded, in turns. Needs root and BPF.

Settings are KIND:PAIRS[:RATE]: futex:2 hands over as fast as it can, futex:2:240000 that often a second.

  events/s    scheduler records in the session of the threads that hand over, and the least of any whole second
  missing     context switches that the kernel counted for these threads and the session does not have; Linux 6.18 was
              seen to leave out the tracepoint for about one switch a second (programs ran, none were missed)
  lost        what whyidle says it lost, by cause
  collector   CPU time of whyidle itself, in percent of one CPU
  rate        hand-overs a second, bare divided by recorded: 1.00 where the wanted rate is reached in both
  CPU         CPU time of the command for each hand-over, recorded divided by bare
  steps       steps a second of the program on the simulated GPU, bare divided by recorded
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

DEFAULT_SETTINGS = ["futex:2", "pipe:2", "futex:2:240000"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")


def command(sim, setting, seconds, truth):
    """One shell command: the simulated training loop, and beside it the threads that hand over."""
    kind, pairs, *rate = setting.split(":")
    events = f"{sim}/many_events --kind {kind} --pairs {pairs} --rate {rate[0] if rate else 0} --seconds {seconds}"
    return ["sh", "-c", f"{sim}/healthy --seconds {seconds} --truth {truth} > /dev/null & {events}; wait"]


def cpu_seconds(pid):
    """CPU time of a process without its children, None once it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS if fields[0] != "Z" else None


def run(argv):
    """(output, CPU seconds of the process itself, of all below it, peak memory in MB)."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        own = 0.0
        while (now := cpu_seconds(process.pid)) is not None:
            own = now
            time.sleep(0.05)
        output, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(argv)}: exit status {process.returncode}\n{errors.decode(errors='replace')}")
    return output.decode(), own, usage.ru_utime + usage.ru_stime - own, usage.ru_maxrss / 1024


def workload(output, truth):
    """What the two programs say of themselves."""
    found = re.search(r"switches (\d+) rate (\d+)", output)
    with open(truth, encoding="utf-8") as file:
        told = json.load(file)
    return {"switches": int(found[1]), "rate": int(found[2]), "seconds": int(found[1]) / int(found[2]),
            "steps": told["steps"] / ((told["end_ns"] - told["start_ns"]) / 1e9)}


def count_records(whyidle, session):
    """(scheduler records of the threads that hand over, their number in the poorest whole second)."""
    tids, seconds, lines = set(), {}, []
    with subprocess.Popen([whyidle, "dump", session], stdout=subprocess.PIPE) as dump:
        for line in dump.stdout:
            if line.startswith(b"offcpu "):
                field = line.split(b" ", 6)
                lines.append((field[5], int(field[3][6:]) // 1000000000))
            elif line.startswith((b"task ", b"fork ")) and (b'"ping"' in line or b'"pong"' in line):
                tids.add(re.search(rb" ((?:child_)?tid=\d+)", line)[1].replace(b"child_", b""))
    for tid, second in lines:
        if tid in tids:
            seconds[second] = seconds.get(second, 0) + 1
    whole = sorted(seconds)[1:-1]
    return sum(seconds.values()), min((seconds[s] for s in whole), default=0)


def recorded(args, setting, folder):
    whyidle, session, truth = str(args.build / "whyidle"), f"{folder}/session.whyidle", f"{folder}/truth.json"
    output, own, below, memory = run([whyidle, "record", "-q", "--no-report", "-o", session, *args.option, "--",
                                      *command(args.build / "sim", setting, args.seconds, truth)])
    figures = workload(output, truth)
    report = json.loads(subprocess.run([whyidle, "report", "--json", session], check=True, capture_output=True).stdout)
    records, least = count_records(whyidle, session)
    figures |= {"collector": own / figures["seconds"], "cpu": below, "memory": memory, "records": records,
                "least": least, "bytes": os.path.getsize(session) / figures["seconds"],
                "lost": {cause: count for cause, count in report["losses"].items() if count}}
    os.unlink(session)
    return figures


def bare(args, setting, folder):
    truth = f"{folder}/truth.json"
    output, own, below, _ = run(command(args.build / "sim", setting, args.seconds, truth))
    return workload(output, truth) | {"cpu": own + below}


def measure(args):
    rows = {setting: [] for setting in args.settings}
    with tempfile.TemporaryDirectory(prefix="whyidle-throughput-") as folder:
        for number in range(args.rounds):
            for setting in args.settings:
                pair = [bare, recorded] if number % 2 == 0 else [recorded, bare]
                done = {step.__name__: step(args, setting, folder) for step in pair}
                rows[setting].append((done["bare"], done["recorded"]))
                print(f"round {number + 1} of {args.rounds}: {setting}", file=sys.stderr)
    return rows


def row(setting, pairs):
    """A line of the table: medians over the rounds, losses summed, the worst of what must not be small."""
    def median(value):
        return statistics.median(value(b, r) for b, r in pairs)

    lost = {}
    for _, r in pairs:
        for cause, count in r["lost"].items():
            lost[cause] = lost.get(cause, 0) + count
    return (setting, f"{median(lambda b, r: r['records'] / r['seconds']):,.0f}",
            f"{min(r['least'] for _, r in pairs):,}",
            f"{max(r['switches'] - r['records'] for _, r in pairs):,}",
            ", ".join(f"{cause} {count}" for cause, count in lost.items()) or "none",
            f"{100 * median(lambda b, r: r['collector']):.0f} %",
            f"{median(lambda b, r: r['memory']):.0f}",
            f"{median(lambda b, r: r['bytes']) / 1e6:.1f}",
            f"{median(lambda b, r: b['rate'] / r['rate']):.2f}",
            f"{median(lambda b, r: r['cpu'] / r['switches'] / (b['cpu'] / b['switches'])):.2f}",
            f"{median(lambda b, r: b['steps'] / r['steps']):.2f}")


def print_table(rows):
    head = ("setting", "events/s", "least", "missing", "lost", "collector", "MB RSS", "file MB/s", "rate", "CPU", "steps")
    table = [head] + [row(setting, pairs) for setting, pairs in rows.items()]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    for line in table:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--option", action="append", default=[], help="another option for whyidle record")
    parser.add_argument("settings", nargs="*", default=DEFAULT_SETTINGS, metavar="SETTING")
    args = parser.parse_args()
    print_table(measure(args))


if __name__ == "__main__":
    main()
