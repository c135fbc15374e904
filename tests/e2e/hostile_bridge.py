# SPDX-License-Identifier: GPL-2.0-only
"""A target that speaks to the collector itself, and badly: hostile_bridge.py CASE [SECONDS]. Run below whyidle record."""
import array
import mmap
import os
import random
import socket
import struct
import sys
import time

CONTROL = 4096
HEAD, LOST, PHASE = 64, 72, 96


def connect():
    """Returns (socket, memory of control page and ring, capacity of the ring)."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.connect(b"\0" + os.environb[b"WHYIDLE_SOCKET"])
    offer, ancillary, _, _ = link.recvmsg(64, socket.CMSG_SPACE(4))
    if not ancillary:
        sys.exit("no ring was offered")
    ring = array.array("i", ancillary[0][2])[0]
    _, _, _, capacity, _, _ = struct.unpack("<QIIQII", offer)
    try:
        os.ftruncate(ring, 0)
        sys.exit("the ring could be truncated")
    except OSError:
        pass
    memory = mmap.mmap(ring, CONTROL + capacity)
    os.close(ring)
    return link, memory, capacity


def set_head(memory, value):
    memory[HEAD:HEAD + 8] = struct.pack("<Q", value & (1 << 64) - 1)


def kernel_record(start, end):
    return struct.pack("<IHHQQIIIIIIQ6I", 80, 5, 0, start, end, 0, 0, 0, 0, 1, 0, 0, *[0] * 6)


def bad_head():
    link, memory, _ = connect()
    set_head(memory, 1 << 63)
    return link


def bad_size():
    link, memory, _ = connect()
    memory[CONTROL:CONTROL + 8] = struct.pack("<IHH", 0xfffffff8, 5, 0)
    set_head(memory, 4096)
    return link


def garbage():
    link, memory, capacity = connect()
    memory[CONTROL:CONTROL + 65536] = random.Random(1).randbytes(65536)
    set_head(memory, capacity)
    return link


def absurd_records():
    """Well formed, but every value is absurd: losses without number, times without sense, names without end."""
    link, memory, _ = connect()
    most = (1 << 64) - 1
    records = b"".join([
        struct.pack("<IHHQQQII", 40, 11, 0, 0, most, most, 1, 0),
        kernel_record(most, 0),
        kernel_record(0, most),
        struct.pack("<IHHII", 16, 3, 0, 0xffffffff, 0xffffffff),
        struct.pack("<IHHIIIIII", 32, 4, 0, 1, 2, 3, 4, 5, 6),
        struct.pack("<IHH", 8, 999, 0),
        struct.pack("<IHHQIiII", 32, 2, 0, most, 3, -1, 0, 0),
    ])
    memory[CONTROL:CONTROL + len(records)] = records
    memory[LOST:LOST + 16] = struct.pack("<QQ", most, most)
    set_head(memory, len(records))
    return link


def endless(seconds):
    """Writes as fast as it can, without a look at the tail."""
    link, memory, capacity = connect()
    record = kernel_record(0, 0)
    memory[CONTROL:CONTROL + capacity // 80 * 80] = record * (capacity // 80)
    end = time.monotonic() + seconds
    head = 0
    while time.monotonic() < end:
        head += 80
        set_head(memory, head)
    return link


def talk(seconds):
    """Sends messages that nobody asked for."""
    link, _, _ = connect()
    link.setblocking(False)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            link.send(b"x" * 1000)
        except BlockingIOError:
            time.sleep(0.001)
    return link


def come_and_go():
    for _ in range(500):
        link, memory, _ = connect()
        memory.close()
        link.close()
    return [connect() for _ in range(200)]


def main():
    case = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1
    kept = globals()[case](seconds) if case in ("endless", "talk") else globals()[case]()
    time.sleep(0.3)  # so that the collector sees it while we live
    print("hostile: done")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
