# SPDX-License-Identifier: GPL-2.0-only
"""A workload that runs by itself and whose steps can be counted while it does: its rate with and without something beside it,
in one run of it."""
import subprocess
import time

import harness

# Runs a workload with its steps counted: the count is a word in a file that is mapped, which costs some hundred ns a step.
COUNTER = """
import mmap, os, runpy, struct, sys
path, script = sys.argv[1:3]
sys.argv = sys.argv[2:]
sys.path.insert(0, os.path.dirname(script))
import common
with open(path, "r+b") as file:
    words = mmap.mmap(file.fileno(), 8)
steps = common.Run.steps
def counted(self):
    for i in steps(self):
        if i >= 0:
            struct.pack_into("Q", words, 0, i)
        yield i
common.Run.steps = counted
runpy.run_path(script, run_name="__main__")
"""


class Program:
    """A workload that runs bare."""

    def __init__(self, args, folder, script, seconds):
        folder.mkdir(parents=True, exist_ok=True)
        self.counter = folder / "steps"
        self.counter.write_bytes(bytes(8))
        self.files = [open(folder / f"program.{kind}", "wb") for kind in ("stdout", "stderr")]
        self.process = subprocess.Popen(
            [args.python, "-c", COUNTER, str(self.counter), str(script), "--seconds", f"{seconds:g}"],
            stdin=subprocess.DEVNULL, stdout=self.files[0], stderr=self.files[1], start_new_session=True)
        self.pid = self.process.pid
        self.folder = folder

    def steps(self):
        return int.from_bytes(self.counter.read_bytes(), "little")

    def rate(self, seconds):
        """Steps a second from one step to another; ValueError if the program has ended or hangs."""
        begin, start = time.monotonic(), self.steps()
        time.sleep(seconds)  # a rate needs a time
        count, took = self.steps() - start, time.monotonic() - begin
        if self.process.poll() is not None:
            raise ValueError(f"the program ended with {self.process.returncode}: {self.said()}")
        if not count:
            raise ValueError("the program makes no step any more")
        return count / took

    def wait_for_steps(self, limit_s):
        end = time.monotonic() + limit_s
        while self.steps() < 5:
            if self.process.poll() is not None or time.monotonic() > end:
                raise ValueError(f"the program did not start: {self.said()}")
            time.sleep(0.1)

    def said(self):
        lines = (self.folder / "program.stderr").read_text(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "(nothing on stderr)"

    def close(self):
        harness.end_group(self.process)
        for file in self.files:
            file.close()
