# SPDX-License-Identifier: GPL-2.0-only
"""Ranks in Python whose garbage collector runs in different steps.

    python3 rank_gc.py --lib DIR --ranks N --truth FOLDER [--steps N] [--milliseconds M]

Each rank collects in every fourth step, but in another one than the rank before. rank-R.json: "stalls", [start, end,
time without a CPU] of each collection as the rank itself took it (CLOCK_MONOTONIC).
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "planted"))

from planted import GcPlant, Gpu, Schedstat  # noqa: E402  (needs the path above)

FLOAT, SUM, COUNT, EVERY = 7, 0, 1 << 20, 4


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Team:
    """Gives the interpreter lock up while it waits for the device, as frameworks do."""

    def __init__(self, folder, ranks, rank, name):
        self.runtime = ctypes.CDLL(os.path.join(folder, "libcudart.so.13"))
        self.nccl = ctypes.CDLL(os.path.join(folder, "libnccl.so.2"))
        self.nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
        self.nccl.ncclCommDestroy.argtypes = [ctypes.c_void_p]
        self.nccl.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                                            ctypes.c_void_p, ctypes.c_void_p]
        self.comm = ctypes.c_void_p()
        assert self.nccl.ncclCommInitRank(ctypes.byref(self.comm), ranks, UniqueId(name.encode()), rank) == 0

    def reduce(self):
        assert self.nccl.ncclAllReduce(None, None, COUNT, FLOAT, SUM, self.comm, None) == 0
        assert self.runtime.cudaDeviceSynchronize() == 0

    def leave(self):
        assert self.nccl.ncclCommDestroy(self.comm) == 0


def run_rank(arguments):
    gpu = Gpu(arguments.lib, 1_000_000)
    gpu.launch()
    plant = GcPlant(arguments.milliseconds, arguments.lib)
    team = Team(arguments.lib, arguments.ranks, arguments.rank, arguments.id)
    schedstat, stalls = Schedstat(), []
    for step in range(arguments.steps):
        if step % EVERY == arguments.rank % EVERY and step >= EVERY:
            delay, start = schedstat.run_delay_ns(), time.monotonic_ns()
            plant.run()
            stalls.append((start, time.monotonic_ns(), schedstat.run_delay_ns() - delay))
        gpu.launch()
        team.reduce()
    team.leave()
    path = pathlib.Path(arguments.truth) / f"rank-{arguments.rank}.json"
    path.write_text(json.dumps({"rank": arguments.rank, "stalls": stalls}))


def run_all(arguments):
    children = []
    for rank in range(arguments.ranks):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(arguments.ranks))
        name = f"/whyidle-gc-{os.getpid()}"
        children.append(subprocess.Popen([sys.executable, *sys.argv, "--rank", str(rank), "--id", name], env=environment))
    sys.exit(max(child.wait() for child in children))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--truth", required=True)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--id")
    parser.add_argument("--steps", type=int, default=41)
    parser.add_argument("--milliseconds", type=float, default=20)
    arguments = parser.parse_args()
    if arguments.rank is None:
        run_all(arguments)
    else:
        run_rank(arguments)


if __name__ == "__main__":
    main()
