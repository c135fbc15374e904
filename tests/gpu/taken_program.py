#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A program that profiles itself with torch.profiler, prints its results and ends with the status it is told.

    tests/gpu/taken_program.py profiler-first|cuda-first KERNELS STATUS

profiler-first: torch.profiler is on before CUDA is initialised; cuda-first: CUDA runs already (and with it whatever was
injected into the process) when the profiler starts. "result" lines must not depend on who watches; the "profiler" line tells
what the profiler saw.
"""
import sys

import torch
from under_profiler import gpu_events


def work(n):
    x = torch.zeros(1024, device="cuda")
    for _ in range(n):
        x.add_(1)
    torch.cuda.synchronize()
    return int(x.sum().item())


def main(order, kernels, status):
    if order == "cuda-first":
        print("result before", work(10), flush=True)
    activity = torch.profiler.ProfilerActivity
    profiler = torch.profiler.profile(activities=[activity.CPU, activity.CUDA])
    profiler.start()
    print("result during", work(kernels), flush=True)
    profiler.stop()
    print("profiler saw", gpu_events(profiler), flush=True)
    print("result after", work(kernels), flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
