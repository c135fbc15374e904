#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Launches small kernels in chunks for a time, and waits for the GPU after each. Prints a line "chunk START END KERNELS" for
each, with times of CLOCK_MONOTONIC taken outside of it, and at its end "whole CHUNKS".

    tests/gpu/capture_program.py --seconds 14
"""
import argparse
import time

import torch

KERNELS = 2000


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--seconds", type=float, default=14)
    args = p.parse_args()
    x, count = torch.zeros(64, 64, device="cuda"), 0
    x.add_(1)
    torch.cuda.synchronize()
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        before = time.monotonic_ns()
        for _ in range(KERNELS):
            x.add_(1)
        torch.cuda.synchronize()
        print(f"chunk {before} {time.monotonic_ns()} {KERNELS}", flush=True)
        count += 1
    print(f"whole {count}", flush=True)


if __name__ == "__main__":
    main()
