# SPDX-License-Identifier: GPL-2.0-only
"""Jobs of several ranks on simulated GPUs and collectives, recorded: all ranks in one session, and one session a host.

The truth is what the ranks log themselves (which step was held up, and how long its runner had no CPU) and what the
simulated NCCL logs of each collective (who came when). Other load on the machine may make any rank late, and be a larger
part of a stall than what was planted: the truth says so too, and such steps are not judged.
"""
import bisect
import contextlib
import json
import os
import subprocess
import sys

from harness import ROOT, Skip, check_report, end_process, limit, needs
from schema import Validator, load

MS = 1_000_000
STEPS = 30
RIGHT = 0.98  # of the steps

# What is planted → what has to be found: reason, code, role.
CAUSES = {
    "sleep@worker": ("idle", "wait.sleep", "worker"),
    "compute@worker": ("idle", "host.user_code", "worker"),
    "compute@launcher": ("idle", "host.sync_then_serial", "launcher"),
    "lock@launcher": ("idle", "wait.lock", "launcher"),
    "cuda_alloc@launcher": ("idle", "host.cuda_alloc", "launcher"),
    "slow": ("compute", None, None),
}


def rank_arguments(ranks, truth, planted=None, milliseconds=15, steps=STEPS, late=0, **options):
    arguments = ["--ranks", ranks, "--steps", steps, "--truth", truth, "--late", late]
    if planted == "slow":
        arguments += ["--slow-us", milliseconds * 1000]
    elif planted:
        arguments += ["--plant", f"{planted}:{milliseconds}"]
    for name, value in options.items():
        arguments += ["--" + name.replace("_", "-"), value]
    return arguments


class Truth:
    def __init__(self, folder, ranks):
        self.ranks = [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(ranks)]
        self.kernels = []  # of each rank
        for rank in range(ranks):
            path, = folder.glob(f"whyidle-*-{rank}.json")
            self.kernels.append(json.loads(path.read_text())["kernels"])
        self.late = self.ranks[0]["late"]  # rank planted in each step, -1 none

    def wait_ns(self, rank):
        return sum(kernel["last_ns"] - kernel["start_ns"] for kernel in self.kernels[rank])

    def is_disturbed(self, step):
        """Other load made another rank even later, or this one in other steps far more, or kept the runner of the stall
        from its CPU for a good part of it."""
        planted = self.late[step]
        if self.notable()[step] != planted:
            return True
        stalls = self.ranks[planted]["stalls"]
        number = self.late[:step].count(planted)
        if number >= len(stalls):
            return False  # a longer kernel
        start, end, delay = stalls[number]
        return delay > 0.25 * (end - start)

    def judged(self):
        """Indices of the planted steps that nothing else had a part in."""
        return [index for index, planted in enumerate(self.late) if planted >= 0 and not self.is_disturbed(index)]

    def is_mostly_disturbed(self, late):
        """Of a job in which one rank was planted: its largest cause, or who was last, may rightly be another than planted."""
        planted = sum(rank >= 0 for rank in self.late)
        stalled = sum(end - start for start, end, _ in self.ranks[late]["stalls"])
        return len(self.judged()) < 0.8 * planted or 0 < stalled < 4 * self.ranks[late]["contended_ns"]

    def notable(self):
        """For each collective the rank that came last if a wait stands out, by the rule of docs/ranks.md; else -1."""
        longest = [max(kernel["last_ns"] - kernel["start_ns"] for kernel in kernels) for kernels in zip(*self.kernels)]
        limit_ns = sum(longest) / len(longest) / 2
        return [kernel["late"] if wait >= limit_ns else -1 for kernel, wait in zip(self.kernels[0], longest)]


def validated(ctx, done):
    assert done.status == 0, done
    document = json.loads(done.out)
    faults = list(Validator(load(ROOT / "docs/report.schema.json"), strict=True).validate(document))
    assert not faults, faults[:3]
    reports, ranks = document.get("reports", [document]), document.get("ranks")
    for report in reports:
        check_report(report)
    # The bridge does not wait for ever; without it the collectives of a rank are not to be seen. The program that starts the
    # ranks has none, and is no rank.
    without = [line for report in reports for line in report["degraded"] if "no GPU timeline" in line]
    if without and (not ranks or len(ranks["members"]) < ranks["world_size"]):
        raise Skip(f"other load: {without[0]}")
    check_sums(ranks)
    return ranks


def check_sums(ranks):
    """What holds of every report about ranks: nothing is lost and nothing counted twice."""
    assert ranks["wait_ns"] == ranks["charged_ns"] + ranks["undecided_ns"] + ranks["uncharged_ns"], ranks
    assert sum(cause["wait_ns"] for cause in ranks["causes"]) == ranks["charged_ns"], ranks["causes"]
    of_causes = [0] * len(ranks["causes"])
    for member in ranks["members"]:
        waited = sum(peer["wait_ns"] for peer in member["waited_for"])
        assert waited == member["wait_ns"] - member["undecided_ns"], member
        assert sum(peer["device_peer_ns"] for peer in member["waited_for"]) <= member["device_peer_ns"], member
        for peer in member["waited_for"]:
            of_causes[peer["cause"]] += peer["wait_ns"]
    assert of_causes == [cause["wait_ns"] for cause in ranks["causes"]], of_causes
    path = ranks["path"]
    spent = path["compute_ns"] + path["copy_ns"] + path["transfer_ns"] + sum(c["ns"] for c in path["causes"])
    assert spent == path["span_ns"], path


def report_ranks(ctx, *inputs):
    return validated(ctx, ctx.run(ctx.whyidle, "report", "--json", *inputs))


def record(ctx, name, ranks, *arguments, **options):
    """One session with all ranks; returns what the report says about them, and the truth."""
    folder = ctx.folder / name
    folder.mkdir()
    done = ctx.record(ctx.sim("rank"), *rank_arguments(ranks, folder, *arguments, **options),
                      output=f"{name}.whyidle")
    assert done.status == 0, done
    return report_ranks(ctx, ctx.path(f"{name}.whyidle")), Truth(folder, ranks)


def check_waits(ranks, truth):
    """Each rank's wait is what the collectives themselves say, but for waits that are too short to be told."""
    for member in ranks["members"]:
        expected = truth.wait_ns(member["rank"])
        slack = 0.005 * expected + 2_000 * len(truth.kernels[0])
        assert abs(member["wait_ns"] - expected) <= slack, (member["rank"], member["wait_ns"], expected)


def steps_right(ranks, truth, cause):
    """In how many of the planted steps the late rank was named, and in how many the cause as well; of how many."""
    steps = ranks["steps"]
    ends = [step["end_ns"] for step in steps]
    late = right = count = 0
    for index in truth.judged():
        planted, kernel = truth.late[index], truth.kernels[0][index]
        count += 1
        at = bisect.bisect_left(ends, kernel["last_ns"])
        step = steps[at] if at < len(steps) else None
        if not step or step["slowest"] != planted:
            continue
        late += 1
        found = ranks["causes"][step["cause"]]
        right += found["rank"] == found["root_rank"] == planted and \
            (found["reason"], found["code"], found["role"]) == cause
    return late, right, count


def check_causes(ctx, ranks, causes):
    """One slow rank with each of the causes in turn."""
    late = right = count = 0
    wrong, disturbed = [], []
    for number, planted in enumerate(causes):
        slow = (number * 5 + 1) % ranks
        report, truth = record(ctx, planted.replace("@", "-"), ranks, planted, late=slow)
        assert [member["rank"] for member in report["members"]] == list(range(ranks)), report["members"]
        assert report["world_size"] == ranks and not report["missing"], report["missing"]
        group, = report["groups"]
        assert group["matched"] == STEPS and not group["incomplete"] and not group["apart"], group
        check_waits(report, truth)
        if truth.is_mostly_disturbed(slow):
            disturbed.append(planted)
            continue
        one = steps_right(report, truth, CAUSES[planted])
        late, right, count = late + one[0], right + one[1], count + one[2]
        wrong += [(planted, one)] if one[1] < one[2] else []
        assert report["slowest"] == slow and report["pattern"] == "steady", (planted, report["pattern"])
        top = report["causes"][0]
        assert (top["rank"], top["reason"], top["code"], top["role"]) == (slow, *CAUSES[planted]), (planted, top)
    assert late >= RIGHT * count and right >= RIGHT * count, (late, right, count, wrong)
    if not count:
        raise Skip("other load disturbed every step")
    return f"late rank right in {late}, cause in {right} of {count} steps" + \
        (f"; other load was part of {', '.join(disturbed)}" if disturbed else "")


@limit(120)
@needs("bpf")
def test_two_ranks(ctx):
    return check_causes(ctx, 2, CAUSES)


@limit(120)
@needs("bpf")
def test_sixteen_ranks(ctx):
    """All causes on 2, 4 and 16 ranks: tests/proof/ranks.py."""
    return check_causes(ctx, 16, ["sleep@worker", "slow"])


@limit(60)
@needs("bpf")
def test_chain_of_the_late_rank(ctx):
    """What a rank waited for is the late rank's own chain, down to the thread."""
    ranks, truth = record(ctx, "chain", 2, "sleep@worker", late=1)
    if truth.is_mostly_disturbed(1):
        raise Skip("other load was part of it")
    waiting, slow = ranks["members"]
    peer = waiting["waited_for"][0]
    cause = ranks["causes"][peer["cause"]]
    assert cause["via"] == "rank1 ← worker" and cause["thread"] == "worker", cause
    assert peer["device_peer_ns"] >= 0.9 * peer["wait_ns"], waiting
    assert slow["wait_ns"] <= 0.5 * waiting["wait_ns"], ranks["members"]
    # Only what the slow rank did counts for the job.
    spent = ranks["path"]["causes"][0]
    assert (spent["root_rank"], spent["code"], spent["role"]) == (1, "wait.sleep", "worker"), spent
    assert spent["ns"] >= 0.4 * ranks["path"]["span_ns"], ranks["path"]
    assert [f["kind"] for f in ranks["findings"]][:1] == ["workers"], ranks["findings"]
    text = ctx.run(ctx.whyidle, "report", ctx.path("chain.whyidle"))
    assert "via rank 1: wait.sleep@worker, rank1 ← worker" in text.out, text.out


@limit(60)
@needs("bpf")
def test_random_stragglers(ctx):
    ranks, truth = record(ctx, "random", 4, "sleep@launcher", late="any", share=0.35, steps=120)
    assert ranks["pattern"] == "random", ranks["pattern"]
    late, right, count = steps_right(ranks, truth, ("idle", "wait.sleep", "launcher"))
    assert late >= count - 1 and right >= count - 1 and count >= 20, (late, right, count)
    notable = truth.notable()
    for member in ranks["members"]:
        planted = notable.count(member["rank"])
        assert abs(member["last_count"] - planted) <= max(1, 0.05 * planted), (member, planted)
    assert "random" in [f["kind"] for f in ranks["findings"]], ranks["findings"]
    return f"{right} of {count} steps"


@limit(60)
@needs("bpf")
def test_checkpoint_on_rank_0(ctx):
    ranks, truth = record(ctx, "checkpoint", 2, "pageable_copy@launcher", milliseconds=60, every=8, steps=60)
    if truth.is_mostly_disturbed(0):
        raise Skip("other load was part of it")
    finding, = [f for f in ranks["findings"] if f["kind"] == "checkpoint"]
    assert finding["rank"] == 0 and "Every 8 steps" in finding["title"], finding


@limit(60)
@needs("bpf")
def test_small_buckets(ctx):
    ranks, _ = record(ctx, "buckets", 2, buckets=24, bytes=65536, gpu_us=1000)
    assert [f["kind"] for f in ranks["findings"]].count("buckets") == 1, ranks["findings"]
    ranks, _ = record(ctx, "large", 2, buckets=2, bytes=1 << 26, gpu_us=1000)
    assert not [f for f in ranks["findings"] if f["kind"] == "buckets"], ranks["findings"]


def record_collections(ctx):
    """(ranks of the report, ns that each rank collected, ns that it reports of that, whether other load was a large part)"""
    folder = ctx.folder / "gc"
    folder.mkdir(exist_ok=True)
    program = ROOT / "tests/sim/workloads/rank/rank_gc.py"
    done = ctx.record(sys.executable, program, "--lib", ctx.build / "sim/lib", "--ranks", "2", "--truth", folder,
                      output="gc.whyidle")
    assert done.status == 0, done
    ranks = report_ranks(ctx, ctx.path("gc.whyidle"))
    truth = [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]
    collected = [sum(end - start - delay for start, end, delay in rank["stalls"]) for rank in truth]
    causes = {c["rank"]: c["wait_ns"] for c in ranks["causes"] if c["code"] == "host.gc"}
    disturbed = any(sum(delay for _, _, delay in rank["stalls"]) > own / 2
                    for rank, own in zip(truth, collected, strict=True))
    return ranks, collected, [causes.get(rank, 0) for rank in range(2)], disturbed


@limit(60)
@needs("bpf")
def test_garbage_collection_at_different_times(ctx):
    for _ in range(3):  # other load, also of other virtual machines, is no matter of this
        ranks, collected, reported, disturbed = record_collections(ctx)
        wrong = [rank for rank in range(2) if abs(reported[rank] - collected[rank]) > 0.2 * collected[rank]]
        if not wrong and not disturbed:
            break
    if disturbed:
        raise Skip("other load was part of it")
    assert not wrong, (reported, collected)
    finding, = [finding for finding in ranks["findings"] if finding["kind"] == "gc"]
    assert finding["rank"] is None and "on 2 ranks" in finding["title"], finding


# ---- one session a host ----

def record_hosts(ctx, ranks, *arguments, **options):
    """A recorder for each rank, side by side; the sessions are host0.whyidle, …"""
    folder = ctx.folder / "hosts"
    folder.mkdir()
    name = f"/whyidle-test-{os.getpid()}"
    common = [ctx.sim("rank"), *rank_arguments(ranks, folder, *arguments, **options), "--id", name]
    with contextlib.ExitStack() as stack:
        hosts = []
        for rank in range(ranks):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks))
            host = ctx.start(ctx.whyidle, "record", "-o", ctx.path(f"host{rank}.whyidle"), "--", *common, "--rank", rank,
                             env=environment)
            stack.callback(end_process, host)
            hosts.append(host)
        for host in hosts:
            out, err = host.communicate(timeout=60)
            assert host.returncode == 0, (out, err)
    return Truth(folder, ranks)


class Shift:
    """A session on another clock."""

    def __init__(self, ctx, rank, offset_ns, drift_ppm):
        self.offset_ns, self.drift, self.path = offset_ns, drift_ppm / 1e6, ctx.path(f"shifted{rank}.whyidle")
        command = [ctx.build / "shift_session", ctx.path(f"host{rank}.whyidle"), self.path, str(offset_ns), str(drift_ppm)]
        self.start_ns = int(subprocess.run(command, check=True, capture_output=True).stdout)

    def error_ns(self, member, truth):
        """How far the report's common time is from the time before the shift: the most, over the rank's collectives."""
        clock, worst = member["clock"], 0
        for kernel in truth.kernels[member["rank"]]:
            time = kernel["start_ns"]
            read = time + self.offset_ns + int(self.drift * (time - self.start_ns))
            common = read - clock["offset_ns"] - int(clock["drift_ppm"] / 1e6 * (read - member["window_start_ns"]))
            worst = max(worst, abs(common - time))
        return worst


@limit(90)
@needs("bpf")
def test_one_session_for_each_host(ctx):
    if not (ctx.build / "shift_session").exists():
        raise Skip("shift_session is not built (make build/shift_session)")
    truth = record_hosts(ctx, 3, "sleep@worker", late=1, steps=60)
    same = report_ranks(ctx, *[ctx.path(f"host{rank}.whyidle") for rank in range(3)])
    for member in same["members"]:
        assert member["clock"]["state"] == "same", member["clock"]
        # They do share a clock.
        assert abs(member["clock"]["offset_ns"]) <= member["clock"]["error_ns"], member["clock"]
    clocks = [(0, 0), (-7_123_456_789, 35), (86_400_000_000_123, -60)]
    shifts = [Shift(ctx, rank, *clock) for rank, clock in enumerate(clocks)]
    inputs = [shift.path for shift in shifts]
    # In any order: a session says which rank it holds.
    apart = report_ranks(ctx, inputs[2], inputs[0], inputs[1])
    assert [member["input"] for member in apart["members"]] == [1, 2, 0], apart["members"]
    reference = apart["members"][0]["clock"]
    assert reference["collectives"] == 0, reference
    for member, shift in zip(apart["members"][1:], shifts[1:]):
        clock = member["clock"]
        assert clock["state"] == "shifted" and clock["error_ns"] <= 30_000, clock
        assert shift.error_ns(member, truth) <= clock["error_ns"], (clock, shift.error_ns(member, truth))
    for ranks in (same, apart):
        check_waits(ranks, truth)
        if truth.is_mostly_disturbed(1):
            continue
        assert ranks["slowest"] == 1 and ranks["pattern"] == "steady", ranks
        top = ranks["causes"][0]
        assert (top["rank"], top["code"], top["role"]) == (1, "wait.sleep", "worker"), top
    # What is not given is said.
    missing = report_ranks(ctx, inputs[0], inputs[2])
    assert missing["missing"] == [1] and missing["world_size"] == 3, missing["missing"]
    return "clocks and waits only: other load was part of it" if truth.is_mostly_disturbed(1) else None
