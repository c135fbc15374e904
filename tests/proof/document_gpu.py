# SPDX-License-Identifier: GPL-2.0-only
"""The part of proof.md and proof.json that comes from a real GPU (tests/gpu/proof_gpu.py)."""
import json
import pathlib

import document


def percent(value):
    return "–" if value is None else f"{value:.0%}"


def mark(text, ok):
    return text if ok or ok is None else f"{text} **×**"


def workload_rows(results):
    for r in results:
        if "top" not in r:
            yield r["workload"], r["verdict"], *[""] * 5
            continue
        estimate = f"{r['estimate_ms']:.0f}" if r["estimate_ms"] is not None else ""
        yield (r["workload"], " or ".join(r["accepted"]) or "no finding", mark(r["shares"], r["top_ok"]),
               mark(f"{r['idle_ms']:.0f}", r["idle_ok"]), estimate if r["idle_ok"] is not None else f"({estimate})",
               f"{r['known']:.1%}", r["lost"])


def plant_rows(results):
    for name, r in results.items():
        gain = r["gain"]
        yield (name, mark(r["shares"], r["top_ok"]), f"{r['planted_ms']:.0f}", mark(f"{r['reported_ms']:.0f}", r["time_ok"]),
               f"{gain['measured_ns'] / 1e6:.2f}" if gain else "",
               "" if not gain else f"≤ {gain['predicted_ns'][1] / 1e6:.2f}" if gain["is_bound"] else
               mark("{:.2f}–{:.2f}".format(*(ns / 1e6 for ns in gain["predicted_ns"])), gain["ok"]))


def text_of(summary):
    yield document.GPU_HEADING
    yield ""
    yield "Written by `make proof-gpu`; do not edit. Real PyTorch programs with a known stall, recorded with the defaults."
    yield f"Commit {summary['commit']}, {summary['took_s'] / 60:.0f} min in all. {summary['machine']}."
    yield ""
    yield from document.table(("figure", "value", "target"), (
        ("planted workloads with the expected top cause and role", f"{summary['workloads_top_ok']} of {summary['workloads']}",
         "≥ 14 of 15"),
        ("their idle time within 5 % or 100 ms of their own estimate, where that tells",
         percent(summary["workloads_idle_ok"]), "100%"),
        ("plants in one loop: top cause and role right", percent(summary["plants_top_ok"]), "≥ 98%"),
        ("time of a plant within the larger of 5 % and 50 µs a stall", percent(summary["plants_time_ok"]), ""),
        ("measured gain within the predicted range", percent(summary["gain_ok"]), "≥ 90%"),
        ("causes sum to the idle time exactly", "yes" if summary["sums_ok"] else "**no**", "yes")))
    yield ""
    yield from (f"- Not made: {why}." for why in summary["failures"])
    yield f"Planted workloads, {summary['seconds']:g} s each. In brackets: an estimate that is of something else."
    yield ""
    yield from document.table(("workload", "accepted", "largest causes, of idle time", "idle ms", "estimate ms", "known", "lost"),
                              workload_rows(summary["runs"]["workloads"]))
    yield ""
    yield "One loop, one plant after another (`tests/gpu/planted_torch.py`); gains in ms a step."
    yield ""
    yield from document.table(("plant", "largest causes, of idle time", "planted ms", "reported ms", "gain measured", "gain predicted"),
                              plant_rows(summary["runs"]["plants"]))
    yield ""


def write(folder, summary):
    """Into both files, in place of what an earlier run has written there."""
    numbers, words = pathlib.Path(folder, "proof.json"), pathlib.Path(folder, "proof.md")
    whole = document.read(folder) if numbers.exists() else {}
    numbers.write_text(json.dumps(whole | {"gpu": summary}, indent=1) + "\n", encoding="utf-8")
    text = words.read_text(encoding="utf-8") if words.exists() else ""
    text = text[:text.index(document.GPU_HEADING)] if document.GPU_HEADING in text else text.rstrip("\n") + "\n\n"
    words.write_text(text.lstrip("\n") + "\n".join(text_of(summary)), encoding="utf-8")
