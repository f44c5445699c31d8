"""The installation of the driver on a @fake host: which packages are asked for at which version."""

from __future__ import annotations

import pytest

from tests import test_run
from tests.fakes import data, offered
from tests.machines import machine, with_driver

own_run = test_run.own_run  # a run is a process


def test_packages_with_a_version_of_their_own_are_not_picked_by_the_drivers() -> None:
    """nvlsm of an NVLink 5 board has its own numbers, and infiniband-diags is the distribution's: NVIDIA's repository lacks it."""
    index = [*offered(), "version nvlsm 2025.10.11-1", "version nvlsm 2025.06.2-1"]
    given = data(machine("debian12 8 x b200"), index=index)
    headers = ("linux-headers-6.1.0-49-cloud-amd64", "linux-headers-cloud-amd64")
    given["fake_responses"]["apt-cache $options policy"] = ["answered", *(f"{each} 6.1.1" for each in headers)]
    state = test_run.run({"b200": given}, stages=("preflight", "kernel", "driver"))
    installs = [each for each in test_run.sent(state, "b200") if "--no-install-recommends" in each and "nvlsm" in each]
    assert installs, test_run.result("b200").problems
    asked = installs[0].split("--no-install-recommends")[1]
    assert "nvidia-driver-cuda=580.159.04-1 " in asked and "nvidia-fabricmanager=580.159.04-1 " in asked
    assert " nvlsm infiniband-diags" in asked and "nvlsm=" not in asked


@pytest.mark.parametrize(
    ("have", "offers", "asked"),
    [
        ("580.178.04", ("580.178.04", "580.190.01"), "580.178.04"),
        ("580.178.04", ("580.190.01",), "580.190.01"),  # gone from the repository
        ("580.82.07", ("580.82.07", "580.190.01"), "580.190.01"),  # it has known holes
    ],
)
def test_a_set_that_is_in_parts_of_another_version_is_completed_at_the_modules_where_that_can_be(
    have: str, offers: tuple[str, ...], asked: str
) -> None:
    host = with_driver(machine("debian12 8 x h200 + 4 x nvswitch"), "nvidia-debian", have)
    packages = [*host.sections["packages"][1], "nvidia-fabricmanager 580.126.09-1 install installed"]
    names = ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced", "nvidia-fabricmanager", "libcuda1")
    rest = [each for each in offered() if not any(f" {name} " in each for name in names)]
    index = [*rest, *(f"version {name} {version}-1" for name in names for version in offers)]
    given = data(host.set("packages", "\n".join(packages)), index=index)
    headers = ("linux-headers-6.1.0-49-cloud-amd64", "linux-headers-cloud-amd64")
    given["fake_responses"]["apt-cache $options policy"] = ["answered", *(f"{each} 6.1.1" for each in headers)]
    state = test_run.run({"hgx": given}, stages=("preflight", "kernel", "driver"))
    installs = [each for each in test_run.sent(state, "hgx") if "--no-install-recommends" in each and "fabricmanager" in each]
    assert installs, test_run.result("hgx").problems
    wanted = installs[0].split("--no-install-recommends")[1]
    assert all(f"{name}={asked}-1" in wanted for name in names)
