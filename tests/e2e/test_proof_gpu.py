# SPDX-License-Identifier: GPL-2.0-only
"""The loop of make proof-gpu with a stand-in for PyTorch on the simulated GPU: that its plants are what they are said to be."""
import json
import sys

from harness import ROOT, limit, needs

PLANTS = "sleep@launcher,sleep@worker,serial@launcher,compute@thread"


@limit(120)
@needs("root", "bpf")
def test_plants_in_one_loop(ctx):
    done = ctx.run(sys.executable, ROOT / "tests/gpu/proof_gpu.py", "--whyidle", ctx.whyidle, "--out", ctx.path("out"),
                   "--only", "none", "--plants", PLANTS, "--part-seconds", "0.7",
                   env={"WHYIDLE_SIM_LIB": str(ctx.sim("lib")), "PYTHONPATH": str(ROOT / "tests/sim/torch")})
    with open(ctx.path("out/proof-gpu.json"), encoding="utf-8") as file:
        result = json.load(file)
    assert not result["failures"] and result["sums_ok"], done
    plants = result["runs"]["plants"]
    assert list(plants) == PLANTS.split(","), plants
    for name, plant in plants.items():
        # Other load on this machine may take more than the plant does: that is no fault of the plant.
        ours = [c.rpartition(" ")[0] for c in plant["shares"].split(", ") if not c.startswith("sched.cpu_contention")]
        assert ours[0] in plant["accepted"], (name, plant)
        assert plant["gain"], (name, plant)
