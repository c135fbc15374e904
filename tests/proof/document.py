# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a proof and the two files that hold them."""
import json
import os
import pathlib
import platform
import subprocess

TARGETS = {
    "singles_top_ok": (0.98, "singles of 1 ms and more: top cause and role right"),
    "short_singles_top_ok": (0.85, "singles of 0.2 ms: top cause and role right"),
    "doubles_top_ok": (0.90, "two plants in turn: the larger one on top"),
    "coverage": (0.95, "idle time whose cause is known"),
    "false_blame": (0.01, "largest share of a healthy loop's window that was blamed on the host"),
    "time_error_ok": (None, "time of each plant within the larger of 5 % and 50 µs a stall"),
    "gain_ok": (0.90, "measured gain within the predicted range"),
    "replay_error_median": (0.02, "replay of the unchanged graph: error of a stretch, median of all runs' medians"),
    "replay_error_p95": (0.05, "the same, 95th percentile of all runs' 95th percentiles"),
    "replay_error_p95_accepted": (0.05, "the same, of the runs whose replay was accepted: a gain is printed there only"),
    "edge_precision": (None, "edges of synthetic timelines: found ones that are real"),
    "edge_recall": (None, "edges of synthetic timelines: real ones that are found"),
}
AT_MOST = ("false_blame", "replay_error_median", "replay_error_p95", "replay_error_p95_accepted")
GPU_HEADING = "## On a GPU"


def milliseconds(ns):
    return f"{ns / 1e6:,.1f} ms"


def line(kind, name, verdict):
    """One line for the terminal."""
    if kind == "null":
        state = "LOAD" if verdict["disturbed"] else "ok" if verdict["ok"] else "WRONG"
        return f"{state:5} {name}: {verdict['false_blame']:.3%} blamed {verdict['blamed_ns']} {verdict['findings']}"
    state = "ok" if verdict["top_ok"] and verdict["time_ok"] else "TIME" if verdict["top_ok"] else "WRONG"
    if verdict["disturbed"]:
        state = "LOAD"
    times = ", ".join(f"{key} {milliseconds(reported)} of {milliseconds(planted)}" for key, planted, reported in
                      zip(verdict["expected"], verdict["planted_ns"], verdict["reported_ns"], strict=True))
    top = "" if verdict["top_ok"] else f", top is {verdict['top']}"
    return f"{state:5} {name}: {times}{top}"


def share(values):
    values = list(values)
    return sum(values) / len(values) if values else None


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else None


def matrix_of(verdicts):
    """expected → reported → ns, over all runs with a single plant."""
    matrix = {}
    for verdict in verdicts:
        row = matrix.setdefault(verdict["expected"][0], {})
        for key, ns in verdict["causes"].items():
            row[key] = row.get(key, 0) + ns
    return matrix


def commit():
    """Of the sources, with a + if they were changed since; None outside a repository."""
    def git(*words):
        done = subprocess.run(["git", "-C", str(pathlib.Path(__file__).parent), *words], capture_output=True, text=True,
                              check=False)
        return done.stdout.strip() if done.returncode == 0 else None
    name = git("rev-parse", "--short", "HEAD")
    return name and name + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def machine():
    model = next((text.partition(":")[2].strip() for text in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if text.startswith("model name")), platform.machine())
    memory = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) >> 20
    return {"cpu": model, "cpus": len(os.sched_getaffinity(0)), "memory_gib": memory, "kernel": platform.release()}


def summarise(proof, took, seconds, edges):
    """`edges`: counts of tests/unit/test_synthetic.c, None if they were not made."""
    singles, doubles, nulls = (proof.results[kind] for kind in ("single", "double", "null"))
    quiet = {name: v for name, v in singles.items() if not v["disturbed"]}
    quiet_doubles = [v for v in doubles.values() if not v["disturbed"]]
    quiet_nulls = [v for v in nulls.values() if not v["disturbed"]]
    judged = [*quiet.values(), *quiet_doubles]
    idle = sum(v["idle_ns"] for v in judged)
    gains = [v["gain"] for v in quiet.values() if v["gain"]]
    replays = [v["replay"] for v in quiet.values() if v["replay"]]
    estimates = [g for g in gains if not g["is_bound"]]
    is_short = {name: float(name.rpartition(":")[2]) < 1 for name in singles}
    summary = {
        "plants": len(singles) + len(doubles) + len(nulls),
        "singles": len(singles), "doubles": len(doubles), "nulls": len(nulls),
        "disturbed": [n for kind in proof.results.values() for n, v in kind.items() if v["disturbed"]],
        "singles_top_ok": share(v["top_ok"] for n, v in quiet.items() if not is_short[n]),
        "short_singles_top_ok": share(v["top_ok"] for n, v in quiet.items() if is_short[n]),
        "doubles_top_ok": share(v["top_ok"] for v in quiet_doubles),
        "coverage": (idle - sum(v["unknown_ns"] for v in judged)) / idle if idle else None,
        "false_blame": max((v["false_blame"] for v in quiet_nulls), default=None),
        "nulls_ok": share(v["ok"] for v in quiet_nulls),
        "time_error_ok": share(v["time_ok"] for v in judged),
        "gain_ok": share(g["ok"] for g in estimates),
        "gain_bound_ok": share(g["measured_ns"] <= g["predicted_ns"][1] + g["spread_ns"] for g in gains),
        "replay_error_median": percentile([r["error_median"] for r in replays], 0.5),
        "replay_error_p95": percentile([r["error_p95"] for r in replays], 0.95),
        "replay_error_p95_accepted": percentile([r["error_p95"] for r in replays if r["accepted"]], 0.95),
        "replay_accepted": share(r["accepted"] for r in replays),
        "edge_precision": None,
        "edge_recall": None,
        "missing": {},
        "failures": proof.failures, "skipped": proof.skipped,
        "commit": commit(), "machine": machine(), "seconds_a_run": float(seconds), "took_s": round(took),
        "confusion_ns": matrix_of(quiet.values()),
        "runs": {"singles": singles, "doubles": doubles, "nulls": nulls},
    }
    if summary["gain_ok"] is None:
        summary["missing"]["gain_ok"] = "no report gives an estimate, only bounds (see gain_bound_ok)"
    for name in ("replay_error_median", "replay_error_p95", "replay_error_p95_accepted"):
        if summary[name] is None:
            summary["missing"][name] = "no report tells a replay error"
    if edges:
        summary["edge_precision"] = edges["found"] / edges["used"]
        summary["edge_recall"] = edges["found"] / edges["real"]
        summary["edges"] = edges
    for name in TARGETS:
        if summary[name] is None:
            summary["missing"].setdefault(name, "no such run was selected, or all were disturbed")
    return summary


def is_met(name, value):
    target = TARGETS[name][0]
    if value is None or target is None:
        return None
    return value <= target if name in AT_MOST else value >= target


def figure_rows(summary):
    for name, (target, meaning) in TARGETS.items():
        value = summary[name]
        text = f"{value:.1%}" if value is not None else "–"
        sign = "≤" if name in AT_MOST else "≥"
        wanted = f"{sign} {target:.0%}" if target is not None else ""
        met = {True: "yes", False: "**no**", None: ""}[is_met(name, value)]
        yield name, text, wanted, met, meaning


def overview(summary):
    return "\n".join(f"  {name:26} {text:>7}  {wanted:7} {met}" for name, text, wanted, met, _ in figure_rows(summary))


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"


def wrong_rows(runs):
    for name, v in runs.items():
        if v["top_ok"] and v["time_ok"]:
            continue
        what = "other load" if v["disturbed"] else "top cause" if not v["top_ok"] else "time"
        largest = ", ".join(f"{key} {milliseconds(ns)}" for key, ns in list(v["causes"].items())[:3])
        planted = ", ".join(f"{key} {milliseconds(ns)}" for key, ns in
                            zip(v["expected"], v["planted_ns"], strict=True))
        yield name, what, planted, largest


def matrix_rows(matrix):
    for expected, row in matrix.items():
        total = sum(row.values())
        for reported, ns in sorted(row.items(), key=lambda cell: -cell[1]):
            if ns >= 0.02 * total:
                yield expected, reported, milliseconds(ns), f"{ns / total:.1%}"
                expected = ""


def run_rows(runs):
    for name, v in runs.items():
        gain = v.get("gain")
        yield (name, v["top"] if v["top_ok"] else f"**{v['top']}**",
               " + ".join(milliseconds(ns) for ns in v["planted_ns"]),
               " + ".join(milliseconds(ns) for ns in v["reported_ns"]) + ("" if v["time_ok"] else " **×**"),
               f"{gain['measured_ns'] / 1e6:.2f} ms" if gain else "",
               "" if not gain else "≤ {:.2f} ms".format(gain["predicted_ns"][1] / 1e6) if gain["is_bound"] else
               "{:.2f}–{:.2f} ms{}".format(gain["predicted_ns"][0] / 1e6, gain["predicted_ns"][1] / 1e6,
                                           "" if gain["ok"] else " **×**"))


def edge_text(edges):
    if not edges:
        return
    yield "## Edges of synthetic timelines"
    yield ""
    yield f"{edges['timelines']} timelines made by `tests/unit/test_synthetic.c` of scenes in which a thread or an operation"
    yield "depends on another, or only looks as if it did. *Real*: dependencies there are; *used*: what replay takes for one;"
    yield "*found*: those of them that are real. `slow_false_wake` and `quick_item` are twins that no rule can tell apart from"
    yield "what they are not."
    yield ""
    yield from table(("scene", "real", "used", "found"),
                     [(name, s["real"], s["used"], s["found"]) for name, s in edges["scenes"].items()])
    yield ""


def text_of(summary):
    about = summary["machine"]
    runs = summary["runs"]
    yield "# Proof: planted stalls against what the reports say"
    yield ""
    yield "Written by `make proof`; do not edit. Programs with a known stall run on the simulated GPU, are recorded"
    yield "with the real BPF programs on the running kernel, and their reports are compared with what each program"
    yield "wrote down about itself (`tests/sim/workloads/planted`, `tests/proof`). In numbers: `proof.json`."
    yield ""
    yield (f"{summary['singles']} single plants, {summary['doubles']} pairs of plants, {summary['nulls']} healthy "
           f"loops, {summary['seconds_a_run']:g} s each, {summary['took_s'] / 60:.0f} min in all, on "
           f"{about['cpus']} CPUs ({about['cpu']}), {about['memory_gib']} GiB, Linux {about['kernel']}, "
           f"commit {summary['commit']}.")
    yield ""
    yield "Again: `make proof` (root); a part of it: `make proof PROOF=\"-k disk\"`."
    yield ""
    yield from table(("figure", "value", "target", "met", "meaning"), figure_rows(summary))
    yield ""
    for name, reason in summary["missing"].items():
        yield f"- `{name}`: {reason}."
    yield "- Single plants for whose cause a gain was replayed: {} of {}.".format(
        sum(1 for v in runs["singles"].values() if v["gain"] and not v["gain"]["is_bound"]), summary["singles"])
    yield f"- Disturbed by other load in each of 3 tries, not judged: {', '.join(summary['disturbed']) or 'none'}."
    yield f"- Runs that could not be made: {', '.join(summary['failures']) or 'none'}."
    yield from (f"- Not possible on this machine: {name}: {reason}." for name, reason in summary["skipped"].items())
    yield "- Causes sum to the idle time exactly: checked in every run."
    yield ""
    yield from edge_text(summary.get("edges"))
    yield "## Wrong answers"
    yield ""
    wrong = [*wrong_rows(runs["singles"]), *wrong_rows(runs["doubles"])]
    yield from table(("plant", "wrong", "planted", "reported, largest first"), wrong) if wrong else ["None."]
    yield ""
    yield "## Confusion matrix, by time"
    yield ""
    yield "All idle time of the single plants, also what the hand-over around a plant costs; cells from 2 % of a row."
    yield ""
    yield from table(("planted", "reported", "time", "of row"), matrix_rows(summary["confusion_ns"]))
    yield ""
    yield "## Every run"
    yield ""
    yield "Bold: wrong. Gain is per step; *measured* is the difference to the same loop without the plant, less what"
    yield "the plant's own code cost beside it."
    yield ""
    yield from table(("plant", "top cause", "planted", "reported", "gain measured", "gain predicted"),
                     [*run_rows(runs["singles"]), *run_rows(runs["doubles"])])
    yield ""
    yield "## Healthy loops"
    yield ""
    yield from table(("beside the loop", "blamed", "of window", "findings"),
                     [(name, ", ".join(f"{k} {milliseconds(ns)}" for k, ns in v["blamed_ns"].items()) or "nothing",
                       f"{v['false_blame']:.3%}", ", ".join(v["findings"]) or "none")
                      for name, v in runs["nulls"].items()])
    yield ""


def read(folder):
    return json.loads(pathlib.Path(folder, "proof.json").read_text(encoding="utf-8"))


def write(folder, summary):
    """Both files; what `make proof-gpu` has written into them stays."""
    folder = pathlib.Path(folder)
    os.makedirs(folder, exist_ok=True)
    numbers, words = folder / "proof.json", folder / "proof.md"
    text = "\n".join(text_of(summary))
    if numbers.exists() and "gpu" in (before := json.loads(numbers.read_text(encoding="utf-8"))):
        summary["gpu"] = before["gpu"]
    if words.exists() and GPU_HEADING in (before := words.read_text(encoding="utf-8")):
        text += "\n" + before[before.index(GPU_HEADING):]
    numbers.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    words.write_text(text, encoding="utf-8")
