# SPDX-License-Identifier: GPL-2.0-only
"""What a process looks like from outside, before it was recorded and after: nothing may be left behind in it."""
import ctypes
import errno
import os
import pathlib
import re
import struct

from harness import wait_until

LIBRARIES = ("memfd:whyidle-bridge", "libcupti.so")

CUPTI_THREAD = "cupti-worker"  # CUPTI is not taken out again, and has one (docs/attach.md)


def maps(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


def status_field(pid, tid, name):
    with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as text:
        return re.search(rf"^{name}:\s*(.*)$", text.read(), re.M).group(1)


def threads(pid):
    """(id, name, blocked signals) of each thread."""
    found = set()
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            found.add((tid, status_field(pid, tid, "Name"), status_field(pid, tid, "SigBlk")))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def descriptors(pid):
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[fd] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except (FileNotFoundError, ProcessLookupError):
            continue
    # The target itself looks at /proc now and then.
    return {fd: name for fd, name in found.items() if not name.startswith("/proc/")}


def state(pid):
    """What must be the same before and after."""
    return {
        "descriptors": descriptors(pid),
        "threads": {t for t in threads(pid) if t[1] != CUPTI_THREAD},
        "caught": status_field(pid, pid, "SigCgt"),
        "ignored": status_field(pid, pid, "SigIgn"),
        "tracer": status_field(pid, pid, "TracerPid"),
    }


def changed_code(pid):
    """Libraries whose code in memory is not that of their file."""
    changed = []
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps(pid):
            fields = line.split(None, 5)
            if len(fields) < 6 or fields[1] != "r-xp" or not fields[5].startswith("/") or "(deleted)" in line:
                continue
            start, end = (int(part, 16) for part in fields[0].split("-"))
            memory.seek(start)
            with open(f"/proc/{pid}/root{fields[5]}", "rb") as file:
                file.seek(int(fields[2], 16))
                ours = file.read(end - start)
            if memory.read(len(ours)) != ours:
                changed.append(fields[5])
    return changed


def own_threads(pid):
    return [name for _, name, _ in threads(pid) if name == "whyidle"]


def lent(pid):
    """Mappings of code without a file or a name: the instructions that are lent. The program has none of its own, and
    what the kernel maps for probes is named [uprobes]."""
    return [line for line in maps(pid) if "x" in line.split()[1] and len(line.split()) == 5]


def check_left(pid, before):
    """Waits until the bridge has gone; then everything has to be as before, but for the libraries."""
    wait_until(lambda: not own_threads(pid), "the bridge's threads to end", 25)
    # The target opens files and blocks signals for moments of its own: wait for a state, compare no snapshot.
    for what, value in before.items():
        now = []

        def same(what=what, value=value, now=now):
            now[:] = [state(pid)[what]]
            return now[0] == value

        try:
            wait_until(same, what, 10)
        except AssertionError:
            raise AssertionError(f"{what} at the end: {now[0]}, not {value}") from None
    assert sum(name == CUPTI_THREAD for _, name, _ in threads(pid)) <= 1
    wait_until(lambda: not lent(pid), "what was lent to be unmapped", 10)
    for line in maps(pid):
        name = line.split("/")[-1]  # the folder of the build may have our name as well
        assert "whyidle" not in name or LIBRARIES[0] in line, f"left behind: {line}"
    assert not changed_code(pid), f"changed: {changed_code(pid)}"


BPF = 321  # the system call, x86-64
BPF_FD_BY_ID = {"prog_id": 13, "map_id": 14, "link_id": 30}


def bpf_objects(pid):
    """(kind, id) of the BPF programs, maps and links that a process holds."""
    found = set()
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue
        found |= {(kind, int(number)) for kind, number in re.findall(r"^(prog_id|map_id|link_id):\s*(\d+)", text, re.M)}
    return found


def bpf_lives(kind, number):
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = ctypes.create_string_buffer(struct.pack("<III", number, 0, 0))
    fd = libc.syscall(BPF, BPF_FD_BY_ID[kind], attributes, 12)
    if fd >= 0:
        os.close(fd)
        return True
    assert ctypes.get_errno() == errno.ENOENT, f"{kind} {number}: {os.strerror(ctypes.get_errno())}"
    return False


def check_bpf_left(objects):
    """Waits until what a recorder held has gone; the kernel frees it a moment after its end."""
    assert {kind for kind, _ in objects} == set(BPF_FD_BY_ID), f"the recorder held no BPF objects: {objects}"
    wait_until(lambda: not any(bpf_lives(*item) for item in objects), "the recorder's BPF programs, maps and links to go")


def shared_memory():
    return {path for path in pathlib.Path("/dev/shm").iterdir() if "whyidle" in path.name}
