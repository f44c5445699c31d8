"""The suite for your own hosts:  pytest tests/host --inventory inventories/cluster.py [--limit NAME]

What must hold comes from the inventory's settings and the catalog, never from what gpu-bringup has left on the host.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host
from typing_extensions import override

from bringup import catalog as catalog_package
from bringup.catalog import Catalog
from bringup.errors import UserError
from bringup.settings import Settings
from tests.host import hosts
from tests.host.connection import Connections, problem
from tests.host.expected import Board, boards_on_bus
from tests.host.hosts import HostSpec

AT_ONCE = 16  # hosts that are connected to at the same time
Info = dict[str, Any]  # of `docker info`; empty where Docker does not answer
SPECS = pytest.StashKey[dict[str, HostSpec]]()
HOSTS = pytest.StashKey[dict[str, Host]]()
CONNECTIONS = pytest.StashKey[Connections]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpu-bringup")
    group.addoption("--inventory", metavar="FILE", help="the pyinfra inventory whose hosts are tested")
    group.addoption("--limit", metavar="NAME", action="append", default=[], help="only this host or group; may be repeated")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.help:
        return
    file = config.getoption("--inventory", None)
    try:
        if not file:
            raise UserError("tests/host needs hosts: --inventory FILE, such as inventories/cluster.py")
        specs = hosts.load(file, config.getoption("--limit"))
    except UserError as error:
        raise pytest.UsageError(str(error)) from None
    connections = Connections()
    config.stash[CONNECTIONS] = connections
    config.stash[SPECS] = {each.name: each for each in specs}
    config.stash[HOSTS] = {each.name: connections.testinfra_host(each) for each in specs}
    config.option.reportchars += "s"  # every skip is listed and counted, with its reason
    config.option.tbstyle = "short" if config.option.tbstyle == "auto" else config.option.tbstyle


def pytest_unconfigure(config: pytest.Config) -> None:
    if CONNECTIONS in config.stash:
        config.stash[CONNECTIONS].close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test for every host; those of images for every image of that host's settings."""
    specs = metafunc.config.stash[SPECS]
    if "named" in metafunc.fixturenames:
        pairs = [(name, image) for name, spec in specs.items() for image in spec.settings.images]
        ids = [f"{name}-{image.split('@')[0]}" for name, image in pairs]
        metafunc.parametrize(("host", "named"), pairs, ids=ids, indirect=True, scope="session")
    elif "host" in metafunc.fixturenames:
        metafunc.parametrize("host", list(specs), indirect=True, scope="session")


class Unreachable(pytest.Item):
    """Stands for all tests of a host that cannot be tested: one failure with its reason."""

    reason: str

    @override
    def runtest(self) -> None:
        pytest.fail(self.reason, pytrace=False)

    @override
    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Host by host. Connect to all that have tests, many at once; replace the tests of those that do not answer by one."""
    tests: dict[str, list[pytest.Item]] = {name: [] for name in config.stash[SPECS]}
    for item in items:
        if isinstance(item, pytest.Function):
            tests[str(item.callspec.params["host"])].append(item)
    items[:] = [each for of_host in tests.values() for each in of_host]
    if config.option.collectonly:
        return
    tests = {name: of_host for name, of_host in tests.items() if of_host}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        problems = dict(zip(tests, pool.map(lambda name: problem(config.stash[HOSTS][name]), tests), strict=True))
    for name, reason in problems.items():
        if reason is not None:
            config.hook.pytest_deselected(items=tests[name])
            gone = set(tests[name])
            items[:] = [each for each in items if each not in gone]
            instead = Unreachable.from_parent(session, name=name, nodeid=f"tests/host/reach[{name}]")
            instead.reason = f"{reason} ({len(gone)} checks of this host were not made)"
            items.append(instead)


@pytest.fixture(scope="session")
def host(request: pytest.FixtureRequest) -> Host:
    return request.config.stash[HOSTS][request.param]


@pytest.fixture(scope="session")
def settings(host: Host) -> Settings:
    found: Settings = host.backend.spec.settings
    return found


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return catalog_package.load()


@pytest.fixture(scope="session")
def boards(host: Host, catalog: Catalog) -> tuple[Board, ...]:
    """The NVIDIA GPUs on the PCI bus."""
    names = " ".join(f"*/{each}" for each in ("vendor", "device", "class", "subsystem_vendor", "subsystem_device"))
    return boards_on_bus(host.run(f"cd /sys/bus/pci/devices && grep -s . {names}").stdout, catalog)


@pytest.fixture(scope="session")
def gpu_host(boards: tuple[Board, ...], settings: Settings) -> None:
    """For tests that only make sense on a host with a GPU."""
    if settings.expected_count == 0 and not boards:
        pytest.skip("no GPU here, which is what gpu_expected_count says")


@pytest.fixture(scope="session")
def driver_text(host: Host) -> str:
    """What the loaded driver says of itself; empty where none is loaded."""
    return str(host.run("cat /proc/driver/nvidia/version").stdout)


@pytest.fixture(scope="session")
def loaded(driver_text: str) -> str | None:
    """The version of the driver that the kernel runs."""
    found = re.search(r"^NVRM version:.*?\s(\d{3}\.\d+(\.\d+)?)\s", driver_text, re.M)
    return found.group(1) if found else None


@pytest.fixture(scope="session")
def docker(host: Host) -> Info:
    """What Docker's daemon says of itself."""
    text = host.run("docker info --format '{{json .}}'").stdout
    info = dict(json.loads(text)) if text.startswith("{") else {}
    return info if info.get("ServerVersion") else {}  # without a daemon the client describes itself, some with exit status 0


@pytest.fixture(scope="session")
def named(request: pytest.FixtureRequest) -> str:
    """An entry of gpu_images."""
    return str(request.param)
