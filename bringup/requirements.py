"""What an image's own variables say of the driver: NVIDIA_REQUIRE_…, as NVIDIA's container tools read them, and a libcuda of its own. Pure.

Conditions with blanks between them are alternatives, those with commas hold together: `cuda>=12.8 brand=tesla,driver>=535,driver<536`.
Every variable has to hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from bringup.catalog import Gpu
from bringup.policy.fit import Loaded, numbers

CONDITION = re.compile(r"(cuda|driver|brand|arch)(>=|<=|!=|=|<|>)(\S+)")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
# NVML calls data-center GPUs tesla up to Ampere and nvidia from then on; images name all of the names
BRANDS = {
    "datacenter": {"tesla", "nvidia", "grid"},
    "workstation": {"quadro", "quadrortx", "nvidiartx", "rtx", "nvs"},
    "consumer": {"geforce", "geforcertx", "titan", "titanrtx"},
}


def unmet(requires: Iterable[str], driver: Loaded, boards: Iterable[Gpu]) -> str | None:
    """The first variable that the driver does not meet for one of the GPUs, in words; None where all hold.

    + requires: `NVIDIA_REQUIRE_CUDA=cuda>=12.8 …`, as the image's settings have them; what cannot be read refuses nothing
    """
    for line in requires:
        name, _, text = line.partition("=")
        if not name.startswith("NVIDIA_REQUIRE_"):
            continue
        for board in boards:
            alternatives = [each.split(",") for each in text.split()]
            if alternatives and not any(all(_holds(one, driver, board) for one in each) for each in alternatives):
                first = next((one for each in alternatives for one in each if one.startswith("cuda")), alternatives[0][0])
                have = f"driver {driver.version} gives CUDA {driver.branch.cuda}"
                return f"the image requires {first} ({name}) for {board.name}, and {have}"
    return None


def own_libcuda(environment: Iterable[str], driver: Loaded) -> str | None:
    """A forward compatibility library that programs in the image load before the host's, though the driver is newer; None: no such thing.

    CUDA then ends with error 803: a libcuda of an older branch than the kernel module.
    """
    values = dict(each.partition("=")[::2] for each in environment)
    path = next((each for each in values.get("LD_LIBRARY_PATH", "").split(":") if re.search(r"/cuda[^/]*/compat", each)), None)
    cuda = values.get("CUDA_VERSION", "")
    if path is None or not re.match(r"\d+\.\d+", cuda) or numbers(cuda)[:2] > numbers(driver.branch.cuda):
        return None
    return f"its LD_LIBRARY_PATH loads the libcuda of CUDA {cuda} in {path} under driver {driver.version}: error 803 where it is older"


def _holds(condition: str, driver: Loaded, board: Gpu) -> bool:
    found = CONDITION.fullmatch(condition)
    if found is None:
        return True
    what, sign, value = found.groups()
    if what == "brand":
        return (value.casefold() in BRANDS[board.class_]) == (sign == "=")
    have = {"cuda": driver.branch.cuda, "driver": driver.version, "arch": board.compute_capability}[what]
    width = max(len(numbers(have)), len(numbers(value)))
    pair = [(*numbers(each), *(0,) * width)[:width] for each in (have, value)]
    return COMPARE[sign](pair[0], pair[1])
