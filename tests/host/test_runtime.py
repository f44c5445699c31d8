"""The container toolkit and Docker."""

from __future__ import annotations

import pytest
from testinfra.host import Host

from bringup import daemon_json, versions
from bringup.catalog import Catalog
from bringup.daemon_info import missing_from_daemon
from bringup.settings import Settings
from tests.host.conftest import Info
from tests.host.expected import daemon_options, injection


@pytest.mark.usefixtures("gpu_host")
def test_toolkit_is_whole_and_has_no_known_hole(host: Host, catalog: Catalog) -> None:
    found = {name: host.package(name).version for name in catalog.toolkit.packages}  # fails where one is not installed
    assert len(set(found.values())) == 1, found
    assert all(versions.at_least(each, catalog.toolkit.floor) for each in found.values()), catalog.toolkit.floor


def test_docker_answers_and_starts_at_boot(host: Host, docker: Info) -> None:
    assert docker, host.run("docker info").stderr
    assert host.service("docker").is_enabled


@pytest.mark.usefixtures("gpu_host")
def test_nvidia_runtime_is_there(host: Host, docker: Info) -> None:
    assert docker, "Docker does not answer"
    assert "nvidia" in docker["Runtimes"]
    assert host.exists(docker["Runtimes"]["nvidia"]["path"])


@pytest.mark.usefixtures("gpu_host")
def test_default_runtime(docker: Info, settings: Settings) -> None:
    wanted = settings.default_runtime
    assert docker, "Docker does not answer"
    assert docker["DefaultRuntime"] == wanted


def test_daemon_json_holds_the_settings_and_the_daemon_has_read_them(host: Host, docker: Info, settings: Settings) -> None:
    assert docker, "Docker does not answer"
    wanted = daemon_options(settings)
    file = host.file(daemon_json.PATH)
    have = daemon_json.parse(file.content_string if file.exists else None)  # raises where it is no JSON
    assert daemon_json.combined(have, wanted) == have, "daemon.json lacks some of it"
    assert missing_from_daemon(docker, wanted) == []


@pytest.mark.usefixtures("gpu_host")
def test_docker_can_inject_gpus(host: Host, docker: Info, settings: Settings, catalog: Catalog) -> None:
    assert docker, "Docker does not answer"
    if injection(settings, catalog, docker["ServerVersion"]) == "runtime":
        pytest.skip("GPUs are injected by the nvidia runtime here: no CDI spec is needed")
    assert "nvidia.com/gpu=all" in host.check_output("nvidia-ctk cdi list").split()
