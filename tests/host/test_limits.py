"""cgroups, and how much memory may be locked: RDMA and pinned buffers fail on the kernel's default of 8 MiB."""

from __future__ import annotations

import re

import pytest
from testinfra.host import Host

from bringup.settings import Settings
from tests.host.conftest import Info
from tests.host.expected import limit_of, may_raise_limits


@pytest.fixture(scope="session")
def memlock(host: Host, settings: Settings) -> int | str:
    """`unlimited` or bytes; skips where the host cannot have it."""
    if not may_raise_limits(host.file("/proc/1/status").content_string):
        has = re.findall(r"Max locked memory +\S+ +(\S+)", host.file("/proc/1/limits").content_string)[0]
        pytest.skip(f"PID 1 may not raise hard limits here (no CAP_SYS_RESOURCE): memlock stays at {has}")
    return settings.memlock


def test_cgroups_are_version_2(host: Host, docker: Info) -> None:
    assert host.file("/sys/fs/cgroup/cgroup.controllers").exists
    assert docker, "Docker does not answer"
    assert docker["CgroupVersion"] == "2"


def test_memlock_of_a_login(host: Host, memlock: int | str) -> None:
    if host.backend.spec.address is None:
        pytest.skip("no login at this machine itself to look at")
    soft, hard = host.backend.run_ssh("ulimit -S -l; ulimit -H -l").stdout.split()  # as the user: without sudo
    assert (limit_of(soft, 1024), limit_of(hard, 1024)) == (memlock, memlock)


def test_memlock_of_services(host: Host, memlock: int | str) -> None:
    assert limit_of(host.check_output("systemctl show -p DefaultLimitMEMLOCK --value")) == memlock


def test_memlock_of_docker(host: Host, memlock: int | str) -> None:
    service = host.service("docker").systemd_properties
    assert limit_of(service["LimitMEMLOCK"]) == memlock, "docker.service"
    running = host.file(f"/proc/{service['MainPID']}/limits").content_string
    assert limit_of(re.findall(r"Max locked memory +(\S+)", running)[0]) == memlock, "the daemon that runs"
