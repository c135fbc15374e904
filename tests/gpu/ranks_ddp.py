#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A PyTorch DistributedDataParallel job over NCCL, a GPU for each rank, in which one rank is held up.

    tests/gpu/ranks_ddp.py --plant gc --late 1 --out FOLDER [--steps 200]

Plants: gc (Python collects its garbage, every 4th step), worker (the rank's data workers sleep for each batch), checkpoint
(the model is saved, every 25th step), none: a tuned loop whose host runs ahead of the GPU.

rank-R.json in FOLDER: "waits_ns" of this rank in each gradient bucket's collective, "stalls": [start, end] (CLOCK_MONOTONIC),
"start_ns", "end_ns" and "measured_steps". The waits are measured with CUDA events around each collective: the time from
when it could begin (its bucket was ready and the one before was over) to its end, without what the shortest one of that
bucket took. With `none` nothing is put around them ("waits_ns": null).
"""
import argparse
import datetime
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import ranks_program

INPUT, WIDTH, LAYERS, BATCH, WARM_UP = 64, 4096, 8, 2048, 10
EVERY = {"gc": 4, "checkpoint": 25}
GC_MS, WORKER_S, WORKERS, SHORT_NS = 25, 0.06, 2, 5_000_000
LIMIT = datetime.timedelta(seconds=60)


class Batches(Dataset):
    """An item is a batch, made without computing: only the planted worker is slow."""

    def __init__(self, length, seconds):
        self.length, self.seconds, self.batch = length, seconds, torch.randn(BATCH, INPUT, dtype=torch.bfloat16)

    def __len__(self):
        return self.length

    def __getitem__(self, _):
        if self.seconds:
            time.sleep(self.seconds)
        return self.batch


class Buckets:
    """A communication hook that does what DDP does anyway, with an event before and after each collective."""

    def __init__(self):
        self.origin = torch.cuda.Event(enable_timing=True)
        self.origin.record()
        self.events = []

    def hook(self, _, bucket):
        ready, over = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        tensor = bucket.buffer().div_(dist.get_world_size())
        ready.record()
        self.events.append((bucket.index(), ready, over))

        def done(future):
            over.record()
            return future.value()[0]
        return dist.all_reduce(tensor, async_op=True).get_future().then(done)

    def waits(self):
        """ns of each; after a synchronisation."""
        found, before = [], 0.0
        for index, ready, over in self.events:
            start, end = (self.origin.elapsed_time(event) for event in (ready, over))
            found.append((index, end - max(start, before)))
            before = end
        least = {}
        for index, length in found:
            least[index] = min(length, least.get(index, length))
        return [int(max(0.0, length - least[index]) * 1e6) for index, length in found]


class Job:
    def __init__(self, options):
        self.options, self.mine = options, options.plant != "none" and options.rank == options.late
        torch.cuda.set_device(options.rank)  # first: the loader's thread pins memory for it
        self.garbage = ranks_program.Garbage(GC_MS, None) if self.mine and options.plant == "gc" else None
        seconds = WORKER_S if self.mine and options.plant == "worker" else 0
        self.data = iter(DataLoader(Batches(options.steps + WARM_UP, seconds), batch_size=None, num_workers=WORKERS,
                                    pin_memory=True, prefetch_factor=4))
        dist.init_process_group("nccl", timeout=LIMIT, device_id=torch.device("cuda", options.rank))
        self.meeting = dist.new_group(backend="gloo", timeout=LIMIT)
        # What is not measured should not make anybody wait.
        self.meet()
        dist.all_reduce(torch.ones(1, device="cuda"))
        torch.cuda.synchronize()
        self.meet()
        net = nn.Sequential(nn.Linear(INPUT, WIDTH), *[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(LAYERS)])
        self.model = DistributedDataParallel(net.cuda().bfloat16(), device_ids=[options.rank], gradient_as_bucket_view=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)
        self.buckets = Buckets() if options.plant != "none" else None
        if self.buckets:
            self.model.register_comm_hook(None, self.buckets.hook)
        self.stalls, self.path = [], pathlib.Path(options.out) / "checkpoint"
        torch.cuda.synchronize()
        self.meet()

    def meet(self):
        dist.barrier(group=self.meeting)

    def held_up(self, what):
        begin = time.monotonic_ns()
        result = what()
        end = time.monotonic_ns()
        if end - begin >= SHORT_NS:
            self.stalls.append((begin, end))
        return result

    def save(self):
        with open(self.path, "wb") as file:
            torch.save(self.model.module.state_dict(), file)
            file.flush()
            os.fsync(file.fileno())
        self.path.unlink()

    def step(self, number):
        plant = self.options.plant if self.mine and number >= WARM_UP else "none"
        batch = self.held_up(lambda: next(self.data)) if plant == "worker" else next(self.data)
        every = EVERY.get(plant)
        if every and number % every == 0:
            self.held_up((lambda: self.garbage.run(None)) if plant == "gc" else self.save)
        loss = self.model(batch.cuda(non_blocking=True)).float().square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        # A stall is hidden for as long as the GPU has work left: with one planted the host waits in each step.
        if self.buckets or number % 20 == 0:
            loss.item()

    def run(self):
        start_ns = 0
        for number in range(self.options.steps + WARM_UP):
            if number == WARM_UP:
                torch.cuda.synchronize()
                start_ns = time.monotonic_ns()
            self.step(number)
        torch.cuda.synchronize()
        end_ns = time.monotonic_ns()
        said = {"rank": self.options.rank, "stalls": self.stalls, "start_ns": start_ns, "end_ns": end_ns,
                "measured_steps": self.options.steps, "waits_ns": self.buckets.waits() if self.buckets else None}
        (pathlib.Path(self.options.out) / f"rank-{self.options.rank}.json").write_text(json.dumps(said))
        self.meet()
        dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def run_all(options):
    pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    common = dict(os.environ, WORLD_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())
    children = []
    for rank in range(options.ranks):
        environment = dict(common, RANK=str(rank), LOCAL_RANK=str(rank))
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--rank", str(rank)]
        children.append(subprocess.Popen(command, env=environment))
    return ranks_program.wait_for(children)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--plant", choices=["gc", "worker", "checkpoint", "none"], default="none")
    p.add_argument("--late", type=int, default=1)
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--out", required=True)
    p.add_argument("--rank", type=int)
    options = p.parse_args()
    if options.rank is None:
        return run_all(options)
    Job(options).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
