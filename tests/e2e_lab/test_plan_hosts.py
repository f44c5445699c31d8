from __future__ import annotations

import pytest

from e2e.lab import network
from e2e.lab.distros import DISTROS, USUAL
from e2e.lab.errors import LabError
from e2e.lab.lab import plan_hosts


def test_two_hosts_show_both_distributions_both_ways_of_gpu_and_both_ways_of_sudo() -> None:
    first, second = plan_hosts()
    assert (first.name, first.distro, first.gpu, first.sudo_password) == ("lab-1", "debian12", "h200", None)
    assert (second.name, second.distro, second.gpu) == ("lab-2", "debian13", "h200x8")
    assert second.sudo_password


def test_what_is_asked_for_is_for_all_hosts() -> None:
    hosts = plan_hosts(5, distro="debian13", gpu="none")
    assert {(host.distro, host.gpu) for host in hosts} == {("debian13", "none")}
    assert [host.number for host in hosts] == [1, 2, 3, 4, 5]
    assert len({host.sudo_password for host in hosts}) == 2


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"distro": "debian11"}, "no distribution 'debian11': use one of debian12, debian13"),
        ({"gpu": "h300"}, "no GPU profile 'h300': use one of "),
        ({"count": 0}, "cannot have 0 hosts: use a number from 1 to 200"),
    ],
)
def test_what_the_lab_does_not_know_is_refused_with_what_it_knows(asked: dict[str, object], sentence: str) -> None:
    with pytest.raises(LabError, match=sentence):
        plan_hosts(**asked)  # type: ignore[arg-type]


def test_every_network_and_every_host_has_names_and_addresses_of_its_own() -> None:
    networks = [network.Network(number) for number in (0, 8, 255)]
    hosts = [(net, host) for net in networks for host in range(1, network.MAX_HOSTS + 1)]
    for names in ([net.link(host) for net, host in hosts], [net.mac(host) for net, host in hosts]):
        assert len(set(names)) == len(hosts)
    addresses = {net.address(host) for net, host in hosts} | {net.gateway for net in networks}
    assert len(addresses) == len(hosts) + len(networks)
    # Linux allows 15 characters
    assert max(len(net.link(host)) for net, host in hosts) <= 15


@pytest.mark.parametrize("wanted", ["256", "-1", "lab", "8.0"])
def test_a_network_that_is_no_number_of_one_byte_is_refused(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_BRINGUP_LAB_NET", wanted)
    with pytest.raises(LabError, match=f"GPU_BRINGUP_LAB_NET is '{wanted}'"):
        network.this_network()


def test_dressed_hosts_say_so_and_are_made_only_when_they_are_asked_for() -> None:
    assert {host.distro for host in plan_hosts(4)} == set(USUAL)
    for distro in DISTROS.values():
        assert (distro.os_release is None) == (distro.name in USUAL)
        assert distro.os_release is None or "VARIANT_ID=dressed\n" in distro.os_release
