#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A job of several ranks, all on one GPU: a process each, with a collective of its own, since NCCL refuses that.

    tests/gpu/ranks_program.py --ranks 2 --plant sleep --late 1 --out FOLDER [--steps N] [--simulated build/sim/lib]

The collective is a real kernel, named as NCCL's: it notes when it starts in memory that all ranks share, polls that
memory until it has started on all of them, and goes on for as long as a transfer would take. What it noted is the
truth: the GPU's own clock, whatever a profiler sees. A kernel whose peer never comes ends after LIMIT_S.

Nothing but Python and the driver is needed. The step: what holds the late rank up, a kernel, the collective, and the host
waits for both. Plants: sleep, worker (a forked process behind pipes sleeps), gc (Python collects its garbage), slow (a longer
kernel), checkpoint (a pageable copy and a file, every 8th step), none.

rank-R.json in FOLDER: "waits_ns" of this rank in each collective, "stalls": [start, end] (CLOCK_MONOTONIC), "start_ns",
"end_ns" of the steps. With --simulated the simulated GPU and libnccl of tests/sim take the place of the real ones.
"""
import argparse
import ctypes
import gc
import glob
import importlib.util
import json
import mmap
import os
import pathlib
import subprocess
import sys
import time

GPU_MS, TRANSFER_MS, LIMIT_S = 2, 0.2, 20
EVERY = {"checkpoint": 8}  # steps; else each one
WARM_UP = 4                # steps in which nothing is planted
CHECKPOINT_BYTES = 64 << 20
PORTABLE_AND_MAPPED = 3

PTX = b"""
.version 6.3
.target sm_75
.address_size 64

.visible .entry ncclDevKernel_AllReduce_Sum_f32_RING_LL(.param .u64 p_row, .param .u32 p_rank, .param .u32 p_ranks,
	.param .u64 p_transfer, .param .u64 p_limit)
{
	.reg .pred %p;
	.reg .b32 %rank, %ranks, %i;
	.reg .b64 %row, %slot, %value, %now, %until, %transfer, %limit;
	ld.param.u64 %row, [p_row];
	ld.param.u32 %rank, [p_rank];
	ld.param.u32 %ranks, [p_ranks];
	ld.param.u64 %transfer, [p_transfer];
	ld.param.u64 %limit, [p_limit];
	mov.u64 %now, %globaltimer;
	mul.wide.u32 %slot, %rank, 8;
	add.s64 %slot, %slot, %row;
	st.volatile.u64 [%slot], %now;
	membar.sys;
	add.s64 %until, %now, %limit;
	mov.u32 %i, 0;
NEXT:
	mul.wide.u32 %slot, %i, 8;
	add.s64 %slot, %slot, %row;
POLL:
	mov.u64 %now, %globaltimer;
	setp.gt.u64 %p, %now, %until;
	@%p bra OVER;
	ld.volatile.u64 %value, [%slot];
	setp.eq.s64 %p, %value, 0;
	@%p bra POLL;
	add.s32 %i, %i, 1;
	setp.lt.u32 %p, %i, %ranks;
	@%p bra NEXT;
	add.s64 %until, %now, %transfer;
TRANSFER:
	mov.u64 %now, %globaltimer;
	setp.lt.u64 %p, %now, %until;
	@%p bra TRANSFER;
OVER:
	ret;
}

.visible .entry train_kernel(.param .u64 p_length)
{
	.reg .pred %p;
	.reg .b64 %now, %until;
	ld.param.u64 %until, [p_length];
	mov.u64 %now, %globaltimer;
	add.s64 %until, %until, %now;
COMPUTE:
	mov.u64 %now, %globaltimer;
	setp.lt.u64 %p, %now, %until;
	@%p bra COMPUTE;
	ret;
}
"""


def find_runtime():
    """libcudart as PyTorch's wheels bring it, beside which CUPTI lies; None: whyidle looks in the usual folders."""
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations if found else []:
        for path in sorted(glob.glob(f"{folder}/*/lib/libcudart.so.*"), reverse=True):
            return path
    return None


class Gpu:
    """A stream of the driver, and launching on it. ctypes gives the interpreter lock up in each call, as frameworks do."""

    def __init__(self, folder):
        runtime = os.path.join(folder, "libcudart.so.13") if folder else find_runtime()
        if runtime:
            self.runtime = ctypes.CDLL(runtime)
        self.driver = ctypes.CDLL(os.path.join(folder, "libcuda.so.1") if folder else "libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.stream, self.buffer = ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.call("cuMemAlloc_v2", ctypes.byref(self.buffer), ctypes.c_size_t(CHECKPOINT_BYTES))
        self.host = ctypes.create_string_buffer(CHECKPOINT_BYTES)

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: error {status}")

    def launch(self, function, *values):
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        self.call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, self.stream, pointers, None)

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)

    def copy_out(self):
        self.call("cuMemcpyDtoH_v2", self.host, self.buffer, ctypes.c_size_t(CHECKPOINT_BYTES))
        return self.host


class Real(Gpu):
    def __init__(self, options):
        super().__init__(None)
        self.options, self.seq = options, 0
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
        # CU_JIT_ERROR_LOG_BUFFER, …_SIZE_BYTES
        names, values = (ctypes.c_int * 2)(5, 6), (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        if self.driver.cuModuleLoadDataEx(ctypes.byref(module), PTX, 2, names, values):
            raise RuntimeError(f"the driver does not take the kernels: {log.value.decode(errors='replace')}")
        self.reduction, self.train = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(self.reduction), module, b"ncclDevKernel_AllReduce_Sum_f32_RING_LL")
        self.call("cuModuleGetFunction", ctypes.byref(self.train), module, b"train_kernel")
        size = self.shared_bytes(options)
        with open(self.shared(options.id), "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), size)
        self.arrivals = (ctypes.c_uint64 * (options.ranks * (options.steps + 1))).from_buffer(self.memory)
        address, self.mapped = ctypes.c_void_p(ctypes.addressof(self.arrivals)), ctypes.c_uint64()
        self.call("cuMemHostRegister_v2", address, ctypes.c_size_t(size), PORTABLE_AND_MAPPED)
        self.call("cuMemHostGetDevicePointer_v2", ctypes.byref(self.mapped), address, 0)
        self.meet()

    @staticmethod
    def shared_bytes(options):
        """A row for each collective, and one for the meeting before them."""
        return -(-8 * options.ranks * (options.steps + 1) // mmap.PAGESIZE) * mmap.PAGESIZE

    @staticmethod
    def shared(name):
        """In memory: the kernel does not pin pages of a file on a disk for a device."""
        return pathlib.Path("/dev/shm" + name)

    @staticmethod
    def prepare(options, name):
        Real.shared(name).write_bytes(bytes(Real.shared_bytes(options)))

    @staticmethod
    def clean_up(name):
        Real.shared(name).unlink(missing_ok=True)

    def meet(self):
        """Ranks begin together, as after ncclCommInitRank."""
        first, end = self.options.ranks * self.options.steps, time.monotonic() + LIMIT_S
        self.arrivals[first + self.options.rank] = 1
        while not all(self.arrivals[first:first + self.options.ranks]):
            if time.monotonic() > end:
                raise RuntimeError("a rank did not start")
            time.sleep(0.001)

    def compute(self, milliseconds):
        self.launch(self.train, ctypes.c_uint64(int(milliseconds * 1e6)))

    def reduce(self):
        row = self.mapped.value + 8 * self.options.ranks * self.seq
        self.launch(self.reduction, ctypes.c_uint64(row), ctypes.c_uint32(self.options.rank),
                    ctypes.c_uint32(self.options.ranks), ctypes.c_uint64(int(TRANSFER_MS * 1e6)),
                    ctypes.c_uint64(LIMIT_S * 10**9))
        self.seq += 1

    def waits(self):
        ranks = self.options.ranks
        rows = [self.arrivals[ranks * s:ranks * s + ranks] for s in range(self.seq)]
        if not all(all(row) for row in rows):
            raise RuntimeError("a rank did not come to a collective")
        return [max(row) - row[self.options.rank] for row in rows]


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Simulated(Gpu):
    def __init__(self, options):
        super().__init__(options.simulated)
        self.options, self.kernels, self.comm = options, {}, ctypes.c_void_p()
        self.driver.simKernelCreate.restype = ctypes.c_void_p
        self.driver.simKernelCreate.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        os.environ["SIM_NCCL_TRUTH"] = options.out
        self.nccl = ctypes.CDLL(os.path.join(options.simulated, "libnccl.so.2"))
        self.nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
        status = self.nccl.ncclCommInitRank(ctypes.byref(self.comm), options.ranks, UniqueId(options.id.encode()),
                                            options.rank)
        if status:
            raise RuntimeError(f"ncclCommInitRank: error {status}")

    @staticmethod
    def prepare(_, name):
        pass

    @staticmethod
    def clean_up(name):
        pass

    def compute(self, milliseconds):
        if milliseconds not in self.kernels:
            made = self.driver.simKernelCreate(b"train_kernel", int(milliseconds * 1e6))
            self.kernels[milliseconds] = ctypes.c_void_p(made)
        self.launch(self.kernels[milliseconds])

    def reduce(self):
        status = self.nccl.ncclAllReduce(None, None, ctypes.c_size_t(1 << 20), 7, 0, self.comm, self.stream)
        if status:
            raise RuntimeError(f"ncclAllReduce: error {status}")

    def waits(self):
        self.nccl.ncclCommDestroy(self.comm)
        path, = pathlib.Path(self.options.out).glob(f"{self.options.id[1:]}-{self.options.rank}.json")
        return [kernel["last_ns"] - kernel["start_ns"] for kernel in json.loads(path.read_text())["kernels"]]


# ---- what holds a rank up

class Sleep:
    def __init__(self, milliseconds, _):
        self.seconds = milliseconds / 1e3

    def run(self, _):
        time.sleep(self.seconds)


class Worker:
    """Made before CUDA is, as loaders' workers should be."""

    def __init__(self, milliseconds, _):
        asked, self.ask = os.pipe()
        self.answered, answer = os.pipe()
        if os.fork() == 0:
            os.close(self.ask)
            while os.read(asked, 1):
                time.sleep(milliseconds / 1e3)
                os.write(answer, b"x")
            os._exit(0)
        os.close(asked)
        os.close(answer)

    def run(self, _):
        os.write(self.ask, b"x")
        if not os.read(self.answered, 1):
            raise RuntimeError("the worker has ended")


class Garbage:
    def __init__(self, milliseconds, _):
        gc.disable()
        self.heap, spent = [], 0
        while spent < milliseconds * 1e6:
            self.heap.append([[i] for i in range(2000)])
            before = time.thread_time_ns()
            gc.collect()
            spent = time.thread_time_ns() - before

    def run(self, _):
        gc.collect()


class Checkpoint:
    def __init__(self, _, out):
        self.path = pathlib.Path(out) / "checkpoint"

    def run(self, gpu):
        with open(self.path, "wb") as file:
            file.write(gpu.copy_out())
            file.flush()
            os.fsync(file.fileno())
        self.path.unlink()


PLANTS = {"sleep": Sleep, "worker": Worker, "gc": Garbage, "checkpoint": Checkpoint, "slow": None, "none": None}


def is_held_up(options, step):
    return options.plant != "none" and options.rank == options.late and step >= WARM_UP and \
        step % EVERY.get(options.plant, 1) == 0


def run_rank(options):
    kind, stalls = PLANTS[options.plant], []
    mine = kind and options.rank == options.late
    plant = kind(options.milliseconds, options.out) if mine else None
    gpu = (Simulated if options.simulated else Real)(options)
    start_ns = 0
    for step in range(options.steps):
        held_up, length = is_held_up(options, step), GPU_MS
        start_ns = start_ns if step != WARM_UP else time.monotonic_ns()
        if held_up and plant:
            begin = time.monotonic_ns()
            plant.run(gpu)
            stalls.append((begin, time.monotonic_ns()))
        elif held_up:
            length += options.milliseconds
        gpu.compute(length)
        gpu.reduce()
        gpu.wait()
    end_ns = time.monotonic_ns()
    said = {"rank": options.rank, "stalls": stalls, "start_ns": start_ns, "end_ns": end_ns, "waits_ns": gpu.waits()}
    (pathlib.Path(options.out) / f"rank-{options.rank}.json").write_text(json.dumps(said))


def wait_for(children):
    """1 if one of them failed; the others would wait for it and are ended."""
    left, failed = {child.pid: child for child in children}, 0
    while left:
        pid, status = os.wait()
        left.pop(pid, None)
        if status:
            failed = 1
            for child in left.values():
                child.kill()
    return failed


def run_all(options):
    """As torchrun does it: a program for each rank, told who it is by its environment."""
    pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    kind, name, children = Simulated if options.simulated else Real, f"/whyidle-ranks-{os.getpid()}", []
    kind.prepare(options, name)
    for rank in range(options.ranks):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(options.ranks))
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--rank", str(rank), "--id", name]
        children.append(subprocess.Popen(command, env=environment))
    failed = wait_for(children)
    kind.clean_up(name)
    return failed


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--plant", choices=PLANTS, default="none")
    p.add_argument("--late", type=int, default=1)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--milliseconds", type=float, default=15)
    p.add_argument("--out", required=True)
    p.add_argument("--simulated", default="")
    p.add_argument("--rank", type=int)
    p.add_argument("--id")
    options = p.parse_args()
    if options.rank is None:
        return run_all(options)
    run_rank(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
