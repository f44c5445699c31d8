"""torch.cuda, as much as a start and a first kernel need."""

from __future__ import annotations

from . import _driver


def is_available() -> bool:
    return _driver.count() > 0


def device_count() -> int:
    return _driver.count()


def init() -> None:
    _driver.use(_driver.current)


def current_device() -> int:
    init()
    return _driver.current


def set_device(device: int | str) -> None:
    _driver.use(index(device))


def synchronize(device: int | str | None = None) -> None:
    _driver.use(index(device))
    _driver.synchronize()


def get_device_name(device: int | str | None = None) -> str:
    return _driver.name(index(device))


def get_device_capability(device: int | str | None = None) -> tuple[int, int]:
    return _driver.attribute(index(device), 75), _driver.attribute(index(device), 76)


def get_arch_list() -> list[str]:
    return ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"] if is_available() else []


def index(device: int | str | None) -> int:
    """A device's number from None (the current one), 1, "cuda" or "cuda:1"."""
    if device is None or device == "cuda":
        return _driver.current
    return device if isinstance(device, int) else int(str(device).removeprefix("cuda:"))
