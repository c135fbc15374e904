# SPDX-License-Identifier: GPL-2.0-only
"""Programs that are hard to find names in: what is not known stays without a name, and nothing gets another's."""
import collections
import glob
import os
import pathlib
import random
import re
import resource
import shutil
import sysconfig

from harness import NOBODY, Skip, limit, needs
from test_names import other_pythons

QUIET = ("-q", "--no-report")
CUT, INTERPRETED = 1, 1 << 62


class Stacks:
    """User stacks of a session, and the waits that they belong to."""

    def __init__(self, ctx, output="session.whyidle"):
        done = ctx.run(ctx.whyidle, "dump", ctx.path(output))
        assert done.status == 0, done
        self.names, self.stacks, self.waits, self.programs = {}, {}, [], {}
        for line in done.out.splitlines():
            kind, _, rest = line.partition(" ")
            if kind not in ("symbol", "stack", "offcpu", "exec"):
                continue
            fields = dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', rest))
            if kind == "symbol":
                name = fields["name"].strip('"')
                self.names[int(fields["pid"]), int(fields["address"], 0)] = None if name == "-" else name
            elif kind == "stack" and fields["kind"] == "2":
                self.stacks[fields["id"]] = fields
            elif kind == "offcpu":
                self.waits.append(fields)
            elif kind == "exec":
                self.programs[fields["pid"]] = fields["filename"].strip('"')

    def frames(self, wait):
        """Names, innermost first; None where there is none."""
        stack = self.stacks.get(wait["ustack"])
        frames = [int(frame, 0) for frame in stack["frames"].split(",")] if stack else []
        return [self.names.get((0 if frame & INTERPRETED else int(stack["pid"]), frame)) for frame in frames]

    def is_cut(self, wait):
        return bool(int(self.stacks[wait["ustack"]]["flags"], 0) & CUT)

    def long_waits(self):
        """Of the recorded command: others have stacks too, if they woke one of its threads."""
        for wait in self.waits:
            if wait["pid"] in self.programs and wait["ustack"] != "0" and int(wait["in_ns"]) - int(wait["out_ns"]) > 2_000_000:
                yield wait


def waits_in(stacks, function):
    return [wait for wait in stacks.long_waits() if function in stacks.frames(wait)]


@limit(100)
@needs("bpf")
def test_64k_threads(ctx):
    """All of them are recorded, and the last one has a stack as the first: what threads had is free again."""
    done = ctx.record(ctx.sim("odd_target"), "threads", "65536", options=QUIET, timeout=90)
    assert done.status == 0 and done.out == "threads 65536\n", done
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    assert memory < 700, f"{memory} MiB"
    stacks = Stacks(ctx)
    threads = {wait["tid"] for wait in stacks.waits}
    assert len(waits_in(stacks, "run_threads")) >= 40, collections.Counter(map(str, map(stacks.frames, stacks.long_waits())))
    return f"{len(threads)} threads seen waiting, {memory} MiB"


@limit(60)
@needs("bpf")
def test_stack_without_an_end(ctx):
    done = ctx.record(ctx.sim("odd_target"), "deep", "50000", options=QUIET)
    assert done.status == 0, done
    stacks = Stacks(ctx)
    deep = waits_in(stacks, "bottom")
    assert len(deep) >= 100, len(deep)
    for wait in deep:
        frames = stacks.frames(wait)
        assert stacks.is_cut(wait), frames
        at = frames.index("bottom")
        assert frames[at - 1] == "wait_ms" and set(frames[at + 1:]) == {"descend"}, frames
    return f"{len(frames)} frames kept"


def renamed(ctx, name, function):
    """A copy of the program in which sleeper_waits has another name, at the same address."""
    done = ctx.run("objcopy", "--redefine-sym", f"sleeper_waits={function}", ctx.sim("odd_target"), ctx.path(name))
    assert done.status == 0, done
    return ctx.path(name)


def lives(stacks, *functions):
    """In which of these functions the waits of a process were, in order of time: runs of equal ones as one."""
    order = collections.defaultdict(list)
    for wait in sorted(stacks.long_waits(), key=lambda w: int(w["out_ns"])):
        for function in functions:
            if function in stacks.frames(wait) and (not order[wait["pid"]] or order[wait["pid"]][-1] != function):
                order[wait["pid"]].append(function)
    return list(order.values())


@limit(60)
@needs("bpf", "namespace")
def test_process_id_that_comes_again(ctx):
    """In a namespace in which nobody else takes ids."""
    first, second = renamed(ctx, "first", "first_waits"), renamed(ctx, "second", "second_waits")
    done = ctx.run("unshare", "--pid", "--fork", "--mount-proc", ctx.whyidle, "record", "-o", ctx.path("session.whyidle"), *QUIET,
                   "--", ctx.sim("odd_target"), "reuse", first, second, first)
    assert done.status == 0 and done.out.startswith("reuse "), done
    found = lives(Stacks(ctx), "first_waits", "second_waits")
    assert found == [["first_waits", "second_waits", "first_waits"]], found


@limit(60)
@needs("bpf")
def test_program_in_the_place_of_another(ctx):
    """exec: the same process, the same addresses, another file."""
    first, second = renamed(ctx, "first", "first_waits"), renamed(ctx, "second", "second_waits")
    done = ctx.record(first, "sleeper", second, options=QUIET)
    assert done.status == 0, done
    found = lives(Stacks(ctx), "first_waits", "second_waits")
    assert found == [["first_waits", "second_waits"]], found


def python_libraries(ctx):
    """Shared libraries of interpreters, with what they need to find their own files."""
    found = {}
    for name in glob.glob(f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}/libpython3.*.so.1.0"):
        version = re.search(r"libpython(3\.\d+)\.so", name)[1]
        if os.path.isdir(f"/usr/lib/python{version}/encodings"):
            found[name] = {"PYTHONHOME": "/usr"}
    for python in other_pythons(ctx).values():
        home = pathlib.Path(os.path.realpath(python)).parents[1]
        for name in home.glob("lib/libpython3.*.so.1.0"):
            found[str(name)] = {"PYTHONHOME": str(home)}
    return found  # the system's first


@limit(100)
@needs("bpf")
def test_interpreter_that_comes_and_goes(ctx):
    """Embedded in a C program: what waits after its end has no Python frames, however warm the memory is."""
    libraries = python_libraries(ctx)
    if not libraries:
        raise Skip("there is no libpython")
    shown = []
    for library, env in list(libraries.items())[:1] + list(libraries.items())[-1:]:
        done = ctx.record(ctx.sim("odd_target"), "python", library, "8", options=QUIET, env=env)
        assert done.status == 0 and done.out == "python 8\n", f"{library}: {done}"
        stacks = Stacks(ctx)
        inside, outside = waits_in(stacks, "in_python"), waits_in(stacks, "without_python")
        assert len(inside) >= 20 and len(outside) >= 40, f"{library}: {len(inside)} within, {len(outside)} after it"
        for wait in outside:
            frames = [int(frame, 0) for frame in stacks.stacks[wait["ustack"]]["frames"].split(",")]
            assert not any(frame & INTERPRETED for frame in frames), f"{library}: {stacks.frames(wait)}"
        shown.append(os.path.basename(library))
    return ", ".join(shown)


# In namespaces of its own, with /proc that shows nobody else's processes, and without the privilege to look behind that.
HIDDEN = """mount -t proc -o hidepid=2 proc /proc &&
    exec setpriv --bounding-set=-sys_ptrace,-dac_override,-dac_read_search --inh-caps=-sys_ptrace "$@"
"""


@limit(60)
@needs("bpf", "namespace")
def test_proc_is_hidden(ctx):
    done = ctx.run("unshare", "--mount", "sh", "-c", HIDDEN, "sh", ctx.whyidle, "record", "-o", ctx.path("session.whyidle"), *QUIET,
                   "--", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh", "-c",
                   "ls /proc/1 2>&1; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.02; done; echo done")
    assert done.status == 0 and done.out.endswith("done\n"), done
    assert "/proc/1" in done.out, f"/proc was not hidden: {done}"
    stacks = Stacks(ctx)
    waits = [wait for wait in stacks.long_waits() if stacks.programs[wait["pid"]].endswith("/sleep")]
    assert len(waits) >= 5, f"{len(waits)} sleeps were recorded"
    for wait in waits:
        assert not any(stacks.frames(wait)), f"names of what cannot be looked into: {stacks.frames(wait)}"
    done = ctx.run(ctx.whyidle, "report", ctx.path("session.whyidle"))
    said = re.findall(r"functions of (\d+) processes have no names: /proc does not show them", done.out)
    # The shell, its sleeps and ls, as far as they were there when their stacks were looked at; and who woke them.
    assert done.status == 0 and len(said) == 1 and int(said[0]) >= 2, done
    return f"{said[0]} processes"


@limit(60)
@needs("bpf")
def test_proc_that_shows_everything(ctx):
    """Processes that end while they are looked at are no hidden ones."""
    done = ctx.record("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; sleep 0.01; done", options=QUIET)
    assert done.status == 0, done
    done = ctx.run(ctx.whyidle, "report", ctx.path("session.whyidle"))
    assert done.status == 0 and "/proc does not show" not in done.out, done


def damaged(source, target, seed):
    """A copy that still runs: only what the kernel and the loader do not look at is damaged."""
    chance = random.Random(seed)
    data = bytearray(pathlib.Path(source).read_bytes())
    table = int.from_bytes(data[0x28:0x30], "little")
    size, count = int.from_bytes(data[0x3a:0x3c], "little"), int.from_bytes(data[0x3c:0x3e], "little")
    if seed % 3 == 0:  # where the sections are
        data[0x28:0x30] = chance.randbytes(8)
    elif seed % 3 == 1:  # what they are
        for _ in range(40):
            data[table + chance.randrange(size * count)] = chance.randrange(256)
    else:  # what is in those that are not loaded: symbols, their names, debug information
        for index in range(count):
            header = data[table + index * size:table + (index + 1) * size]
            flags, offset, length = (int.from_bytes(header[at:at + 8], "little") for at in (8, 0x18, 0x20))
            if not flags & 2 and length > 16:
                for _ in range(length // 16):
                    data[offset + chance.randrange(length)] = chance.randrange(256)
    pathlib.Path(target).write_bytes(data)
    shutil.copymode(source, target)
    return target


@limit(60)
@needs("bpf")
def test_damaged_files(ctx):
    waits = 0
    for seed in range(6):
        program = damaged(ctx.sim("odd_target"), ctx.path(f"damaged{seed}"), seed)
        done = ctx.record(program, "sleeper", options=QUIET)
        assert done.status == 0, f"{seed}: {done}"
        stacks = Stacks(ctx)
        for wait in stacks.long_waits():
            waits += 1
            assert len(stacks.frames(wait)) >= 1
            if seed % 3 == 0:  # no sections, no names
                own = [name for name in stacks.frames(wait) if name in ("main", "sleeper_waits", "wait_ms")]
                assert not own, own
        done = ctx.run(ctx.whyidle, "report", ctx.path("session.whyidle"))
        assert done.status == 0, f"{seed}: {done}"
    assert waits > 100, waits
