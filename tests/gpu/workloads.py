#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Records planted PyTorch workloads with whyidle and judges the answers by what was planted.

    tests/gpu/workloads.py --workloads DIR --seconds 4 [--only a1,a2 | --only all] [--bare] [--keep a1]

Each workload prints what it planted, measured by itself, as one JSON line; the report is asked for exactly the measured
phase. A workload passes if the cause with most idle time of the busiest GPU is one that was planted, in the planted role;
a healthy one if that GPU idled at most 3 % and nothing is claimed. Everything is kept in OUT/NAME/, sessions only where
they are small, asked for (--keep, with all that belongs to it in OUT/kept-NAME.tar.gz) or of a workload that failed.
"""
import json
import shutil
import sys
import tarfile

import harness

ROLES = {"main": "launcher", "worker": "worker", "pin": "thread", "other-thread": "thread", "other-process": "process"}
HEALTHY_IDLE = 0.03
MUST_PASS = "a1,a2,a3,a4,a5,a10,a11,a12"
SMALL_SESSION = 1 << 20
COLD_READS_MB = 64  # a run that is said to read from storage and read less than this proves nothing

HEAD = ("workload", "verdict", "expected", "causes, share of idle", "idle ms", "est. ms", "known", "lost", "steps/s",
        "symbol", "session KB", "report s")


def answer(code, role):
    return f"{code}@{ROLES[role]}"


def expected_answers(truth):
    return [answer(truth["expected_top"], truth["expected_role"]),
            *(answer(*other.split("@")) for other in truth.get("also_ok", []))]


def found_answer(cause):
    return f"{cause['code']}@{cause['role']}"


def judge(truth, document):
    """'pass' or 'FAIL: why' for a report over the measured phase."""
    gpu = harness.busiest(document)
    if gpu is None:
        return "FAIL: the report has no GPU"
    if sum(c["ns"] for c in gpu["causes"]) != gpu["idle_ns"]:
        return "FAIL: causes do not sum to idle time"
    accepted = expected_answers(truth)
    top = found_answer(gpu["causes"][0]) if gpu["causes"] else "nothing"
    if truth["expected_top"] == "none":
        idle = gpu["idle_ns"] / (truth["end_ns"] - truth["start_ns"])
        claimed = [found_answer(f) for f in document["findings"]]
        if idle <= HEALTHY_IDLE and not claimed:
            return "pass"
        milder = " (which also_ok allows)" if set(claimed or [top]) <= set(accepted) else ""
        return f"FAIL: idle {idle:.1%}, {', '.join(claimed or [top])}{milder}"
    return "pass" if top in accepted else f"FAIL: {top}"


def doubt(truth):
    """Why what the workload planted is not valid here, None if it is."""
    if truth.get("disk_mb", COLD_READS_MB) < COLD_READS_MB:
        return f"only {truth['disk_mb']} MB came from storage ({truth.get('fs')}): nothing was planted"
    return None


def shares(gpu):
    return ", ".join(f"{found_answer(c)} {c['ns'] / max(1, gpu['idle_ns']):.0%}" for c in gpu["causes"][:3]) or "-"


def short_row(result):
    return [result["workload"], harness.short(result["verdict"]), *["-"] * (len(HEAD) - 2)]


def row_of(result):
    truth, document = result.get("truth") or {}, result.get("report")
    expected = "/".join(expected_answers(truth)) if truth else "-"
    rates = [f"{t['steps_per_s']:.1f}" for t in (result.get("bare"), truth) if t]
    row = dict(zip(HEAD, short_row(result)))
    row |= {"expected": expected, "steps/s": " → ".join(rates) or "-", "est. ms": truth.get("gpu_idle_ms_est", "-"),
            "session KB": result.get("session_bytes", 0) >> 10}
    gpu = harness.busiest(document) if document else None
    if gpu:
        unknown = sum(c["ns"] for c in gpu["causes"] if c["code"].startswith("unknown"))
        symbol = truth.get("expected_symbol")
        row |= {"causes, share of idle": shares(gpu), "idle ms": f"{gpu['idle_ns'] / 1e6:.0f}",
                "known": f"{1 - unknown / max(1, gpu['idle_ns']):.0%}", "lost": harness.lost_text(document),
                "report s": f"{result['report_s']:.1f}",
                "symbol": "-" if not symbol else "named" if symbol in json.dumps(gpu["causes"][:1]) else "no"}
    return [row[column] for column in HEAD]


def one_workload(args, budget, script, result):
    """Records, reports and judges one workload; fills in the result, the verdict in any case."""
    folder = args.out / result["workload"]
    command = [args.python, script, "--seconds", f"{args.seconds:g}"]
    limit = args.seconds + harness.RECORD_LIMIT_S
    if args.bare:
        bare = harness.run(command, min(limit, budget.left()), folder, "bare")
        result["bare"] = harness.json_line(bare.stdout, "workload")
    done = harness.record(args.whyidle, folder, command, min(limit, budget.left()), args.option)
    result |= {"status": done.status, "record_wall_s": done.wall_s, "truth": harness.json_line(done.stdout, "workload")}
    session = folder / "session.whyidle"
    result["session_bytes"] = session.stat().st_size if session.exists() else 0
    if done.status != 0 or result["truth"] is None:
        result["verdict"] = "FAIL: record: " + harness.what_failed(done)
        return
    truth = result["truth"]
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    options = harness.window_of(truth)
    # Where another process shares the GPU, this one is judged by the GPU as it sees it.
    options += ["--pid", str(truth["pid"])] if truth.get("peer") else []
    options += getattr(args, "report_options", [])
    text = harness.run([args.whyidle, "report", session, *options], harness.REPORT_LIMIT_S, folder, "report-text")
    told, result["report"] = harness.report(args.whyidle, folder, options)
    result["report_s"] = told.wall_s
    bad = next((d for d in (told, text) if d.status != 0), None)
    if bad or result["report"] is None:
        result["verdict"] = "FAIL: report: " + harness.what_failed(bad or told)
        return
    result["verdict"] = judge(truth, result["report"])
    reason = doubt(truth)
    if reason:
        result["verdict"] = f"skip: {reason} (it would be {result['verdict']})"


def keep_session(args, name, result):
    """Moves the session to OUT/sessions/NAME.whyidle if it is worth its size, and bundles it if asked for."""
    session = args.out / name / "session.whyidle"
    if not session.exists():
        return
    asked = any(k in (name, name.split("_")[0]) for k in args.keep)
    if asked:
        with tarfile.open(args.out / f"kept-{name}.tar.gz", "w:gz") as bundle:
            for path in sorted((args.out / name).iterdir()):
                bundle.add(path, f"{name}/{path.name}")
        session.unlink()
    elif not result["verdict"].startswith("pass") or session.stat().st_size <= SMALL_SESSION:
        (args.out / "sessions").mkdir(exist_ok=True)
        shutil.move(session, args.out / "sessions" / f"{name}.whyidle")
    else:
        session.unlink()


def main():
    p = harness.parser(__doc__, "workloads")
    harness.add_workloads(p, "--only", MUST_PASS, 4)
    p.add_argument("--bare", action="store_true", help="run each workload without whyidle first")
    p.add_argument("--keep", action="append", default=[], metavar="NAME", help="keep this one's session (may repeat)")
    p.add_argument("--option", action="append", default=[], help="option for whyidle record (may repeat)")
    args = harness.parse(p)
    scripts, rows = harness.find_scripts(args.workloads, args.only), {}
    budget, results = harness.Budget(args.budget), []
    harness.end_on_sigterm()
    try:
        for name, script in scripts:
            result = {"workload": name, "verdict": "FAIL: not finished"}
            results.append(result)
            if not budget.fits("workload", (args.seconds + harness.STARTUP_S) * (1 + args.bare)):
                result["verdict"] = "skip: no time left"
                continue
            print(f"{name} …", flush=True)
            with_start = budget.left()
            try:
                one_workload(args, budget, script, result)
                rows[name] = row_of(result)
            except harness.UNEXPECTED as odd:
                result["verdict"] = f"FAIL: {odd!r}"
            budget.took("workload", with_start - budget.left())
            keep_session(args, name, result)
            print(f"{name}: {result['verdict']}", flush=True)
    finally:
        (args.out / "workloads.json").write_text(json.dumps(results, indent=1) + "\n")
        verdicts = [r["verdict"] for r in results]
        notes = harness.reasons((r["workload"], r["verdict"]) for r in results)
        notes += harness.degraded_lines((r["workload"], r.get("report")) for r in results)
        harness.finish(args, f"Planted workloads, {args.seconds:g} s each",
                       harness.table(HEAD, [rows.get(r["workload"]) or short_row(r) for r in results]), notes, verdicts)
    return any(v.startswith("FAIL") for v in verdicts)


if __name__ == "__main__":
    sys.exit(main())
