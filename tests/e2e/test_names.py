# SPDX-License-Identifier: GPL-2.0-only
"""Causes must name the line or the function that holds the planted stall, in whatever program it is."""
import glob
import json
import os
import re
import shutil
import time

from harness import ROOT, Skip, cause_key, limit, needs, says

PYTHON_STALL = ROOT / "tests" / "sim" / "workloads" / "python_stall.py"
# Lines that other threads wait in while the main thread waits for them: in Helper.work.
HELPER_LINE = next(number for number, line in enumerate(PYTHON_STALL.read_text(encoding="utf-8").splitlines(), 1)
                   if line == "            time.sleep(STALL_S)")


def record_python(ctx, python, kind):
    """Runs the workload with one kind of stall; returns its truth and the largest cause."""
    truth_path = ctx.path(f"{kind}.json")
    done = ctx.record(python, PYTHON_STALL, ctx.build / "sim" / "lib", kind, "2", truth_path,
                      options=("-q", "--no-report"))
    assert done.status == 0, done
    with open(truth_path, encoding="utf-8") as file:
        truth = json.load(file)
    gpu, = ctx.report()["gpus"]
    causes = [c for c in gpu["causes"] if c["code"] != "sched.cpu_contention"]  # what other load on the machine took
    return truth, causes[0]


def check_line(cause, file, lines, function):
    """The named place is one of these lines of the function."""
    named = cause["detail"].get("python", "nothing")
    place, _, name = named.partition(" ")
    named_file, _, line = place.rpartition(":")
    assert named_file == file and name.split(".")[-1] == function, f"{named}, planted in {file} {function}: {cause}"
    assert int(line) in lines, f"{named}, planted in lines {lines}"


def check_order(cause, *functions):
    """These functions are in the stack, the innermost first."""
    stack = cause["detail"]["stack"]
    at = -1
    for function in functions:
        later = [i for i, frame in enumerate(stack) if i > at and frame.split(" (")[0].split(".")[-1] == function]
        assert later, f"{function} is not where it should be in {stack}"
        at = later[0]


def check_python(ctx, python):
    truth, cause = record_python(ctx, python, "sleep")
    assert cause_key(cause) == "wait.sleep@launcher", cause
    check_line(cause, truth["file"], [truth["line"]], truth["function"])
    check_order(cause, "stall_sleep", "main", "<module>", "_start")

    truth, cause = record_python(ctx, python, "compute")
    assert cause["role"] == "launcher" and cause["code"].startswith("host."), cause
    check_line(cause, truth["file"], range(truth["first"], truth["last"] + 1), truth["function"])
    check_order(cause, "stall_compute", "main", "<module>", "_start")

    for kind in "lock", "pipe":
        truth, cause = record_python(ctx, python, kind)
        assert cause_key(cause) == "wait.sleep@thread", cause
        check_line(cause, truth["file"], [HELPER_LINE], "work")
        check_order(cause, "work", "run", "_bootstrap")
    return "%d.%d" % tuple(truth["version"])


@limit(100)
@needs("bpf")
def test_python_lines(ctx):
    return check_python(ctx, "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3")


def other_pythons(ctx):
    """Versions of CPython on this machine, by version: those of the path and those of pyenv."""
    found = {}
    starts = [shutil.which(f"python3.{minor}") for minor in range(9, 15)]
    starts += glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))
    for start in filter(None, starts):
        done = ctx.run(start, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)")
        if done.status == 0:
            version, python = done.out.split(maxsplit=1)
            found[version] = python.strip()
    return {version: python for version, python in sorted(found.items()) if (3, 9) <= version_key(version) < (3, 15)}


def version_key(version):
    return tuple(map(int, version.split(".")))


@limit(300)
@needs("bpf")
def test_python_lines_of_other_versions(ctx):
    pythons = other_pythons(ctx)
    if len(pythons) < 2:
        raise Skip("there is no other version of CPython than the system's")
    for version, python in pythons.items():
        assert check_python(ctx, python) == version
    return ", ".join(pythons)


def packaged_pythons(ctx):
    """Versions that `make pythons` fetched: without symbols, as distributions build them, each in a root of its own."""
    found = {python.parent.name: str(python) for python in (ctx.build / "pythons").glob("3.*/python")}
    if not found:
        raise Skip("no other versions were fetched (make pythons)")
    return dict(sorted(found.items(), key=lambda item: version_key(item[0])))


@limit(200)
@needs("bpf", "namespace")
def test_python_lines_of_packaged_versions(ctx):
    pythons = packaged_pythons(ctx)
    for version, python in pythons.items():
        assert check_python(ctx, python) == version
    return ", ".join(pythons)


THREADS = """
import ctypes, sys, threading, time

class Own(threading.Thread):
    def __init__(self):
        self.before = 1  # its attributes are in another order
        super().__init__(name="a name that is longer than the kernel keeps")

    def run(self):
        wait()

def wait(name=None):
    if name:
        ctypes.CDLL(None).prctl(15, name, 0, 0, 0)  # PR_SET_NAME
    start.wait()
    for _ in range(60):
        time.sleep(0.02)

start = threading.Barrier(4)
threads = [threading.Thread(target=wait, name="prefetcher 7"), Own(),
           threading.Thread(target=wait, args=[b"its own"], name="not this"), threading.Thread(target=wait, name="\\u00e9\\u4e2d")]
for thread in threads:
    thread.start()
threads[0].later = 1
for thread in threads:
    thread.join()
"""


@limit(100)
@needs("bpf")
def test_names_of_python_threads(ctx):
    """Where the kernel has only that of the process; the one that a thread gave itself says more."""
    program = ctx.path("threads.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write(THREADS)
    pythons = {"system": "/usr/bin/python3"} | {v: p for v, p in other_pythons(ctx).items() if version_key(v) < (3, 14)}
    for version, python in pythons.items():
        done = ctx.record(python, program, options=("-q", "--no-report"))
        assert done.status == 0, f"{version}: {done}"
        done = ctx.run(ctx.whyidle, "export", "--format", "chrome", "--force", "-o", "-", ctx.path("session.whyidle"))
        assert done.status == 0, done
        names = {event["args"]["name"] for event in json.loads(done.out)["traceEvents"] if event["name"] == "thread_name"}
        names = {re.sub(r"^thread \d+ \((.*)\)$", r"\1", name) for name in names}
        wanted = {"prefetcher 7", "a name that is longer than the kernel keeps", "its own", "\u00e9\u4e2d"}
        assert wanted <= names and "not this" not in names, f"{version}: {sorted(names)}"
    return ", ".join(pythons)


def check_quality(report, python=None):
    """The limits that hold of programs whose files have symbols."""
    stacks = report["user_stacks"]
    frames, named = stacks["sampled_frames"], stacks["sampled_frames_named"]
    waits, complete = stacks["long_waits"], stacks["long_waits_complete"]
    assert report["losses"]["user_stacks"] == 0, report["losses"]
    assert frames >= 100 and waits >= 20, f"too little to judge: {stacks}"
    assert complete >= 0.95 * waits, f"only {complete} of {waits} long waits have a complete stack"
    if python and stacks["unnamed_file"] == os.path.realpath(python):
        named += stacks["unnamed_in_file"]  # a distribution's interpreter without symbols: nothing has its names
    assert named >= 0.95 * frames, f"only {named} of {frames} sampled functions have names: {stacks}"
    assert 0 < stacks["sent_bytes_per_s"] <= stacks["copied_bytes_per_s"], stacks
    return f"{named / frames:.1%} named, {complete / waits:.1%} complete, {stacks['sent_bytes_per_s'] / 1e6:.1f} MB/s"


@limit(60)
@needs("bpf")
def test_stacks_of_c_are_complete_and_named(ctx):
    done = ctx.record(ctx.sim("loader_starved"), "--seconds", "2", options=("-q", "--no-report"))
    assert done.status == 0, done
    return check_quality(ctx.report())


@limit(60)
@needs("bpf")
def test_stacks_of_python_are_complete_and_named(ctx):
    pythons = other_pythons(ctx)
    python = pythons[max(pythons, key=version_key)] if pythons else "/usr/bin/python3"
    for kind in "compute", "lock":
        record_python(ctx, python, kind)
        shown = check_quality(ctx.report(), python)
    return f"{python}: {shown}"


@limit(60)
@needs("bpf")
def test_choice_of_user_stacks(ctx):
    """Which records have user stacks is the user's choice."""
    for choice, sampled, offcpu in ("none", False, False), ("samples", True, False), ("offcpu", False, True):
        done = ctx.record(ctx.sim("lock_wait"), "--seconds", "0.5", options=("-q", "--no-report", "--user-stacks", choice,
                                                                            "--sample-period", "1ms"))
        assert done.status == 0, done
        report = ctx.report()
        dump = ctx.run(ctx.whyidle, "dump", ctx.path("session.whyidle")).out
        for kind, wanted in ("sample", sampled), ("offcpu", offcpu):
            found = re.search(rf"^{kind} .* ustack=[1-9]", dump, re.MULTILINE) is not None
            assert found == wanted, f"user stacks with {kind} records: {found}, with --user-stacks {choice}"
        assert (report["user_stacks"] is None) == (choice == "none"), report["user_stacks"]
        assert not report["degraded"] or not any("stack" in line for line in report["degraded"]), report["degraded"]


def check_function(ctx, function, *command):
    done = ctx.record(*command, options=("-q", "--no-report"), env={"LD_LIBRARY_PATH": str(ctx.build / "sim" / "lib")})
    assert done.status == 0, done
    gpu, = ctx.report()["gpus"]
    causes = [c for c in gpu["causes"] if c["code"] != "sched.cpu_contention"]
    named = causes[0]["detail"].get("function", "nothing")
    assert named == function, f"{named}, planted in {function}: {causes[0]}"
    check_order(causes[0], function, "main", "_start")


@limit(60)
@needs("bpf")
def test_c_function_that_waits_for_a_lock(ctx):
    check_function(ctx, "record_step", ctx.sim("lock_wait"), "--seconds", "1")


@limit(60)
@needs("bpf")
def test_functions_that_were_inlined(ctx):
    """By the debug information of the program; and by that which is given later, if it has none."""
    program, stripped = ctx.sim("odd_target"), ctx.path("stripped")
    assert ctx.run("strip", "-o", stripped, program).status == 0
    for binary, symbols in (program, ()), (stripped, ("--symbols", os.path.dirname(program))):
        done = ctx.record(binary, "sleeper", options=("-q", "--no-report"))
        assert done.status == 0, done
        done = ctx.run(ctx.whyidle, "export", ctx.path("session.whyidle"), "--format", "folded", "-o", "-", *symbols)
        assert done.status == 0, done
        stacks = [line.rsplit(" ", 1) for line in done.out.splitlines() if ";sleeper_waits;" in line and ";wait_ms;" in line]
        spent = sum(int(ns) for _, ns in stacks)
        within = sum(int(ns) for stack, ns in stacks if ";main;run_sleeper;sleeper_waits;many_naps;nap;wait_ms;" in stack)
        assert spent and within > 0.9 * spent, done.out


@limit(60)
@needs("bpf")
def test_function_of_a_deleted_binary(ctx):
    copy = shutil.copy(ctx.sim("lock_wait"), ctx.path("copy"))
    check_function(ctx, "record_step", "sh", "-c",
                   'exec 3< "$0"; rm "$0"; exec /proc/self/fd/3 --seconds 1', copy)
    assert not os.path.exists(copy)


@limit(60)
@needs("bpf")
def test_function_of_a_stripped_binary(ctx):
    """What has no name where it is recorded is found later, by build id, and is never called something else."""
    stripped = ctx.path("stripped")
    done = ctx.run("strip", "-o", stripped, ctx.sim("lock_wait"))
    assert done.status == 0, done
    done = ctx.record(stripped, "--seconds", "1", options=("-q", "--no-report"),
                      env={"LD_LIBRARY_PATH": str(ctx.build / "sim" / "lib")})
    assert done.status == 0, done
    report = ctx.report()
    cause = next(c for c in report["gpus"][0]["causes"] if cause_key(c) == "wait.lock@launcher")
    assert not any(frame.endswith(" (stripped)") for frame in cause["detail"]["stack"]), f"an invented name: {cause}"
    unnamed = [frame for frame in cause["detail"]["stack"] if re.fullmatch(r"stripped\+0x[0-9a-f]+", frame)]
    assert len(unnamed) >= 2, cause
    os.mkdir(ctx.path("symbols"))
    for symbols, found in (ctx.path("symbols"), False), (str(ctx.build / "sim"), True):
        done = ctx.run(ctx.whyidle, "report", "--json", "--symbols", symbols, ctx.path("session.whyidle"))
        assert done.status == 0, done
        again = json.loads(done.out)
        cause = next(c for c in again["gpus"][0]["causes"] if cause_key(c) == "wait.lock@launcher")
        assert (cause["detail"].get("function") == "record_step") == found, f"{symbols}: {cause}"
        if found:
            check_order(cause, "record_step", "main", "_start")
            assert again["user_stacks"]["sampled_frames_named"] >= report["user_stacks"]["sampled_frames_named"]
    done = ctx.run(ctx.whyidle, "report", "--symbols", ctx.path("nowhere"), ctx.path("session.whyidle"))
    assert done.status == 1 and "nowhere" in done.err, done


# In a mount namespace of its own: installs debug symbols, $0 with build id $1, and runs the rest.
WITH_SYMBOLS = """mount -t tmpfs none /usr/lib/debug && mkdir -p "/usr/lib/debug/.build-id/${1%${1#??}}" &&
    cp "$0" "/usr/lib/debug/.build-id/${1%${1#??}}/${1#??}.debug" && shift && exec "$@"
"""


@limit(60)
@needs("namespace", "bpf")
def test_debug_symbols_that_are_installed(ctx):
    """They are found without an option: while recording where the program sees them, later where the report is made."""
    if not os.path.isdir("/usr/lib/debug"):
        raise Skip("there is no /usr/lib/debug to put anything on top of")
    binary, stripped = ctx.sim("lock_wait"), ctx.path("stripped")
    assert ctx.run("strip", "-o", stripped, binary).status == 0
    notes = ctx.run("readelf", "-n", binary).out
    build_id = re.search("Build ID: ([0-9a-f]+)", notes)[1]
    installed = "unshare", "--mount", "sh", "-c", WITH_SYMBOLS, binary, build_id
    check_function(ctx, "record_step", *installed, stripped, "--seconds", "1")
    done = ctx.record(stripped, "--seconds", "1", options=("-q", "--no-report"),
                      env={"LD_LIBRARY_PATH": str(ctx.build / "sim" / "lib")})
    assert done.status == 0, done
    for command, found in ((), False), (installed, True):
        done = ctx.run(*command, ctx.whyidle, "report", "--json", ctx.path("session.whyidle"))
        assert done.status == 0, done
        cause = next(c for c in json.loads(done.out)["gpus"][0]["causes"] if cause_key(c) == "wait.lock@launcher")
        assert (cause["detail"].get("function") == "record_step") == found, f"{command}: {cause}"


@limit(60)
@needs("namespace", "bpf")
def test_function_in_other_namespaces(ctx):
    """The binary lies on a file system that only its own mount namespace has; its process has another id there."""
    os.mkdir(ctx.path("only-there"))
    check_function(ctx, "record_step", "unshare", "--mount", "--pid", "--fork", "sh", "-c",
                   'mount -t tmpfs none "$1"; cp "$0" "$1/copy"; exec "$1/copy" --seconds 1',
                   ctx.sim("lock_wait"), ctx.path("only-there"))
    assert not os.listdir(ctx.path("only-there"))


@limit(60)
@needs("bpf")
def test_kernel_that_refuses_user_stacks(ctx):
    done = ctx.record(ctx.sim("lock_wait"), "--seconds", "1", options=("-q", "--no-report"),
                      env={"WHYIDLE_BPF_WITHOUT": "user_stacks"})
    assert done.status == 0, done
    says(done, "no user stacks")
    report = ctx.report()
    assert any("no user stacks" in line for line in report["degraded"]), report["degraded"]
    cause = report["gpus"][0]["causes"][0]
    assert cause_key(cause) == "wait.lock@launcher" and "stack" not in cause["detail"], cause


POD = "0d3c1f4e-1234-5678-9abc-def012345678"
CONTAINER = "0123456789abcdef" * 4


def control_group(path):
    """Makes a control group, in whichever hierarchy lets us."""
    for root in "/sys/fs/cgroup", *sorted(glob.glob("/sys/fs/cgroup/*/")):
        group = os.path.join(root, path)
        try:
            os.makedirs(group)
        except OSError:
            continue
        if os.path.exists(f"{group}/cgroup.procs"):
            return group
        os.removedirs(group)
    raise Skip("no control group can be made here")


@limit(60)
@needs("namespace", "bpf")
def test_container_and_pod(ctx):
    """Processes of a pod have its uid, their container and their own process ids, also those that are only forked."""
    group = control_group(f"kubepods/besteffort/pod{POD}/{CONTAINER}")
    try:
        for _ in range(3):  # where other load takes all CPUs, there may be nobody to blame
            done = ctx.record("unshare", "--pid", "--fork", "sh", "-c", 'echo 0 > "$1/cgroup.procs"; exec "$0" --seconds 1',
                              ctx.sim("loader_starved"), group, options=("-q", "--no-report"),
                              env={"LD_LIBRARY_PATH": str(ctx.build / "sim" / "lib")})
            assert done.status == 0, done
            report = ctx.report()
            threads = {t["pid"]: t for c in report["gpus"][0]["causes"] for t in [*c["threads"], c["waiter"]] if t}
            job = [t for t in threads.values() if t["comm"] != "unshare"]
            if len(job) >= 2 and report["findings"]:
                break
    finally:
        while os.path.exists(group):
            try:
                os.rmdir(group)
            except OSError:
                time.sleep(0.05)  # the last process is still being taken out
        os.removedirs(os.path.dirname(group))
    assert len(job) >= 2 and report["findings"], report
    for thread in job:
        assert (thread.get("container"), thread.get("pod")) == (CONTAINER, POD), thread
        assert 1 <= thread["namespace_pid"] < thread["pid"], thread
    assert len({t["namespace_pid"] for t in job}) == len(job), job
    text = ctx.run(ctx.whyidle, "report", ctx.path("session.whyidle")).out
    assert f"container {CONTAINER[:12]}, pod {POD}" in " ".join(text.split()), text


OBJECTS = """
import ctypes, mmap, os, resource, select, socket, subprocess, sys, threading, time

FUTEX = 202
shared = 0  # address of the lock that is waited for

def blocked():
    # True if the main thread is in a system call that is no wait for the interpreter.
    with open(f"/proc/self/task/{os.getpid()}/syscall") as file:
        number, address, *_ = file.read().split() + ["", ""]
    return number.isdigit() and (int(number) != FUTEX or int(address, 16) == shared)

def later(function, *args):
    def run():
        while not blocked():
            time.sleep(0.001)
        time.sleep(0.001)  # long enough to be worth a name
        function(*args)
    threading.Thread(target=run).start()

reader, writer = os.pipe()
later(os.write, writer, b"x")
os.read(reader, 1)
os.mkfifo("named")
named = os.open("named", os.O_RDWR)
later(os.write, named, b"x")
os.read(named, 1)
near = socket.create_server(("127.0.0.1", 0))
far = socket.create_connection(near.getsockname())
accepted, _ = near.accept()
later(accepted.send, b"x")
far.recv(1)

# Of several: which one became ready.
os.mkfifo("chosen")
chosen = os.open("chosen", os.O_RDWR)
epoll = select.epoll()
for descriptor in reader, chosen:
    epoll.register(descriptor, select.EPOLLIN)
later(os.write, chosen, b"x")
epoll.poll(10)
os.read(chosen, 1)
os.mkfifo("polled")
polled = os.open("polled", os.O_RDWR)
later(os.write, polled, b"x")
select.select([reader, polled], [], [], 10)
poll = select.poll()
for descriptor in reader, polled:
    poll.register(descriptor, select.POLLIN)
os.read(polled, 1)
later(os.write, polled, b"x")
poll.poll(10000)

server = socket.socket(socket.AF_UNIX)
server.bind("served")
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("served")
at_server, _ = server.accept()
later(at_server.send, b"x")
client.recv(1)
later(client.send, b"x")
at_server.recv(1)
server = socket.socket(socket.AF_UNIX)
server.bind("selected")
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("selected")
at_server, _ = server.accept()
later(at_server.send, b"x")
select.select([reader, client], [], [], 10)
# Whoever sends knows only its own peer: it has no name for this.
later(accepted.send, b"x")
select.select([reader, far], [], [], 10)

# A lock of several processes lies in a file.
file = open("shared-lock", "w+b")
file.truncate(4096)
lock = mmap.mmap(file.fileno(), 4096)
shared = ctypes.addressof(ctypes.c_char.from_buffer(lock))
libc = ctypes.CDLL(None)
for attempt in range(20):  # what is mapped where is read every 100 ms at most
    later(libc.syscall, FUTEX, ctypes.c_void_p(shared), 1, 1)
    libc.syscall(FUTEX, ctypes.c_void_p(shared), 0, 0, None)
    time.sleep(0.05)

# A file that is in memory only until it is told that nobody needs it: touching it goes to the disk.
faults = 0
with open("mapped", "wb") as file:
    file.write(os.urandom(1 << 20))
    file.flush()
    os.fsync(file.fileno())
file = open("mapped", "rb")
memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
for attempt in range(20):
    memory.madvise(mmap.MADV_DONTNEED)
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    memory[attempt * 40960]
    faults += resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before

subprocess.run(["/bin/true", "of a short life"], check=True)
subprocess.run(["/bin/true", "a" * 1000], check=True)
print(near.getsockname()[1], far.getsockname()[1], os.getpid(), faults)
"""


def named_waits(ctx, pid):
    """What the waits of a main thread are said to be for, with the device."""
    dump = ctx.run(ctx.whyidle, "dump", ctx.path("session.whyidle"))
    waits = [line for line in dump.out.splitlines() if line.startswith("offcpu ") and f" tid={pid} " in line]
    return [match.groups() for match in (re.search(r'path="([^"]*)" device=(\S+)', line) for line in waits) if match]


@limit(60)
@needs("bpf")
def test_what_a_wait_is_for(ctx):
    """Pipes, files and peers have their names, also once their descriptors are closed."""
    done = ctx.record("python3", "-c", OBJECTS, options=("-q", "--no-report"))
    assert done.status == 0, done
    port, own_port, pid, faults = done.out.split()
    named = dict(named_waits(ctx, pid))
    for name in ("pipe", ctx.path("named"), f"127.0.0.1:{port}", ctx.path("chosen"), ctx.path("polled"),
                 f"Unix socket served, served by python3 ({pid})", f"Unix socket served, connected by python3 ({pid})",
                 f"Unix socket selected, served by python3 ({pid})", ctx.path("shared-lock")):
        assert name in named, f"{name} is not among {named}"
    assert f"127.0.0.1:{own_port}" not in named, "its own end of a connection is named"
    if int(faults):
        assert ctx.path("mapped") in named, f"{faults} major faults, but no file among {named}"
        assert named[ctx.path("mapped")] != "-", "the file system has no device"
    dump = ctx.run(ctx.whyidle, "dump", ctx.path("session.whyidle")).out
    assert re.search(r'^exec .* cmdline="/bin/true of a short life"', dump, re.MULTILINE), "no command line of the child"
    long = re.search(r'^exec .* cmdline="/bin/true (a+)(\\xe2\\x80\\xa6)?"', dump, re.MULTILINE)
    assert long and (len(long[1]) == 1000 or len(long[1]) > 200 and long[2]), "no command line that is longer"
    return f"{faults} major faults"


@limit(60)
@needs("bpf")
def test_name_of_a_lock(ctx):
    """A lock that is a variable has its name."""
    done = ctx.record(ctx.sim("lock_wait"), "--seconds", "1", options=("-q", "--no-report"))
    assert done.status == 0, done
    gpu, = ctx.report()["gpus"]
    lock = next(cause for cause in gpu["causes"] if cause_key(cause) == "wait.lock@launcher")
    assert lock["detail"]["path"] == "log_lock (lock_wait)", lock
    assert re.fullmatch("futex 0x[0-9a-f]+", lock["detail"]["lock"]), lock
