#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Does the same GPU work in every run and names its parts with NVTX. Prints one JSON line with the CLOCK_MONOTONIC bounds of
the measured steps, what the program's own clock says of each range, and, under torch.profiler, its table of kernels.

    tests/gpu/tables_program.py --steps 200 [--profile]
"""
import argparse
import json
import time

import busy_program
import torch

SETTLE_STEPS = 30  # not measured
EPOCH_STEPS = 10   # steps in a range that is started and ended


class Ranges:
    """What this program's own clock says: name → [count, ns inside of the calls that begin and end it, ns outside of them]."""

    def __init__(self):
        self.taken = {}

    def add(self, name, before, begun, ended):
        entry = self.taken.setdefault(name, [0, 0, 0])
        entry[0] += 1
        entry[1] += ended - begun
        entry[2] += time.monotonic_ns() - before

    def pushed(self, name, work):
        before = time.monotonic_ns()
        torch.cuda.nvtx.range_push(name)
        begun = time.monotonic_ns()
        work()
        ended = time.monotonic_ns()
        torch.cuda.nvtx.range_pop()
        self.add(name, before, begun, ended)


def more_kernels(work):
    """Kernels of several libraries, with long names."""
    x = work.products[-1]
    torch.softmax(x, 1).sum()
    torch.nn.functional.layer_norm(x, (x.shape[1],))
    torch.cumsum(work.tiny, 0)
    torch.sort(work.tiny)
    torch.cuda.synchronize()


def steps(work, ranges, count, profiler):
    for number in range(count):
        if number % EPOCH_STEPS == 0:
            before, handle = time.monotonic_ns(), torch.cuda.nvtx.range_start("epoch")
            begun = time.monotonic_ns()
        ranges.pushed("step", lambda: (ranges.pushed("forward", work.step),
                                       ranges.pushed("more kernels", lambda: more_kernels(work))))
        if number % EPOCH_STEPS == EPOCH_STEPS - 1:
            ended = time.monotonic_ns()
            torch.cuda.nvtx.range_end(handle)
            ranges.add("epoch", before, begun, ended)
        if profiler:
            profiler.step()


def kernels_of(profiler):
    """Name → [count, ns], of everything that ran on the GPU, copies too."""
    return {row.key: [row.count, round(row.self_device_time_total * 1000)] for row in profiler.key_averages()
            if row.device_type == torch.autograd.DeviceType.CUDA and row.self_device_time_total > 0}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--profile", action="store_true")
    args = p.parse_args()
    count, work, profiler = args.steps // EPOCH_STEPS * EPOCH_STEPS, busy_program.Work(), None
    warm = time.monotonic() + busy_program.WARM_UP_S
    while time.monotonic() < warm:
        work.step()
        more_kernels(work)
    if args.profile:
        # What belongs to the schedule's warm-up is not in the table.
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], schedule=torch.profiler.schedule(
            wait=0, warmup=SETTLE_STEPS, active=count, repeat=1))
        profiler.start()
    steps(work, Ranges(), SETTLE_STEPS, profiler)
    ranges, start = Ranges(), time.monotonic_ns()
    steps(work, ranges, count, profiler)
    end = time.monotonic_ns()
    if profiler:
        profiler.stop()
    print(json.dumps({"tables_program": 1, "steps": count, "start_ns": start, "end_ns": end, "ranges": ranges.taken,
                      "kernels": kernels_of(profiler) if profiler else None}), flush=True)


if __name__ == "__main__":
    main()
