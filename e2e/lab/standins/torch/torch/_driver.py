"""The stand-in libcuda through ctypes, as the real torch reaches it through the CUDA runtime: opened when first needed, never before."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from typing import Any

NO_DEVICE = 100
_NO_LIBRARY = 35  # what the CUDA runtime says without libcuda.so.1: insufficient driver
_NOTHING_THERE = (
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from "
    "http://www.nvidia.com/Download/index.aspx"
)

_library: Any = None
_contexts: dict[int, ctypes.c_void_p] = {}
current = 0


def _open() -> int:
    """The result of cuInit, 0 when the driver can be used."""
    global _library
    if _library is None:
        try:
            library = ctypes.CDLL("libcuda.so.1")
            library.standinLaunch.argtypes = [ctypes.c_char_p] + [ctypes.c_ulonglong] * 3 + [ctypes.c_float, ctypes.c_size_t]
        except (OSError, AttributeError):  # not there, or not the stand-in's
            return _NO_LIBRARY
        _library = library
    return int(_library.cuInit(0))


def text(code: int) -> str:
    words = ctypes.c_char_p()
    if _library is not None and _library.cuGetErrorString(code, ctypes.byref(words)) == 0 and words.value:
        return words.value.decode()
    return "CUDA driver version is insufficient for CUDA runtime version" if code == _NO_LIBRARY else "unknown error"


def check(code: int) -> None:
    if code != 0:
        raise RuntimeError(f"CUDA error: {text(code)}")


def count() -> int:
    code = _open()
    if code == 0:
        number = ctypes.c_int()
        check(_library.cuDeviceGetCount(ctypes.byref(number)))
        return number.value
    if code not in (NO_DEVICE, _NO_LIBRARY):
        warnings.warn(
            f"CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error {code}: {text(code)}", stacklevel=3
        )
    return 0


def use(device: int) -> None:
    """Makes the device's primary context current, retaining it the first time."""
    global current
    code = _open()
    if code in (NO_DEVICE, _NO_LIBRARY):
        raise RuntimeError(_NOTHING_THERE)
    check(code)
    if not 0 <= device < count():
        raise RuntimeError("CUDA error: invalid device ordinal")
    if device not in _contexts:
        context = ctypes.c_void_p()
        check(_library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        _contexts[device] = context
    check(_library.cuCtxSetCurrent(_contexts[device]))
    current = device


def name(device: int) -> str:
    use(device)
    buffer = ctypes.create_string_buffer(128)
    check(_library.cuDeviceGetName(buffer, len(buffer), device))
    return buffer.value.decode()


def attribute(device: int, number: int) -> int:
    use(device)
    value = ctypes.c_int()
    check(_library.cuDeviceGetAttribute(ctypes.byref(value), number, device))
    return value.value


def synchronize() -> None:
    check(_library.cuCtxSynchronize())


class Memory:
    """n float32 on a device."""

    def __init__(self, device: int, n: int) -> None:
        self.device, self.n, self.pointer = device, n, ctypes.c_ulonglong()
        use(device)
        check(_library.cuMemAlloc_v2(ctypes.byref(self.pointer), ctypes.c_size_t(4 * max(n, 1))))

    def __del__(self) -> None:
        if self.pointer:
            _library.cuMemFree_v2(self.pointer)

    def write(self, values: Sequence[float]) -> None:
        check(_library.cuMemcpyHtoD_v2(self.pointer, (ctypes.c_float * self.n)(*values), ctypes.c_size_t(4 * self.n)))

    def read(self) -> list[float]:
        values = (ctypes.c_float * self.n)()
        check(_library.cuMemcpyDtoH_v2(values, self.pointer, ctypes.c_size_t(4 * self.n)))
        return list(values)


def launch(
    kernel: str, out: Memory, a: Memory | None = None, b: Memory | None = None, scalar: float = 0.0, n: int | None = None
) -> None:
    """One kernel of the stand-in driver over n elements (default: all of out)."""
    use(out.device)
    pointers = [memory.pointer if memory is not None else 0 for memory in (out, a, b)]
    check(_library.standinLaunch(kernel.encode(), *pointers, scalar, out.n if n is None else n))
