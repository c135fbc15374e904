# SPDX-License-Identifier: GPL-2.0-only
"""Of PyTorch what tests/gpu/planted_torch.py uses, on the simulated GPU: products that do not compute anything, but take
the device WHYIDLE_SIM_PRODUCT_NS each. WHYIDLE_SIM_LIB is the folder of the simulated CUDA libraries."""
import ctypes
import os

_folder = os.environ["WHYIDLE_SIM_LIB"]
_driver = ctypes.CDLL(os.path.join(_folder, "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
_runtime = ctypes.CDLL(os.path.join(_folder, "libcudart.so.13"))


class _Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


_driver.simKernelCreate.restype = ctypes.c_void_p
_driver.simKernelCreate.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
_runtime.cudaLaunchKernel.argtypes = [ctypes.c_void_p, _Dim3, _Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
_runtime.cudaEventRecord.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_runtime.cudaEventSynchronize.argtypes = [ctypes.c_void_p]
_runtime.cudaEventDestroy.argtypes = [ctypes.c_void_p]


def _check(error):
    if error:
        raise RuntimeError(f"simulated CUDA: error {error}")


class _Matrix:
    kernel = None

    def __matmul__(self, _other):
        if not _Matrix.kernel:
            _Matrix.kernel = _driver.simKernelCreate(b"_Z7productPfS_i", int(os.environ.get("WHYIDLE_SIM_PRODUCT_NS", 200_000)))
        _check(_runtime.cudaLaunchKernel(_Matrix.kernel, _Dim3(128, 1, 1), _Dim3(256, 1, 1), None, 0, None))
        return self


def randn(*_size, device):
    assert device == "cuda"
    return _Matrix()


class cuda:  # a module in PyTorch
    @staticmethod
    def synchronize():
        _check(_runtime.cudaDeviceSynchronize())

    class Event:
        def __init__(self):
            self.event = ctypes.c_void_p()
            _check(_runtime.cudaEventCreateWithFlags(ctypes.byref(self.event), 2))

        def record(self):
            _check(_runtime.cudaEventRecord(self.event, None))

        def synchronize(self):
            _check(_runtime.cudaEventSynchronize(self.event))

        def __del__(self):
            _runtime.cudaEventDestroy(self.event)
