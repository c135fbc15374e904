# SPDX-License-Identifier: GPL-2.0-only
"""Jobs of several ranks as PyTorch profiler traces, one file a rank, with a planted truth."""
import gzip
import json
import random

from harness import check_report, limit, one_line_error
from schema import Validator, load
import harness

BESIDE_OTHERS = True

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LAUNCH_US, SUBMIT_US, COMPUTE_US, TRANSFER_US, PLANTED_US = 5, 15, 3000, 400, 6000
START_US = 1_700_000_000_000_000


class Rank:
    """Writes one rank's trace. Times are true microseconds; the file has them on the rank's own clock."""

    def __init__(self, rank, world, offset_us, drift):
        self.rank, self.world, self.offset_us, self.drift = rank, world, offset_us, drift
        self.pid, self.free, self.correlation, self.events = 4000 + rank, 0.0, 100, []

    def local(self, us):
        return round(START_US + us + self.offset_us + self.drift * us, 3)

    def event(self, category, name, tid, start, end, **arguments):
        begin = self.local(start)
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": self.pid, "tid": tid, "ts": begin,
                            "dur": round(self.local(end) - begin, 3), "args": arguments})

    def launch(self, us, name="cudaLaunchKernel"):
        self.correlation += 1
        self.event("cuda_runtime", name, self.pid, us, us + 3, correlation=self.correlation)
        return self.correlation

    def kernel(self, name, start, end, correlation, stream=7, category="kernel"):
        begin = self.local(start)
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": self.rank, "tid": stream, "ts": begin,
                            "dur": round(self.local(end) - begin, 3),
                            "args": {"device": self.rank, "stream": stream, "correlation": correlation}})

    def work(self, planted, draw):
        """Everything before the collective of a step; returns its arrival and the time of its launch."""
        begin, compute = self.free + LAUNCH_US, COMPUTE_US + draw.random() * 60
        if planted == "alloc":
            self.event("cuda_runtime", "cudaMalloc", self.pid, begin, begin + PLANTED_US)
            begin += PLANTED_US + 1
        elif planted == "host":
            self.event("cpu_op", "load_batch", self.pid, begin, begin + PLANTED_US)
            begin += PLANTED_US + 1
        start = begin + SUBMIT_US
        if planted == "slow":
            compute += PLANTED_US
        self.kernel("gemm", start, start + compute, self.launch(begin))
        if planted == "copy":
            self.kernel("Memcpy DtoH (Device -> Pinned)", start + compute, start + compute + PLANTED_US,
                        self.launch(begin + 10, "cudaMemcpyAsync"), category="gpu_memcpy")
            compute += PLANTED_US
        return start + compute, begin + 20

    def document(self):
        return {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": self.world},
                "deviceProperties": [{"id": self.rank, "name": "GPU of a test"}], "traceEvents": self.events}


def make_job(ctx, planted, ranks=4, steps=60, late_rank=2, clocks=(), annotate=True, skip=(), packed=False, world=None):
    """Writes the files of a job into a folder. `planted` gives what is planted in a step, and on which rank."""
    draw = random.Random(ranks * 1000 + steps)
    clocks = list(clocks) + [(0, 0)] * (ranks - len(clocks))
    team = [Rank(rank, world or ranks, *clocks[rank]) for rank in range(ranks)]
    truth = []
    for rank in team:
        rank.kernel("gemm", -60, 0, rank.launch(-90))
    for step in range(steps):
        cause, late = planted(step, draw) if callable(planted) else (planted, late_rank)
        truth.append((cause, late))
        begins = [rank.free for rank in team]
        arrivals = [rank.work(cause if rank.rank == late else None, draw) for rank in team]
        last = max(arrival for arrival, _ in arrivals)
        for rank, (arrival, launch), begin in zip(team, arrivals, begins):
            end = last + TRANSFER_US + draw.random() * 4
            rank.kernel(NCCL, arrival, end, rank.launch(launch), stream=20 + rank.rank)
            if annotate:
                rank.event("user_annotation", f"ProfilerStep#{step + 3}", rank.pid, begin, launch + 20)
            rank.free = end
    folder = ctx.folder / "traces"
    folder.mkdir()
    for rank in team:
        if rank.rank in skip:
            continue
        text = json.dumps(rank.document()).encode()
        name = folder / f"rank{rank.rank}.json{'.gz' if packed else ''}"
        name.write_bytes(gzip.compress(text) if packed else text)
    (folder / "notes.txt").write_text("not a trace\n")
    return folder, truth


def job_report(ctx, *inputs):
    done = ctx.run(ctx.whyidle, "report", *inputs, "--json")
    assert done.status == 0, done
    document = json.loads(done.out)
    faults = list(Validator(load(harness.ROOT / "docs/report.schema.json"), strict=True).validate(document))
    assert not faults, faults[:3]
    for report in document["reports"]:
        check_report(report)
    ranks = document["ranks"]
    assert ranks["wait_ns"] == ranks["charged_ns"] + ranks["undecided_ns"] + ranks["uncharged_ns"], ranks
    assert sum(cause["wait_ns"] for cause in ranks["causes"]) == ranks["charged_ns"], ranks["causes"]
    return document


def check_late(document, late, cause, steps=60):
    """The planted rank is last in at least 98 % of the collectives, and its cause has nearly all of the waiting."""
    ranks = document["ranks"]
    member, = [m for m in ranks["members"] if m["rank"] == late]
    assert ranks["slowest"] == late and ranks["pattern"] == "steady", (ranks["slowest"], ranks["pattern"])
    assert member["last_count"] >= 0.98 * steps, member
    top = ranks["causes"][0]
    for key, value in cause.items():
        assert top[key] == value, f"{key} is {top[key]!r}, not {value!r}: {top}"
    assert top["rank"] == top["root_rank"] == late, top
    assert top["wait_ns"] >= 0.9 * ranks["charged_ns"], (top, ranks["charged_ns"])


CAUSES = {
    "alloc": {"reason": "idle", "code": "host.cuda_alloc", "role": "launcher"},
    "host": {"reason": "idle", "code": "unknown.no_sched"},
    "slow": {"reason": "compute", "code": None, "detail": "as many kernels, but slower"},
    "copy": {"reason": "copy", "code": None},
}


def check_cause(ctx, planted):
    folder, _ = make_job(ctx, planted)
    document = job_report(ctx, folder)
    check_late(document, 2, CAUSES[planted])
    assert len(document["reports"]) == 4
    for member in document["ranks"]["members"]:
        expected = 0 if member["rank"] == 2 else 60 * PLANTED_US * 1000
        assert abs(member["wait_ns"] - expected) <= 0.05 * 60 * PLANTED_US * 1000, member
    steps = document["ranks"]["steps"]
    assert [s["name"] for s in steps] == [f"ProfilerStep#{n + 3}" for n in range(60)]
    assert sum(s["slowest"] == 2 for s in steps) >= 59, steps


def test_rank_that_allocates(ctx):
    check_cause(ctx, "alloc")


def test_rank_whose_host_is_late(ctx):
    check_cause(ctx, "host")


def test_rank_that_computes_longer(ctx):
    check_cause(ctx, "slow")


def test_rank_that_copies(ctx):
    check_cause(ctx, "copy")


def test_clocks_are_aligned_within_the_stated_error(ctx):
    clocks = [(0, 0), (250_000.5, 0), (-7_000, 60e-6), (3_600_000_000, -40e-6)]
    folder, _ = make_job(ctx, "alloc", steps=200, clocks=clocks, annotate=False, packed=True)
    document = job_report(ctx, folder)
    check_late(document, 2, CAUSES["alloc"], 200)
    for member, (offset, drift) in zip(document["ranks"]["members"], clocks):
        clock = member["clock"]
        # The window begins with the first kernel, 60 us before zero; offsets are those of that moment.
        true = (offset + drift * -60) * 1000
        assert abs(clock["offset_ns"] - true) <= clock["error_ns"], (clock, true)
        assert abs(clock["drift_ppm"] - drift * 1e6) <= 2, (clock, drift)
        assert clock["error_ns"] <= 20_000, clock
        assert clock["state"] == ("shifted" if offset else "same"), clock


def test_random_stragglers(ctx):
    def planted(_, draw):
        return ("slow", draw.randrange(4)) if draw.random() < 0.3 else (None, None)

    folder, truth = make_job(ctx, planted, steps=300)
    document = job_report(ctx, folder)
    assert document["ranks"]["pattern"] == "random", document["ranks"]["pattern"]
    for member in document["ranks"]["members"]:
        hits = sum(late == member["rank"] for cause, late in truth if cause)
        assert abs(member["last_count"] - hits) <= 0.02 * hits, (member["last_count"], hits)
    right = sum(step["slowest"] == late for step, (_, late) in zip(document["ranks"]["steps"], truth))
    assert right >= 0.98 * len(truth), f"{right} of {len(truth)} steps"


@limit(120)
def test_sixteen_ranks(ctx):
    folder, _ = make_job(ctx, "copy", ranks=16, late_rank=11, clocks=[(rank * 1000, 0) for rank in range(16)])
    document = job_report(ctx, folder)
    check_late(document, 11, CAUSES["copy"])


def test_missing_ranks_are_said(ctx):
    folder, _ = make_job(ctx, "alloc", ranks=4, skip=(0, 3))
    document = job_report(ctx, folder)
    assert document["ranks"]["world_size"] == 4 and document["ranks"]["missing"] == [0, 3], document["ranks"]
    assert [m["rank"] for m in document["ranks"]["members"]] == [1, 2]
    text = ctx.run(ctx.whyidle, "report", folder)
    assert text.status == 0 and "not given: 0, 3" in text.out, text


def test_single_rank_blames_nobody(ctx):
    folder, _ = make_job(ctx, "alloc", ranks=2, late_rank=1)
    report = ctx.report("traces/rank0.json")
    ranks = report["ranks"]
    assert ranks["world_size"] == 2 and ranks["missing"] == [1], ranks
    assert not ranks["causes"] and ranks["slowest"] is None and ranks["wait_ns"] == 0, ranks
    member, = ranks["members"]
    assert member["collectives"] == 60 and member["collective_alone_ns"] >= 60 * PLANTED_US * 1000, member
    assert not any(c["code"] == "device.peer" for c in report["gpus"][0]["causes"])
    text = ctx.run(ctx.whyidle, "report", folder / "rank0.json")
    assert "not given: 1" in text.out and "60 collectives" in text.out, text


def test_files_can_be_given_one_by_one(ctx):
    folder, _ = make_job(ctx, "alloc", ranks=2, late_rank=0)
    # In any order: a file says which rank it is.
    document = job_report(ctx, folder / "rank1.json", folder / "rank0.json")
    check_late(document, 0, CAUSES["alloc"])
    assert [m["input"] for m in document["ranks"]["members"]] == [1, 0]


def test_the_answer_comes_first(ctx):
    folder, _ = make_job(ctx, "alloc", ranks=4)
    done = ctx.run(ctx.whyidle, "report", folder)
    assert done.status == 0, done
    lines = done.out.splitlines()
    assert lines[0].startswith("Rank 2 cost the other ranks "), lines[0]
    assert "host.cuda_alloc@launcher" in lines[1], lines[1]
    assert lines[2].startswith("Do this: on rank 2: "), lines[2]
    for rank in range(4):
        assert f"rank{rank}.json" in done.out


def test_one_broken_file_does_not_spoil_the_others(ctx):
    folder, _ = make_job(ctx, "alloc", ranks=3, late_rank=1)
    (folder / "rank2.json").write_text('{"schemaVersion": 1, "nothing": "here"}')
    document = job_report(ctx, folder)
    check_late(document, 1, CAUSES["alloc"])
    assert any("rank2.json" in note for note in document["ranks"]["notes"]), document["ranks"]["notes"]
    assert document["ranks"]["missing"] == [2]


@limit(120)
def test_real_collectives(ctx):
    """
    A real trace of rank 1 of 2 and a made rank 0: the same on another clock, but with some of its collectives missing,
    and earlier at half of them, so that rank 1 is the one that comes last there.
    """
    source = harness.ROOT.parent / "shared/data/kineto/v100-2rank-ddp-large.json.gz"
    if not source.exists():
        raise harness.Skip("the real traces are not there (../shared/data)")
    draw, offset_us, waits_us = random.Random(1), 6_234_567, 0
    document = json.loads(gzip.decompress(source.read_bytes()))
    kernels = sorted((e for e in document["traceEvents"] if e.get("cat") == "kernel" and "nccl" in e["name"]),
                     key=lambda e: e["ts"])
    ends = [e["ts"] + e["dur"] + draw.randint(-1, 2) for e in kernels]
    for before, kernel, end in zip([0] + ends, kernels, ends):
        room = kernel["ts"] - before
        if before and room > 2 and draw.random() < 0.5:
            early = min(room - 1, draw.randint(1, 3000))
            kernel["ts"] -= early
            waits_us += early
        kernel["dur"] = end - kernel["ts"]
    missing = {id(e) for e in kernels[:37] + kernels[-11:] + [kernels[i] for i in (500, 501, 900, 1500)]}
    document["traceEvents"] = [e for e in document["traceEvents"] if id(e) not in missing]
    for event in document["traceEvents"]:
        if "ts" in event:
            event["ts"] += offset_us
    document["distributedInfo"]["rank"] = 0
    (ctx.folder / "rank0.json").write_text(json.dumps(document))
    ranks = job_report(ctx, source, ctx.folder / "rank0.json")["ranks"]
    group, = ranks["groups"]
    assert group["matched"] == 2020 - len(missing) and group["incomplete"] == len(missing), group
    # All go by the clock of the first rank.
    clock = ranks["members"][1]["clock"]
    assert abs(clock["offset_ns"] + offset_us * 1000) <= clock["error_ns"] <= 20_000, clock
    assert ranks["slowest"] == 1 and ranks["pattern"] == "steady", ranks["pattern"]
    assert abs(ranks["members"][0]["wait_ns"] - waits_us * 1000) <= 0.05 * waits_us * 1000, (ranks["members"], waits_us)


def test_folder_without_traces(ctx):
    (ctx.folder / "empty").mkdir()
    (ctx.folder / "empty" / "notes.txt").write_text("nothing\n")
    one_line_error(ctx.run(ctx.whyidle, "report", ctx.path("empty")), 1, "empty", "no trace")
