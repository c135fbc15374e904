# SPDX-License-Identifier: GPL-2.0-only
"""A small part of the matrix of `make proof`: top cause, role and time of some plants, and a healthy loop."""
import pathlib
import re
import sys

from harness import Skip, cause_key, limit, needs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "proof"))

import plants  # noqa: E402  (needs the path above)
import runs  # noqa: E402

SECONDS = "1.5"


def check(verdicts):
    """Fails for wrong answers; where other load disturbed every try of a plant, it is not judged."""
    wrong = [f"{name}: {v}" for name, v in verdicts.items()
             if not v["disturbed"] and not (v["top_ok"] and v["time_ok"])]
    assert not wrong, "\n".join(wrong)
    disturbed = [name for name, v in verdicts.items() if v["disturbed"]]
    if disturbed:
        raise Skip(f"other load took as much as the plants: not judged: {', '.join(disturbed)}")


@limit(150)
@needs("bpf")
def test_single_plants(ctx):
    bench = runs.Bench(ctx.build, ctx.folder, SECONDS)
    check({name: runs.run_plants(bench, [name])[0] for name in plants.SUBSET_SINGLES})


@limit(60)
@needs("bpf")
def test_two_plants_in_turn(ctx):
    bench = runs.Bench(ctx.build, ctx.folder, SECONDS)
    check({" + ".join(pair): runs.run_plants(bench, pair)[0] for pair in plants.SUBSET_DOUBLES})


@limit(60)
@needs("bpf")
def test_off_path_noise_is_not_blamed(ctx):
    bench = runs.Bench(ctx.build, ctx.folder, SECONDS)
    for noise in plants.SUBSET_NULLS:
        verdict = runs.run_null(bench, noise)
        if verdict["disturbed"]:
            raise Skip(f"other load took the launcher's CPU: {verdict}")
        assert verdict["ok"], verdict


@limit(90)
@needs("bpf")
def test_storage_is_told_with_the_file(ctx):
    bench = runs.Bench(ctx.build, ctx.folder, SECONDS)
    for plant in ("disk@launcher:5", "major_fault@launcher:5"):
        try:
            truth, report = bench.record([plant], ["--gpu-us", "100"])
        except runs.Unavailable as reason:
            raise Skip(str(reason)) from reason
        causes = {cause_key(c): c for c in report["gpus"][0]["causes"]}
        cause = causes.get(runs.expected_key(truth["plants"][0]))
        assert cause, f"{plant}: {list(causes)}"
        assert cause["detail"].get("path") == bench.scratch, f"{plant}: {cause['detail']}, not {bench.scratch}"


@limit(60)
@needs("bpf")
def test_a_slow_network_is_told_from_a_slow_peer(ctx):
    bench = runs.Bench(ctx.build, ctx.folder, SECONDS)
    verdicts = {}
    try:
        verdicts["network"], _, report = runs.run_plants(bench, ["network@launcher:5"])
    except runs.Unavailable as reason:
        raise Skip(str(reason)) from reason
    named = report["gpus"][0]["causes"][0]["detail"].get("path", "no peer")
    assert verdicts["network"]["disturbed"] or re.fullmatch(r"127\.0\.0\.1:\d+", named), named
    verdicts["peer_sleeps"], _, _ = runs.run_plants(bench, ["peer_sleeps@launcher:5"])
    check(verdicts)
