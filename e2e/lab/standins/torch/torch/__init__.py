"""Stand-in for PyTorch, for a test lab with simulated GPUs: one-dimensional float32 tensors, a few operations.

On "cuda" every value lives in the driver's memory and every operation is a kernel of the stand-in libcuda: where a real torch could not
reach a GPU in its container, this one cannot either.
"""

from __future__ import annotations

from . import _C, _driver, cuda, version
from .version import __version__

__all__ = ["_C", "Tensor", "__version__", "arange", "cuda", "float32", "version"]
float32 = "torch.float32"


class Tensor:
    """Either a list of floats on the CPU, or memory of a device."""

    def __init__(self, data: list[float] | _driver.Memory) -> None:
        self._data, self.dtype = data, float32

    @property
    def device(self) -> str:
        return f"cuda:{self._data.device}" if isinstance(self._data, _driver.Memory) else "cpu"

    @property
    def shape(self) -> tuple[int]:
        return (self._data.n if isinstance(self._data, _driver.Memory) else len(self._data),)

    def __len__(self) -> int:
        return self.shape[0]

    def tolist(self) -> list[float]:
        return self._data.read() if isinstance(self._data, _driver.Memory) else list(self._data)

    def cpu(self) -> Tensor:
        return Tensor(self.tolist())

    def to(self, device: str) -> Tensor:
        if str(device) == "cpu":
            return self.cpu()
        memory = _driver.Memory(cuda.index(device), len(self))
        memory.write(self.tolist())
        return Tensor(memory)

    def item(self) -> float:
        (value,) = self.tolist()
        return value

    def sum(self) -> Tensor:
        if not isinstance(self._data, _driver.Memory):
            return Tensor([float(sum(self._data))])
        memory = _driver.Memory(self._data.device, 1)
        _driver.launch("sum", memory, self._data, n=len(self))
        return Tensor(memory)

    def _elementwise(self, kernel: str, other: Tensor | float) -> Tensor:
        if isinstance(other, Tensor) and (other.device != self.device or len(other) != len(self)):
            raise RuntimeError("Expected all tensors to be on the same device and of the same size")
        if not isinstance(self._data, _driver.Memory):
            others = other.tolist() if isinstance(other, Tensor) else [other] * len(self)
            return Tensor([a + b if kernel == "add" else a * b for a, b in zip(self._data, others, strict=True)])
        memory = _driver.Memory(self._data.device, len(self))
        if isinstance(other, Tensor) and isinstance(other._data, _driver.Memory):
            _driver.launch(kernel, memory, self._data, other._data)
        elif not isinstance(other, Tensor):
            _driver.launch(kernel, memory, self._data, scalar=float(other))
        return Tensor(memory)

    def __add__(self, other: Tensor | float) -> Tensor:
        return self._elementwise("add", other)

    def __mul__(self, other: Tensor | float) -> Tensor:
        return self._elementwise("mul", other)

    __radd__, __rmul__ = __add__, __mul__


def arange(n: int, dtype: str = float32, device: str = "cpu") -> Tensor:
    if str(device) == "cpu":
        return Tensor([float(i) for i in range(n)])
    memory = _driver.Memory(cuda.index(device), n)
    _driver.launch("arange", memory)
    return Tensor(memory)
