# SPDX-License-Identifier: GPL-2.0-only
"""A Python program on the simulated GPU that stalls in one known line before each step.

    python_stall.py LIBRARIES KIND SECONDS TRUTH

LIBRARIES is the folder with libcudart.so.13, KIND one of the functions stall_* below. TRUTH gets, as JSON, the line and
the function of the stall.
"""
import ctypes
import gc
import inspect
import json
import os
import sys
import threading
import time

STALL_S = 0.008


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Step:
    """Kernels on a stream, and the wait for them."""

    def __init__(self, libraries):
        driver = ctypes.CDLL(os.path.join(libraries, "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
        self.runtime = ctypes.CDLL(os.path.join(libraries, "libcudart.so.13"))
        driver.simKernelCreate.restype = ctypes.c_void_p
        driver.simKernelCreate.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        self.runtime.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t,
                                                  ctypes.c_void_p]
        self.kernel = driver.simKernelCreate(b"_Z12train_kernelPfS_i", 1000000)

    def run(self):
        for _ in range(4):
            assert self.runtime.cudaLaunchKernel(self.kernel, Dim3(128, 1, 1), Dim3(256, 1, 1), None, 0, None) == 0
        assert self.runtime.cudaDeviceSynchronize() == 0


class Helper:
    """A thread that lets the main thread wait for STALL_S in each step."""

    def __init__(self):
        self.lock = threading.Lock()
        self.lock.acquire()
        self.go = threading.Semaphore(0)
        self.reader, self.writer = os.pipe()
        self.deliver = self.lock.release
        self.heap = []
        threading.Thread(target=self.work, name="helper", daemon=True).start()

    def work(self):
        while True:
            self.go.acquire()
            time.sleep(STALL_S)
            self.deliver()


def stall_sleep(_helper):
    time.sleep(STALL_S)  # the stall


def stall_lock(helper):
    helper.go.release()
    helper.lock.acquire()  # the stall


def stall_pipe(helper):
    helper.deliver = lambda: os.write(helper.writer, b"x")
    helper.go.release()
    os.read(helper.reader, 1)  # the stall


def stall_compute(_helper):
    end = time.monotonic() + STALL_S
    while time.monotonic() < end:
        sum(range(500))  # the stall


def prepare_collect(helper):
    """Objects that a collection takes STALL_S to look at. None comes by itself from here on."""
    heap = helper.heap
    gc.disable()
    spent = 0
    while spent < STALL_S * 1e9:
        heap.append([[i] for i in range(2000)])
        begin = time.thread_time_ns()
        gc.collect()
        spent = time.thread_time_ns() - begin


def stall_collect(_helper):
    gc.collect()  # the stall


class Lingering:
    """A finaliser that gives the interpreter lock up: the collection goes on, and others compute meanwhile."""

    def __init__(self, helper):
        self.me, self.helper = self, helper

    def __del__(self):
        self.helper.deliver()
        time.sleep(STALL_S * 1.5)


def collect_lingering(helper):
    while True:
        helper.go.acquire()
        Lingering(helper)
        gc.collect()
        helper.collected.release()


def prepare_beside(helper):
    gc.disable()
    helper.begun, helper.collected = threading.Semaphore(0), threading.Semaphore(0)
    helper.deliver = helper.begun.release
    helper.go = threading.Semaphore(0)  # that of `work` stays as it is
    threading.Thread(target=collect_lingering, args=(helper,), daemon=True).start()


def stall_beside(helper):
    """Computes while another thread is within a collection."""
    helper.go.release()
    helper.begun.acquire()
    stall_compute(helper)  # the stall
    helper.collected.acquire()


def place_of(function):
    lines, first = inspect.getsourcelines(function)
    offset = next(i for i, line in enumerate(lines) if "# the stall" in line)
    return {"file": os.path.basename(__file__), "line": first + offset, "first": first, "last": first + len(lines) - 1,
            "function": function.__name__}


def main():
    libraries, kind, seconds, truth = sys.argv[1:]
    stall = globals()[f"stall_{kind}"]
    step, helper = Step(libraries), Helper()
    globals().get(f"prepare_{kind}", lambda _helper: None)(helper)
    end = time.monotonic() + float(seconds)
    steps = 0
    while time.monotonic() < end:
        step.run()
        stall(helper)
        steps += 1
    with open(truth, "w", encoding="utf-8") as file:
        json.dump({"steps": steps, "version": list(sys.version_info[:2]), **place_of(stall)}, file)


main()
