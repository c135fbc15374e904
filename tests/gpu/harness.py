# SPDX-License-Identifier: GPL-2.0-only
"""What the scripts of this folder share: running commands, reading what they print, figures and tables.

The name is not common.py on purpose: the workloads import a common.py of their own.
"""
import argparse
import collections
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import random
import shlex
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
STARTUP_S = 25      # what a PyTorch program takes outside its measured phase, before one has been timed
REPORT_LIMIT_S = 120
RECORD_LIMIT_S = 60  # beyond the measured phase

# What reading a report of an unexpected form raises: it spoils one result, not the whole run.
UNEXPECTED = (KeyError, IndexError, TypeError, ValueError, AttributeError, OSError)

Finished = collections.namedtuple("Finished", "status timed_out wall_s stdout stderr")


# ---- arguments

def default_workloads():
    places = [ROOT.parent / "shared/workloads", ROOT / "shared/workloads", ROOT / ".carry/workloads"]
    return next((p for p in places if p.is_dir()), places[0])


def parser(doc, out):
    p = argparse.ArgumentParser(description=doc.split("\n\n")[0], formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--whyidle", type=pathlib.Path, default=ROOT / "build/whyidle")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "build/gpu" / out, help="folder for all that is kept")
    p.add_argument("--python", default=sys.executable, help="interpreter of the recorded programs")
    p.add_argument("--budget", type=float, default=3600, help="seconds; nothing is started that would not fit")
    p.add_argument("--markdown", type=pathlib.Path, help="also write the tables, the machine and the command here")
    return p


def parse(p):
    args = p.parse_args()
    args.whyidle = args.whyidle.resolve()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    if not os.access(args.whyidle, os.X_OK):
        p.error(f"no program at {args.whyidle}: build it with make STATIC=1, or give --whyidle")
    return args


def add_workloads(p, programs_option, programs, seconds):
    p.add_argument("--workloads", type=pathlib.Path, default=default_workloads(), help="folder of the planted workloads")
    p.add_argument("--seconds", type=float, default=seconds, help="length of the measured phase")
    p.add_argument(programs_option, default=programs, help="comma-separated short names, or 'all'")


def find_scripts(workloads, names):
    """[(name, path)] of the workloads that are asked for: 'a1,a12', full names or 'all'."""
    scripts = {s.stem: s for s in workloads.resolve().glob("a[0-9]*_*.py")}
    order = sorted(scripts, key=lambda n: int(n.split("_")[0][1:]))
    if names == "all":
        return [(n, scripts[n]) for n in order]
    found = []
    for wanted in names.split(","):
        match = [n for n in order if wanted in (n, n.split("_")[0])]
        if not match:
            sys.exit(f"no workload {wanted} in {workloads}: give --workloads, or one of {', '.join(order) or 'none'}")
        found += [(n, scripts[n]) for n in match]
    return found


class Budget:
    """Seconds that are left, and how long each kind of step took so far."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.longest = {}

    def left(self):
        return max(0.0, self.end - time.monotonic())

    def fits(self, kind, guess):
        return self.longest.get(kind, guess) <= self.left()

    def took(self, kind, seconds):
        self.longest[kind] = max(seconds, self.longest.get(kind, 0))


# ---- running

def rounds(args, budget, scripts, modes, notes):
    """(program, script, all modes in a random order, seeded) for each round of each program; notes get what does not fit."""
    dice = random.Random(args.seed)
    for number in range(args.pairs):
        for program, script in scripts:
            if not budget.fits(program, len(modes) * (args.seconds + STARTUP_S)):
                notes.append(f"- {program}: no time left in round {number + 1} of {args.pairs}")
                continue
            print(f"round {number + 1} {program}", flush=True)
            before = budget.left()
            yield program, script, dice.sample(modes, len(modes))
            budget.took(program, before - budget.left())


def end_on_sigterm():
    """SIGTERM unwinds the stack: what runs is ended, and the table of what was done is still printed."""
    def ended(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit("ended by SIGTERM")
    signal.signal(signal.SIGTERM, ended)


def signal_group(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def end_group(process):
    """First as Ctrl-C would, so that a recorder can finish its file, then harder; nothing of the group is left."""
    try:
        for number, patience in (signal.SIGINT, 8), (signal.SIGTERM, 3):
            if process.poll() is not None:
                break
            signal_group(process, number)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                pass
    finally:  # also when this is itself ended meanwhile
        signal_group(process, signal.SIGKILL)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass  # stuck in the kernel: nothing more can be done


def heed_interrupts():
    """Shells let what they start in the background ignore SIGINT, and it hands that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(command, limit_s, folder, name, environment=None):
    """Runs a command in a session of its own; its output goes to folder/name.stdout and .stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [str(word) for word in command]
    paths = [folder / f"{name}.{kind}" for kind in ("stdout", "stderr")]
    (folder / f"{name}.command").write_text(command_line(command, environment) + "\n")
    start, timed_out, status = time.monotonic(), False, None
    with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       env={**os.environ, **(environment or {})}, start_new_session=True,
                                       preexec_fn=heed_interrupts)
        except OSError as failed:
            err.write(f"{failed}\n".encode())
            status = 127
        else:
            try:
                process.wait(max(1, limit_s))
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                end_group(process)
            status = process.returncode
    texts = [p.read_text(errors="replace") for p in paths]
    return Finished(status, timed_out, time.monotonic() - start, *texts)


def command_line(command, environment=None):
    return shlex.join([f"{k}={v}" for k, v in (environment or {}).items()] + [str(word) for word in command])


def record(whyidle, folder, command, limit_s, options=(), environment=None):
    """Records a command; the session is folder/session.whyidle."""
    session = folder / "session.whyidle"
    session.unlink(missing_ok=True)
    return run([whyidle, "record", "-q", "--no-report", "-o", session, *options, "--", *command], limit_s, folder, "record",
               environment)


def window_of(truth):
    return ["--window", f"{truth['start_ns']}..{truth['end_ns']}"]


def report(whyidle, folder, options=(), limit_s=REPORT_LIMIT_S):
    """The JSON report of folder/session.whyidle: (Finished, dict); the dict is None if there is none."""
    done = run([whyidle, "report", folder / "session.whyidle", *options, "--json"], limit_s, folder, "report-json")
    if done.status != 0:
        return done, None
    try:
        return done, json.loads(done.stdout)
    except ValueError as broken:
        return done._replace(stderr=f"the report is not JSON: {broken}\n" + done.stderr), None


def busiest(document):
    """The device of a report that most was done on, None if it has none."""
    return max(document.get("gpus") or [], key=lambda gpu: gpu["busy_ns"], default=None)


def lost_text(document):
    lost = {k: v for k, v in document.get("losses", {}).items() if v}
    return " ".join(f"{k}={v}" for k, v in lost.items()) or "0"


def degraded_lines(results):
    """Lines on what could not be recorded, each with who met it; results: [(name, report or None)]."""
    met = {}
    for name, document in results:
        for line in (document or {}).get("degraded", []):
            met.setdefault(line, []).append(name)
    return [f"- degraded ({', '.join(names)}): {line}" for line, names in met.items()]


def json_line(text, key):
    """The last line of a program's output that is a JSON object with this key, None if there is none."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if key in value:
                return value
    return None


def what_failed(done, lines=3):
    """Exit status and first lines of stderr, for a person."""
    state = f"exit {done.status}" + (" (time-out)" if done.timed_out else "")
    said = [s.strip() for s in done.stderr.splitlines() if s.strip()]
    # The last line of a traceback says more than its first ones.
    said = said[:lines] + ([said[-1]] if len(said) > lines else [])
    return ": ".join([state, " / ".join(s[:200] for s in said)]) if said else state


# ---- figures

def bootstrap(values, rounds=4000, seed=1):
    """95 % interval of the median by resampling; rough below about ten values."""
    dice = random.Random(seed)
    medians = sorted(statistics.median(dice.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(rounds * 0.025)], medians[int(rounds * 0.975)]


def spread(values, digits=3):
    return f"{min(values):.{digits}f}..{max(values):.{digits}f}"


# ---- what is shown

def table(head, rows):
    """A markdown table that is aligned for reading as text too."""
    cells = [[str(c).replace("|", "/").replace("\n", " ") for c in row] for row in [head, *rows]]
    width = [max(len(row[k]) for row in cells) for k in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, width)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in width) + "|", *lines[1:]])


def short(verdict):
    """What of a verdict fits a table: the reason goes below it."""
    return verdict.split(":")[0]


def reasons(named_verdicts):
    return [f"- {name}: {verdict}" for name, verdict in named_verdicts if ":" in verdict]


def torch_versions():
    """Versions of PyTorch and of its CUDA, read without importing it (which takes seconds)."""
    try:
        found = importlib.util.find_spec("torch")
        values = {}
        exec((pathlib.Path(found.origin).parent / "version.py").read_text(), values)
        return f"torch {importlib.metadata.version('torch')}, CUDA {values.get('cuda')}"
    except Exception as failed:  # an odd installation must not end a run that is paid for
        return f"torch unknown ({type(failed).__name__})"


def machine():
    """One line about this machine."""
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm", "--format=csv,noheader"]
        smi = subprocess.run(query, capture_output=True, text=True, timeout=30)
        gpu = "; ".join((smi.stdout or smi.stderr).strip().splitlines())
    except (OSError, subprocess.TimeoutExpired) as failed:
        gpu = f"no nvidia-smi ({type(failed).__name__})"
    return (f"GPU: {gpu} (name, driver, clock, highest clock); Linux {platform.release()}; "
            f"{len(os.sched_getaffinity(0))} CPUs; Python {platform.python_version()}; {torch_versions()}")


def finish(args, title, body, notes, verdicts):
    """Prints the result last on stdout and, if asked, to the markdown file; notes: lines below the table."""
    text = "\n".join([body, "", *notes, *([""] if notes else []), counts(verdicts), ""])
    print(f"\n## {title}\n\n{text}", flush=True)
    if args.markdown:
        args.markdown.parent.mkdir(parents=True, exist_ok=True)
        command = shlex.join(["python3", "tests/gpu/" + os.path.basename(sys.argv[0]), *sys.argv[1:]])
        command = command.replace(f"{ROOT}/", "")
        args.markdown.write_text(f"## {title}\n\n    {command}\n\n{machine()}\n\n{text}")


def counts(verdicts):
    """'N passed, N failed' of verdicts that begin with pass, FAIL or skip."""
    number = collections.Counter(v.split()[0].rstrip(":") for v in verdicts)
    skipped = f", {number['skip']} skipped" if number["skip"] else ""
    return f"{number['pass']} passed, {number['FAIL']} failed{skipped}"


if __name__ == "__main__":
    print(machine())
