# SPDX-License-Identifier: GPL-2.0-only
"""Probes on NCCL's calls: what is recorded of jobs on simulated GPUs whose ranks have several communicators."""
import collections
import json

from harness import limit, needs

ALL_REDUCE, SEND, RECV, GROUP_END, CREATE, DESTROY = 1, 9, 10, 11, 12, 13  # enum record_nccl_function
FLOAT, BYTE = 7, 1  # ncclDataType_t
STEPS, BYTES = 8, 65536


def nccl_records(ctx, session):
    done = ctx.run(ctx.whyidle, "dump", ctx.path(session))
    assert done.status == 0, done
    records = []
    for line in done.out.splitlines():
        if line.startswith("nccl "):
            fields = dict(field.split("=") for field in line.split()[1:])
            records.append({name: int(value, 0) for name, value in fields.items()})
    return records


def record_job(ctx, name, ranks, *arguments):
    truth = ctx.folder / f"{name}-truth"
    truth.mkdir()
    done = ctx.record(ctx.sim("rank"), "--ranks", ranks, "--steps", STEPS, "--bytes", BYTES, "--truth", truth, *arguments,
                      output=f"{name}.whyidle")
    assert done.status == 0, done
    pids = [json.loads((truth / f"rank-{rank}.json").read_text())["pid"] for rank in range(ranks)]
    return nccl_records(ctx, f"{name}.whyidle"), pids, [json.loads(path.read_text()) for path in truth.glob("whyidle-*.json")]


def check_numbers(records, functions):
    """Every communicator's operations are numbered from 0, without a hole, on each rank alike; by identity their counts."""
    numbers = collections.defaultdict(list)
    for record in records:
        if record["function"] in functions:
            numbers[record["id"], record["pid"]].append(record["number"])
    for key, found in numbers.items():
        assert key[0] and found == list(range(len(found))), (key, found)
    counts = collections.defaultdict(dict)
    for (identity, pid), found in numbers.items():
        counts[identity][pid] = len(found)
    return counts


@limit(60)
@needs("bpf")
def test_two_communicators_on_one_stream(ctx):
    records, pids, truth = record_job(ctx, "mesh", 4, "--mesh", 2)
    counts = check_numbers(records, [ALL_REDUCE])
    rows_and_columns = [{pids[0], pids[1]}, {pids[2], pids[3]}, {pids[0], pids[2]}, {pids[1], pids[3]}]
    assert sorted(map(sorted, counts.values())) == sorted(map(sorted, rows_and_columns)), counts
    for ranks in counts.values():
        assert set(ranks.values()) == {STEPS}, counts
    for record in records:
        if record["function"] == ALL_REDUCE:
            assert (record["count"], record["type"], record["group"]) == (BYTES // 4, FLOAT, 0), record
            assert record["stream"] and record["comm"], record
    # Each rank made three and gave up three; of the one that it was told to make it knows size and rank.
    made = collections.Counter((r["pid"], r["function"]) for r in records if r["function"] in (CREATE, DESTROY))
    assert made == {(pid, function): 3 for pid in pids for function in (CREATE, DESTROY)}, made
    world = [(pids.index(r["pid"]), r["size"], r["rank"]) for r in records if r["function"] == CREATE and r["size"]]
    assert sorted(world) == [(rank, 4, rank) for rank in range(4)], world
    # As many as the collectives counted themselves.
    kernels = sum(len(communicator["kernels"]) for communicator in truth)
    assert kernels == sum(r["function"] == ALL_REDUCE for r in records), kernels


@limit(60)
@needs("bpf")
def test_groups_and_messages(ctx):
    records, pids, _ = record_job(ctx, "ring", 3, "--ring", 2, "--grouped", 1)
    messages = collections.defaultdict(list)
    for record in records:
        if record["function"] in (SEND, RECV):
            assert (record["count"], record["type"]) == (BYTES, BYTE), record
            messages[pids.index(record["pid"]), record["function"], record["peer"]].append(record["number"])
    expected = list(range(2 * STEPS))
    assert messages == {key: expected for rank in range(3)
                        for key in [(rank, SEND, (rank + 1) % 3), (rank, RECV, (rank - 1) % 3)]}, messages
    check_numbers(records, [ALL_REDUCE])
    # What was called in a group has the number of its end, which comes later.
    for pid in pids:
        own = [record for record in records if record["pid"] == pid]
        ends = {record["group"]: record["time_ns"] for record in own if record["function"] == GROUP_END}
        assert sorted(ends) == list(range(1, 3 * STEPS + 1)), ends
        for record in own:
            if record["function"] in (ALL_REDUCE, SEND, RECV):
                assert record["time_ns"] < ends[record["group"]], record


@limit(60)
@needs("bpf")
def test_no_probes_without_nccl_or_when_not_wanted(ctx):
    done = ctx.record(ctx.sim("healthy"), output="healthy.whyidle")
    assert "probes on the NCCL calls" not in done.err, done.err
    done = ctx.record(ctx.sim("rank"), "--ranks", 2, "--steps", 4, output="never.whyidle", options=["--uprobes", "never"])
    assert "probes on the NCCL calls" not in done.err and not nccl_records(ctx, "never.whyidle"), done.err


@limit(60)
@needs("bpf")
def test_nothing_is_kept_of_threads_that_have_ended(ctx):
    """The jobs' own threads are gone when the map is looked at, within the recording."""
    truth = ctx.folder / "ended-truth"
    truth.mkdir()
    job = f"{ctx.sim('rank')} --ranks 2 --steps 4 --truth {truth} && bpftool -j map dump name nccl_threads"
    done = ctx.record("sh", "-c", job, output="ended.whyidle")
    assert done.status == 0, done
    left = {entry["formatted"]["key"] if "formatted" in entry else int.from_bytes(bytes(int(b, 0) for b in entry["key"]), "little")
            for entry in json.loads(done.out)}
    pids = {json.loads((truth / f"rank-{rank}.json").read_text())["pid"] for rank in range(2)}
    assert any(record["pid"] in pids for record in nccl_records(ctx, "ended.whyidle"))
    assert not left & pids, (left, pids)
