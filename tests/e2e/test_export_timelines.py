# SPDX-License-Identifier: GPL-2.0-only
"""Exports for Perfetto, pprof and flame graphs: Google's protobuf library and Go's pprof read them, and every figure in
them is that of the report, to the nanosecond."""
import collections
import gzip
import json
import pathlib
import re
import shutil
import sys

from harness import Skip, limit, needs
from test_export import DATA, HOSTILE, SAMPLES, export, hostile_trace, load_chrome, report_of

BESIDE_OTHERS = True

HERE = pathlib.Path(__file__).resolve().parent
SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4


def python_with_protobuf(ctx):
    for python in (sys.executable, "/usr/bin/python3"):
        if shutil.which(python) and ctx.run(python, "-c", "import google.protobuf").status == 0:
            return python
    raise Skip("no protobuf library for Python (package python3-protobuf)")


def read_protobuf(ctx, schema, message, path):
    python = python_with_protobuf(ctx)
    if not shutil.which("protoc"):
        raise Skip("no protoc (package protobuf-compiler)")
    with open(path, "rb") as file:
        data = file.read()
    plain = ctx.path("decoded")
    with open(plain, "wb") as file:
        file.write(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    with open(plain, "rb") as file:
        done = ctx.run(python, HERE / "protobuf_reader.py", HERE / schema, message, stdin=file, timeout=200)
    assert done.status == 0 and not done.err, done.err[-2000:]
    return json.loads(done.out)


# ---- Perfetto ----

class Slice:
    def __init__(self, track, start, category, name, depth, args):
        self.track, self.start, self.category, self.name, self.depth, self.args = track, start, category, name, depth, args
        self.end = None

    @property
    def ns(self):
        return self.end - self.start


class Timeline:
    """What a viewer makes of the packets."""

    def __init__(self, packets):
        self.tracks, self.slices, self.instants, self.counters = {}, [], [], collections.defaultdict(list)
        self.flow_starts, self.flow_ends = {}, {}
        texts = {kind: {} for kind in ("category", "name", "key", "word")}
        events = []
        assert packets[0]["sequence_flags"] == 1 and packets[0]["defaults"]["clock"] == 3
        for packet in packets:
            assert packet["sequence"] == 1
            for kind, entries in packet.get("interned", {}).items():
                for entry in entries:
                    assert entry["number"] not in texts[kind], "a number was given twice"
                    texts[kind][entry["number"]] = entry["text"]
            if "track" in packet:
                assert packet["track"]["uuid"] not in self.tracks
                self.tracks[packet["track"]["uuid"]] = packet["track"]
            if "clock_snapshot" in packet:
                self.clock = packet["clock_snapshot"]
            if "event" in packet:
                events.append((packet["timestamp"], self.resolve(packet["event"], texts)))
        assert self.clock["primary"] == 3 and [clock["id"] for clock in self.clock["clocks"]] == [3]
        events.sort(key=lambda event: event[0])  # stable: as in the file where times are equal
        self.replay(events)

    @staticmethod
    def resolve(event, texts):
        """Numbers must have been defined by then."""
        args = {}
        for item in event.get("annotation", ()):
            value = texts["word"][item["word"]] if "word" in item else item.get("text", item.get("number"))
            args[texts["key"][item["key"]]] = value
        return dict(event, args=args, name=texts["name"][event["name"]] if "name" in event else None,
                    category=texts["category"][event["category"][0]] if "category" in event else None)

    def replay(self, events):
        stacks = collections.defaultdict(list)
        for time, event in events:
            track, stack = event["track"], stacks[event["track"]]
            assert track in self.tracks, f"track {track} is not described"
            made = None
            if event["type"] == SLICE_BEGIN:
                made = Slice(track, time, event["category"], event["name"], len(stack), event["args"])
                stack.append(made)
                self.slices.append(made)
            elif event["type"] == SLICE_END:
                stack.pop().end = time
            elif event["type"] == INSTANT:
                made = Slice(track, time, event["category"], event["name"], len(stack), event["args"])
                self.instants.append(made)
            else:
                assert event["type"] == COUNTER and "counter" in self.tracks[track]
                self.counters[track].append((time, event.get("counter", 0)))
            for flow in event.get("flow", ()):
                assert flow not in self.flow_starts and flow not in self.flow_ends
                self.flow_starts[flow] = made
            for flow in event.get("flow_end", ()):
                assert flow in self.flow_starts, "an arrow ends before it begins"
                assert flow not in self.flow_ends
                self.flow_ends[flow] = made
        assert not any(stacks.values()), "slices without an end"
        assert self.flow_starts.keys() == self.flow_ends.keys()


def union(slices):
    """Time in which at least one lasts."""
    total, reach = 0, 0
    for start, end in sorted((s.start, s.end) for s in slices):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total


def check_gpu(timeline, gpu, track):
    children = {uuid: t for uuid, t in timeline.tracks.items() if t.get("parent") == track}
    by_name = {t["name"]: uuid for uuid, t in children.items()}
    causes = [s for s in timeline.slices if s.track == by_name["why it was idle"]]
    gaps = [s for s in causes if s.category == "gap"]
    assert len(gaps) == gpu["gap_count"] and sum(gap.ns for gap in gaps) == gpu["idle_ns"]
    assert all(gap.depth == 0 and gap.ns == gap.args["ns"] for gap in gaps)
    found = collections.Counter()
    parted = {}
    for part in causes:
        if part.category == "gap":
            parted[part.start] = [part]
    for part in causes:
        if part.category == "cause":
            assert part.depth == 1
            start = max(start for start in (g.start for g in gaps_before(gaps, part.start)))
            parted[start].append(part)
    for parts in parted.values():
        for part in parts[1:] or parts:
            found[part.args["code"], part.args["role"]] += part.ns
    assert found == {(c["code"], c["role"]): c["ns"] for c in gpu["causes"] if c["ns"]}
    operations = [s for s in timeline.slices if s.track in children and s.category in ("kernel", "memcpy", "memset", "graph")]
    assert len(operations) == gpu["op_count"] and all(s.depth == 0 for s in operations)
    assert union(operations) == gpu["busy_ns"]
    running = timeline.counters[by_name["operations running"]]
    busy = sum(after - before for (before, value), (after, _) in zip(running, running[1:]) if value > 0)
    assert busy == gpu["busy_ns"] and running[-1][1] == 0
    queued = timeline.counters[by_name["operations queued"]]
    assert not queued or (min(value for _, value in queued) == 0 and queued[-1][1] == 0)
    return operations


def gaps_before(gaps, time):
    """The last gap that begins by then."""
    low, high = 0, len(gaps)
    while low < high:
        middle = (low + high) // 2
        if gaps[middle].start <= time:
            low = middle + 1
        else:
            high = middle
    return gaps[low - 1:low]


def check_perfetto(ctx, source, report):
    path = export(ctx, source, "perfetto", "export.pftrace")
    timeline = Timeline(read_protobuf(ctx, "perfetto_trace.proto", "Trace", path)["packet"])
    chrome = load_chrome(export(ctx, source, "chrome", "beside.json"))["traceEvents"]
    operations = []
    for gpu in report["gpus"]:
        if gpu["op_count"]:
            track = next(uuid for uuid, t in timeline.tracks.items() if re.match(rf"GPU {gpu['device']}(:|$)", t["name"])
                         and "parent" not in t)
            operations += check_gpu(timeline, gpu, track)
    # Arrows from calls to operations: as many as the JSON has.
    arrows = [(start, timeline.flow_ends[flow]) for flow, start in timeline.flow_starts.items()]
    launches = [(start, end) for start, end in arrows if start.category.startswith("cuda_")]
    assert len(launches) == sum(e["ph"] == "f" and e["cat"] == "ac2g" for e in chrome)
    assert {id(end) for _, end in launches} <= {id(s) for s in operations}
    # Arrows from wakers to the woken.
    wakes = [(start, end) for start, end in arrows if start.category == "wake"]
    assert len(wakes) + len(launches) == len(arrows) and len(wakes) == len(timeline.instants)
    assert all(start.start == end.start and end.name == "runnable" for start, end in wakes)
    # States: the same time in each as the JSON has.
    found, wanted = collections.Counter(), collections.Counter()
    for state in (s for s in timeline.slices if s.category == "state"):
        thread = timeline.tracks[timeline.tracks[state.track]["parent"]]["thread"]
        found[thread["tid"], state.name] += state.ns
    for event in (e for e in chrome if e.get("cat") == "whyidle_sched"):
        wanted[event["tid"] - 8388608, event["name"]] += int(event["dur"] * 1000)
    assert found == wanted, f"{found - wanted} more, {wanted - found} less"
    return timeline


# ---- pprof and folded stacks ----

def read_profile(ctx, path):
    """[(kind, frames from the outermost on, ns)]"""
    with open(path, "rb") as file:
        assert file.read(2) == b"\x1f\x8b", "pprof wants gzip"
    profile = read_protobuf(ctx, "pprof_profile.proto", "Profile", path)
    text = profile["text"]
    assert text[0] == "" and len(set(text)) == len(text)
    kinds = [text[t["type"]] for t in profile["sample_type"]]
    assert all(text[t["unit"]] == "nanoseconds" for t in profile["sample_type"])
    assert kinds == ["idle", "gpu", "off_cpu"] and text[profile["default_type"]] == "idle"
    functions = {f["id"]: text[f["name"]] for f in profile["function"]}
    places = {p["id"]: functions[p["line"][0]["function"]] for p in profile["location"]}
    assert 0 not in functions and 0 not in places
    stacks = []
    for sample in profile["sample"]:
        (kind, ns), = [(k, v) for k, v in zip(kinds, sample["value"], strict=True) if v]
        stacks.append((kind, tuple(places[p] for p in reversed(sample.get("location", ()))), ns))
    return stacks


def read_folded(path):
    stacks = []
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file.read().splitlines():
            frames, ns = re.fullmatch(r"(.+) (\d+)", line).groups()
            kind, *frames = frames.split(";")
            stacks.append((kind, tuple(frames), int(ns)))
    return stacks


# What a terminal obeys or hides (userspace/base/utf8.h).
UNSHOWN = ("[\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufe00-\\ufe0f"
           "\\ue000-\\uf8ff\\ufff0-\\ufffb]")


def sums(stacks, kind, depth):
    found = collections.Counter()
    for of, frames, ns in stacks:
        if of == kind:
            found[frames[:depth]] += ns
    return found


def check_profiles(ctx, source, report, timeline):
    stacks = read_profile(ctx, export(ctx, source, "pprof", "export.pb.gz"))
    folded = read_folded(export(ctx, source, "folded", "export.folded"))
    wanted = collections.Counter()
    for gpu in report["gpus"]:
        for cause in gpu["causes"]:
            if cause["ns"]:
                wanted[f"GPU {gpu['device']}", f"{cause['code']} ({cause['role']})"] += cause["ns"]
    assert sums(stacks, "idle", 2) == wanted
    operations = [s for s in timeline.slices if s.category in ("kernel", "memcpy", "memset", "graph")]
    assert sum(sums(stacks, "gpu", 0).values()) == sum(s.ns for s in operations)
    away = sum(s.ns for s in timeline.slices if s.category == "state" and re.match("blocked|runnable", s.name))
    assert sum(sums(stacks, "off_cpu", 0).values()) == away
    clean = collections.Counter()
    for kind, frames, ns in stacks:
        clean[(kind, *(re.sub(UNSHOWN, " ", frame.replace(";", ":")) for frame in frames))] += ns
    assert clean == collections.Counter({(kind, *frames): ns for kind, frames, ns in folded})
    return stacks


def check_go(ctx, stacks):
    """Go's pprof finds the same in the file."""
    if not shutil.which("go"):
        return "Go's pprof is not here (package golang-go)"
    done = ctx.run("go", "tool", "pprof", "-raw", ctx.path("export.pb.gz"), env={"HOME": str(ctx.folder)})
    assert done.status == 0, done
    rows = re.findall(r"^ *(\d+) +(\d+) +(\d+): [\d ]*$", done.out, re.MULTILINE)
    assert len(rows) == len(stacks)
    for column, kind in enumerate(("idle", "gpu", "off_cpu")):
        assert sum(int(row[column]) for row in rows) == sum(ns for of, _, ns in stacks if of == kind), kind
    return None


def check_all(ctx, source):
    report = report_of(ctx, source)
    timeline = check_perfetto(ctx, source, report)
    stacks = check_profiles(ctx, source, report, timeline)
    return timeline, stacks, check_go(ctx, stacks)


@limit(300)
def test_shipped_session(ctx):
    if not SAMPLES:
        raise Skip("docs/samples has no session")
    for sample in SAMPLES:
        timeline, stacks, note = check_all(ctx, sample)
    assert any(s.category == "wake" for s in timeline.instants) and any(kind == "off_cpu" for kind, _, _ in stacks)
    return note


@limit(300)
@needs("bpf")
def test_recorded_session(ctx):
    done = ctx.record(ctx.sim("loader_starved"), "--seconds", "1", options=("-q", "--no-report"))
    assert done.status == 0, done
    return check_all(ctx, ctx.path("session.whyidle"))[2]


@limit(120)
def test_operators_around_launches(ctx):
    """An imported trace has no scheduler data, but operators: they are the stack of a launch."""
    def event(category, name, start, length, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 5, "tid": 5, "ts": start, "dur": length, "args": args}
    events = [event("user_annotation", "step", 0, 100), event("cpu_op", "outer", 10, 50), event("cpu_op", "inner", 20, 20),
              event("cpu_op", "crosses", 50, 30), event("cuda_runtime", "cudaLaunchKernel", 30, 5, correlation=1),
              event("cuda_runtime", "cudaLaunchKernel", 70, 5, correlation=2)]
    for number, start in (1, 40), (2, 90), (3, 95):  # the last two overlap on a stream
        events.append({"ph": "X", "cat": "kernel", "name": f"k{number}", "pid": 0, "tid": 7, "ts": start, "dur": 10,
                       "args": {"device": 0, "stream": 7, "correlation": number}})
    with open(ctx.path("trace.json"), "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)
    timeline, stacks, _ = check_all(ctx, ctx.path("trace.json"))
    gpu = {frames[1:]: ns for kind, frames, ns in stacks if kind == "gpu"}
    named = {tuple(frame.split(" ")[0] for frame in frames[2:]): ns for frames, ns in gpu.items()}
    assert named[("step", "outer", "inner", "cudaLaunchKernel", "k1")] == 10000, named
    assert named[("step", "crosses", "cudaLaunchKernel", "k2")] == 10000, named
    depths = {s.name: s.depth for s in timeline.slices if s.category in ("operator", "annotation")}
    assert depths == {"step": 0, "outer": 1, "inner": 2, "crosses": 0}, depths
    crosses = next(s for s in timeline.slices if s.name == "crosses")
    assert (crosses.start, crosses.end) == (50000, 80000), "what crosses is whole, in a row of its own"
    kernels = {s.name: s.track for s in timeline.slices if s.category == "kernel"}
    assert kernels["k1"] == kernels["k2"] != kernels["k3"], "what overlaps needs a row of its own"


@limit(120)
def test_hostile_names(ctx):
    source = hostile_trace(ctx)
    timeline, stacks, _ = check_all(ctx, source)
    kernels = {s.name for s in timeline.slices if s.category == "kernel"}
    frames = {frame for _, frames, _ in stacks for frame in frames}
    for name in HOSTILE:
        if not name.startswith("right"):
            assert name in kernels and name in frames, name[:60]


@limit(300)
def test_reference_traces(ctx):
    """Several processes and GPUs, scheduler rows of nsys, HIP, graphs."""
    wanted = ("nsys/h100-2gpu-2process.sqlite", "nsys/rtx3080-tiny.sqlite", "kineto/mi250-minitoy.json.gz",
              "kineto/mi300x-sglang-decode-graph.json.gz", "kineto/b200-eager.json.gz")
    if not all((DATA / name).exists() for name in wanted):
        raise Skip(f"no reference traces in {DATA}")
    for name in wanted:
        check_all(ctx, DATA / name)
