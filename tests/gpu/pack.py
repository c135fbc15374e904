#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Packs files into as few tar files as fit a size: pack.py PREFIX MOST_TARS MOST_BYTES FILE…

Writes PREFIX-1.tar, PREFIX-2.tar, …; files are taken in the order given; what does not fit is named on stdout.
"""
import os
import sys
import tarfile

BLOCK = 512  # of a tar: a header, and the contents rounded up


def groups(files, most, limit):
    """(groups of files, files left out): each file goes to the first group that has room."""
    made, room, left = [], [], []
    for path in files:
        size = os.path.getsize(path) + 2 * BLOCK
        fits = next((k for k, free in enumerate(room) if size <= free), None)
        if fits is None and len(made) < most and size <= limit:
            fits = len(made)
            made.append([])
            room.append(limit)
        if fits is None:
            left.append(path)
        else:
            made[fits].append(path)
            room[fits] -= size
    return made, left


def main(prefix, most, limit, *files):
    made, left = groups(files, int(most), int(limit) - 20 * BLOCK)  # the end of a tar is padded to 20 blocks
    for number, group in enumerate(made, 1):
        with tarfile.open(f"{prefix}-{number}.tar", "w") as out:
            for path in group:
                out.add(path, os.path.basename(path))
    for path in left:
        print(f"left out: {path} ({os.path.getsize(path)} bytes)")


if __name__ == "__main__":
    main(*sys.argv[1:])
