"""The installation of the driver on a @fake host: which packages are asked for at which version."""

from __future__ import annotations

from tests import test_run
from tests.fakes import data, offered
from tests.machines import machine

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
