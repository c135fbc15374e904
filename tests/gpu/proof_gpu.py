#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make proof-gpu: the proof with real PyTorch programs on a real GPU.

    tests/gpu/proof_gpu.py --workloads DIR --seconds 3 [--only all] [--write docs]

Records the planted workloads (workloads.py) and a loop with one stall after another (planted_torch.py), and judges top cause,
idle time, time of the cause, and the gain predicted against that measured with the plant removed. The results go to
OUT/proof-gpu.json and, with --write, under the heading for GPUs into proof.md and proof.json of that folder.
"""
import json
import pathlib
import sys
import time

import harness
import workloads

sys.path.insert(0, str(harness.ROOT / "tests" / "proof"))

import document  # noqa: E402  (needs the path above)
import document_gpu  # noqa: E402
import judging  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
IDLE_ERROR, IDLE_ERROR_MS = 0.05, 100
# Where the estimate, wall time less steps times the GPU time of a step alone, does not tell how long the GPU is idle.
NO_ESTIMATE = {
    "a5": "its gaps lie within the steps, which the estimate takes for busy",
    "a7": "the copies themselves are busy time, the estimate takes all but the step for idle",
    "a11": "healthy", "a12": "healthy",
    "a15": "two processes share the GPU, the step was measured alone",
}


def idle_is_right(name, idle_ms, estimate_ms):
    """None where the program cannot tell."""
    if name.split("_")[0] in NO_ESTIMATE or estimate_ms is None:
        return None
    return abs(idle_ms - estimate_ms) <= max(IDLE_ERROR * estimate_ms, IDLE_ERROR_MS)


def workload_result(result):
    """What docs keep of one recorded workload."""
    kept = {"workload": result["workload"], "verdict": result["verdict"]}
    truth, report = result.get("truth"), result.get("report")
    gpu = harness.busiest(report) if report else None
    if not truth or not gpu:
        return kept | {"top_ok": False}
    answers = [workloads.found_answer(cause) for cause in gpu["causes"]]
    healthy = truth["expected_top"] == "none"
    accepted = workloads.expected_answers(truth)
    idle_ms, estimate = gpu["idle_ns"] / 1e6, truth.get("gpu_idle_ms_est")
    unknown = sum(c["ns"] for c in gpu["causes"] if c["code"].startswith("unknown"))
    claimed = [workloads.found_answer(f) for f in report["findings"]]
    return kept | {
        "accepted": [] if healthy else accepted, "top": answers[0] if answers else "nothing", "shares": workloads.shares(gpu),
        "top_ok": not claimed if healthy else bool(answers) and answers[0] in accepted,
        "idle_ms": round(idle_ms, 1), "estimate_ms": estimate, "window_ms": round((truth["end_ns"] - truth["start_ns"]) / 1e6, 1),
        "idle_ok": idle_is_right(result["workload"], idle_ms, estimate),
        "known": round(1 - unknown / max(1, gpu["idle_ns"]), 4), "lost": harness.lost_text(report),
        "sum_ok": sum(c["ns"] for c in gpu["causes"]) == gpu["idle_ns"], "findings": claimed,
    }


def part_result(part, without, report):
    """What the report of one part says of its plant."""
    gpu = harness.busiest(report)
    answers = {workloads.found_answer(cause): cause for cause in gpu["causes"]}
    top = next(iter(answers), "nothing")
    cause = next((answers[a] for a in part["accepted"] if a in answers), None)
    result = {"accepted": part["accepted"], "top": top, "top_ok": top in part["accepted"], "shares": workloads.shares(gpu),
              "planted_ms": round(part["stalled_ns"] / 1e6, 1), "reported_ms": round(cause["ns"] / 1e6, 1) if cause else 0,
              "steps": part["steps"], "idle_ms": round(gpu["idle_ns"] / 1e6, 1),
              "sum_ok": sum(c["ns"] for c in gpu["causes"]) == gpu["idle_ns"], "time_ok": None, "gain": None}
    if part["whole"]:
        result["time_ok"] = judging.time_is_right(part["stalled_ns"], part["steps"], cause["ns"] if cause else 0)
    if cause:
        # Without the plant its code is gone as well: other idle time that it brought is no gain of the cause.
        beside = 0 if part["whole"] else max(0, gpu["idle_ns"] - cause["ns"]) / part["steps"]
        measured = part["step_ns"]["mean"] - without["step_ns"]["mean"] - beside
        result["gain"] = judging.gain(cause, part["steps"], measured, part["step_ns"], without["step_ns"])
    return result


def judge_parts(args, folder, told):
    """({plant: result}, reason why not) of the session in the folder; `told` is what the program printed."""
    results = {}
    for name, part in told["parts"].items():
        if not part["plant"]:
            continue
        done, report = harness.report(args.whyidle, folder, harness.window_of(part))
        if report is None or harness.busiest(report) is None:
            return results, f"report of {name}: " + harness.what_failed(done)
        without = told["parts"]["nothing, ahead" if part["ahead"] else "nothing, drained"]
        results[name] = part_result(part, without, report)
        print(f"{name}: {results[name]['top']}", flush=True)
    return results, None


def one_after_another(args, budget):
    """The loop of planted_torch.py: ({plant: result}, reason why not)."""
    folder = args.out / "planted_torch"
    command = [args.python, HERE / "planted_torch.py", "--seconds", f"{args.part_seconds:g}", "--only", args.plants]
    done = harness.record(args.whyidle, folder, command, min(budget.left(), 12 * args.part_seconds + 90))
    told = harness.json_line(done.stdout, "planted_torch")
    if done.status != 0 or told is None:
        return {}, "record: " + harness.what_failed(done)
    return judge_parts(args, folder, told)


def share(values):
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def summarise(args, recorded, plants, failures, took):
    judged = [r for r in recorded if not r["verdict"].startswith("skip")]
    return {
        "workloads": len(judged), "workloads_top_ok": sum(r["top_ok"] for r in judged),
        "workloads_idle_ok": share(r.get("idle_ok") for r in judged),
        "plants": len(plants), "plants_top_ok": share(r["top_ok"] for r in plants.values()),
        "plants_time_ok": share(r["time_ok"] for r in plants.values()),
        "gain_ok": share(r["gain"]["ok"] for r in plants.values() if r["gain"] and not r["gain"]["is_bound"]),
        "sums_ok": all(r.get("sum_ok", True) for r in [*judged, *plants.values()]),
        "commit": document.commit(), "machine": harness.machine(), "seconds": args.seconds, "took_s": round(took),
        "failures": failures, "runs": {"workloads": recorded, "plants": plants},
    }


def verdicts(summary):
    for result in summary["runs"]["workloads"]:
        if result["verdict"].startswith("skip"):
            yield "skip"
            continue
        yield "pass" if result["top_ok"] and result.get("idle_ok") is not False else "FAIL"
    for result in summary["runs"]["plants"].values():
        yield "pass" if result["top_ok"] and result["time_ok"] is not False else "FAIL"
    yield from ("FAIL" for _ in summary["failures"])


def main():
    p = harness.parser(__doc__, "proof")
    harness.add_workloads(p, "--only", "all", 3)
    p.add_argument("--part-seconds", type=float, default=1.5, help="of each plant in turn")
    p.add_argument("--plants", default="", help="comma-separated plants of planted_torch.py, all if empty")
    p.add_argument("--write", type=pathlib.Path, help="folder whose proof.md and proof.json get the results")
    args = harness.parse(p)
    args.option, args.bare = [], False
    budget, began, recorded, failures = harness.Budget(args.budget), time.monotonic(), [], []
    harness.end_on_sigterm()
    plants, why_not = one_after_another(args, budget)
    if why_not:
        failures.append(why_not)
    try:
        for name, script in harness.find_scripts(args.workloads, args.only) if args.only != "none" else ():
            result = {"workload": name, "verdict": "skip: no time left"}
            before = budget.left()
            if budget.fits("workload", args.seconds + harness.STARTUP_S):
                try:
                    workloads.one_workload(args, budget, script, result)
                except harness.UNEXPECTED as odd:
                    result["verdict"] = f"FAIL: {odd!r}"
                budget.took("workload", before - budget.left())
            recorded.append(workload_result(result))
            (args.out / name / "session.whyidle").unlink(missing_ok=True)
            print(f"{name}: {result['verdict']}", flush=True)
    finally:
        summary = summarise(args, recorded, plants, failures, time.monotonic() - began)
        (args.out / "proof-gpu.json").write_text(json.dumps(summary, indent=1) + "\n")
        if args.write:
            document_gpu.write(args.write, summary)
        harness.finish(args, "Proof on a GPU", "\n".join(document_gpu.text_of(summary)), [f"- {why}" for why in failures],
                       found := list(verdicts(summary)))
    return "FAIL" in found


if __name__ == "__main__":
    sys.exit(main())
