#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs a PyTorch script, unchanged, with torch.profiler (CPU and CUDA activities) on during its measured phase.

    tests/gpu/under_profiler.py SCRIPT ARGUMENTS…

The script marks that phase by torch.cuda.profiler.start() and stop(). At the end of the phase one JSON line on stderr tells
how many GPU events the profiler saw. The profile itself is dropped: only what collecting it costs is of interest, unless
UNDER_PROFILER_TRACE names a file to write it to.
"""
import json
import os
import runpy
import sys

import torch


def gpu_events(profiler):
    """GPU events of a stopped profiler, -1 where this version of PyTorch does not let them be counted."""
    try:
        cuda = torch.autograd.DeviceType.CUDA
        return sum(event.device_type() == cuda for event in profiler.profiler.kineto_results.events())
    except AttributeError:
        return -1


def hook():
    activity = torch.profiler.ProfilerActivity
    profiler = torch.profiler.profile(activities=[activity.CPU, activity.CUDA])
    mark_start, mark_stop = torch.cuda.profiler.start, torch.cuda.profiler.stop

    def start():
        profiler.start()
        mark_start()

    def stop():
        mark_stop()
        profiler.stop()
        if os.environ.get("UNDER_PROFILER_TRACE"):
            profiler.export_chrome_trace(os.environ["UNDER_PROFILER_TRACE"])
        print(json.dumps({"profiler_gpu_events": gpu_events(profiler)}), file=sys.stderr, flush=True)

    torch.cuda.profiler.start, torch.cuda.profiler.stop = start, stop


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SCRIPT ARGUMENTS…")
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    hook()
    runpy.run_path(sys.argv[0], run_name="__main__")
