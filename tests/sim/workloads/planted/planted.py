# SPDX-License-Identifier: GPL-2.0-only
"""Planted stalls in a Python program, with the options and the truth file of the C program beside it.

    python3 planted.py --lib DIR [--plant KIND@launcher:MS] [--gpu-us N] [--seconds S] [--truth FILE]

Kinds:
    gil     the launcher gives the interpreter lock up to wait for the device and then wants it back from a computing
            thread, which keeps it until the switch interval, MS, has passed
    gc      the launcher has the garbage collector look at a heap that takes it about MS
"""
import argparse
import bisect
import ctypes
import gc
import json
import os
import statistics
import sys
import threading
import time

STRIDE = 4  # steps, as in main.c


class Interval(ctypes.Structure):
    _fields_ = [("start_ns", ctypes.c_uint64), ("end_ns", ctypes.c_uint64)]


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Gpu:
    """Launching keeps the interpreter lock (PyDLL), so that a step gives it up only where a plant says so."""

    def __init__(self, folder, kernel_ns):
        self.driver = ctypes.PyDLL(os.path.join(folder, "libcuda.so.1"))
        self.runtime = ctypes.PyDLL(os.path.join(folder, "libcudart.so.13"))
        self.driver.simKernelCreate.restype = ctypes.c_void_p
        self.driver.simKernelCreate.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        self.driver.simDeviceBusy.restype = ctypes.c_size_t
        self.driver.simDeviceBusy.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        self.runtime.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t,
                                                  ctypes.c_void_p]
        self.kernel = self.driver.simKernelCreate(b"_Z12train_kernelPfS_i", kernel_ns)

    def launch(self):
        error = self.runtime.cudaLaunchKernel(self.kernel, Dim3(128, 1, 1), Dim3(256, 1, 1), None, 0, None)
        assert error == 0, f"cudaLaunchKernel: {error}"

    def busy(self):
        assert self.runtime.cudaDeviceSynchronize() == 0
        count = self.driver.simDeviceBusy(0, 0, None, 0)
        intervals = (Interval * count)()
        self.driver.simDeviceBusy(0, 0, intervals, count)
        return [(i.start_ns, i.end_ns) for i in intervals]


def idle_within(busy, start, end):
    """Idle time of the device in [start, end], between its first and its last operation."""
    at = bisect.bisect_right(busy, start, key=lambda interval: interval[1])
    total = 0
    for i in range(max(at, 1), len(busy)):
        begin, finish = max(busy[i - 1][1], start), min(busy[i][0], end)
        if busy[i - 1][1] >= end:
            break
        total += max(finish - begin, 0)
    return total


class Schedstat:
    """Run delay of the calling thread. Reading it keeps the interpreter lock, unlike Python's own files."""

    def __init__(self):
        self.libc = ctypes.PyDLL(None)
        self.libc.pread.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_long]
        self.file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self.text = ctypes.create_string_buffer(128)

    def run_delay_ns(self):
        size = self.libc.pread(self.file, self.text, 127, 0)
        return int(self.text.raw[:size].split()[1])


class GilPlant:
    code, blocks = "host.gil", True

    def __init__(self, milliseconds, folder):
        self.runtime = ctypes.CDLL(os.path.join(folder, "libcudart.so.13"))
        self.over = False
        self.thread = None
        self.cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(self.cpus)})  # apart, so that only the lock is fought for
        if milliseconds:
            sys.setswitchinterval(milliseconds / 1e3)
            self.thread = threading.Thread(target=self.compute, name="computing")
            self.thread.start()

    def compute(self):
        os.sched_setaffinity(0, {min(self.cpus)})
        value = 1
        while not self.over:
            for _ in range(1000):
                value = (value * 1103515245 + 12345) & 0x7fffffff

    def run(self):
        # Through CDLL: gives the lock up while it waits for the device, and wants it back.
        self.runtime.cudaDeviceSynchronize()

    def stop(self):
        self.over = True
        if self.thread:
            self.thread.join()


class GcPlant:
    code, blocks = "host.gc", False

    def __init__(self, milliseconds, _):
        self.heap = []
        gc.disable()
        gc.collect()
        spent = 0
        while spent < milliseconds * 1e6:
            self.heap.append([[i] for i in range(2000)])
            begin = time.thread_time_ns()
            gc.collect()
            spent = time.thread_time_ns() - begin

    def run(self):
        gc.collect()

    def stop(self):
        gc.enable()


KINDS = {"gil": GilPlant, "gc": GcPlant}


def stall(plant, schedstat):
    delay, cpu, start = schedstat.run_delay_ns(), time.thread_time_ns(), time.monotonic_ns()
    plant.run()
    end, cpu = time.monotonic_ns(), time.thread_time_ns() - cpu
    return start, end, cpu, schedstat.run_delay_ns() - delay


def settle(plant, busy, stalls):
    planted = contended = beside = 0
    for start, end, cpu, delay in stalls:
        idle = idle_within(busy, start, end)
        delay = min(delay, idle)
        part = max(idle - delay - (cpu if plant.blocks else 0), 0)
        planted += part
        beside += idle - part
        contended += delay
    return planted, contended, beside


def describe_steps(times):
    lengths = [(b - a) / STRIDE for a, b in zip(times[::STRIDE], times[STRIDE::STRIDE])]
    p25, median, p75 = statistics.quantiles(lengths, n=4)
    return {"median": median, "p25": p25, "p75": p75, "mean": statistics.fmean(lengths), "count": len(lengths)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--plant", required=True)
    parser.add_argument("--gpu-us", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--truth")
    arguments, _ = parser.parse_known_args()
    kind, _, milliseconds = arguments.plant.replace("@launcher", "").partition(":")
    milliseconds = float(milliseconds)
    gpu = Gpu(arguments.lib, arguments.gpu_us * 1000)
    plant = KINDS[kind](milliseconds, arguments.lib)
    stalls, times = [], []
    schedstat = Schedstat()
    delay = schedstat.run_delay_ns()
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        times.append(time.monotonic_ns())
        gpu.launch()
        if milliseconds:
            stalls.append(stall(plant, schedstat))
    delay = schedstat.run_delay_ns() - delay
    busy = gpu.busy()
    plant.stop()
    planted, contended, beside = settle(plant, busy, stalls)
    busy_ns = sum(e - s for s, e in busy)
    start_ns, end_ns = busy[0][0], busy[-1][1]
    truth = {
        "workload": "planted.py", "expected_code": plant.code, "expected_role": "launcher", "simulated": True,
        "start_ns": start_ns, "end_ns": end_ns, "busy_ns": busy_ns, "idle_ns": end_ns - start_ns - busy_ns,
        "planted_ns": planted, "contended_ns": delay, "steps": len(times), "step_ns": describe_steps(times),
        "plants": [{"kind": kind, "place": "launcher", "ms": milliseconds, "code": plant.code, "role": "launcher",
                    "planted_ns": planted, "contended_ns": contended, "beside_ns": beside, "device_ns": 0, "count": len(stalls), "dropped": 0}],
        "pids": [os.getpid()],
        "threads": [{"pid": os.getpid(), "tid": threading.get_native_id(), "name": "python3", "role": "launcher"}],
    }
    if arguments.truth:
        with open(arguments.truth, "w", encoding="utf-8") as file:
            json.dump(truth, file)


if __name__ == "__main__":
    main()
