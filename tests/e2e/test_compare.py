# SPDX-License-Identifier: GPL-2.0-only
"""compare and --fail-if on real recordings and traces, and on traces with a planted difference."""
import json
import random
import subprocess
import sys

from harness import ROOT, Skip, limit, one_line_error

BESIDE_OTHERS = True

DATA = ROOT.parent / "shared" / "data"
SAMPLE = str(ROOT / "docs" / "samples" / "starved-h200.whyidle")
# start_ns and end_ns of docs/samples/starved-h200.truth.json, and a point in the middle
START, MIDDLE, END = 93397452832, 94900000000, 96399870315


def compare(ctx, before, after, *options, status=0):
    done = ctx.run(ctx.whyidle, "compare", "--json", str(before), str(after), *options)
    assert done.status == status, done
    found = json.loads(done.out)
    path = ctx.path("compare.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(done.out)
    checked = subprocess.run([sys.executable, ROOT / "tests/e2e/schema.py", "--strict", ROOT / "docs/compare.schema.json",
                              path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return found


def text(ctx, before, after, *options):
    done = ctx.run(ctx.whyidle, "compare", str(before), str(after), *options)
    assert done.status == 0, done
    return done.out.splitlines()


def trace(ctx, name, seed, host_us, kernel_us=400, steps=40):
    """A Kineto trace: each step copies, runs three kernels, and leaves the GPU idle for about host_us."""
    chance, events, now, number = random.Random(seed), [], 1000.0, 1
    for _ in range(steps):
        now += host_us * max(0.1, chance.gauss(1, 0.08))
        names = [("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 50)] + [("kernel", f"k{i}", kernel_us) for i in range(3)]
        start = now + 5
        for i, (category, kernel, length) in enumerate(names):
            length *= chance.gauss(1, 0.01)
            args = {"device": 0, "stream": 7, "correlation": number}
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": round(now + 2 * i, 3),
                           "dur": 1.5, "pid": 5, "tid": 5, "args": {"correlation": number}})
            events.append({"ph": "X", "cat": category, "name": kernel, "ts": round(start, 3), "dur": round(length, 3),
                           "pid": 0, "tid": 7, "args": args})
            start += length + 1
            number += 1
        now = start
    path = ctx.path(name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)
    return path


@limit(120)
def test_every_real_file_is_the_same_as_itself(ctx):
    files = [SAMPLE] + sorted(DATA.glob("kineto/*.gz")) + sorted(DATA.glob("nsys/*.sqlite"))
    for path in files:
        found = compare(ctx, path, path)
        assert found["verdict"] == "same", (path, found["verdict"])
        for pair in found["gpus"]:
            assert pair["idle_share"]["change"] == 0
            assert all(cause["figure"]["change"] == 0 for cause in pair["causes"])
        assert text(ctx, path, path)[0].startswith("No difference beyond noise: "), path
    return f"{len(files)} files"


def test_halves_of_a_steady_run_are_the_same(ctx):
    found = compare(ctx, SAMPLE, SAMPLE, "--window-before", f"{START}..{MIDDLE}", "--window-after", f"{MIDDLE}..{END}")
    pair = found["gpus"][found["answer"]]
    assert found["verdict"] == "same", pair["step_ns"]
    assert pair["basis"] == "step" and pair["before"]["steps"] > 50
    assert not pair["idle_share"]["beyond_noise"], pair["idle_share"]


def test_different_work_is_different(ctx):
    before, after = DATA / "kineto/b200-eager.json.gz", DATA / "kineto/h100-qwen-unmatched.json.gz"
    if not before.exists():
        raise Skip("the reference traces (../shared/data) are not here")
    found = compare(ctx, before, after)
    assert found["verdict"] == "better" and found["gpus"][0]["idle_share"]["change"] < -0.5
    assert compare(ctx, after, before)["verdict"] == "worse"


def test_figures_agree_with_report(ctx):
    """The window's figures are those of report; the parts sum up to the whole."""
    report = json.loads(ctx.run(ctx.whyidle, "report", "--json", SAMPLE).out)["gpus"][0]
    run = compare(ctx, SAMPLE, SAMPLE)["gpus"][0]
    for key in ("busy_ns", "idle_ns", "gap_count", "op_count"):
        assert run["before"][key] == report[key], key
    idle = sum(cause["before_ns"] for cause in run["causes"])
    assert abs(idle / run["before"]["compared_ns"] - run["idle_share"]["before"]) < 1e-9


def test_planted_changes(ctx):
    base = trace(ctx, "base.json", 1, 1000)
    pair = compare(ctx, base, trace(ctx, "same.json", 2, 1000))["gpus"][0]
    assert pair["verdict"] == "same" and not pair["idle"]["beyond_noise"], pair
    assert pair["before"]["steps_by"] == "rhythm" and pair["before"]["step_ops"] == 4
    pair = compare(ctx, base, trace(ctx, "late.json", 3, 1250))["gpus"][0]      # 2.26 ms a step; 250 µs more
    assert pair["verdict"] == "worse" and pair["idle"]["beyond_noise"]
    assert abs(pair["step_ns"]["change"] - 250e3) < 100e3, pair["step_ns"]
    assert not any(kernel["figure"]["beyond_noise"] for kernel in pair["kernels"]), pair["kernels"]
    pair = compare(ctx, base, trace(ctx, "slow.json", 4, 1000, kernel_us=480))["gpus"][0]
    assert pair["verdict"] == "worse" and not pair["idle"]["beyond_noise"], pair["idle"]
    slower = {kernel["name"]: kernel["figure"]["change"] for kernel in pair["kernels"] if kernel["figure"]["beyond_noise"]}
    assert set(slower) == {"k0", "k1", "k2"} and all(abs(ns - 80e3) < 8e3 for ns in slower.values()), slower
    lines = text(ctx, base, ctx.path("late.json"))
    assert lines[0].startswith("AFTER is worse: ") and "per step instead of" in lines[0], lines[0]
    assert lines[1].startswith("GPU 0 (") and lines[2].startswith("The cause that changed most: "), lines[:3]


def test_directories_pair_their_files(ctx):
    import os
    for name in ("a", "b"):
        os.mkdir(ctx.path(name))
        for rank in range(2):
            trace(ctx, f"{name}/rank{rank}.json", rank + (name == "b") * 10, 1000 + 600 * (name == "b" and rank == 1))
    found = compare(ctx, ctx.path("a"), ctx.path("b"))
    assert [pair["verdict"] for pair in found["gpus"]] == ["same", "worse"], found["gpus"]
    assert found["answer"] == 1 and found["verdict"] == "worse"


def test_fail_if(ctx):
    base, late = trace(ctx, "base.json", 1, 1000), trace(ctx, "late.json", 3, 1500)
    cases = [("report", [late], "idle > 20%", 3), ("report", [late], "idle > 99%", 0),
             ("report", [base], "cause:unknown.no_sched > 5%", 3), ("report", [base], "cause:wait.disk > 5%", 0),
             ("report", [late], f"idle worse than {base} by 3%", 3), ("report", [base], f"idle worse than {late} by 3%", 0),
             ("report", [late], f"idle worse than {base} by 60%", 0), ("report", [late], f"step worse than {base} by 10%", 3),
             ("report", [base], f"step worse than {base} by 0%", 0), ("compare", [base, late], "idle > 20%", 3),
             ("compare", [base, late], "idle worse than BEFORE by 3%", 3),
             ("compare", [late, base], "step worse than BEFORE by 0%", 0)]
    for command, files, expression, status in cases:
        done = ctx.run(ctx.whyidle, command, "--json", *files, "--fail-if", expression)
        assert done.status == status, (expression, done)
        assert len(done.errors) == (status == 3), done
        json.loads(done.out)
    done = ctx.run(ctx.whyidle, "report", "--json", late, "--fail-if", "idle > 99%", "--fail-if", "idle > 5%",
                   "--fail-if", "idle > 6%")
    assert done.status == 3 and len(done.errors) == 2, done


def test_bad_use_is_one_line(ctx):
    base = trace(ctx, "base.json", 1, 1000)
    for options in ([], [base], [base, base, base], [base, base, "--fail-if", "idle"], [base, base, "--gpu", "x"]):
        one_line_error(ctx.run(ctx.whyidle, "compare", *options), 2)
    one_line_error(ctx.run(ctx.whyidle, "report", base, "--fail-if", "idle > lots"), 2)
    for options in ([base, "/nonexistent"], [base, base, "--gpu", "7"], [base, base, "--window-after", "100..200"]):
        one_line_error(ctx.run(ctx.whyidle, "compare", *options), 1)
    one_line_error(ctx.run(ctx.whyidle, "report", base, "--fail-if", "idle worse than /nonexistent by 3%"), 1)
