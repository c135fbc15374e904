# SPDX-License-Identifier: GPL-2.0-only
"""A launch-bound loop on the real GPU: prints one JSON line with what a launch costs and what was launched."""
import json
import subprocess
import sys
import threading
import time

import torch


def main():
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    a = torch.zeros(64, 64, device="cuda")
    b = torch.ones(64, 64, device="cuda")
    for _ in range(2000):
        a.add_(b)
    torch.cuda.synchronize()
    start = time.monotonic_ns()
    for _ in range(launches):
        a.add_(b)
    torch.cuda.synchronize()
    end = time.monotonic_ns()
    host = torch.empty(1 << 20)
    a_copy = host.to("cuda")
    pinned = torch.empty(1 << 20).pin_memory()
    a_copy.copy_(pinned, non_blocking=True)
    torch.cuda.current_stream().synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        a.add_(b)
        a.mul_(0.5)
    for _ in range(100):
        graph.replay()
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
    torch.cuda.synchronize()
    # A child that forks and execs, as data loaders and compilers do.
    subprocess.run(["true"], check=True)
    print(json.dumps({"launches": launches, "us": (end - start) / launches / 1000, "start_ns": start, "end_ns": end,
                      "tid": threading.get_native_id()}))


if __name__ == "__main__":
    main()
