# SPDX-License-Identifier: GPL-2.0-only
"""The bridge in programs on the simulated GPU: what it delivers, and that it does no harm. No root, no GPU.

    python3 tests/bridge/run.py BUILD [NAME]…
"""
import array
import ctypes
import fcntl
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
BRIDGE = os.path.join(BUILD, "libwhyidle_bridge.so")
DUMP = os.path.join(BUILD, "sim/ring_dump")
TARGET = os.path.join(BUILD, "sim/bridge_target")
FAKE = os.path.join(BUILD, "sim/fake_cupti.so")
# The same program with our stand-in for NVTX and, where its headers are, with NVIDIA's own.
NVTX = [path for path in (os.path.join(BUILD, "sim", name) for name in ("nvtx_ranges", "nvtx_ranges_real"))
        if os.path.exists(path)]

# enum ring_phase
RUNNING, FAILED, STOPPED = 2, 3, 4
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def require(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


class Dump:
    """Output of ring_dump, parsed."""

    def __init__(self, arguments, command, **environment):
        path = os.path.join(BUILD, "sim", f"bridge_test.{os.getpid()}.txt")
        began = time.monotonic()
        done = subprocess.run([DUMP, "-o", path, *arguments, BRIDGE, *command], capture_output=True, text=True,
                              env={**os.environ, **environment}, timeout=60)
        self.seconds = time.monotonic() - began
        self.stdout, self.stderr, self.code = done.stdout, done.stderr, done.returncode
        self.records, self.ends, self.total = [], [], {}
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                self.add(line.rstrip("\n"))
        os.unlink(path)

    def add(self, line):
        words = line.split(" ")
        if words[0] == "TOTAL":
            self.total = {key: int(value) for key, value in (word.split("=") for word in words[1:])}
        elif words[0].isdigit():
            # A text, a name or a path comes last and may hold anything.
            fields = dict(re.findall(r"\b(\w+)=((?<=\btext=).*|(?<=\bname=).*|(?<=\bpath=).*|\S*)", line))
            fields = {key: int(value) if re.fullmatch(r"-?\d+", value) else value for key, value in fields.items()}
            fields["peer"], fields["type"] = int(words[0]), words[1]
            (self.ends if words[1] == "END" else self.records).append(fields)

    def of(self, kind, peer=None):
        return [record for record in self.records if record["type"] == kind and peer in (None, record["peer"])]

    def phases(self, peer=None):
        return [record["phase"] for record in self.of("STATUS", peer)]


def bare(*arguments, **environment):
    return subprocess.run([TARGET, *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


def check_undisturbed(dump, *arguments):
    """Same output and status as without the bridge."""
    alone = bare(*arguments)
    require(dump.stdout == alone.stdout, "stdout", repr(dump.stdout), repr(alone.stdout))
    require(dump.stderr == alone.stderr, "stderr", repr(dump.stderr), repr(alone.stderr))
    require(dump.code == alone.returncode, "status", dump.code, alone.returncode)


@test
def delivers_every_record():
    dump = Dump([], [TARGET, "launch", "3000"])
    check_undisturbed(dump, "launch", "3000")
    require(dump.records[0]["type"] == "HELLO", dump.records[0])
    hello = dump.records[0]
    require(hello["simulated"] == 1 and hello["clock"] == 0 and hello["pid"] == hello["peer"], hello)
    require(hello["path"].startswith(BUILD), hello)
    require(dump.phases() == [RUNNING, STOPPED], dump.of("STATUS"))
    require(all(status["text"] == "" for status in dump.of("STATUS")), dump.of("STATUS"))
    device, = dump.of("DEVICE")
    require(device["name"] == "Simulated GPU", device)
    kernels = dump.of("KERNEL")
    require(len(kernels) == 3000, len(kernels))
    require(len({kernel["correlation"] for kernel in kernels}) == 3000)
    launches = {call["correlation"]: call for call in dump.of("API") if "cudaLaunchKernel" in call["function"]}
    for kernel in kernels:
        launch = launches[kernel["correlation"]]
        require(launch["tid"] == hello["pid"], launch)
        require(launch["start"] <= kernel["start"] < kernel["end"], launch, kernel)
        require(kernel["name"] == "_Z6targetPf", kernel)
    require(not dump.of("LOSS") and dump.ends[0]["lost_records"] == 0 and dump.ends[0]["cupti_lost"] == 0, dump.ends)
    require(0 < dump.ends[0]["bridge_ns"] < 1e9, dump.ends)


@test
def ranges_are_those_of_the_program():
    require(NVTX, "nvtx_ranges is not built")
    for program in NVTX:
        dump = Dump([], [program], NVTX_INJECTION64_PATH=BRIDGE)
        require(dump.code == 0 and not dump.stderr, dump.code, dump.stderr)
        told = [line.split()[1:] for line in dump.stdout.splitlines()]
        ranges = sorted(dump.of("RANGE"), key=lambda r: r["end"])
        deep = [r for r in ranges if r["name"] == "deep"]
        # 64 are told apart: those beyond are let go, and the rest ends in the right order.
        require(len(deep) == 64 and all(b["start"] < a["start"] for a, b in zip(deep, deep[1:])), len(deep))
        others = [r for r in ranges if r["name"] not in ("deep", "?")]
        require([r["name"] for r in others] == [name for name, _, _ in told], others)
        require(len(ranges) == len(deep) + len(told) + 1, ranges)  # one has no name
        for record, (name, start, end) in zip(others, told):
            require(int(start) <= record["start"] <= record["end"] <= int(end), record, start, end)
            require(record["domain"] == ("loader" if name == "fetch" else "?"), record)
            require(record["kind"] == (2 if name == "epoch" else 1), record)
            require(record["tid"] == dump.records[0]["pid"], record)


@test
def ranges_cost_next_to_nothing():
    """Not timed: no system call between a push and its pop, which is what costs on virtual machines."""
    def calls(pairs):
        log = os.path.join(BUILD, "sim", f"nvtx_calls.{os.getpid()}.txt")
        strace = ["strace", "-f", "-c", "-o", log, "-e", "trace=getpid,gettid,futex,write,mmap,clock_gettime"]
        Dump([], [*strace, NVTX[0], "cost", str(pairs)], NVTX_INJECTION64_PATH=BRIDGE)
        with open(log, encoding="utf-8") as lines:
            found = [line.split() for line in lines]
        os.unlink(log)
        return sum(int(words[3]) for words in found if len(words) >= 5 and words[3].isdigit() and words[-1] != "total")
    if not shutil.which("strace"):
        return
    few, many = calls(1), calls(20000)
    require(few > 0 and many - few < 2000, "system calls for one range and for 20000:", few, many)


@test
def ranges_need_a_collector():
    for program in NVTX:
        alone = subprocess.run([program], capture_output=True, text=True, timeout=60)
        with_bridge = subprocess.run([program], capture_output=True, text=True, timeout=60,
                                     env={**os.environ, "NVTX_INJECTION64_PATH": BRIDGE})
        unheard = subprocess.run([program], capture_output=True, text=True, timeout=60, env={
            **os.environ, "NVTX_INJECTION64_PATH": BRIDGE, "CUDA_INJECTION64_PATH": BRIDGE,
            "WHYIDLE_SOCKET": "whyidle-nobody-listens"})
        for done in alone, with_bridge, unheard:
            require(done.returncode == 0 and not done.stderr, done)
            require(len(done.stdout.splitlines()) == len(alone.stdout.splitlines()), done)


@test
def several_threads():
    dump = Dump([], [TARGET, "threads", "6", "500"])
    require(dump.code == 0 and len(dump.of("KERNEL")) == 3000, dump.total)
    tids = {call["tid"] for call in dump.of("API") if "cudaLaunchKernel" in call["function"]}
    require(len(tids) == 6 and dump.records[0]["pid"] not in tids, tids)


@test
def idle_without_a_collector():
    alone = bare("launch", "200")
    for environment in ({}, {"WHYIDLE_SOCKET": ""}, {"WHYIDLE_SOCKET": "whyidle-nobody-listens"},
                        {"WHYIDLE_SOCKET": "x" * 300}):
        began = time.monotonic()
        done = bare("launch", "200", CUDA_INJECTION64_PATH=BRIDGE, **environment)
        require((done.stdout, done.stderr, done.returncode) == (alone.stdout, alone.stderr, 0), environment, done)
        require(time.monotonic() - began < 2, environment)


class Listener:
    """A collector of our own making, to offer nonsense."""

    def __init__(self):
        self.name = f"whyidle-test-{os.getpid()}-{time.monotonic_ns()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind("\0" + self.name)
        self.socket.listen(1)

    def start(self, *arguments):
        return subprocess.Popen([TARGET, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "CUDA_INJECTION64_PATH": BRIDGE, "WHYIDLE_SOCKET": self.name})

    def accept(self):
        self.socket.settimeout(10)
        return self.socket.accept()[0]


MAGIC = 0x31656C6469796877
SEALS = 0x0001 | 0x0002 | 0x0004  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW


def ring_memory(size, seals=SEALS):
    fd = os.memfd_create("ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if seals:
        fcntl.fcntl(fd, 1033, seals)  # F_ADD_SEALS
    return fd


def send_offer(peer, magic=MAGIC, version=1, capacity=65536, fds=None, cut=32):
    offer = struct.pack("<QIIQII", magic, version, 0, capacity, 50, 0)[:cut]
    fds = [ring_memory(4096 + 65536)] if fds is None else fds
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    peer.sendmsg([offer], ancillary)


@test
def bad_offers_are_refused():
    with open("/dev/null", "rb") as null:
        offers = {
            "magic": {"magic": 1},
            "version": {"version": 99},
            "capacity no power of two": {"capacity": 65537},
            "capacity beyond the memory": {"capacity": 1 << 20},
            "capacity beyond all": {"capacity": 1 << 63},
            "no descriptor": {"fds": []},
            "not a memfd": {"fds": [null.fileno()]},
            "not sealed": {"fds": [ring_memory(4096 + 65536, 0)]},
            "two descriptors": {"fds": [ring_memory(4096 + 65536), ring_memory(4096)]},
            "short": {"cut": 20},
        }
        for name, offer in offers.items():
            listener = Listener()
            target = listener.start("linger", "50")
            peer = listener.accept()
            send_offer(peer, **offer)
            require(peer.recv(1) == b"" and target.poll() is None, name, "the bridge hangs up at once")
            out, err = target.communicate(timeout=20)
            require(target.returncode == 0 and out == "bridge_target: done\n" and err == "", name, out, err)


@test
def silent_collector_holds_up_a_second_at_most():
    listener = Listener()
    alone, began = bare("launch", "50"), time.monotonic()
    target = listener.start("launch", "50")
    peer = listener.accept()
    out, _ = target.communicate(timeout=20)
    require(out == alone.stdout and target.returncode == 0, out)
    require(time.monotonic() - began < 2.5, time.monotonic() - began)
    peer.close()


@test
def full_backlog_holds_up_a_second_at_most():
    listener = Listener()
    waiting = []
    for _ in range(8):  # nobody accepts these
        waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        waiting[-1].setblocking(False)
        try:
            waiting[-1].connect("\0" + listener.name)
        except BlockingIOError:
            break
    began = time.monotonic()
    out, _ = listener.start("launch", "50").communicate(timeout=20)
    require(out == "bridge_target: done\n" and time.monotonic() - began < 2.5, out)


@test
def exit_status_passes_through():
    for code in ("0", "7", "255"):
        dump = Dump([], [TARGET, "status", code])
        check_undisturbed(dump, "status", code)
        require(dump.code == int(code) and dump.phases() == [RUNNING, STOPPED], dump.phases())


@test
def killed_program_has_lost_the_last_period_only():
    dump = Dump(["-f", "50"], [TARGET, "die", str(int(signal.SIGKILL)), "600"])
    require(dump.code == 128 + signal.SIGKILL, dump.code)
    require(dump.phases() == [RUNNING], dump.phases())
    kernels = dump.of("KERNEL")
    span = (max(kernel["end"] for kernel in kernels) - min(kernel["start"] for kernel in kernels)) / 1e6
    require(span > 400, span, "ms of 600 were delivered")


@test
def forked_child_is_silent():
    dump = Dump([], [TARGET, "fork", "400"])
    check_undisturbed(dump, "fork", "400")
    require(dump.total["peers"] == 1 and len(dump.of("KERNEL")) == 400, dump.total)
    require(dump.phases() == [RUNNING, STOPPED], dump.phases(), "the child's exit stops nothing")
    require(dump.seconds < 2.5, dump.seconds, "the child's exit waits for nothing")


@test
def forked_child_does_not_hold_the_connection():
    listener = Listener()
    began = time.monotonic()
    # Without pipes of ours, which the child would hold as well.
    target = subprocess.Popen([TARGET, "outlive", "4000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, "CUDA_INJECTION64_PATH": BRIDGE, "WHYIDLE_SOCKET": listener.name})
    peer = listener.accept()
    send_offer(peer)
    require(target.wait(timeout=20) == 0)
    ready, _, _ = select.select([peer], [], [], 10)
    require(ready and peer.recv(1) == b"", "no hang-up")
    require(time.monotonic() - began < 3, "the hang-up came with the child's end")


@test
def exec_starts_anew():
    dump = Dump([], [TARGET, "exec", "150"])
    require(dump.code == 0 and dump.total["peers"] == 2, dump.total)
    require(len({record["peer"] for record in dump.records}) == 1, "same process")
    require(len(dump.of("HELLO")) == 2, dump.of("HELLO"))
    require(dump.total["kernel"] >= 150, dump.total)
    require(dump.phases()[-1] == STOPPED, dump.phases())


@test
def child_program_connects_by_itself():
    dump = Dump([], [TARGET, "spawn", "150"])
    check_undisturbed(dump, "spawn", "150")
    counts = sorted(len(dump.of("KERNEL", end["peer"])) for end in dump.ends)
    require(counts == [100, 150], counts)
    for end in dump.ends:
        require(dump.phases(end["peer"]) == [RUNNING, STOPPED], end)


@test
def killed_collector():
    dump = Dump(["-k", "200"], [TARGET, "die", str(int(signal.SIGTERM)), "700"])
    require(dump.code == 128 + signal.SIGTERM and dump.stderr == "", dump.code, dump.stderr)
    dump = Dump(["-f", "20", "-k", "300"], [TARGET, "launch", "40000"])
    check_undisturbed(dump, "launch", "40000")
    require(dump.ends[0]["phase"] == RUNNING, dump.ends, "nothing is written any more")
    require(0 < dump.total["kernel"] < 40000, dump.total)


@test
def closed_ring():
    dump = Dump(["-f", "20", "-c", "300"], [TARGET, "launch", "40000"])
    check_undisturbed(dump, "launch", "40000")
    require(0 < dump.total["kernel"] < 40000, dump.total)
    require(dump.ends[0]["phase"] == RUNNING, dump.ends)


@test
def tiny_ring_counts_what_it_loses():
    dump = Dump(["-b", "4096", "-d", "50", "-f", "20"], [TARGET, "launch", "4000"])
    check_undisturbed(dump, "launch", "4000")
    end = dump.ends[0]
    require(end["phase"] == STOPPED and dump.phases()[-1] == STOPPED, dump.phases())
    losses = dump.of("LOSS")
    require(end["lost_records"] > 1000, end)
    require(sum(loss["count"] for loss in losses if loss["cause"] == 1) == end["lost_records"], end, losses)
    require(len(losses) < 500, len(losses), "no flood of losses")
    whole = Dump([], [TARGET, "launch", "4000"]).total
    kinds = ("kernel", "api", "sync", "overhead", "device", "memcpy", "memset")
    got = sum(dump.total[kind] for kind in kinds)
    require(got + end["lost_records"] >= sum(whole[kind] for kind in kinds) * 0.99, got, end, whole)
    for loss in losses:
        require(0 < loss["start"] <= loss["end"], loss)
    # Each kernel that is missing lies in a hole that was told, as far as the others can tell its time.
    starts = sorted(kernel["start"] for kernel in dump.of("KERNEL"))
    for before, after in zip(starts, starts[1:]):
        if after - before > 5000000:
            require(any(loss["start"] <= after and loss["end"] >= before for loss in losses), before, after)


@test
def taken_by_another_tool():
    dump = Dump([], [TARGET, "launch", "100"], SIM_CUPTI_TAKEN="1")
    check_undisturbed(dump, "launch", "100")
    require(dump.phases() == [FAILED], dump.of("STATUS"))
    status, = dump.of("STATUS")
    require(status["error"] == 39 and "another tool" in status["text"], status)
    require(dump.ends[0]["phase"] == FAILED and not dump.of("KERNEL"), dump.ends)


@test
def no_usable_cupti():
    for path, mode in (("/nonexistent/libcupti.so", ""), (FAKE, "ancient"), ("/dev/null", "")):
        dump = Dump([], [TARGET, "launch", "100"], WHYIDLE_CUPTI=path, FAKE_CUPTI=mode)
        check_undisturbed(dump, "launch", "100")
        status, = dump.of("STATUS")
        require(status["phase"] == FAILED and path in status["text"], status)
        require(dump.records[0]["type"] == "HELLO" and dump.records[0]["cupti"] == 0, dump.records[0])


@test
def old_cupti():
    dump = Dump(["-f", "20"], [TARGET, "die", str(int(signal.SIGKILL)), "500"], WHYIDLE_CUPTI=FAKE, FAKE_CUPTI="old")
    hello = dump.records[0]
    require(hello["cupti"] == 18 and hello["clock"] == 1 and 0 < hello["clock_error"] < 5e6, hello)
    require("thread" in dump.of("STATUS")[0]["text"], dump.of("STATUS"))
    kernels, calls = dump.of("KERNEL"), dump.of("API")
    require(len(kernels) > 5 and len(calls) == len(kernels), len(kernels), len(calls), "unwanted calls are dropped")
    now = time.monotonic_ns()
    require(all(now - 10e9 < kernel["start"] < now for kernel in kernels), "times of CLOCK_REALTIME were converted")
    require(all(call["tid"] == 0 for call in calls), "thread ids of unknown kind are not passed on")
    loss, = dump.of("LOSS")
    require(loss["cause"] == 2 and loss["count"] == 7 and loss["start"] < loss["end"], loss)
    require(dump.ends[0]["cupti_lost"] == 7, dump.ends)


@test
def refused_kernels():
    dump = Dump([], [TARGET, "launch", "100"], WHYIDLE_CUPTI=FAKE, FAKE_CUPTI="refuse")
    check_undisturbed(dump, "launch", "100")
    status, = dump.of("STATUS")
    require(status["phase"] == FAILED and status["error"] == 35 and "NVreg" in status["text"], status)


@test
def refused_extras():
    dump = Dump([], [TARGET, "launch", "100"], WHYIDLE_CUPTI=FAKE, FAKE_CUPTI="partial")
    first = dump.of("STATUS")[0]
    require(first["phase"] == RUNNING and "synchronisation" in first["text"] and "cost" in first["text"], first)
    require(dump.of("KERNEL"), "the rest goes on")


@test
def stuck_cupti_does_not_hang_the_exit():
    dump = Dump([], [TARGET, "launch", "100"], WHYIDLE_CUPTI=FAKE, FAKE_CUPTI="stuck")
    check_undisturbed(dump, "launch", "100")
    require(dump.seconds < 6, dump.seconds)
    require(dump.phases()[-1] == STOPPED and "in time" in dump.of("STATUS")[-1]["text"], dump.of("STATUS"))


@test
def buffers_after_the_end_are_ignored():
    dump = Dump(["-f", "20"], [TARGET, "die", str(int(signal.SIGTERM)), "100"], WHYIDLE_CUPTI=FAKE, FAKE_CUPTI="late")
    require(dump.code == 128 + signal.SIGTERM, dump.code)
    dump = Dump(["-f", "20"], [TARGET, "linger", "5000"], WHYIDLE_CUPTI=FAKE, FAKE_CUPTI="late")
    require(dump.code == 0 and dump.stderr == "", dump.code, dump.stderr)
    require(dump.records[-1]["type"] == "STATUS" and dump.records[-1]["phase"] == STOPPED, dump.records[-1])


@test
def exit_with_a_running_kernel():
    dump = Dump([], [TARGET, "stuck"])
    require(dump.code == 0 and dump.seconds < 6, dump.code, dump.seconds, dump.stderr)
    require(len(dump.of("KERNEL")) == 50 and dump.phases()[-1] == STOPPED, dump.total, dump.phases())


@test
def descriptors_are_left_alone():
    dump = Dump([], [TARGET, "descriptors", "400"])
    check_undisturbed(dump, "descriptors", "400")
    require(len(dump.of("KERNEL")) == 400 and dump.phases()[-1] == STOPPED, dump.total, dump.phases())


@test
def signals_are_left_to_the_program():
    dump = Dump([], [TARGET, "signals"])
    lines = dump.stdout.splitlines()
    require("whyidle blocks" in lines and "whyidle takes" not in lines, lines)


@test
def set_user_id_programs_are_left_alone():
    # secure_getenv: AT_SECURE cannot be had without root, so ask for the symbol that makes the difference.
    library = open(BRIDGE, "rb").read()
    require(b"secure_getenv" in library and b"\0getenv\0" not in library)


@test
def exports_its_entries_only():
    out = subprocess.run(["nm", "-D", "--defined-only", BRIDGE], capture_output=True, text=True, check=True).stdout
    entries = ["InitializeInjection", "InitializeInjectionNvtx2", "whyidle_attach_link", "whyidle_attach_work"]
    require(sorted(line.split()[-1] for line in out.splitlines()) == entries, out)
    needed = subprocess.run(["readelf", "-d", BRIDGE], capture_output=True, text=True, check=True).stdout
    # The dynamic linker, which is in every program, is there for the thread's own variables.
    require(set(re.findall(r"\(NEEDED\).*\[(.*)\]", needed)) <= {"libc.so.6", "libpthread.so.0", "libdl.so.2",
                                                                 "ld-linux-x86-64.so.2"}, needed)


@test
def runs_with_an_old_c_library():
    out = subprocess.run(["nm", "-D", "--undefined-only", BRIDGE], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"@GLIBC_([\d.]+)", out)}
    require(max(versions) <= (2, 17), [line for line in out.splitlines() if "GLIBC_2.3" in line])


@test
def keeps_errno():
    library = ctypes.CDLL(BRIDGE, use_errno=True)
    os.environ["WHYIDLE_SOCKET"] = "whyidle-nobody-listens"
    ctypes.set_errno(77)
    require(library.InitializeInjection() == 1)
    require(ctypes.get_errno() == 77, ctypes.get_errno())
    del os.environ["WHYIDLE_SOCKET"]


def main():
    names = sys.argv[2:]
    passed = failed = 0
    for function in TESTS:
        if names and function.__name__ not in names:
            continue
        try:
            function()
            passed += 1
        except Exception:  # every failure is reported, the rest goes on
            failed += 1
            print(f"FAILED {function.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
