"""Surveys for property tests: machines in every state between fresh and converged, and surveys with holes anywhere their type allows."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from hypothesis import strategies as st

from bringup.plan import STEPS
from bringup.steps import Change
from bringup.survey import Survey, Unreadable
from bringup.target import Target
from tests.machines import DRIVERS, GPUS, SYSTEMS, machine, with_docker, with_driver

BOARDS = [each for each in GPUS if not each.startswith(("nvswitch", "unknown"))]
VERSIONS = ["470.256.02", "535.309.01", "550.163.01", "570.211.01", "580.65.06", "580.159.04", "595.112.07", "620.70.06"]
CHOICES: dict[str, st.SearchStrategy[object]] = {
    "gpu_driver_source": st.sampled_from(["auto", "nvidia", "distro", "preinstalled"]),
    "gpu_driver_branch": st.sampled_from(["auto", "lts", "production", "470", "535", "570", "580", "595", "620", *VERSIONS]),
    "gpu_kernel_module": st.sampled_from(["auto", "open", "proprietary"]),
    "gpu_docker_source": st.sampled_from(["auto", "docker", "distro", "existing"]),
    "gpu_injection": st.sampled_from(["auto", "cdi", "runtime"]),
    "gpu_hold_packages": st.sampled_from(["driver", "none"]),
    "gpu_memlock": st.sampled_from(["unlimited", 1 << 30]),
    "gpu_reboot": st.sampled_from(["if-idle", "never"]),
    "gpu_default_runtime": st.sampled_from(["nvidia", "runc"]),
    "gpu_images": st.sampled_from([["auto"], ["pytorch-2.14.1-cuda12.6"], ["registry.example/team/train:7"]]),
}
ACCEPT = ["end-of-life", "below-security-floor", "change-source", "stop-containers", "untried-distribution"]

days = st.dates(date(2026, 7, 1), date(2029, 12, 31))


@st.composite
def settings(draw: st.DrawFn) -> dict[str, object]:
    """A few choices of the user's; mostly none."""
    keys = draw(st.lists(st.sampled_from(sorted(CHOICES)), max_size=3, unique=True))
    chosen: dict[str, object] = {key: draw(CHOICES[key]) for key in keys}
    return {**chosen, "gpu_accept": draw(st.lists(st.sampled_from(ACCEPT), unique=True))}


@st.composite
def surveys(draw: st.DrawFn) -> Survey:
    """A machine with one or two kinds of GPU, maybe with a driver and a Docker on it."""
    boards = draw(st.lists(st.sampled_from(BOARDS), min_size=1, max_size=2))
    counts = [draw(st.sampled_from([1, 1, 2, 8])) for _ in boards]
    words = " + ".join(f"{count} x {board}" for count, board in zip(counts, boards, strict=True))
    words += draw(st.sampled_from(["", " + 4 x nvswitch"]))
    host = machine(
        f"{draw(st.sampled_from(sorted(SYSTEMS)))} {draw(st.sampled_from(['', 'aarch64 ']))}{words}".replace("  ", " ")
    )
    if host.sections["cgroup_controllers"][0] == "absent":
        host = host.set("cgroup_controllers", "cpu memory")
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["open", "proprietary"]))
        host = with_driver(
            host, draw(st.sampled_from(sorted(DRIVERS))), draw(st.sampled_from(VERSIONS)), kind, draw(st.booleans())
        )
    if draw(st.booleans()):
        host = with_docker(host, draw(st.sampled_from(["20.10.24", "25.0.5", "28.5.2"])))
    if draw(st.integers(0, 9)) == 0:
        host = host.set("efi_secure_boot", " 6 0 0 0 1")
    return host.survey


def applied(survey: Survey, target: Target, steps: int | None = None) -> Survey:
    """What the survey would say after the first `steps` steps of the plan, or all. The survey given stays as it is."""
    now = survey
    for _, function in STEPS[:steps]:
        found = function(now, target)
        if isinstance(found, Change):
            now = found.after
    return now


def places(value: Any, hint: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every place in a value, with the type that it must have."""
    if path:
        yield path, hint
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        fitting = [each for each in arguments if each not in (type(None), Unreadable)]
        if value is not None and not (isinstance(value, dict) and set(value) == {"unreadable"}) and fitting:
            yield from list(places(value, fitting[0], path))[1:]
    elif is_typeddict(hint):
        for key, each in get_type_hints(hint).items():
            yield from places(value[key], each, (*path, key))
    elif origin in (list, dict):
        keys: list[str | int] = list(value) if origin is dict else list(range(len(value)))
        for each_key in keys:
            yield from places(value[each_key], arguments[-1], (*path, each_key))


def with_holes(survey: Survey, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Survey:
    """A copy with other values of the same type at some places: None, unreadable, empty, or text that nobody expects."""
    found: Any = copy.deepcopy(survey)
    for _ in range(draw(st.integers(1, 6))):
        path, hint = draw(st.sampled_from(list(places(found, Survey))))
        inner = found
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = draw(any_of(hint))
    return found  # type: ignore[no-any-return]


TEXTS = ["", "?", "0", "580", "580.159.04", "580.1.2.3.4", "{", "[]", "enabled", "nvidia", "a b", "-1", "é\n"]
SAMPLES: dict[type, list[Any]] = {bool: [True, False], int: [-1, 0, 1 << 50], float: [-1e12, 0.0], str: TEXTS, type(None): [None]}
NUMBERS = st.one_of(st.integers(-2, 1 << 50), st.sampled_from([0, 1]))
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(TEXTS), lambda inner: st.lists(inner, max_size=2), max_leaves=3
)


def samples_of(hint: Any) -> list[Any]:
    """Some values of a type that a survey may hold, of each kind that it allows."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Unreadable:
        return [{"unreadable": "no permission"}]
    if origin in (Union, types.UnionType):
        return [one for each in arguments for one in samples_of(each)]
    if hint is Any:
        return [None, "", 1, [], {}, [None], {"a": None}]
    return [[]] if origin is list else [{}] if origin is dict else SAMPLES.get(hint, [])


def any_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that a survey may hold."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return JSON
    if hint is type(None):
        return st.none()
    if origin in (Union, types.UnionType):
        return st.one_of([any_of(each) for each in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if is_typeddict(hint):
        return st.fixed_dictionaries({key: any_of(each) for key, each in get_type_hints(hint).items()})
    if origin is list:
        return st.lists(any_of(arguments[0]), max_size=2)
    if origin is dict:
        keys = [
            "Runtimes",
            "SecurityOptions",
            "Swarm",
            "CDISpecDirs",
            "RegistryConfig",
            "DockerRootDir",
            "DefaultRuntime",
            "/",
            "docker",
        ]
        return st.dictionaries(st.sampled_from(keys), any_of(arguments[1]), max_size=3)
    return {bool: st.booleans(), int: NUMBERS, float: st.sampled_from([0.0, 1.5, -1e12, 1.8e9]), str: st.sampled_from(TEXTS)}[
        hint
    ]
