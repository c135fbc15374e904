#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Does the same GPU work in every run: kernels, copies and memsets of several sizes, then a little Python after a
synchronisation. Prints one JSON line with the CLOCK_MONOTONIC bounds of the measured steps.

    tests/gpu/busy_program.py --steps 300 [--trace FILE]    FILE: record the steps with torch.profiler into it
"""
import argparse
import ctypes
import json
import os
import time

import torch

WARM_UP_S = 1.0  # for clocks, allocator and libraries
SETTLE_STEPS = 30  # not measured: starting a profiler takes a while, in which the clock of an idle GPU may go down
PAUSE_NS = 500_000
TINY_KERNELS = 16
MATRICES = (512, 1024, 2048)
COPY_BYTES = (4 << 10, 256 << 10, 4 << 20)
SET_BYTES = (64, 64 << 10, 16 << 20)


class Work:
    """One step of it, with everything allocated beforehand."""

    def __init__(self):
        torch.manual_seed(0)
        self.tiny = torch.ones(4096, device="cuda")
        self.matrices = [torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for n in MATRICES]
        self.products = [torch.empty_like(m) for m in self.matrices]
        self.hosts = [torch.ones(n, dtype=torch.uint8).pin_memory() for n in COPY_BYTES]
        self.devices = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in COPY_BYTES]
        self.twins = [torch.empty_like(d) for d in self.devices]
        self.cleared = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in SET_BYTES]
        self.beside = torch.cuda.Stream()
        self.beside_host = torch.ones(1 << 20, dtype=torch.uint8).pin_memory()
        self.beside_device = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        self.driver = ctypes.CDLL("libcuda.so.1")

    def clear(self, tensor):
        # The driver's own call: tensor.zero_() may be a kernel.
        status = self.driver.cuMemsetD8Async(ctypes.c_uint64(tensor.data_ptr()), ctypes.c_ubyte(0),
                                             ctypes.c_size_t(tensor.numel()),
                                             ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if status:
            raise RuntimeError(f"cuMemsetD8Async: error {status}")

    def step(self):
        for _ in range(TINY_KERNELS):
            self.tiny.mul_(1.0)
        self.beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.beside):  # overlaps the products: the union is less than the sum
            self.beside_device.copy_(self.beside_host, non_blocking=True)
        for matrix, product in zip(self.matrices, self.products):
            torch.mm(matrix, matrix, out=product)
        torch.cuda.current_stream().wait_stream(self.beside)
        for host, device, twin in zip(self.hosts, self.devices, self.twins):
            device.copy_(host, non_blocking=True)
            twin.copy_(device)
            host.copy_(twin, non_blocking=True)
        for tensor in self.cleared:
            self.clear(tensor)
        torch.cuda.synchronize()
        end = time.monotonic_ns() + PAUSE_NS
        while time.monotonic_ns() < end:
            pass


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=300)
    p.add_argument("--trace")
    args = p.parse_args()
    work = Work()
    warm = time.monotonic() + WARM_UP_S
    while time.monotonic() < warm:
        work.step()
    profiler = None
    if args.trace:
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        profiler.start()
    for _ in range(SETTLE_STEPS):
        work.step()
    start = time.monotonic_ns()
    for _ in range(args.steps):
        work.step()
    end = time.monotonic_ns()
    if profiler:
        profiler.stop()
        profiler.export_chrome_trace(args.trace)
    print(json.dumps({"busy_program": 1, "steps": args.steps, "settle_steps": SETTLE_STEPS, "start_ns": start, "end_ns": end,
                      "pid": os.getpid()}), flush=True)


if __name__ == "__main__":
    main()
