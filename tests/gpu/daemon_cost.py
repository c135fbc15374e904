#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What the daemon costs: the step rate of a program without it, beside its counters, and beside it with windows.

    tests/gpu/daemon_cost.py --workloads DIR --pairs 10 --seconds 25 --programs a5,a12
                             [--mode short='--interval 5s --window 300ms'] [--no-t0]

In each round every program runs once in every mode, in a random order (seeded). The daemon is started before the program
and ended after it. A mode's slow-down in a round is the rate without a daemon divided by its own, of the measured phase
that the program itself times. The table also has what the daemon says of itself over the run: CPU time by part as a share
of one CPU, windows, time that probes took of the launching thread in windows, state of the budget, losses; and from the
kernel its largest memory, that of the processes of windows not counted.

The limit of the issue is 0.3 % at defaults (mode "windows"); whether so little can be told from noise, the interval says.
"""
import collections
import json
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import harness

LIMIT = 1.003
START_S = 30
PARTS = "daemon", "switch", "capture", "probes"
HEAD = ("program", "mode", "slow-down", "95 % interval", "verdict", "pairs", "bare steps/s", "CPU %", *PARTS, "windows",
        "in windows", "state", "lost", "MiB")

Mode = collections.namedtuple("Mode", "name options")  # options None: no daemon


def mode(text):
    name, separator, rest = text.partition("=")
    if not separator or not name:
        raise ValueError(text)
    return Mode(name, shlex.split(rest))


def modes_of(args):
    modes = [Mode("bare", None)] + ([] if args.no_t0 else [Mode("t0", ["--interval", "0"])])
    return modes + [Mode("windows", [])] + args.mode


class Daemon:
    """One that runs, without a port (a GPU machine need not have the HTTP library), with a history of its own.

    Raises RuntimeError if it does not start.
    """

    def __init__(self, args, folder, options):
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "daemon.log"
        self.home = tempfile.mkdtemp(prefix="whyidle-daemon-")  # the path of a socket must be short
        self.control = self.home + "/control"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [str(w) for w in (args.whyidle, "daemon", "--listen", "none", "--control", self.control, "--history",
                                  self.home + "/history", "--log", "json", *options)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + START_S
        while not self.events("started"):
            if self.process.poll() is not None or time.monotonic() > end:
                self.end()
                raise RuntimeError("the daemon did not start: " + self.log.read_text(errors="replace")[-300:])
            time.sleep(0.05)

    def events(self, name):
        lines = self.log.read_text(errors="replace").splitlines()
        found = []
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:  # half a line, or a message for people
                continue
            if event.get("event") == name:
                found.append(event)
        return found

    def metrics(self):
        """{sample with its labels: value}"""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(20)
            client.connect(self.control)
            client.sendall(b"metrics\n")
            text = b""
            while part := client.recv(1 << 16):
                text += part
        lines = json.loads(text)["metrics"].splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:")), 0)

    def end(self):
        harness.end_group(self.process)
        shutil.rmtree(self.home, ignore_errors=True)


def told(before, after, seconds, memory):
    """What the daemon said of itself over some seconds, as a dict of figures."""
    def grown(name):
        return sum(value - before.get(key, 0) for key, value in after.items() if key.split("{")[0] == name)

    cost = 'whyidle_overhead_cpu_seconds_total{part="%s"}'
    parts = {part: 100 * (after.get(cost % part, 0) - before.get(cost % part, 0)) / seconds for part in PARTS}
    state = [key.split('"')[1] for key, value in after.items() if key.startswith("whyidle_budget_state{") and value]
    return {"parts": parts, "cpu": sum(parts.values()), "windows": grown("whyidle_windows_total"),
            "slowdown": 100 * after.get("whyidle_launch_slowdown_ratio", 0), "state": state[0] if state else "?",
            "lost": grown("whyidle_lost_records_total"), "memory": memory,
            "observed_s": grown("whyidle_gpu_observed_seconds_total")}


def run_once(args, folder, chosen, script, budget):
    """(Finished, what the program said or None, what the daemon said or None)"""
    command = [args.python, script, "--seconds", f"{args.seconds:g}"]
    limit = min(args.seconds + harness.RECORD_LIMIT_S, budget.left())
    daemon, said = None, None
    try:
        if chosen.options is not None:
            daemon = Daemon(args, folder, chosen.options)
            start, before = time.monotonic(), daemon.metrics()
        done = harness.run(command, limit, folder, "program")
        if daemon:
            said = told(before, daemon.metrics(), time.monotonic() - start, daemon.memory_mib())
            said["steps"] = [e["text"] for e in daemon.events("budget_step")]
            said["warnings"] = [e["text"] for name in ("degraded", "window_failed") for e in daemon.events(name)]
    finally:
        if daemon:
            daemon.end()
    return done, harness.json_line(done.stdout, "workload") if done.status == 0 else None, said


class Figures:
    def __init__(self):
        self.rates, self.said = collections.defaultdict(list), collections.defaultdict(list)
        self.failures = collections.defaultdict(list)

    def row(self, program, chosen):
        key = program, chosen.name
        bare, rates = self.rates[program, "bare"], self.rates[key]
        ratios = [b / r for b, r in zip(bare, rates) if b and r]
        summary = {"program": program, "mode": chosen.name, "options": chosen.options, "rates": rates, "bare_rates": bare,
                   "ratios": ratios, "said": self.said[key], "failures": self.failures[key], "verdict": "FAIL"}
        if not ratios:
            return [program, chosen.name, "-", "-", "FAIL", 0, *["-"] * (len(HEAD) - 6)], summary
        middle, (low, high) = statistics.median(ratios), harness.bootstrap(ratios)
        verdict = "-" if chosen.name != "windows" else "pass" if low <= LIMIT and not self.failures[key] else "FAIL"
        summary |= {"median": middle, "interval": [low, high], "verdict": verdict}

        def mean(pick):
            return statistics.mean(pick(one) for one in self.said[key])

        return [program, chosen.name, f"{middle:.4f}", f"{low:.4f}..{high:.4f}", verdict, len(ratios),
                f"{statistics.median(b for b in bare if b):.2f}", f"{mean(lambda s: s['cpu']):.3f}",
                *(f"{mean(lambda s, p=part: s['parts'][p]):.3f}" for part in PARTS), f"{mean(lambda s: s['windows']):.1f}",
                f"{mean(lambda s: s['slowdown']):.1f} %", collections.Counter(s["state"] for s in self.said[key]).most_common(1)[0][0],
                f"{sum(s['lost'] for s in self.said[key]):.0f}", f"{max(s['memory'] for s in self.said[key]):.0f}"], summary


def one_round(args, budget, figures, program, script, order):
    for chosen in order:
        key, folder = (program, chosen.name), args.out / f"{program}-{chosen.name}"
        truth = said = None
        try:
            done, truth, said = run_once(args, folder, chosen, script, budget)
            if truth is None:
                figures.failures[key].append(harness.what_failed(done))
        except (RuntimeError, *harness.UNEXPECTED) as failed:
            figures.failures[key].append(f"{failed!r}"[:300])
        rate = truth["steps_per_s"] if truth and (said or chosen.options is None) else None
        figures.rates[key].append(rate)
        if said:
            figures.said[key].append(said)
        print(f"  {program} {chosen.name}: {rate} steps/s", json.dumps(said) if said else "", flush=True)


def main():
    p = harness.parser(__doc__, "daemon")
    harness.add_workloads(p, "--programs", "a5,a12", 25)
    p.add_argument("--pairs", type=int, default=10, help="rounds")
    p.add_argument("--mode", action="append", default=[], type=mode, metavar="NAME='OPTIONS'", help="one more (may repeat)")
    p.add_argument("--no-t0", action="store_true", help="leave out the mode without windows")
    p.add_argument("--seed", type=int, default=1)
    args = harness.parse(p)
    scripts = harness.find_scripts(args.workloads, args.programs)
    modes, figures = modes_of(args), Figures()
    budget, notes = harness.Budget(args.budget), []
    harness.end_on_sigterm()
    try:
        for program, script, order in harness.rounds(args, budget, scripts, modes, notes):
            one_round(args, budget, figures, program, script, order)
    finally:
        rows = [figures.row(program, chosen) for program, _ in scripts for chosen in modes if chosen.options is not None]
        (args.out / "daemon.json").write_text(json.dumps([summary for _, summary in rows], indent=1) + "\n")
        for (program, name), said in figures.said.items():
            lines = collections.Counter(line for one in said for line in one["steps"] + one["warnings"])
            notes += [f"- {program} {name}, {count} times: {line}" for line, count in lines.most_common(3)]
        notes += [f"- {program} {name}: failed: {why}" for (program, name), all_of in figures.failures.items() for why in all_of]
        harness.finish(args, f"Cost of the daemon, {args.seconds:g} s a run, seed {args.seed}",
                       harness.table(HEAD, [cells for cells, _ in rows]), notes, [s["verdict"] for _, s in rows])
    return any(summary["verdict"].startswith("FAIL") for _, summary in rows)


if __name__ == "__main__":
    sys.exit(main())
