"""Runs of undo.py and of the holds on @fake hosts: apt is kept off source files that it cannot read, or it would refuse everything."""

from __future__ import annotations

import pytest

from operations.apt_scripts import VIEW
from tests import test_run
from tests.fakes import SURVEY, data
from tests.surveys import Host, converged

own_run = test_run.own_run  # a run is a process
BROKEN = "==> /etc/apt/sources.list.d/third-party.list\ndeb http://packages.example.invalid/apt"
RECORD = '{"schema": 1, "packages": {"nvidia-driver-cuda": "580.159.04-1"}, "docker_options": {}}'


def host(broken: bool) -> Host:
    """Converged, all of its packages held, and installed by us."""
    made = converged().set("provenance", RECORD).set("installed_by_us", "nvidia-driver-cuda\ndocker.io")
    packages = [line.replace(" install ", " hold ") for line in made.sections["packages"][1]]
    made = made.set("packages", "\n".join(packages))
    return made.set("repositories", "\n".join([*made.sections["repositories"][1], BROKEN])) if broken else made


@pytest.mark.parametrize("broken", [True, False])
def test_undo_takes_back_packages_and_holds_past_a_file_that_apt_cannot_read(broken: bool) -> None:
    state = test_run.run({"host": data(host(broken))}, stages=("undo",))
    assert test_run.result("host").problems == []
    sent = [each for each in test_run.sent(state, "host") if SURVEY not in each]
    apt = [each for each in sent if "apt-mark" in each or " purge " in each or " remove " in each]
    assert ["unhold" in each for each in apt] == [True, False, False]
    assert all((f"Dir::Etc::sourceparts={VIEW}" in each) == broken for each in apt)
    assert any("third-party.list" in each and VIEW in each for each in sent[: sent.index(apt[0])]) == broken
